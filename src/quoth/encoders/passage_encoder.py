"""REALM's two towers: a vector for a passage, a vector for what is asked (Guu et al. 2020, §3.2).

Knows: pooling, projection and the forms of the inputs, "[CLS] text [SEP]" and "[CLS] title [SEP] text [SEP]".
Does not know: where vectors are kept, and what is done with the passages found.

Shape suffixes: B batch, T tokens, H hidden size of the encoder, D dimensions of the vectors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from quoth.config import REALMConfig
from quoth.encoders.key_encoder import EncodedPassage, Place, span_keys
from quoth.encoders.pretrained import REALMSource
from quoth.encoders.transformer import Transformer, longest_input
from quoth.errors import InputError, ModelNotFoundError
from quoth.records import Passage
from quoth.tokenizers.batching import batches_by_length
from quoth.tokenizers.pairs import Pair, PairBatch, PairTokenizer

QUERY_CHARACTERS = 200
"""Of a passage that stands in for a question."""
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
    """An encoder and what makes one vector of its states. Its weights are named `encoder.…`, which files leave out,
    `pooler.…`, `projection.…` and `norm.…`."""

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
        """One state an input, before the projection: [B, H]."""
        pooled_BH = mean_state(states_BTH, mask_BT) if self.config.pooling == "mean" else states_BTH[:, 0]
        return pooled_BH if self.pooler is None else self.pooler(pooled_BH).tanh()


def mean_state(states_BTH: Tensor, mask_BT: Tensor) -> Tensor:
    """The mean of each input's states: [B, H]."""
    mask_BT1 = mask_BT[:, :, None].to(states_BTH.dtype)
    return (states_BTH * mask_BT1).sum(dim=1) / mask_BT1.sum(dim=1)


