"""REALM's two towers: one makes vectors of passages, the other of queries (Guu et al. 2020, §3.2).

Knows: pooling, projection and the forms of the inputs, "[CLS] text [SEP]" and "[CLS] title [SEP] text [SEP]".
Does not know: where vectors are stored, or what happens to the retrieved passages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from quoth.encoders.bert import dense
from quoth.encoders.keys import EncodedPassage, TextSpan, span_keys
from quoth.encoders.transformer import PairBatch, Transformer, longest_input, pair_batch, run_batched
from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import ModelSource
from quoth.realm.config import REALMConfig
from quoth.records import Passage
from quoth.text.tokenizer import Pair, PairTokenizer

Part = TypeVar("Part", bound=nn.Module)

QUERY_CHARACTERS = 200
"""The length of the parts of passages that serve as sample queries."""
_VECTOR_SETTINGS = (
    "pooling",
    "pooler",
    "dimensions",
    "layer_norm_eps",
    "normalize",
    "token_types",
    "passage_tokens",
)


class Tower(nn.Module):
    """An encoder with a head that turns its states into one vector. Its weights are named `encoder.…` (not saved with
    the head), `pooler.…`, `projection.…` and `norm.…`."""

    def __init__(self, encoder: Any, config: REALMConfig) -> None:
        super().__init__()
        self.encoder, self.config = encoder, config
        hidden = int(encoder.config.hidden_size)
        self.dimensions = config.dimensions or hidden
        self.pooler = dense(hidden, hidden) if config.pooler else None
        self.projection = dense(hidden, config.dimensions) if config.dimensions else None
        eps = config.layer_norm_eps
        self.norm = None if eps is None else nn.LayerNorm(self.dimensions, eps)

    def forward(self, batch: PairBatch) -> Tensor:
        """The vectors of a batch of inputs: [B, D]."""
        states_BTH = self.encoder(**batch.arguments()).last_hidden_state
        vectors_BD = self.pooled(states_BTH, batch.mask_BT)
        if self.projection is not None:
            vectors_BD = self.projection(vectors_BD)
        if self.norm is not None:
            vectors_BD = self.norm(vectors_BD)
        return nn.functional.normalize(vectors_BD, dim=-1) if self.config.normalize else vectors_BD

    def pooled(self, states_BTH: Tensor, mask_BT: Tensor) -> Tensor:
        """One state per input, before the projection: [B, H]."""
        pooled_BH = mean_state(states_BTH, mask_BT) if self.config.pooling == "mean" else states_BTH[:, 0]
        return pooled_BH if self.pooler is None else self.pooler(pooled_BH).tanh()


def mean_state(states_BTH: Tensor, mask_BT: Tensor) -> Tensor:
    """The mean of each input's states: [B, H]."""
    mask_BT1 = mask_BT[:, :, None].to(states_BTH.dtype)
    return (states_BTH * mask_BT1).sum(dim=1) / mask_BT1.sum(dim=1)


def head_state(module: nn.Module) -> dict[str, Tensor]:
    """The weights of a module that are not its encoder's."""
    return {name: weight for name, weight in module.state_dict().items() if not name.startswith("encoder.")}


def opened(
    kind: Callable[[Any, REALMConfig], Part], encoder: Any, config: REALMConfig, file: Path | None, prefix: str
) -> Part:
    """A part of a REALM, a tower or its reader, over its loaded encoder. Its other weights are named `prefix.…` in the
    file; None leaves them as they are. Raises ModelNotFoundError if the file is missing, damaged or does not fit."""
    part = kind(encoder, config)
    expected = head_state(part)
    if file is None or not expected:
        return part
    try:
        saved = {name.removeprefix(f"{prefix}."): weight for name, weight in load_file(file).items()}
    except (SafetensorError, OSError) as error:
        raise ModelNotFoundError(f"{file} cannot be read ({error}); fetch or train the model again") from error
    for name, weight in expected.items():
        if name not in saved or saved[name].shape != weight.shape:
            state = f"of shape {list(saved[name].shape)}" if name in saved else "missing"
            raise ModelNotFoundError(f"{file}: {prefix}.{name} is {state}, expected {list(weight.shape)}")
    part.load_state_dict({name: saved[name].float() for name in expected}, strict=False)
    return part


