"""REALM: retrieve, then predict (Guu et al. 2020), over the user's corpora.

Knows: how towers, retrieval and reader compose. The five steps are the same as in every model here: encode (towers) →
search (retriever) → expand (reader: the spans of each passage) → score (marginal over passages) → explain (evidence).
Does not know: which of the two kinds of readers it has (own_reader).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NoReturn, Unpack, overload

from quoth.answers.evidence import Source, Spans, predict_spans
from quoth.answers.options import answered_from
from quoth.corpus.bm25 import best_places
from quoth.corpus.corpus import Corpus
from quoth.corpus.view import count_passages
from quoth.errors import InputError, needs_torch
from quoth.fields import Count, checked
from quoth.hub import locate
from quoth.index.fusion import FUSION_DEPTH, shares_of_sum
from quoth.index.options import Mode
from quoth.index.retriever import Retriever
from quoth.model.base import CorpusModel
from quoth.model.calls import Exclude, check_questions, for_each, takes, with_mask
from quoth.model.keywords import REALMAskKeywords, REALMFillKeywords
from quoth.reader.answering import Hidden, answer, without_prior
from quoth.reader.runtime import open_reader
from quoth.reader.spans import SpanReader
from quoth.realm.answering import EncodedQuery, How
from quoth.realm.config import REALMAskOptions, REALMConfig, REALMFillOptions
from quoth.realm.passages import PassageEncoder
from quoth.records import Hits, Likelihood, Prediction, Predictions
from quoth.text.tokenizer import fill_in, masked_ids
from quoth.timing import step

if TYPE_CHECKING:
    from quoth.realm.own_reader import OwnReader


class GivenReader:
    """The reader of a `Reader`: answers questions and fills blanks with spans, with calibrated odds."""

    def __init__(self, reader: SpanReader, name: str = "") -> None:
        self.reader, self.name = reader, name

    def check(self, options: REALMAskOptions) -> float:
        """The minimum probability of an answer, by default the reader's."""
        return answered_from(options, self.reader.config.defaults)

    def combined(self, combine: str | None, default: str) -> str:
        """How the fillings of a blank are combined."""
        return combine or default

    def answers(self, query: EncodedQuery, sources: Sequence[Source], how: How) -> Predictions:
        """The best spans by eq. 1; with one softmax, `quoth.reader.answering` gives the answers."""
        return Predictions(self.fillings(query, sources, how))

    def fillings(self, query: EncodedQuery, sources: Sequence[Source], how: How) -> list[Prediction]:
        """The best spans for a blank, not calibrated: only questions are."""
        spans = self._read(query, sources)
        return predict_spans(sources, spans, how.top_k, marginal=how.marginal, null=how.null)

    def likelihood(self, text: str, answer: str, found: object) -> NoReturn:
        """Raises InputError: this reader fills no masks."""
        raise InputError(
            f"the reader of {self.name} marks spans and fills no masks; use a model with a reader of its own, such as "
            "`quoth train realm-pretrain` without `reader` makes"
        )

    def _read(self, query: EncodedQuery, sources: Sequence[Source]) -> list[Spans]:
        with step("expand"):
            [spans] = self.reader.read([query.text], [[source.passage for source in sources]])
        return spans


