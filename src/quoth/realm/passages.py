"""What REALM's towers make of a corpus and of questions (Guu et al. 2020, §3.2).

Knows: the forms of the inputs, "[CLS] text [SEP]" and "[CLS] title [SEP] text [SEP]"; the mean of an encoder's states,
which is all that a tower without a head does. Does not know: heads (`towers`), where vectors are stored, or what
happens to the retrieved passages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Floats
from quoth.encoders.encoder import Encoder, pair_tokenizer, run_batched
from quoth.encoders.graph import GraphEncoder, open_encoder, open_in_pytorch
from quoth.encoders.keys import EncodedPassage, TextSpan, span_keys
from quoth.encoders.tokens import unit
from quoth.errors import InputError
from quoth.hub import ModelSource
from quoth.realm.config import REALMConfig
from quoth.records import Passage
from quoth.text.tokenizer import READ_OF_TITLE, Pair, PairArrays, PairTokenizer, pair_arrays

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


class Vectors(Protocol):
    """A tower: makes one vector of each input."""

    dimensions: int
    batch_tokens: int

    def vectors(self, batch: PairArrays) -> Floats:
        """The vectors of a batch of inputs: [B, D]."""
        ...


class PooledStates:
    """A tower that has no head, over an encoder in ONNX Runtime."""

    def __init__(self, encoder: Encoder, config: REALMConfig) -> None:
        self._encoder, self._config = encoder, config
        self.dimensions, self.batch_tokens = encoder.dimensions, encoder.batch_tokens

    def vectors(self, batch: PairArrays) -> Floats:
        """As `Tower.forward`."""
        states_BTD = self._encoder.states(batch)
        if self._config.pooling == "mean":
            mask_BT1 = batch.mask_BT[:, :, None].astype(np.float32)
            pooled_BD: Floats = (states_BTD * mask_BT1).sum(axis=1) / mask_BT1.sum(axis=1)
        else:
            pooled_BD = states_BTD[:, 0]
        return unit(pooled_BD) if self._config.normalize else pooled_BD


def _tower(
    source: ModelSource[REALMConfig], part: str, device: str | None, dtype: str | None
) -> tuple[Vectors, Encoder, Mapping[str, Floats]]:
    """A tower, its encoder, and its head in fp32, whatever `dtype` is."""
    config = source.config
    has_head = config.pooler or config.dimensions or config.layer_norm_eps is not None
    encoder = (open_in_pytorch if has_head else open_encoder)(source.part(part), device=device, dtype=dtype)
    if isinstance(encoder, GraphEncoder):
        return PooledStates(encoder, config), encoder, {}
    from quoth.realm.towers import load_tower

    tower, head = load_tower(source, part, encoder)
    return tower, encoder, head


class PassageEncoder:
    """REALM's towers, loaded; they make one key per passage, and queries."""

    keys = "passages"

    def __init__(
        self, passages: Vectors, queries: Vectors, config: REALMConfig, tokenizer: PairTokenizer, name: str, mark: str
    ) -> None:
        self.name, self.fingerprint, self.config = name, mark, config
        self.dimensions, self.scale = passages.dimensions, config.similarity_scale
        self.tokenizer = tokenizer
        self.passage_tower, self.query_tower = passages, queries

    @classmethod
    def load(
        cls, source: ModelSource[REALMConfig], *, device: str | None = None, dtype: str | None = None
    ) -> PassageEncoder:
        """Raises ModelNotFoundError, or InputError on an unknown device or dtype."""
        config = source.config
        passages, encoder, head = _tower(source, "passages", device, dtype)
        queries = _tower(source, "queries", device, dtype)[0] if config.separate_towers else passages
        tokenizer = pair_tokenizer(encoder.tokenizer, encoder.config, config.token_types)
        return cls(passages, queries, config, tokenizer, source.name, fingerprint(encoder.fingerprint, config, head))

    def encode(self, passages: Sequence[Passage]) -> list[EncodedPassage]:
        """The keys of each passage: `passages` of their texts and titles."""
        return self.passages([passage.text for passage in passages], [passage.title for passage in passages])

    def passages(self, texts: Sequence[str], titles: Sequence[str]) -> list[EncodedPassage]:
        """One key per passage, which spans all of its text."""
        inputs = passage_inputs(self.tokenizer, self.config, texts, titles)
        vectors_BD = embed(self.passage_tower, self.tokenizer, inputs)
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


def fingerprint(encoder: str, config: REALMConfig, head: Mapping[str, Floats]) -> str:
    """A digest of what determines a passage's vector: the encoder's weights and tokenizer, the head, the settings."""
    settings = asdict(config)
    digest = hashlib.sha256(f"{encoder} {[settings[name] for name in _VECTOR_SETTINGS]}".encode())
    for name, weight in sorted(head.items()):
        digest.update(name.encode())
        digest.update(weight.tobytes())
    return digest.hexdigest()


def query_inputs(tokenizer: PairTokenizer, config: REALMConfig, asked: Iterable[Sequence[int]]) -> list[Pair]:
    """ "[CLS] text [SEP]" for texts given as token ids."""
    return [tokenizer.single(ids, config.query_tokens) for ids in asked]


def passage_inputs(
    tokenizer: PairTokenizer, config: REALMConfig, texts: Sequence[str], titles: Sequence[str]
) -> list[Pair]:
    """ "[CLS] title [SEP] text [SEP]"; the title takes at most half of the input."""
    limit = config.passage_tokens
    both = zip(tokenizer.pieces([title[:READ_OF_TITLE] for title in titles]), tokenizer.pieces(texts), strict=True)
    return [tokenizer.pair(head[: limit // 2], body, limit) for (head, _), (body, _) in both]


def embed(tower: Vectors, tokenizer: PairTokenizer, inputs: Sequence[Pair]) -> Floats:
    """The vectors of encoder inputs, in the order given: [B, D]."""
    vectors_BD = np.empty((len(inputs), tower.dimensions), np.float32)
    lengths = [len(pair.ids_T) for pair in inputs]

    def vectors(pairs: list[Pair]) -> Floats:
        return tower.vectors(pair_arrays(tokenizer, pairs))

    for member, vector_D in run_batched(inputs, lengths, vectors, tower.batch_tokens):
        vectors_BD[member] = vector_D
    return vectors_BD