class PassageEncoder:
    """REALM's towers, loaded; they make one key per passage, and queries."""

    keys = "passages"

    def __init__(self, passages: Tower, queries: Tower, tokenizer: PairTokenizer, name: str, fingerprint: str) -> None:
        self.name, self.fingerprint = name, fingerprint
        self.config = passages.config
        self.dimensions, self.scale = passages.dimensions, passages.config.similarity_scale
        self.tokenizer = tokenizer
        self.passage_tower, self.query_tower = passages.eval(), queries.eval()

    @classmethod
    def load(
        cls, source: ModelSource[REALMConfig], *, device: str | None = None, dtype: str | None = None
    ) -> PassageEncoder:
        """Raises ModelNotFoundError, or InputError on an unknown device or dtype."""
        config = source.config
        transformer = Transformer.load(source.part("passages"), device=device, dtype=dtype)
        passages = opened(Tower, transformer.model, config, source.heads, "passages")
        mark = fingerprint(transformer.fingerprint, passages)  # of the head in fp32, whatever `dtype`
        queries = passages = like_encoder(passages)
        if config.separate_towers:
            other = Transformer.load(source.part("queries"), device=device, dtype=dtype)
            queries = like_encoder(opened(Tower, other.model, config, source.heads, "queries"))
        tokenizer = pair_tokenizer(transformer.tokenizer, transformer.model, config)
        return cls(passages, queries, tokenizer, source.name, mark)

    def encode(self, passages: Sequence[Passage]) -> list[EncodedPassage]:
        """The keys of each passage: `passages` of their texts and titles."""
        return self.passages([passage.text for passage in passages], [passage.title for passage in passages])

    def passages(self, texts: Sequence[str], titles: Sequence[str]) -> list[EncodedPassage]:
        """One key per passage, which spans all of its text."""
        vectors_BD = embed(
            self.passage_tower, self.tokenizer, passage_inputs(self.tokenizer, self.config, texts, titles)
        )
        return [
            EncodedPassage(span_keys([(0, len(text))]), vector_D[None])
            for text, vector_D in zip(texts, vectors_BD, strict=True)
        ]

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The query vectors of texts: [B, D]."""
        return self.vectors_of([ids for ids, _ in self.tokenizer.pieces(texts)])

    def vectors_of(self, asked: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Like `queries`, for texts given as token ids."""
        return embed(self.query_tower, self.tokenizer, query_inputs(self.tokenizer, self.config, asked))

    def words(self, query: str) -> NDArray[np.float32]:
        """The query vector of one text: [1, D]. Raises InputError on a text without words."""
        if not query.strip():
            raise InputError(f"query {query!r} has no words; give words to search for")
        return self.queries([query])

    def queries_at(self, places: Iterable[TextSpan], count: int) -> NDArray[np.float32]:
        """Sample queries: parts of passages: [Q, D]."""
        texts = [text[len(text) // 3 :][:QUERY_CHARACTERS] for text, _, _ in islice(places, count)]
        return self.queries(texts) if texts else np.zeros((0, self.dimensions), np.float32)


def like_encoder(part: Part) -> Part:
    """The part with its heads on its encoder's device and in its dtype."""
    weight = next(part.get_submodule("encoder").parameters())
    return part.to(device=weight.device, dtype=weight.dtype)


def fingerprint(encoder: str, tower: Tower) -> str:
    """A digest of what determines a passage's vector: the encoder's weights and tokenizer, the head, the settings."""
    settings = asdict(tower.config)
    digest = hashlib.sha256(f"{encoder} {[settings[name] for name in _VECTOR_SETTINGS]}".encode())
    for name, weight in sorted(head_state(tower).items()):
        digest.update(name.encode())
        digest.update(weight.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


def query_inputs(tokenizer: PairTokenizer, config: REALMConfig, asked: Iterable[Sequence[int]]) -> list[Pair]:
    """ "[CLS] text [SEP]" for texts given as token ids."""
    return [tokenizer.single(ids, config.query_tokens) for ids in asked]


def passage_inputs(
    tokenizer: PairTokenizer, config: REALMConfig, texts: Sequence[str], titles: Sequence[str]
) -> list[Pair]:
    """ "[CLS] title [SEP] text [SEP]"; the title takes at most half of the input."""
    limit = config.passage_tokens
    both = zip(tokenizer.pieces(titles), tokenizer.pieces(texts), strict=True)
    return [tokenizer.pair(head[: limit // 2], body, limit) for (head, _), (body, _) in both]


def embed(tower: Tower, tokenizer: PairTokenizer, inputs: Sequence[Pair]) -> NDArray[np.float32]:
    """The vectors of encoder inputs, in the order given: [B, D]."""
    vectors_BD = np.empty((len(inputs), tower.dimensions), np.float32)
    device = next(tower.parameters()).device
    lengths = [len(pair.ids_T) for pair in inputs]
    for member, vector_D in run_batched(inputs, lengths, lambda pairs: tower(pair_batch(tokenizer, pairs, device))):
        vectors_BD[member] = vector_D
    return vectors_BD


def pair_tokenizer(tokenizer: Any, encoder: Any, config: REALMConfig) -> PairTokenizer:
    """The tokenizer of an encoder's inputs: up to the encoder's maximum length, with token types if it has two."""
    types = config.token_types and getattr(encoder.config, "type_vocab_size", 1) > 1
    return PairTokenizer(tokenizer, types, longest_input(encoder.config))
