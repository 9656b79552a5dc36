"""A reader over corpora: finds passages; a cross-encoder reads each with the question and marks the answer.

Knows: how retrieval and reading compose. Does not know: their insides.

encode and expand (network) ← search (index/finder) → score and group (answers/evidence) → explain (evidence).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack, overload

from quoth.answers.evidence import Source, Spans, predict_spans, sources_of
from quoth.answers.options import answered_from
from quoth.corpus.view import count_passages
from quoth.index.options import Mode
from quoth.model.base import Model
from quoth.model.calls import Exclude, check_questions, for_each, takes, with_mask, words_of
from quoth.model.keywords import ReaderAskKeywords, ReaderFillKeywords
from quoth.reader.answering import Find, Hidden, Keep, answer, read_found
from quoth.reader.config import ReaderAskOptions, ReaderConfig, ReaderFillOptions
from quoth.reader.runtime import open_reader
from quoth.reader.spans import SpanReader
from quoth.records import Hits, Predictions
from quoth.text.tokenizer import fill_in

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus


class Reader(Model):
    """Answers questions, and fills blanks, with spans of retrieved passages."""

    _usual = "quoth-reader"
    corpora: list[Corpus]

    def __init__(self, reader: SpanReader, corpora: Sequence[Corpus] = (), name: str = "") -> None:
        self.name, self.reader = name, reader
        self._search_in(corpora)

    @property
    def config(self) -> ReaderConfig:
        """The settings of reading and calibration."""
        return self.reader.config

    def __repr__(self) -> str:
        return f"Reader({self.name!r}, corpora={self.corpora!r})"

    @classmethod
    def _load(
        cls, name: str, corpora: list[Corpus], *, device: str | None, dtype: str | None, base: str | None
    ) -> Reader:
        return cls(open_reader(name, device=device, dtype=dtype, base=base), corpora, name)

    def _search_in(self, corpora: Sequence[Corpus]) -> None:
        self.corpora = list(corpora)

    @overload
    def ask(  # type: ignore[overload-overlap]
        self, question: str, *, exclude: Exclude = (), **options: Unpack[ReaderAskKeywords]
    ) -> Predictions: ...
    @overload
    def ask(
        self, question: Sequence[str], *, exclude: Exclude = (), **options: Unpack[ReaderAskKeywords]
    ) -> list[Predictions]: ...
    @takes(ReaderAskOptions)
    def ask(self, question: Sequence[str], options: ReaderAskOptions, exclude: Exclude = ()) -> list[Predictions]:
        """Answer a question with spans of the best passages, each shown where it occurs.

        Args:
            question: One question, or several.
            options: The fields of `ReaderAskOptions`.
            exclude (Collection[int]): Passage rows never to read, in any corpus: one collection, or one per question.
                Default: ().

        Returns:
            The answers, best first, or a list of such lists for several questions. `log_score` is the log odds of an
            answer against "no answer here", summed over its places; `probability` its chance of being right. Its
            `sentences` are up to three units of text that may answer (sentences, items, rows); they say more if a
            question asks how or why, or no phrase is sure. `shown` is what to display. `read_as` is the corrected
            question, if some of its words occur nowhere and are one typo away from words of the corpus; if one of these
            is a name, no answer is sure.

        Raises:
            InputError: An empty question, or a number out of bounds.
            EmptyCorpusError: No passage to search.

        Source:
            Extractive reading with one normalization over all passages (Clark and Gardner, 2018).

        Example:
            >>> best = reader.ask("Who composed Carmen?")[0]
            >>> best.text, best.evidence[0].title
            ('Georges Bizet', 'Carmen')
        """
        return self.answers(question, options, exclude)

    def answers(
        self, questions: Sequence[str], options: ReaderAskOptions, exclude: Exclude = (), keep: Keep | None = None
    ) -> list[Predictions]:
        """As `ask`, but only with the spans of each passage that `keep` accepts."""
        check_questions(questions)
        least = answered_from(options, self.config.defaults)
        find, hidden = self._found_by(options.passages, options.mode), for_each(exclude, len(questions))
        return answer(questions, self.reader, self.corpora, find, hidden, top_k=options.top_k, least=least, keep=keep)

    @overload
    def fill(  # type: ignore[overload-overlap]
        self, text: str, *, exclude: Exclude = (), **options: Unpack[ReaderFillKeywords]
    ) -> Predictions: ...
    @overload
    def fill(
        self, text: Sequence[str], *, exclude: Exclude = (), **options: Unpack[ReaderFillKeywords]
    ) -> list[Predictions]: ...
    @takes(ReaderFillOptions)
    def fill(self, text: Sequence[str], options: ReaderFillOptions, exclude: Exclude = ()) -> list[Predictions]:
        """Fill the blank of a text with spans of the best passages.

        Args:
            text: One text, or several, each with one blank: `[MASK]`, `<mask>` or `___`.
            options: The fields of `ReaderFillOptions`.
            exclude (Collection[int]): As in `ask`. Default: ().

        Returns:
            As `ask`, but the probability is an answer's share of everything read: only questions are calibrated.

        Raises:
            InputError: A text without exactly one blank, or a number out of bounds.
            EmptyCorpusError: No passage to search.

        Example:
            >>> reader.fill("Carmen was composed by [MASK].", top_k=1)[0].sequence
            'Carmen was composed by Georges Bizet.'
        """
        texts = [with_mask(one, self.reader.tokenizer.mask_token) for one in text]
        read = self.read(texts, [*map(words_of, texts)], options.passages, exclude, options.mode)
        answers = (predict_spans(*found, options.top_k, prior=self.config.prior) for found in read)
        return [
            Predictions(replace(p, sequence=fill_in(self.reader.tokenizer, one, p.text)) for p in predictions)
            for one, predictions in zip(texts, answers, strict=True)
        ]

    def num_tokens(self, phrase: str) -> int:
        """The number of the model's tokens in a phrase inside a text."""
        return len(self.reader.tokenizer.pieces([f" {phrase.strip()}"])[0][0])

    def search(self, query: str, k: int = 10, mode: Mode = "auto") -> Hits:
        """Find the k best passages.

        Args:
            query (str): What to look for.
            k (int): Number of passages. Default: 10.
            mode ("auto" | "bm25" | "dense" | "hybrid"): As in `ask`. Default: "auto".

        Returns:
            The hits, best first; a hit has its passage and its score: BM25's or, with vectors, a share of the best sum,
            at least 0.01.

        Raises:
            InputError: Another mode, `k` below 1, or vectors missing for "dense" and "hybrid".
            EmptyCorpusError: No passage to search.

        Example:
            >>> reader.search("opera by Bizet", k=1)[0].passage.title
            'Carmen'
        """
        return self.finder.search(query, k, mode)

    def read(
        self,
        texts: Sequence[str],
        searched: Sequence[str],
        passages: int | None = None,
        exclude: Exclude = (),
        mode: Mode = "auto",
    ) -> Iterator[tuple[list[Source], list[Spans]]]:
        """For each text, the best passages for its `searched` query, as many as are read, and the reader's scores of
        their spans."""
        find, hidden = self._found_by(passages, mode), for_each(exclude, len(texts))
        return read_found(texts, searched, self.reader, find, hidden)

    def _found_by(self, passages: int | None, mode: Mode) -> Find:
        count = self.config.defaults.passages if passages is None else passages

        def find(texts: Sequence[str], hidden: Hidden) -> list[list[Source]]:
            among = count_passages(self.corpora)
            return [
                sources_of(found, [self.corpora[at].passage(row) for _, (at, row) in found], self.corpora, among)
                for found in self.finder.rankings(texts, count, hidden, mode)
            ]

        return find