def dense(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer with BERT's initial weights."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=0.02)
    nn.init.zeros_(layer.bias)
    return layer


def head_state(module: nn.Module) -> dict[str, Tensor]:
    """The weights of a module that are not its encoder's."""
    return {name: weight for name, weight in module.state_dict().items() if not name.startswith("encoder.")}


def load_heads(file: Path | None, prefix: str, module: nn.Module) -> None:
    """Read the weights of a module that are not its encoder's, `prefix.…` in the file; None leaves them.

    Raises ModelNotFoundError where the file is missing, damaged or does not fit.
    """
    wanted = head_state(module)
    if file is None or not wanted:
        return
    try:
        found = {name.removeprefix(f"{prefix}."): weight for name, weight in load_file(file).items()}
    except (SafetensorError, OSError) as error:
        raise ModelNotFoundError(f"{file} cannot be read ({error}); fetch or train the model again") from error
    for name, weight in wanted.items():
        if name not in found or found[name].shape != weight.shape:
            there = f"of shape {list(found[name].shape)}" if name in found else "missing"
            raise ModelNotFoundError(f"{file}: {prefix}.{name} is {there}, wanted is {list(weight.shape)}")
    module.load_state_dict({name: found[name].float() for name in wanted}, strict=False)


class PassageEncoder:
    """REALM's towers, ready to make one key a passage, and queries."""

    keys = "passages"

    def __init__(self, passages: Tower, queries: Tower, tokenizer: PairTokenizer, name: str, fingerprint: str) -> None:
        self.name, self.fingerprint = name, fingerprint
        self.config = passages.config
        self.dimensions, self.scale = passages.dimensions, passages.config.similarity_scale
        self.tokenizer = tokenizer
        self.passage_tower, self.query_tower = passages.eval(), queries.eval()

    @classmethod
    def load(cls, source: REALMSource, *, device: str | None = None, dtype: str | None = None) -> PassageEncoder:
        """Raises ModelNotFoundError, or InputError on an unknown device or dtype."""
        config = source.config
        transformer = Transformer.load(source.part("passages"), device=device, dtype=dtype)
        passages = load_tower(transformer, config, source.heads, "passages")
        mark = fingerprint(transformer.fingerprint, passages)
        queries = passages = _like_encoder(passages)
        if config.separate_towers:
            other = Transformer.load(source.part("queries"), device=device, dtype=dtype)
            queries = _like_encoder(load_tower(other, config, source.heads, "queries"))
        tokenizer = pair_tokenizer(transformer.tokenizer, transformer.model, config)
        return cls(passages, queries, tokenizer, source.name, mark)

    def encode(self, passages: Sequence[Passage]) -> list[EncodedPassage]:
        """The keys of each passage: `passages` of their texts and titles."""
        return self.passages([each.text for each in passages], [each.title for each in passages])

    def passages(self, texts: Sequence[str], titles: Sequence[str]) -> list[EncodedPassage]:
        """One key a passage, which spans all of its text."""
        vectors_BD = embed(
            self.passage_tower, self.tokenizer, passage_inputs(self.tokenizer, self.config, texts, titles)
        )
        return [
            EncodedPassage(span_keys([(0, len(text))]), vector_D[None])
            for text, vector_D in zip(texts, vectors_BD, strict=True)
        ]

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors that texts ask with: [B, D]."""
        return self.vectors_of([ids for ids, _ in self.tokenizer.pieces(texts)])

    def vectors_of(self, asked: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """`queries` of texts that are token ids already."""
        return embed(self.query_tower, self.tokenizer, query_inputs(self.tokenizer, self.config, asked))

    def words(self, query: str) -> NDArray[np.float32]:
        """A text's one query: [1, D]. Raises InputError on a text without words."""
        if not query.strip():
            raise InputError(f"query {query!r} has no word; give one to look for")
        return self.queries([query])

    def queries_at(self, places: Iterable[Place], count: int) -> NDArray[np.float32]:
        """Parts of passages as queries: [Q, D]."""
        texts = [text[len(text) // 3 :][:QUERY_CHARACTERS] for text, _, _ in islice(places, count)]
        return self.queries(texts) if texts else np.zeros((0, self.dimensions), np.float32)


def load_tower(transformer: Transformer, config: REALMConfig, heads: Path | None, prefix: str) -> Tower:
    """A tower over a loaded encoder, its head as it is stored. Raises ModelNotFoundError where that is missing or does
    not fit."""
    tower = Tower(transformer.model, config)
    load_heads(heads, prefix, tower)
    return tower


def _like_encoder(tower: Tower) -> Tower:
    """The tower with its head where its encoder is, and in its numbers."""
    weight = next(tower.encoder.parameters())
    return tower.to(device=weight.device, dtype=weight.dtype)


def fingerprint(encoder: str, tower: Tower) -> str:
    """Names what makes a passage's vector: the encoder's weights and tokenizer, the head, the settings."""
    settings = asdict(tower.config)
    digest = hashlib.sha256(f"{encoder} {[settings[name] for name in _VECTOR_SETTINGS]}".encode())
    for name, weight in sorted(head_state(tower).items()):
        digest.update(name.encode())
        digest.update(weight.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


def query_inputs(tokenizer: PairTokenizer, config: REALMConfig, asked: Iterable[Sequence[int]]) -> list[Pair]:
    """ "[CLS] text [SEP]" of texts that are token ids already."""
    return [tokenizer.single(ids, config.query_tokens) for ids in asked]


def passage_inputs(
    tokenizer: PairTokenizer, config: REALMConfig, texts: Sequence[str], titles: Sequence[str]
) -> list[Pair]:
    """ "[CLS] title [SEP] text [SEP]"; at most half of the input is title."""
    limit = config.passage_tokens
    both = zip(tokenizer.pieces(titles), tokenizer.pieces(texts), strict=True)
    return [tokenizer.pair(head[: limit // 2], body, limit) for (head, _), (body, _) in both]


@torch.inference_mode()
def embed(tower: Tower, tokenizer: PairTokenizer, inputs: Sequence[Pair]) -> NDArray[np.float32]:
    """The vectors of encoder inputs, in the order given: [B, D]."""
    vectors_BD = np.empty((len(inputs), tower.dimensions), np.float32)
    device = next(tower.parameters()).device
    for members in batches_by_length([len(pair.ids_T) for pair in inputs]):
        batch = tokenizer.batch([inputs[member] for member in members], device)
        vectors_BD[members] = tower(batch).float().cpu().numpy()
    return vectors_BD


def pair_tokenizer(tokenizer: Any, encoder: Any, config: REALMConfig) -> PairTokenizer:
    """What makes an encoder's inputs: as long as it takes at most, with token types where it knows two of them."""
    types = config.token_types and getattr(encoder.config, "type_vocab_size", 1) > 1
    return PairTokenizer(tokenizer, types, longest_input(encoder.config))
