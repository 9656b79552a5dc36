"""Fills blanks: the reader marks, NPM proposes where the reader is unsure, and both decide.

Knows: how encoder, retriever, predictor and reader compose for texts with a blank. Does not know: their insides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quoth.answers.evidence import (
    RIVALS,
    Proposal,
    Source,
    Spans,
    calibrated,
    chosen,
    propose,
    propose_spans,
    sources_of,
)
from quoth.answers.options import FillOptions, ResolvedOptions
from quoth.answers.ranking import Scored
from quoth.arrays import Floats
from quoth.corpus.bm25 import Ranking
from quoth.corpus.view import count_passages
from quoth.encoders.tokens import TokenEncoder
from quoth.errors import InputError
from quoth.index.key_table import KeyHits
from quoth.index.retriever import Retriever
from quoth.index.search import search_all, search_together
from quoth.model.base import CorpusModel
from quoth.model.calls import with_mask, words_of
from quoth.npm.config import NPMConfig
from quoth.npm.phrases import ScoredPhrases, ScoredTokens
from quoth.reader.runtime import open_reader
from quoth.reader.spans import SpanReader
from quoth.records import Passage, Prediction
from quoth.text.boundaries import STOP_WORDS, surface_group, words
from quoth.text.passages import is_balanced, sentences
from quoth.text.tokenizer import MASK, FastTokenizer, Tokens
from quoth.timing import step

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

READ_AT_A_TIME = 8
SPARE = 4
"""Over-generation factor: phrases that overlap better ones are dropped."""
PROPOSED = 50
"""Candidates per model."""
LEAST = 1e-4
"""Probability of a phrase in a model that does not propose it."""
SURE = 3
"""The power by which NPM's weight falls as the reader grows surer of its best phrase."""
SURE_ENOUGH = 0.5
"""If the reader's best phrase is at least this probable, NPM is not asked: its weight would be an eighth or less."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Texts with a `[MASK]` each, the best passages for each, and the hidden rows."""

    texts: Sequence[str]
    ranked: Sequence[Ranking]
    hidden: Sequence[Collection[int]]

    def only(self, numbers: Sequence[int]) -> Asked:
        """A subset of the texts."""
        texts, ranked = [self.texts[n] for n in numbers], [self.ranked[n] for n in numbers]
        return Asked(texts, ranked, [self.hidden[n] for n in numbers])


@dataclass(frozen=True, slots=True)
class PassageVectors:
    """A passage's tokens as in the key table: ids [T], character ranges of the document [T, 2], vectors [T, D]."""

    ids_T: NDArray[np.int32]
    offsets_T2: NDArray[np.int64]
    vectors_TD: NDArray[np.float32]


