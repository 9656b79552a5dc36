"""A reader over corpora: BM25 finds passages, a cross-encoder reads them with the question and marks the answer.

Knows: how retrieval and reading come together. Does not know: their insides.

encode and expand (span_reader) ← search (BM25) → score and group (answers) → explain (evidence).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import overload

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.models.base import Corpora, Exclude, best_sources, check_questions, for_each, listed
from quoth.predictors.answers import Source, predict_spans
from quoth.predictors.calibration import calibrated
from quoth.predictors.evidence import check_at_least_one
from quoth.predictors.reader_weights import open_reader
from quoth.predictors.span_reader import SpanReader, Spans
from quoth.records import Hit, Prediction
from quoth.retrieval.sparse import bm25, check_not_empty
from quoth.timing import step
from quoth.tokenizers.pairs import fill_in
from quoth.tokenizers.text import MASK

TEXTS_AT_A_TIME = 8


class Reader:
    """Answers questions, and fills blanks, with spans of the passages that BM25 finds."""

    def __init__(self, reader: SpanReader, corpora: Sequence[Corpus] = ()) -> None:
        self.reader, self.corpora, self.config = reader, list(corpora), reader.config

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path = "quoth-reader",
        corpus: Corpora = None,
        *,
        device: str | None = None,
        dtype: str | None = None,
        base: str | Path | None = None,
    ) -> Reader:
        """Load a reader by shipped name (quoth-reader), or a folder that `quoth train reader` wrote.

        `base` names a folder for the base encoder. Raises ModelNotFoundError, or InputError on an unknown device.
        """
        folder = None if base is None else str(base)
        return cls(open_reader(str(name), device=device, dtype=dtype, base=folder), listed(corpus))

    @overload
    def ask(  # type: ignore[overload-overlap]
        self,
        question: str,
        *,
        top_k: int = 5,
        passages: int | None = None,
        min_probability: float | None = None,
        exclude: Exclude = (),
    ) -> list[Prediction]: ...
    @overload
    def ask(
        self,
        question: Sequence[str],
        *,
        top_k: int = 5,
        passages: int | None = None,
        min_probability: float | None = None,
        exclude: Exclude = (),
    ) -> list[list[Prediction]]: ...
    def ask(
        self,
        question: str | Sequence[str],
        *,
        top_k: int = 5,
        passages: int | None = None,
        min_probability: float | None = None,
        exclude: Exclude = (),
    ) -> list[Prediction] | list[list[Prediction]]:
        """Answer a question, or each of several, with spans of BM25's best passages, each shown where it occurs.

        Args:
            question: one question, or several.
            top_k: how many answers.
            passages: how many passages are read; None: the model's default (quoth-reader: 20).
            min_probability: answers with a smaller chance to be right are marked `abstained`: the corpus does not say;
                None: the model's default.
            exclude: passage rows never read, in any corpus: one collection, or one for each question.

        Returns: the answers, best first, or a list of them for each question. `score` is the log odds of an answer
        against "no answer here", summed over its places; `probability` its chance to be right.

        Raises: InputError on an empty question or a wrong number, EmptyCorpusError.
        """
        questions = [question] if isinstance(question, str) else list(question)
        check_questions(questions)
        found = self._answers([each.strip() for each in questions], questions, top_k, passages, exclude)
        least = self.config.min_probability if min_probability is None else min_probability
        answers = [calibrated(each, self.config.calibration, least) for each in found]
        return answers[0] if isinstance(question, str) else answers

    @overload
    def fill(  # type: ignore[overload-overlap]
        self, text: str, *, top_k: int = 5, passages: int | None = None, exclude: Exclude = ()
    ) -> list[Prediction]: ...
    @overload
    def fill(
        self, text: Sequence[str], *, top_k: int = 5, passages: int | None = None, exclude: Exclude = ()
    ) -> list[list[Prediction]]: ...
    def fill(
        self, text: str | Sequence[str], *, top_k: int = 5, passages: int | None = None, exclude: Exclude = ()
    ) -> list[Prediction] | list[list[Prediction]]:
        """Fill the `[MASK]` of a text, or of each of several, with spans of BM25's best passages; as `ask` else.

        The probability is an answer's share among all that was read: it is calibrated for questions alone.
        """
        texts = [text] if isinstance(text, str) else list(text)
        searched = [each.replace(MASK, " ").replace(self.reader.tokenizer.mask_token, " ") for each in texts]
        answers = self._answers(texts, searched, top_k, passages, exclude)
        found = [
            [replace(p, sequence=fill_in(self.reader.tokenizer, each, p.text)) for p in predictions]
            for each, predictions in zip(texts, answers, strict=True)
        ]
        return found[0] if isinstance(text, str) else found

    def num_tokens(self, phrase: str) -> int:
        """How many of the model's tokens a phrase has inside a text."""
        return len(self.reader.tokenizer.pieces([f" {phrase.strip()}"])[0][0])

    def search(self, query: str, k: int = 10) -> list[Hit]:
        """The k best passages by BM25. Raises InputError, EmptyCorpusError."""
        return bm25(self.corpora, query, k)

    def read(
        self, texts: Sequence[str], searched: Sequence[str], passages: int | None = None, exclude: Exclude = ()
    ) -> Iterator[tuple[list[Source], list[Spans]]]:
        """BM25's best passages for what is `searched`, and what they say to each text, as the reader scores it."""
        count = self.config.passages if passages is None else passages
        if count < 1:
            raise InputError(f"passages is {count}; allowed is 1 or more; try passages=20")
        check_not_empty(self.corpora)
        hidden = for_each(exclude, len(texts))
        for at in range(0, len(texts), TEXTS_AT_A_TIME):
            part = slice(at, at + TEXTS_AT_A_TIME)
            with step("search"):
                sources = [
                    best_sources(self.corpora, query, count, rows)
                    for query, rows in zip(searched[part], hidden[part], strict=True)
                ]
            with step("expand"):
                spans = self.reader.read(texts[part], [[each.passage for each in group] for group in sources])
            yield from zip(sources, spans, strict=True)

    def _answers(
        self, texts: Sequence[str], searched: Sequence[str], top_k: int, passages: int | None, exclude: Exclude
    ) -> list[list[Prediction]]:
        check_at_least_one("top_k", top_k)
        prior = self.config.prior
        return [predict_spans(*found, top_k, prior=prior) for found in self.read(texts, searched, passages, exclude)]
