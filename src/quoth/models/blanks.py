"""Blanks filled: what NPM proposes, what a reader reads of it, and what both decide.

Knows: how encoder, retriever, predictor and reader come together for texts with a blank. Does not know: their insides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice

import numpy as np

from quoth.corpus.corpus import Corpus
from quoth.encoders.token_encoder import TokenEncoder
from quoth.errors import InputError
from quoth.models.base import CorpusModel, Exclude, best_sources, for_each
from quoth.predictors.answers import Source, predict_spans
from quoth.predictors.calibration import calibrated
from quoth.predictors.combined import PROPOSED, apart, combine, naming, passages_of, words_beside
from quoth.predictors.options import FillOptions
from quoth.predictors.phrase import PhraseOptions, predict_phrases
from quoth.predictors.reader_weights import open_reader
from quoth.predictors.span_reader import SpanReader
from quoth.predictors.token import TokenOptions, predict_tokens
from quoth.records import Prediction
from quoth.results import Predictions
from quoth.retrieval.index import search_all, search_together
from quoth.retrieval.key_table import KeyHits
from quoth.retrieval.retriever import Retriever
from quoth.timing import step
from quoth.tokenizers.boundaries import STOP_WORDS
from quoth.tokenizers.text import MASK
from quoth.types import Floats

TEXTS_AT_A_TIME = 32
READ_AT_A_TIME = 8
SPARE = 4
"""So many times the answers asked for are proposed, since those that overlap better ones are left out."""
_OTHER_BLANKS = re.compile(r"<mask>|_{3,}")


@dataclass(frozen=True, slots=True)
class Asked:
    """Texts with a `[MASK]` each, the words that BM25 is asked for, and the rows that are never read."""

    texts: Sequence[str]
    searched: Sequence[str]
    hidden: Sequence[Collection[int]]

    def part(self, first: int, count: int) -> Asked:
        """`count` of the texts from the first of them on."""
        at = slice(first, first + count)
        return Asked(self.texts[at], self.searched[at], self.hidden[at])


def with_mask(text: str, mask_token: str) -> str:
    """A text with `[MASK]` for its blank, which may be the tokenizer's own mask too, `<mask>` or `___`.

    The last two are blanks only of a text that has none of the first two.
    """
    if MASK in text or mask_token in text:
        return text.replace(mask_token, MASK)
    return _OTHER_BLANKS.sub(MASK, text)


def words_of(text: str) -> str:
    """A text without its blank, for BM25."""
    return text.replace(MASK, " ")


class BlankFiller(CorpusModel):
    """Fills blanks from one or several corpora, with one record of options."""

    keys = "tokens"

    def __init__(
        self, encoder: TokenEncoder, corpora: Sequence[Corpus] = (), load_reader: Callable[[], SpanReader] | None = None
    ) -> None:
        super().__init__(Retriever(corpora, encoder), encoder.name)
        self.encoder = encoder
        self.config = encoder.config
        self.fingerprint = encoder.fingerprint
        named = self.config.reader
        self._load_reader = load_reader or (partial(open_reader, named) if named else None)

    @cached_property
    def reader(self) -> SpanReader:
        """What reads the passages of proposed phrases, loaded when it is first asked. Raises InputError without one."""
        if self._load_reader is None:
            raise InputError('this model knows no reader; set "reader" in its quoth.json, or ask with read=0')
        return self._load_reader()

    @cached_property
    def _stop_words(self) -> frozenset[int]:
        return self.encoder.tokenizer.groups_of(STOP_WORDS)

    @property
    def single(self) -> bool:
        """Whether this is NPM-single, which answers with one token."""
        return self.config.num_masks == 1

    def fill_with(
        self, options: FillOptions, texts: Sequence[str], searched: Sequence[str] = (), exclude: Exclude = ()
    ) -> list[Predictions]:
        """`fill` of several texts, with its options as one record."""
        if searched and len(searched) != len(texts):
            raise InputError(f"searched has {len(searched)} entries for {len(texts)} texts; give one for each")
        options = options.resolved(self.config.defaults)
        if not (options.whole_words or self.single):
            raise InputError("whole_words is False; only a model that answers with one token (NPM-single) allows that")
        if options.passages is None and options.hybrid:
            raise InputError(
                f"hybrid is {options.hybrid} and passages None; say how many passages to boost: passages=3"
            )
        texts = [self.with_mask(text) for text in texts]
        asked = Asked(texts, searched or [*map(words_of, texts)], for_each(exclude, len(texts)))
        results: list[list[Prediction]] = []
        for at in range(0, len(texts), TEXTS_AT_A_TIME):
            results.extend(self._fill(asked.part(at, TEXTS_AT_A_TIME), options))
        return [Predictions(each) for each in results]

    def _fill(self, asked: Asked, options: FillOptions) -> list[list[Prediction]]:
        with step("encode"):
            queries = self.encoder.blanks(asked.texts)
        top_k, read, distinct = options.top_k, options.read, options.distinct
        phrases = PhraseOptions(
            top_k=max(top_k, PROPOSED) if read else SPARE * top_k if distinct else top_k,
            combine=options.combine or "joint",
            temperature=options.temperature,
            length_exponent=options.length_exponent,
            banned_tokens=self._token_ids(options.banned_tokens),
            stop_words=self._stop_words if options.ban_stop_words else frozenset(),
            max_phrase_tokens=options.max_phrase_tokens,
            hybrid=options.hybrid or 0.0,
            whole_words=options.whole_words,
            max_evidence=options.max_evidence,
        )
        said = [self._said(text) if options.ban_query else frozenset() for text in asked.texts]
        each = [replace(phrases, banned_tokens=phrases.banned_tokens | banned) for banned in said]
        found = [
            [replace(answer, sequence=text.replace(MASK, answer.text)) for answer in answers]
            for text, answers in zip(
                asked.texts, self._answers(asked, queries, options.k, options.num_passages, each), strict=True
            )
        ]
        if read:
            return list(self._decide(asked, found, options))
        return [list(islice(apart(each), top_k)) if distinct else each for each in found]

    def _answers(
        self,
        asked: Asked,
        queries: Sequence[tuple[Floats, Floats]],
        k: int,
        passages: int | None,
        options: Sequence[PhraseOptions],
    ) -> Iterator[list[Prediction]]:
        """What fills each text's blank."""
        every_hit = self._hits(asked, queries, k, passages, options[0].hybrid)
        for query, each in zip(queries, options, strict=True):
            with step("search"):
                hits = next(every_hit)
            yield self._predict(hits, *query, each)

    def _hits(
        self, asked: Asked, queries: Sequence[tuple[Floats, Floats]], k: int, passages: int | None, hybrid: float
    ) -> Iterator[list[KeyHits]]:
        """The tokens nearest to each blank, in BM25's passages or everywhere."""
        searched, hidden = asked.searched, asked.hidden
        if passages is None or hybrid:
            found = search_together(self._retriever.key_tables(), hidden, np.stack(queries, axis=1), k)
            for words, hits, rows in zip(searched, found, hidden, strict=True):
                if passages is None:
                    yield hits
                else:
                    yield self._retriever.boost(hits, words, passages, rows)
            return
        tables = self._retriever.restricted(searched, passages, hidden)
        for keys, (q_start_D, q_end_D) in zip(tables, queries, strict=True):
            yield [replace(each, restricted=True) for each in search_all(keys, q_start_D, q_end_D, k)]

    def _predict(
        self, hits: Sequence[KeyHits], q_start_D: Floats, q_end_D: Floats, options: PhraseOptions
    ) -> list[Prediction]:
        if self.single:
            return predict_tokens(hits, q_start_D, TokenOptions.of(options))
        return predict_phrases(hits, q_start_D, q_end_D, options)

    def read(
        self, asked: Asked, proposed: Sequence[list[Prediction]], read: int
    ) -> Iterator[tuple[list[Prediction], list[Prediction], frozenset[str]]]:
        """For each text what NPM proposes, what the reader marks in BM25's best `read` passages and some of those where
        the best proposals occur, and the words of the blank's sentence."""
        prior = self.reader.config.prior
        for at in range(0, len(asked.texts), READ_AT_A_TIME):
            part = slice(at, at + READ_AT_A_TIME)
            with step("search"):
                sources = [
                    self._sources(words, found, read, rows)
                    for words, found, rows in zip(asked.searched[part], proposed[part], asked.hidden[part], strict=True)
                ]
            with step("expand"):
                spans = self.reader.read(asked.texts[part], [[each.passage for each in group] for group in sources])
            for text, found, group, said in zip(asked.texts[part], proposed[part], sources, spans, strict=True):
                marked = predict_spans(group, said, PROPOSED, distinct=False, prior=prior)
                yield found, marked, words_beside(text, MASK)

    def _sources(
        self, searched: str, proposed: Sequence[Prediction], read: int, hidden: Collection[int]
    ) -> list[Source]:
        best = best_sources(self.corpora, searched, read, hidden)
        found = {(each.corpus, each.passage.row): each for each in best}
        last = min((each.relevance for each in found.values()), default=0.0)
        for each in passages_of(proposed, max(read // 4, 1)):
            found.setdefault((each.corpus, each.passage.row), replace(each, relevance=last))
        return list(found.values())

    def _decide(
        self, asked: Asked, proposed: Sequence[list[Prediction]], options: FillOptions
    ) -> Iterator[list[Prediction]]:
        """What NPM and the reader decide together, by resolved options."""
        assert options.read is not None
        assert options.min_probability is not None
        for text, (found, marked, said) in zip(asked.texts, self.read(asked, proposed, options.read), strict=True):
            if options.ban_stop_words:
                marked = [each for each in marked if naming(each.text)]
            best = combine(found, marked, self.config.read_weights, options.top_k, said, options.max_evidence)
            sure = calibrated(best, self.config.calibration, options.min_probability)
            yield [replace(each, sequence=text.replace(MASK, each.text)) for each in sure]

    def with_mask(self, text: str) -> str:
        """A text with `[MASK]` for its blank."""
        return with_mask(text, self.encoder.tokenizer.mask_token)

    def _token_ids(self, texts: Collection[str]) -> frozenset[int]:
        ids = [self.encoder.tokenizer.phrase(text).ids_T.tolist() for text in texts]
        return frozenset(i for each in ids for i in each)

    def _said(self, text: str) -> frozenset[int]:
        """The token ids of a text, but for the unknown token's, which is any word's."""
        return self._token_ids([words_of(text)]) - {self.encoder.tokenizer.hf.unk_token_id}
