"""The reader that a REALM was trained with: what it reads in the passages that were found.

Knows: questions, passages and the null document as inputs of the reader, and eq. 1 of REALM (Guu et al. 2020) over
them. Does not know: how passages are found, or other readers.

Shape suffixes that differ from the project's: N passages that are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quoth.answers.spans import Read, explain_likelihood, predict_answers, predict_words
from quoth.corpus.bm25 import PassageRef, Ranking
from quoth.encoders.pairs import PairTokenizer
from quoth.encoders.transformer import Transformer
from quoth.hub import ModelSource
from quoth.index.fusion import weighted_sum
from quoth.index.retriever import Retriever
from quoth.reader.network import Reading
from quoth.realm.config import REALMConfig
from quoth.realm.network import Reader, ReaderModel, readings
from quoth.realm.towers import PassageEncoder, load_heads
from quoth.records import Likelihood, Prediction
from quoth.timing import step

LEAST_SHARE = 0.01
"""The share of the best fused score that a passage counts with at least: the last of both rankings has none."""


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A question's token ids, cut to what is read, its vector [D], and the passages nearest to it."""

    ids: Sequence[int]
    vector_D: NDArray[np.float32]
    places: Sequence[tuple[float, PassageRef]]


@dataclass(frozen=True, slots=True)
class OwnReader:
    """A reader over the passages of a retriever. `null` is the null document's relevance, None if it is not read."""

    reader: Reader
    encoder: PassageEncoder
    retriever: Retriever

    def answers(self, question: EncodedQuery, top_k: int, marginal: bool, null: float | None) -> list[Prediction]:
        """The best spans."""
        with step("expand"):
            read = self._read(question)
            spans = self.reader.spans([each.reading for each in read])
        return predict_answers(read, spans, self.encoder.config.add_relevance, top_k, marginal, null)

    def words(self, question: EncodedQuery, top_k: int, null: float | None) -> list[Prediction]:
        """The best words of a blank."""
        with step("expand"):
            read = self._read(question)
            nothing = self._readings(question, [""], [""]) if null is not None else []
            log_p_NV = self.reader.masked([*(each.reading for each in read), *nothing])
        return predict_words(read, null, log_p_NV, top_k)

    def likelihood(self, question: EncodedQuery, answer: str, hidden: Sequence[int], null: float) -> Likelihood:
        """How likely an answer, whose tokens are `hidden`, is in the masks of a text."""
        with step("expand"):
            read, nothing = self._read(question), self._readings(question, [""], [""])
            log_p_NM = self.reader.likelihood([*(each.reading for each in read), *nothing], hidden)
        pieces = [self.encoder.tokenizer.hf.backend_tokenizer.id_to_token(each) for each in hidden]
        return explain_likelihood(read, null, answer, pieces, log_p_NM)

    def _read(self, question: EncodedQuery) -> list[Read]:
        found = [(self.retriever.corpora[number], row, score) for score, (number, row) in question.places]
        passages = [corpus.passage(row) for corpus, row, _ in found]
        seen = self._readings(question, [each.text for each in passages], [each.title for each in passages])
        return [
            Read(passage, corpus.name, score, reading=reading)
            for passage, (corpus, _, score), reading in zip(passages, found, seen, strict=True)
        ]

    def _readings(self, question: EncodedQuery, texts: Sequence[str], titles: Sequence[str]) -> list[Reading]:
        return readings(self.encoder.tokenizer, self.encoder.config, question.ids, texts, titles)


def load_own(
    source: ModelSource[REALMConfig], tokenizer: PairTokenizer, device: str | None, dtype: str | None
) -> Reader:
    """The reader of a model that has one of its own."""
    transformer = Transformer.load(source.part("reader"), device=device, dtype=dtype)
    model = ReaderModel(transformer.model, source.config)
    load_heads(source.heads, "reader", model)
    weight = next(transformer.model.parameters())
    return Reader(model.to(device=weight.device, dtype=weight.dtype), tokenizer)


def fused(rankings: Sequence[Ranking], count: int) -> Ranking:
    """The best passages by the sum of their scores; relevance is the log of a passage's share of the best one's sum."""
    both = weighted_sum(rankings)[:count]
    most = max((score for score, _ in both), default=1.0)
    return [(math.log(max(score / most, LEAST_SHARE)), place) for score, place in both]
