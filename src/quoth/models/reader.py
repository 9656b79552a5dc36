"""A reader over corpora: BM25 finds passages, a cross-encoder reads them with the question and marks the answer.

Knows: how retrieval and reading come together. Does not know: their insides.

encode and expand (span_reader) ← search (BM25) → score and group (answers) → explain (evidence).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import overload

from quoth.corpus.corpus import Corpus
from quoth.encoders.pairs import fill_in
from quoth.encoders.tokenization import MASK
from quoth.errors import InputError
from quoth.models.base import Corpora, Exclude, check_questions, for_each, listed
from quoth.predictors.answers import Source, predict_spans
from quoth.predictors.reader_weights import open_reader
from quoth.predictors.span_reader import SpanReader
from quoth.records import Hit, Prediction
from quoth.retrieval.sparse import best_places, bm25, check_not_empty
from quoth.timing import step

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
    def ask(self, question: str, *, top_k: int = 5, passages: int = 20, exclude: Exclude = ()) -> list[Prediction]: ...
    @overload
    def ask(
        self, question: Sequence[str], *, top_k: int = 5, passages: int = 20, exclude: Exclude = ()
    ) -> list[list[Prediction]]: ...
    def ask(
        self, question: str | Sequence[str], *, top_k: int = 5, passages: int = 20, exclude: Exclude = ()
    ) -> list[Prediction] | list[list[Prediction]]:
        """Answer a question, or each of several, with spans of BM25's best `passages`, each shown where it occurs.

        `probability` is an answer's share of all that was read, "no answer here" included. `exclude` are passage rows
        never read, in any corpus: one collection, or one for each question. Raises InputError, EmptyCorpusError.
        """
        questions = [question] if isinstance(question, str) else list(question)
        check_questions(questions)
        found = self._answers([each.strip() for each in questions], questions, top_k, passages, exclude)
        return found[0] if isinstance(question, str) else found

    def fill(
        self, text: str | Sequence[str], *, top_k: int = 5, passages: int = 20, exclude: Exclude = ()
    ) -> list[Prediction] | list[list[Prediction]]:
        """Fill the `[MASK]` of a text, or of each of several, with spans of BM25's best `passages`; as `ask` else."""
        texts = [text] if isinstance(text, str) else list(text)
        searched = [each.replace(MASK, " ").replace(self.reader.tokenizer.mask_token, " ") for each in texts]
        answers = self._answers(texts, searched, top_k, passages, exclude)
        found = [
            [replace(p, sequence=fill_in(self.reader.tokenizer, each, p.text)) for p in predictions]
            for each, predictions in zip(texts, answers, strict=True)
        ]
        return found[0] if isinstance(text, str) else found

    def search(self, query: str, k: int = 10) -> list[Hit]:
        """The k best passages by BM25. Raises InputError, EmptyCorpusError."""
        return bm25(self.corpora, query, k)

    def _answers(
        self, texts: Sequence[str], searched: Sequence[str], top_k: int, passages: int, exclude: Exclude
    ) -> list[list[Prediction]]:
        if passages < 1:
            raise InputError(f"passages is {passages}; allowed is 1 or more; try passages=20")
        check_not_empty(self.corpora)
        hidden, found = for_each(exclude, len(texts)), list[list[Prediction]]()
        for at in range(0, len(texts), TEXTS_AT_A_TIME):
            part = slice(at, at + TEXTS_AT_A_TIME)
            with step("search"):
                sources = [
                    self._best(query, passages, rows) for query, rows in zip(searched[part], hidden[part], strict=True)
                ]
            with step("expand"):
                spans = self.reader.read(texts[part], [[each.passage for each in group] for group in sources])
            found += [predict_spans(*each, top_k) for each in zip(sources, spans, strict=True)]
        return found

    def _best(self, query: str, passages: int, exclude: Collection[int]) -> list[Source]:
        places = [place for _, place in best_places(self.corpora, query, passages, exclude)]
        return [Source(self.corpora[number].passage(row), self.corpora[number].name) for number, row in places]
