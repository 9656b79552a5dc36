"""Zero-NeR's keys: a vector for every named entity of a passage, and for its title (Hoshi et al. 2022, §3).

Knows: which characters become keys, in which context, and which vectors a question is searched by. Does not know: how
names are recognised, or how an encoder turns characters into a vector (`TokenSpans` here and `luke` are two ways).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from quoth.encoders.keys import EncodedPassage, TextSpan, span_keys
from quoth.encoders.tokens import TokenEncoder, unit
from quoth.errors import InputError
from quoth.records import Passage, TaggedSpan
from quoth.zero_ner.config import ZeroNERConfig

if TYPE_CHECKING:
    from quoth.zero_ner.luke import LukeSpans

Range = tuple[int, int]
"""Characters of a text, from start to end."""
ENTITIES_VERSION = 1
"""Incremented when the choice of keys changes, so that keys made by older rules are not mistaken for current ones."""
QUERY_REACH = 100
"""Characters of context on either side of an entity that serves as a sample query."""


class Recognizer(Protocol):
    """Finds the entities of passages and questions. Equal fingerprints mean equal entities."""

    fingerprint: str

    def of_passages(self, passages: Sequence[Passage]) -> list[list[TaggedSpan]]:
        """Each passage's entities as spans of its text, in order."""
        ...

    def of_texts(self, texts: Sequence[str]) -> list[list[TaggedSpan]]:
        """Each text's entities, in order."""
        ...


class TokenSpans:
    """Vectors of spans from a plain encoder's token vectors: the first and the last one concatenated (`pooling`
    "ends"), else the mean of all."""

    def __init__(self, encoder: TokenEncoder, pooling: str) -> None:
        self._encoder, self._pooling = encoder, pooling
        self.dimensions = encoder.dimensions * (2 if pooling == "ends" else 1)
        self.fingerprint = f"{encoder.fingerprint} {pooling}"

    def spans(self, texts: Sequence[str], spans: Sequence[Sequence[Range]]) -> list[NDArray[np.float32]]:
        """The vectors of each text's spans, in the context of the text: [S, D]; zeros for a span without tokens."""
        encoded = self._encoder.passages(texts, [""] * len(texts))
        empty = np.zeros((0, self.dimensions), np.float32)
        return [
            np.stack([self._pooled(passage, span) for span in ranges]) if ranges else empty
            for passage, ranges in zip(encoded, spans, strict=True)
        ]

    def _pooled(self, encoded: EncodedPassage, span: Range) -> NDArray[np.float32]:
        start_T, end_T = encoded.tokens.offsets_T2.T
        inside_T = (start_T < span[1]) & (end_T > span[0]) & (start_T < end_T)
        vectors_TD = encoded.vectors_TD[inside_T]
        if not len(vectors_TD):
            return np.zeros(self.dimensions, np.float32)
        pooled_D: NDArray[np.float32] = (
            vectors_TD[[0, -1]].ravel() if self._pooling == "ends" else vectors_TD.mean(axis=0)
        )
        return pooled_D


class EntityEncoder:
    """Makes keys of passages and queries of questions from their named entities, compared by cosine."""

    keys, scale = "entities", 1.0

    def __init__(self, spans: TokenSpans | LukeSpans, recognizer: Recognizer, config: ZeroNERConfig, name: str) -> None:
        self.name, self.config, self.recognizer = name, config, recognizer
        self.dimensions = spans.dimensions
        self._spans = spans
        settings = f"{spans.fingerprint} {recognizer.fingerprint} {config.titles} {ENTITIES_VERSION}"
        self.fingerprint = hashlib.sha256(settings.encode()).hexdigest()

    def encode(self, passages: Sequence[Passage]) -> list[EncodedPassage]:
        """The keys of each passage: its title, as an empty span where the passage begins, then its entities in order.

        If `titles` is "passage", the text is read as "Title. text"; if "alone", the title is read by itself.
        """
        entities = [[(span.start, span.end) for span in spans] for spans in self.recognizer.of_passages(passages)]
        titles = [passage.title.strip() for passage in passages]
        inside = self.config.titles == "passage"
        heads = [f"{title}. " if title and inside else "" for title in titles]
        ranges = [
            [(0, len(title))] * bool(head) + [(start + len(head), end + len(head)) for start, end in spans]
            for title, head, spans in zip(titles, heads, entities, strict=True)
        ]
        vectors = self.vectors([head + passage.text for head, passage in zip(heads, passages, strict=True)], ranges)
        if self.config.titles == "alone":
            named = sorted({*titles} - {""})
            alone = dict(zip(named, self.vectors(named, [[(0, len(title))] for title in named]), strict=True))
            alone[""] = np.zeros((0, self.dimensions), np.float32)
            vectors = [np.concatenate([alone[title], keys_SD]) for title, keys_SD in zip(titles, vectors, strict=True)]
        return [
            EncodedPassage(span_keys([(0, 0)] * (len(keys_SD) - len(spans)) + spans), keys_SD)
            for keys_SD, spans in zip(vectors, entities, strict=True)
        ]

    def vectors(self, texts: Sequence[str], spans: Sequence[Sequence[Range]]) -> list[NDArray[np.float32]]:
        """The vectors of each text's spans, normalised to length 1: [S, D]."""
        return [unit(vectors_SD) for vectors_SD in self._spans.spans(texts, spans)] if texts else []

    def asked(self, question: str) -> list[Range]:
        """The recognised entities of a question, or the whole question if it has none."""
        (entities,) = self.recognizer.of_texts([question])
        return [(span.start, span.end) for span in entities] or [(0, len(question))]

    def queries(self, question: str, entities: Sequence[Range]) -> NDArray[np.float32]:
        """The query vectors of a question: [S, D], one per entity, or one for the whole question, depending on
        `ask_with`. Raises InputError on an entity without a token."""
        if self.config.ask_with == "alone":
            texts = [question[start:end] for start, end in entities]
            vectors = self.vectors(texts, [[(0, len(text))] for text in texts])
        else:
            whole = self.config.ask_with == "question"
            vectors = self.vectors([question], [[(0, len(question))] if whole else entities])
        q_SD = np.concatenate(vectors)
        if not q_SD.any(axis=1).all():
            raise InputError(f"question {question!r}, or one of its entities, has no words; give words to search for")
        return q_SD

    def words(self, query: str) -> NDArray[np.float32]:
        """The `queries` for the entities recognised in a text. Raises InputError on a text without words."""
        return self.queries(query, self.asked(query))

    def queries_at(self, places: Iterable[TextSpan], count: int) -> NDArray[np.float32]:
        """Sample queries: entities of passages, each with some of its context, as questions would name them: [Q, D]."""
        entities = [place for place in islice(places, count) if place[1] < place[2]]
        texts = [text[max(start - QUERY_REACH, 0) : end + QUERY_REACH] for text, start, end in entities]
        spans = [(min(start, QUERY_REACH), min(start, QUERY_REACH) + end - start) for _, start, end in entities]
        empty = np.zeros((0, self.dimensions), np.float32)
        return np.concatenate([empty, *self.vectors(texts, [[span] for span in spans])])
