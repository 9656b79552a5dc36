"""Zero-NeR's keys: a vector for every named entity of a passage, and for its title (Hoshi et al. 2022, §3).

Knows: which characters become keys, in which context, and what a question asks with. Does not know: how names are
recognised, and how an encoder makes a vector of characters: two ways are here and in `luke`.

Shape suffixes: T tokens, S spans, D dimensions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quoth.config import ZeroNERConfig
from quoth.encoders.key_encoder import EncodedPassage, Place, span_keys, unit
from quoth.encoders.token_encoder import TokenEncoder
from quoth.errors import InputError
from quoth.records import Passage, TaggedSpan

Range = tuple[int, int]
"""Characters of a text, from start to end."""
ENTITIES_VERSION = 1
"""Raised when it changes what becomes a key, so that keys made by older rules are not taken for current ones."""
QUERY_REACH = 100
"""Characters on either side of an entity that stands in for a question's."""


class Recognizer(Protocol):
    """Finds the entities of passages and questions. Equal fingerprints stand for equal entities."""

    fingerprint: str

    def of_passages(self, passages: Sequence[Passage]) -> list[list[TaggedSpan]]:
        """Each passage's entities as characters of its text, in order."""
        ...

    def of_texts(self, texts: Sequence[str]) -> list[list[TaggedSpan]]:
        """Each text's."""
        ...


class SpanEncoder(Protocol):
    """Makes vectors of characters of texts, each in the context of its text. Equal fingerprints stand for equal
    vectors."""

    dimensions: int
    fingerprint: str

    def spans(self, texts: Sequence[str], spans: Sequence[Sequence[Range]]) -> list[NDArray[np.float32]]:
        """The vectors of each text's spans: [S, D]; zeros where a span holds no token."""
        ...


class TokenSpans:
    """Spans by the vectors of their tokens: the mean of all, or the first and the last one beside each other
    (`pooling` "mean" and "ends"), as a plain encoder gives them."""

    def __init__(self, encoder: TokenEncoder, pooling: str) -> None:
        self._encoder, self._pooling = encoder, pooling
        self.dimensions = encoder.dimensions * (2 if pooling == "ends" else 1)
        self.fingerprint = f"{encoder.fingerprint} {pooling}"

    def spans(self, texts: Sequence[str], spans: Sequence[Sequence[Range]]) -> list[NDArray[np.float32]]:
        """As `SpanEncoder.spans`."""
        encoded = self._encoder.passages(texts, [""] * len(texts))
        empty = np.zeros((0, self.dimensions), np.float32)
        return [
            np.stack([self._pooled(each, span) for span in wanted]) if wanted else empty
            for each, wanted in zip(encoded, spans, strict=True)
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
    """Keys of passages and queries of questions by their named entities, compared by cosine."""

    keys, scale = "entities", 1.0

    def __init__(self, spans: SpanEncoder, recognizer: Recognizer, config: ZeroNERConfig, name: str) -> None:
        self.name, self.config, self.recognizer = name, config, recognizer
        self.dimensions = spans.dimensions
        self._spans = spans
        settings = f"{spans.fingerprint} {recognizer.fingerprint} {config.titles} {ENTITIES_VERSION}"
        self.fingerprint = hashlib.sha256(settings.encode()).hexdigest()

    def encode(self, passages: Sequence[Passage]) -> list[EncodedPassage]:
        """The keys of each passage: its title, as an empty span where the passage begins, then its entities in order.

        With `titles` "passage" the text is read as "Title. text"; with "alone" the title is read by itself.
        """
        found = [[(each.start, each.end) for each in spans] for spans in self.recognizer.of_passages(passages)]
        titles = [each.title.strip() for each in passages]
        inside = self.config.titles == "passage"
        heads = [f"{title}. " if title and inside else "" for title in titles]
        ranges = [
            [(0, len(title))] * bool(head) + [(start + len(head), end + len(head)) for start, end in spans]
            for title, head, spans in zip(titles, heads, found, strict=True)
        ]
        vectors = self.vectors([head + each.text for head, each in zip(heads, passages, strict=True)], ranges)
        if self.config.titles == "alone":
            named = sorted({*titles} - {""})
            alone = dict(zip(named, self.vectors(named, [[(0, len(title))] for title in named]), strict=True))
            alone[""] = np.zeros((0, self.dimensions), np.float32)
            vectors = [np.concatenate([alone[title], each]) for title, each in zip(titles, vectors, strict=True)]
        return [
            EncodedPassage(span_keys([(0, 0)] * (len(each) - len(spans)) + spans), each)
            for each, spans in zip(vectors, found, strict=True)
        ]

    def vectors(self, texts: Sequence[str], spans: Sequence[Sequence[Range]]) -> list[NDArray[np.float32]]:
        """The vectors of each text's spans, of length 1: [S, D]."""
        found = self._spans.spans(texts, spans) if texts else []
        return [unit(each) for each in found]

    def asked(self, question: str) -> list[Range]:
        """The entities of a question, recognised; the whole question where it has none."""
        (found,) = self.recognizer.of_texts([question])
        return [(each.start, each.end) for each in found] or [(0, len(question))]

    def queries(self, question: str, entities: Sequence[Range]) -> NDArray[np.float32]:
        """What a question asks with: [S, D], a vector for each of its entities, or, as `ask_with` says, for the whole
        question. Raises InputError on an entity without a token."""
        if self.config.ask_with == "alone":
            texts = [question[start:end] for start, end in entities]
            found = self.vectors(texts, [[(0, len(each))] for each in texts])
        else:
            whole = self.config.ask_with == "question"
            found = self.vectors([question], [[(0, len(question))] if whole else entities])
        q_SD = np.concatenate(found)
        if not q_SD.any(axis=1).all():
            raise InputError(f"question {question!r} or an entity of it has no word; give one to look for")
        return q_SD

    def words(self, query: str) -> NDArray[np.float32]:
        """`queries` of the entities recognised in a text. Raises InputError on a text without words."""
        return self.queries(query, self.asked(query))

    def queries_at(self, places: Iterable[Place], count: int) -> NDArray[np.float32]:
        """Entities of passages in a part of their context, as questions would name them: [Q, D]."""
        drawn = [place for place in islice(places, count) if place[1] < place[2]]
        texts = [text[max(start - QUERY_REACH, 0) : end + QUERY_REACH] for text, start, end in drawn]
        spans = [(min(start, QUERY_REACH), min(start, QUERY_REACH) + end - start) for _, start, end in drawn]
        empty = np.zeros((0, self.dimensions), np.float32)
        return np.concatenate([empty, *self.vectors(texts, [[span] for span in spans])])