class BlankFiller(CorpusModel):
    """Fills blanks from one or several corpora, with one record of options."""

    keys = "tokens"
    encoder: TokenEncoder
    config: NPMConfig

    def __init__(
        self, encoder: TokenEncoder, corpora: Sequence[Corpus] = (), load_reader: Callable[[], SpanReader] | None = None
    ) -> None:
        assert isinstance(encoder.config, NPMConfig)
        super().__init__(Retriever(corpora, encoder), encoder)
        named = self.config.reader
        load = load_reader or (partial(open_reader, named) if named else None)
        self._load_reader = None if load is None else cache(load)  # over other corpora, it is the same reader

    @cached_property
    def reader(self) -> SpanReader:
        """The reader of proposed phrases' passages, loaded on first use. Raises InputError without one."""
        if self._load_reader is None:
            raise InputError('this model has no reader; set "reader" in its quoth.json, or pass read=0')
        return self._load_reader()

    def _known(self, passage: Passage) -> Tokens | None:
        """NPM's tokens of a passage, if the reader would tokenize it the same way."""
        return self.encoder.tokens([passage])[0] if self._cuts_alike else None

    @cached_property
    def _cuts_alike(self) -> bool:
        own, reads = self.encoder.tokenizer.hf, self.reader.tokenizer.hf
        return isinstance(own, FastTokenizer) and own.cuts_like(reads)

    @cached_property
    def _stop_words(self) -> frozenset[int]:
        return self.encoder.tokenizer.groups_of(STOP_WORDS)

    @property
    def single(self) -> bool:
        """Whether this is NPM-single, which answers with one token."""
        return self.config.num_masks == 1

    def num_tokens(self, phrase: str) -> int:
        """The number of the model's tokens in a phrase inside a text."""
        return len(self.encoder.tokenizer.phrase(phrase).ids_T)

    def query_vectors(self, text: str) -> tuple[Floats, Floats]:
        """The start and the end query of a text's blank.

        Args:
            text (str): A text with one blank.

        Returns:
            Two vectors [D] of float32; the same one twice for an NPM-single.

        Raises:
            InputError: A text without exactly one blank.

        Example:
            >>> start, end = npm.query_vectors("Carmen is an opera by [MASK].")
            >>> start.shape, end.shape
            ((384,), (384,))
        """
        return self.encoder.blanks([self.with_mask(text)])[0]

    def token_vectors(self, passages: Sequence[Passage]) -> list[PassageVectors]:
        """Encode passages and return their tokens.

        Args:
            passages (Sequence[Passage]): The passages.

        Returns:
            For each passage its token ids [T], their character ranges in the document [T, 2], their vectors [T, D].

        Example:
            >>> [encoded] = npm.token_vectors([corpus.passage(1)])
            >>> start, end = encoded.offsets_T2[0]
            >>> corpus.document("carmen").text[start:end], encoded.vectors_TD.shape[1]
            ('Carmen', 384)
        """
        encoded = self.encoder.encode(passages)
        return [
            PassageVectors(each.tokens.ids_T, each.tokens.offsets_T2 + passage.start, each.vectors_TD)
            for passage, each in zip(passages, encoded, strict=True)
        ]

    def settled(self, options: FillOptions) -> ResolvedOptions:
        """The options with this model's defaults. Raises InputError if the model does not support them."""
        own = options.resolved(self.config.defaults)
        if options.precision is not None and not own.read:
            raise InputError(f"precision is {options.precision}, but no reader is used; set read=20")
        if not (own.whole_words or self.single):
            raise InputError("whole_words is False; only a model that answers with one token (NPM-single) allows that")
        if own.passages is None and own.passage_share:
            raise InputError(f"passage_share is {own.passage_share} and passages all; say which passages: passages=3")
        return own

    def _queries(self, texts: Sequence[str]) -> list[tuple[Floats, Floats]]:
        """The two vectors of each text's blank, as `query_vectors`."""
        with step("encode"):
            return self.encoder.blanks(texts)

    def asked(
        self, texts: Sequence[str], searched: Sequence[str], hidden: Sequence[Collection[int]], options: ResolvedOptions
    ) -> Asked:
        """Texts with the best passages for their `searched` queries, found once: as many as are searched or read,
        whichever is more.
        """
        depth = max(options.passages or 0, options.read)
        with step("search"):
            found = self.finder.rankings(searched, depth, hidden, options.mode) if depth else [[] for _ in texts]
        return Asked(texts, found, hidden)

    def proposals(
        self, asked: Asked, queries: Sequence[tuple[Floats, Floats]], options: ResolvedOptions
    ) -> Iterator[Iterable[Proposal]]:
        """NPM's proposals for each text's blank, by resolved options, quoted lazily."""
        found = self._hits(asked, queries, options)
        for (q_start_D, q_end_D), phrases in zip(queries, self.per_text(asked, options), strict=True):
            with step("search"):
                hits = next(found)
            scored: Scored = (
                ScoredTokens(hits, q_start_D, phrases)
                if self.single
                else ScoredPhrases(hits, q_start_D, q_end_D, phrases)
            )
            yield propose(scored, phrases)

    def per_text(self, asked: Asked, options: ResolvedOptions) -> list[ResolvedOptions]:
        """Options of the proposals for each text: more phrases than requested, without banned tokens."""
        most = max(options.top_k, PROPOSED) if options.read else options.top_k * (SPARE if options.distinct else 1)
        banned = self._token_ids(options.banned_tokens)
        own = [self._said(text) if options.ban_query else frozenset() for text in asked.texts]
        stop_words = self._stop_words if options.ban_stop_words else frozenset()
        return [replace(options, top_k=most, banned_ids=banned | ids, stop_words=stop_words) for ids in own]

    def _hits(
        self, asked: Asked, queries: Sequence[tuple[Floats, Floats]], options: ResolvedOptions
    ) -> Iterator[list[KeyHits]]:
        """The tokens nearest to each blank, in the best passages or everywhere."""
        inside = [[place for _, place in ranking[: options.passages]] for ranking in asked.ranked]
        if options.everywhere:
            tables = self._retriever.key_tables()
            found = search_together(tables, asked.hidden, np.stack(queries, axis=1), options.k)
            for hits, places in zip(found, inside, strict=True):
                yield self._retriever.boost(hits, places) if options.passage_share else hits
            return
        for tables, (q_start_D, q_end_D) in zip(self._retriever.gather(inside), queries, strict=True):
            yield [replace(hits, restricted=True) for hits in search_all(tables, q_start_D, q_end_D, options.k)]

    def decided(self, asked: Asked, options: ResolvedOptions) -> Iterator[list[Prediction]]:
        """The joint decisions of the reader and NPM, by resolved options."""
        weights, least, lowest = self.config.read_weights, options.min_probability, self.config.defaults.not_found_below
        for text, (proposed, marked) in zip(asked.texts, self.proposed_and_marked(asked, options), strict=True):
            most = max(options.top_k, RIVALS)
            best = combine(text, proposed, marked, weights, most, options.max_evidence, options.distinct)
            yield calibrated(best, self.config.calibration, (), least, lowest)[: options.top_k]

    def proposed_and_marked(
        self, asked: Asked, options: ResolvedOptions
    ) -> list[tuple[list[Proposal], list[Proposal]]]:
        """For each text, NPM's proposals and the reader's spans in the best `read` passages.

        If the reader is `SURE_ENOUGH`, NPM is not asked, unless it searches every token. If it is asked, the reader
        also reads some of the passages with the best proposals.
        """
        with step("search"):
            among = count_passages(self._retriever.corpora)
            sources = [self._sources(ranking[: options.read], among) for ranking in asked.ranked]
        spans = self._read(asked.texts, sources)
        phrases = self.per_text(asked, options)
        marked = list(map(self._marked, asked.texts, sources, spans, phrases))
        proposed: list[list[Proposal]] = [[] for _ in marked]
        unsure = [n for n, found in enumerate(marked) if options.everywhere or surest(found) < SURE_ENOUGH]
        part = asked.only(unsure)
        for n, found in zip(unsure, self.proposals(part, self._queries(part.texts), options), strict=True):
            proposed[n] = list(found)
        more = [self._more(sources[n], passages_of(proposed[n], max(options.read // 4, 1))) for n in unsure]
        for n, group, read in zip(unsure, more, self._read(part.texts, more), strict=True):
            if read:
                seen = [*sources[n][: len(spans[n])], *group]
                marked[n] = self._marked(asked.texts[n], seen, [*spans[n], *read], phrases[n])
        return list(zip(proposed, marked, strict=True))

    def _sources(self, ranking: Ranking, among: int) -> list[Source]:
        return sources_of(ranking, [self._retriever.passage(at) for _, at in ranking], self._retriever.corpora, among)

    def _more(self, read: Sequence[Source], proposed: Sequence[Source]) -> list[Source]:
        """Those that are not among the `read` ones; they count as much as the last of these."""
        known = {(source.corpus, source.passage.row) for source in read}
        last = min((source.relevance for source in read), default=0.0)
        return [replace(each, relevance=last) for each in proposed if (each.corpus, each.passage.row) not in known]

    def _read(self, texts: Sequence[str], sources: Sequence[Sequence[Source]]) -> list[list[Spans]]:
        with step("expand"):
            return [
                spans
                for at in range(0, len(texts), READ_AT_A_TIME)
                for spans in self.reader.read_enough(
                    texts[at : at + READ_AT_A_TIME], sources[at : at + READ_AT_A_TIME], self._known
                )
            ]

    def _marked(
        self, text: str, sources: Sequence[Source], spans: Sequence[Spans], options: ResolvedOptions
    ) -> list[Proposal]:
        """The reader's spans in the passages it read, without those that may not answer."""
        found = propose_spans(sources[: len(spans)], spans, PROPOSED, self.reader.config.prior)
        return [each for each in found if self._may_answer(text, each.best.text, options)]

    def _may_answer(self, text: str, phrase: str, options: ResolvedOptions) -> bool:
        """Whether a span that the reader marked is free of banned tokens, not of stop words alone if these are banned,
        and without half a pair of brackets or quotes, unless the text has the other half."""
        if options.stop_words and not naming(phrase):
            return False
        if options.banned_ids and not options.banned_ids.isdisjoint(self._token_ids([phrase])):
            return False
        return is_balanced(phrase) or is_balanced(text.replace(MASK, phrase))

    def with_mask(self, text: str) -> str:
        """A text with `[MASK]` for its blank."""
        return with_mask(text, self.encoder.tokenizer.mask_token)

    def _token_ids(self, texts: Collection[str]) -> frozenset[int]:
        ids = [self.encoder.tokenizer.phrase(text).ids_T.tolist() for text in texts]
        return frozenset(i for tokens in ids for i in tokens)

    def _said(self, text: str) -> frozenset[int]:
        """The token ids of a text, except the unknown token's, which may be any word's."""
        return self._token_ids([words_of(text)]) - {self.encoder.tokenizer.hf.unk_token_id}


def passages_of(proposed: Sequence[Proposal], most: int) -> list[Source]:
    """Up to `most` passages of phrases' best places, best phrase first."""
    found: dict[tuple[str, int], Passage] = {}
    for place in (proposal.best.evidence[0] for proposal in proposed):
        if len(found) == most:
            break
        start, end = place.context_start, place.context_start + len(place.context)
        passage = Passage(place.passage, place.document_id, place.title, place.context, start, end)
        found.setdefault((place.corpus, place.passage), passage)
    return [Source(passage, corpus) for (corpus, _), passage in found.items()]


def combine(
    text: str,
    proposed: Sequence[Proposal],
    marked: Sequence[Proposal],
    weights: tuple[float, float, float],
    top_k: int,
    max_evidence: int | None = None,
    distinct: bool = True,
) -> list[Prediction]:
    """The `top_k` phrases with the highest w · (1 − p)³ · log p_NPM + v · log p_reader − e · echo.

    `weights` are (w, v, e). p is the reader's highest probability: if the passages say it, NPM has little to add. A
    phrase is an echo (1, else 0) if it has words that name something and all of them occur in the sentence of `text`
    with the `[MASK]`.

    A phrase not proposed by one of the two has the probability `LEAST` there. `log_score` is that sum, and the
    probability is the phrase's share of exp of all these sums. Evidence is the reader's, or else NPM's, its best
    `max_evidence` places (None: all). With `distinct`, only the best of phrases whose best places overlap is listed.
    """
    by_phrase: dict[int, list[Proposal | None]] = {}
    for at, group in enumerate((proposed, marked)):
        for proposal in group:
            name = surface_group(" ".join(proposal.best.text.split()))
            by_phrase.setdefault(name, [None, None])[at] = proposal
    w, v, e = weights
    w *= (1 - surest(marked)) ** SURE
    said = words_beside(text)
    weighed = []
    for npm, reader in by_phrase.values():
        named = reader or npm
        assert named is not None
        names = naming(named.best.text)
        score = w * _log(npm) + v * _log(reader) - e * (bool(names) and names <= said)
        weighed.append(replace(named, best=replace(named.best, log_score=score)))
    weighed.sort(key=lambda proposal: -proposal.best.log_score)
    total = float(np.logaddexp.reduce([proposal.best.log_score for proposal in weighed]))
    best = chosen(weighed, top_k, distinct)
    return [prediction.with_probability(math.exp(prediction.log_score - total), max_evidence) for prediction in best]


def surest(marked: Sequence[Proposal]) -> float:
    """The probability of the reader's best span."""
    return max((span.best.probability for span in marked), default=0.0)


def words_beside(text: str) -> frozenset[str]:
    """The words of the sentence with the `[MASK]`, ignoring case, except those that name nothing."""
    at = text.index(MASK)
    start, end = next(sentence for sentence in sentences(text) if sentence[0] <= at < sentence[1])
    return naming(text[start:end].replace(MASK, " "))


def naming(text: str) -> frozenset[str]:
    """The words of a text that name something, ignoring case: all but stop words."""
    every = (text[start:end].casefold() for start, end in words(text))
    return frozenset(word for word in every if word[0].isalnum() and word not in STOP_WORDS)


def _log(proposal: Proposal | None) -> float:
    return math.log(LEAST if proposal is None else max(proposal.best.probability, LEAST))