class REALM(CorpusModel):
    """A retrieval-augmented language model over one or several corpora."""

    _usual, keys = "quoth-realm", "passages"
    encoder: PassageEncoder
    config: REALMConfig

    def __init__(
        self, encoder: PassageEncoder, reader: OwnReader | GivenReader, corpora: Sequence[Corpus] = ()
    ) -> None:
        super().__init__(Retriever(corpora, encoder), encoder)
        self.reader = reader

    @classmethod
    def _load(
        cls, name: str, corpora: list[Corpus], *, device: str | None, dtype: str | None, base: str | None
    ) -> REALM:
        source = locate(name, REALMConfig, base)
        encoder = PassageEncoder.load(source, device=device, dtype=dtype)
        if named := source.config.reader:
            given = open_reader(named, device=device, dtype=dtype, base=base, beside=source.config)
            return cls(encoder, GivenReader(given, source.name), corpora)
        with needs_torch(f"the reader of {name}"):
            from quoth.realm.own_reader import OwnReader
        return cls(encoder, OwnReader.load(source, encoder.tokenizer, device, dtype), corpora)

    @overload
    def ask(  # type: ignore[overload-overlap]
        self, question: str, *, exclude: Exclude = (), **options: Unpack[REALMAskKeywords]
    ) -> Predictions: ...
    @overload
    def ask(
        self, question: Sequence[str], *, exclude: Exclude = (), **options: Unpack[REALMAskKeywords]
    ) -> list[Predictions]: ...
    @takes(REALMAskOptions)
    def ask(self, question: Sequence[str], options: REALMAskOptions, exclude: Exclude = ()) -> list[Predictions]:
        """Answer a question with spans of the passages nearest to it.

        Args:
            question: One question, or several.
            options: The fields of `REALMAskOptions`.
            exclude (Collection[int]): Passage rows never to search, in any corpus: one collection, or one per question.
                Default: ().

        Returns:
            The answers, best first, or a list of such lists for several questions. A model with the reader of a
            `Reader`, such as quoth-realm, uses that reader's odds: with "softmax" the probability is calibrated; with
            "marginal" p(y|z,x) is normalised over a passage's spans and its "no answer here": the remaining
            probability, with that of the null document, is that of no answer.

        Raises:
            InputError: An empty question, a value out of bounds, `null_document` without "marginal", "hybrid" or
                `min_probability` with "marginal" or another reader, or vectors missing (`embed` stores them).
            EmptyCorpusError: No passage to search.
            EncoderMismatchError: The stored vectors are another model's.

        Source:
            REALM, section 4 (Guu et al., 2020), after ORQA (Lee et al., 2019).

        Example:
            >>> realm.ask("Who composed Carmen?")[0].text
            'Georges Bizet'
        """
        check_questions(question)
        own = options.resolved(self.config.defaults)
        by_eq_1, least = own.combine == "marginal", self.reader.check(own)
        null, hidden = self._null_if(own.null_document, by_eq_1), for_each(exclude, len(question))

        def found(texts: Sequence[str], hidden: Hidden) -> list[EncodedQuery]:
            find = self._fused if own.mode == "hybrid" else self._queries
            asked = [list(ids) for ids, _ in self.encoder.tokenizer.pieces(texts)]
            return find(texts, asked, self.config.num_read(own.passages), hidden)

        if isinstance(self.reader, GivenReader) and not by_eq_1:
            # Relevance weighs an answer as a `Reader` has learned to weigh it: with BM25's share in it.
            reader = self.reader.reader if own.mode == "hybrid" else without_prior(self.reader.reader)

            def find(texts: Sequence[str], hidden: Hidden) -> list[list[Source]]:
                return [*map(self._sources, found(texts, hidden))]

            return answer(question, reader, self.corpora, find, hidden, top_k=own.top_k, least=least)
        texts = [text.strip() for text in question]
        return [
            self.reader.answers(query, self._sources(query), How(own.top_k, by_eq_1, null and null(query)))
            for query in found(texts, hidden)
        ]

    def _fused(
        self, texts: Sequence[str], asked: Sequence[Sequence[int]], count: int, exclude: Exclude
    ) -> list[EncodedQuery]:
        """The questions with the best passages by BM25 and the towers; relevance is the log of a passage's share of the
        best sum."""
        depth = max(count, FUSION_DEPTH)
        queries = []
        for query, hidden in zip(
            self._queries(texts, asked, depth, exclude), for_each(exclude, len(texts)), strict=True
        ):
            both = shares_of_sum([best_places(self.corpora, query.text, depth, hidden), query.places], count)
            queries.append(replace(query, places=[(math.log(share), place) for share, place in both]))
        return queries

    def _sources(self, query: EncodedQuery) -> list[Source]:
        """The passages to read."""
        among, names = count_passages(self.corpora), [corpus.name for corpus in self.corpora]
        return [Source(self._retriever.passage(at), names[at[0]], score, among) for score, at in query.places]

    @overload
    def fill(  # type: ignore[overload-overlap]
        self, text: str, *, exclude: Exclude = (), **options: Unpack[REALMFillKeywords]
    ) -> Predictions: ...
    @overload
    def fill(
        self, text: Sequence[str], *, exclude: Exclude = (), **options: Unpack[REALMFillKeywords]
    ) -> list[Predictions]: ...
    @takes(REALMFillOptions)
    def fill(self, text: Sequence[str], options: REALMFillOptions, exclude: Exclude = ()) -> list[Predictions]:
        """Fill the blank of a text from the passages nearest to it.

        A model with a reader of its own predicts masked words: p(y|x) = Σ_z p(y|z,x) p(z|x), where z are the passages
        read and the null document, an empty one, for what the model knows without passages; y are the single-token
        words in these passages. With the reader of a `Reader`, such as quoth-realm's, y are spans.

        Args:
            text: One text, or several, each with one blank: `[MASK]`, `<mask>` or `___`.
            options: The fields of `REALMFillOptions`.
            exclude (Collection[int]): As in `ask`. Default: ().

        Returns:
            The predictions, best first, or a list of such lists for several texts. Probabilities are shares, not
            calibrated; with spans, the remainder to 1 is the probability of no answer.

        Raises:
            InputError: A text without exactly one blank, "softmax" with a reader of its own; else as `ask`.

        Source:
            REALM, equation 1 (Guu et al., 2020).

        Example:
            >>> realm.fill("Carmen was composed by [MASK].", top_k=1)[0].text
            'Georges Bizet'
        """
        tokenizer, texts = self.encoder.tokenizer, [with_mask(one, self.encoder.tokenizer.mask_token) for one in text]
        masked = [masked_ids(tokenizer, one, self.config.question_room) for one in texts]
        by_eq_1 = self.reader.combined(options.combine, self.config.defaults.combine) == "marginal"
        null = self._null_if(by_eq_1 if options.null_document is None else options.null_document, by_eq_1)
        found: list[Predictions] = []
        for query in self._queries(texts, masked, self.config.num_read(options.passages), exclude):
            how = How(options.top_k, by_eq_1, null and null(query))
            answers = self.reader.fillings(query, self._sources(query), how)
            found.append(
                Predictions(replace(one, sequence=fill_in(tokenizer, query.text, one.text)) for one in answers)
            )
        return found

    def likelihood(self, text: str, answer: str, *, passages: int | None = None, exclude: Exclude = ()) -> Likelihood:
        """How likely an answer is in a text's blank, and how much each passage contributes (REALM Table 3).

        The blank becomes M masks, one per word piece of the answer, filled independently: log p(y|x) = log Σ_z p(z|x)
        Π_m p(y_m|z,x). z are the passages nearest to the masked text, and the null document. Answers of different
        lengths have different numbers of masks, so their probabilities do not share one sum. For a one-piece answer it
        equals the probability of `fill`, unless the word also has other tokens (cased or byte-level vocabularies),
        which `fill` adds up.

        Args:
            text (str): A text with one blank: `[MASK]`, `<mask>` or `___`.
            answer (str): The words for the blank, whether or not they occur in the corpus.
            passages (int | None): Number of passages. Default: the model's, or one less than it was trained with.
            exclude (Collection[int]): As in `ask`. Default: ().

        Returns:
            log p(y|x), and log p(z|x), log p(y|z,x) and p(z|y,x) for each passage and, last, the null document, whose
            `log_likelihood` is the reader's without any passage.

        Raises:
            InputError: An answer that is empty, has too many pieces or cannot be spelled; a text without exactly one
                blank; a model whose reader marks spans, such as quoth-realm; else as `ask`.
            EmptyCorpusError: No passage to search.

        Source:
            REALM, equation 1 and section 3.2 (Guu et al., 2020).

        Example:
            >>> base = quoth.load("quoth-realm-base", corpus=corpus)
            >>> found = base.likelihood("Carmen is an opera by [MASK].", "Bizet", passages=2)
            >>> [each.passage is None for each in found.passages], round(sum(each.share for each in found.passages), 6)
            ([False, False, True], 1.0)
        """
        text = with_mask(text, self.encoder.tokenizer.mask_token)

        def found(masks: int) -> tuple[EncodedQuery, list[Source], float]:
            masked = masked_ids(self.encoder.tokenizer, text, self.config.question_room, masks)
            [query] = self._queries([text], [masked], self.config.num_read(passages), exclude)
            return query, self._sources(query), self._null()(query)

        return self.reader.likelihood(text, answer, found)

    def search(self, query: str, k: int = 10, mode: Mode = "dense") -> Hits:
        """Find the k best passages, by vectors unless `mode` says otherwise.

        Args:
            query (str): What to look for.
            k (int): Number of passages. Default: 10.
            mode ("auto" | "bm25" | "dense" | "hybrid"): By words, by vectors (requires `embed`), or by both, with
                reciprocal rank fusion (auto too). Default: "dense".

        Returns:
            The hits, best first; a hit has its passage and its score.

        Raises:
            InputError: Another mode, `k` below 1, or vectors missing.
            EmptyCorpusError: No passage to search.

        Example:
            >>> realm.search("Which river flows through Egypt?", k=1)[0].passage.title
            'Nile'
        """
        return super().search(query, k, "hybrid" if mode == "auto" else mode)

    def _null(self) -> Callable[[EncodedQuery], float]:
        """f(x, null document), by the query."""
        null_D = self.encoder.passages([""], [""])[0].vectors_TD[0]
        return lambda query: self.encoder.scale * float(null_D @ query.vector_D)

    def _null_if(self, wanted: bool, by_eq_1: bool) -> Callable[[EncodedQuery], float] | None:
        """As `_null`; None without the null document. Raises InputError if it is requested without eq. 1."""
        if wanted and not by_eq_1:
            raise InputError("null_document is True and combine 'softmax'; it is for combine='marginal'")
        return self._null() if wanted else None

    def _queries(
        self, texts: Sequence[str], asked: Sequence[Sequence[int]], passages: int, exclude: Exclude
    ) -> list[EncodedQuery]:
        checked("passages", passages, Count, 20)
        with step("encode"):
            q_BD = self.encoder.vectors_of(asked)
        with step("search"):
            places = self._retriever.nearest_passages(q_BD, passages, for_each(exclude, len(asked)))
        return [
            EncodedQuery(text, ids[: self.config.question_room], *rest)
            for text, ids, *rest in zip(texts, asked, q_BD, places, strict=True)
        ]


def passage_retriever(corpora: Sequence[Corpus], device: str | None, dtype: str | None, base: str | None) -> Retriever:
    """Compares the vectors stored by `quoth-realm`, for models of any kind (`index.finder`)."""
    return Retriever(corpora, _shared(device, dtype, base))


@cache
def _shared(device: str | None, dtype: str | None, base: str | None) -> PassageEncoder:
    """The towers of `quoth-realm`, loaded once per process: they are immutable."""
    return PassageEncoder.load(locate(REALM._usual, REALMConfig, base), device=device, dtype=dtype)
