"""NPM and NPM-single: the phrases of a corpus that fill a blank (Min et al. 2022).

Knows: how encoder, retriever and predictor compose. Does not know: their insides.

encode (token_encoder) → search (retriever, index) → expand (candidates) → score (scoring) → explain (evidence).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.corpus import Corpus
from quoth.encoders.pretrained import locate
from quoth.encoders.token_encoder import TokenEncoder, Vector
from quoth.errors import InputError
from quoth.models.base import (
    Corpora,
    CorpusModel,
    Exclude,
    Texts,
    best_sources,
    check_questions,
    for_each,
    listed,
    of_each,
)
from quoth.predictors.answers import Source, predict_spans
from quoth.predictors.calibration import calibrated
from quoth.predictors.combined import PROPOSED, apart, combine, naming, passages_of, words_beside
from quoth.predictors.evidence import check_at_least_one
from quoth.predictors.label import LabelOptions, predict_labels
from quoth.predictors.phrase import PhraseOptions, predict_phrases
from quoth.predictors.reader_weights import open_reader
from quoth.predictors.span_reader import SpanReader
from quoth.predictors.token import TokenOptions, predict_tokens
from quoth.records import Passage, Prediction
from quoth.retrieval.index import search_all, search_together
from quoth.retrieval.keys import TokenHits
from quoth.retrieval.retriever import Retriever
from quoth.timing import step
from quoth.tokenizers.boundaries import STOP_WORDS
from quoth.tokenizers.text import MASK

ASK_TEMPLATE = "Q: {question}\nA: [MASK]."
CLASSIFY_TEMPLATE = "{text} It was [MASK]."
TEXTS_AT_A_TIME = 32
READ_AT_A_TIME = 8
SPARE = 4
"""So many times the answers asked for are proposed, since those that overlap better ones are left out."""


@dataclass(frozen=True, slots=True)
class PassageVectors:
    """A passage's tokens as the key table holds them: ids [T], character ranges of the document [T, 2],
    vectors [T, D]."""

    ids_T: NDArray[np.int32]
    offsets_T2: NDArray[np.int64]
    vectors_TD: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Asked:
    """Texts with a blank each, the words that BM25 is asked for, and the rows that are never read."""

    texts: Sequence[str]
    searched: Sequence[str]
    hidden: Sequence[Collection[int]]


class NPM(CorpusModel):
    """A nonparametric masked language model over one or several corpora."""

    keys = "tokens"

    def __init__(
        self, encoder: TokenEncoder, corpora: Sequence[Corpus] = (), load_reader: Callable[[], SpanReader] | None = None
    ) -> None:
        super().__init__(Retriever(corpora, encoder))
        self.encoder = encoder
        self.config = encoder.config
        self.fingerprint = encoder.fingerprint
        named = self.config.reader
        self._load_reader = load_reader or (partial(open_reader, named) if named else None)

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path = "quoth-mini",
        corpus: Corpora = None,
        *,
        device: str | None = None,
        dtype: str | None = None,
        base: str | Path | None = None,
    ) -> NPM:
        """Load a model by shipped name (quoth-mini, quoth-mini-single, quoth-mini-base), folder or hub id.

        `base` names a folder for the base encoder. Raises ModelNotFoundError, or InputError on an unknown device.
        """
        folder = None if base is None else str(base)
        source = locate(str(name), folder)
        reader = source.config.reader
        load = partial(open_reader, reader, device=device, dtype=dtype, base=folder) if reader else None
        return cls(TokenEncoder.load(source, device=device, dtype=dtype), listed(corpus), load)

    @cached_property
    def reader(self) -> SpanReader:
        """What reads the passages of proposed phrases, loaded when it is first asked. Raises InputError without one."""
        if self._load_reader is None:
            raise InputError('this model knows no reader; set "reader" in its quoth.json, or ask with read=0')
        return self._load_reader()

    def num_tokens(self, phrase: str) -> int:
        """How many of the model's tokens a phrase has inside a text."""
        return len(self.encoder.tokenizer.phrase(phrase).ids_T)

    @cached_property
    def _stop_words(self) -> frozenset[int]:
        return self.encoder.tokenizer.groups_of(STOP_WORDS)

    @property
    def single(self) -> bool:
        """Whether this is NPM-single, which answers with one token."""
        return self.config.num_masks == 1

    @overload
    def fill(self, text: str, **options: Any) -> list[Prediction]: ...
    @overload
    def fill(self, text: Sequence[str], **options: Any) -> list[list[Prediction]]: ...
    def fill(self, text: Texts, **options: Any) -> list[Prediction] | list[list[Prediction]]:
        """The phrases that fill the `[MASK]` of a text best, each with where it stands.

        Options, as in `fill_many`: top_k=5, k=4096, passages=3, combine="joint", temperature=1.0,
        length_exponent=0.0, banned_tokens=(), ban_query=False, ban_stop_words=False, max_phrase_tokens=10,
        whole_words=True, hybrid=0.0, read=None, min_probability=None, distinct=True, exclude=().
        Raises InputError, EmptyCorpusError, EncoderMismatchError.
        """
        return of_each(text, lambda texts: self.fill_many(texts, **options))

    def fill_many(
        self,
        texts: Sequence[str],
        *,
        top_k: int = 5,
        k: int = 4096,
        passages: int | None = 3,
        combine: Literal["sum", "joint", "softmax_sum"] = "joint",
        temperature: float = 1.0,
        length_exponent: float = 0.0,
        banned_tokens: Collection[str] = (),
        ban_query: bool = False,
        ban_stop_words: bool = False,
        max_phrase_tokens: int = 10,
        whole_words: bool = True,
        hybrid: float = 0.0,
        read: int | None = None,
        min_probability: float | None = None,
        distinct: bool = True,
        searched: Sequence[str] = (),
        exclude: Exclude = (),
    ) -> list[list[Prediction]]:
        """The phrases that fill the blank of each text best.

        Searches inside BM25's best `passages`, or every token when None (after `embed`; a few passages added since are
        encoded when asked for); with `hybrid` every token,
        that share of the probability going to phrases in BM25's best `passages` beforehand. `k` neighbours of each
        query propose phrases; see PhraseOptions for the rest. `banned_tokens` are texts whose tokens no answer may
        hold; with `ban_query` that goes for the tokens of the text itself, so that no answer repeats what it says,
        unknown tokens aside, which are of any word. That has a price: it forbids every right answer of questions that
        name it or a part of it (10.4 % of NQ-open's, 18.6 % of WebQuestions', 5.4 % of TriviaQA's), and as tokens are
        compared by their ids, a model with a cased vocabulary may still repeat the text's words in another casing. With
        `ban_stop_words` no answer is nothing but English stop words (the released code bans every answer that holds
        one). Of a word's tokens `max_phrase_tokens` counts the first alone. An NPM-single answers with whole words;
        with any token, as in the paper, if `whole_words` is False.
        The reader then sees the text together with BM25's best `read` passages, and some that hold the best phrases,
        and both decide (`combined`); None stands for the model's default, 0 for NPM alone, as in the paper. Answers
        that were read and have a smaller chance to be right than `min_probability` are marked `abstained`. Of phrases
        that overlap in their best place only the best is listed, if they are to be `distinct`; what was read always is.
        BM25 is asked for the words of each text, or for those `searched`, one string for each text.
        `exclude` are passage rows never searched, in any corpus: one collection, or one for each text.
        Raises InputError, EmptyCorpusError, EncoderMismatchError.
        """
        if searched and len(searched) != len(texts):
            raise InputError(f"searched has {len(searched)} entries for {len(texts)} texts; give one for each")
        read = self.config.read if read is None else read
        least = self.config.min_probability if min_probability is None else min_probability
        if read < 0:
            raise InputError(f"read is {read}; allowed is 0 (NPM alone) or more passages")
        check_at_least_one("top_k", top_k)
        if not (whole_words or self.single):
            raise InputError("whole_words is False; only a model that answers with one token (NPM-single) allows that")
        options = PhraseOptions(
            top_k=max(top_k, PROPOSED) if read else SPARE * top_k if distinct else top_k,
            combine=combine,
            temperature=temperature,
            length_exponent=length_exponent,
            banned_tokens=self._token_ids(banned_tokens),
            stop_words=self._stop_words if ban_stop_words else frozenset(),
            max_phrase_tokens=max_phrase_tokens,
            hybrid=hybrid,
            whole_words=whole_words,
        )
        hidden = for_each(exclude, len(texts))
        results: list[list[Prediction]] = []
        for first in range(0, len(texts), TEXTS_AT_A_TIME):
            part = slice(first, first + TEXTS_AT_A_TIME)
            found = self._fill(texts[part], searched[part], hidden[part], k, passages, options, ban_query)
            if read:
                asked = Asked(texts[part], searched[part] or [*map(self._words, texts[part])], hidden[part])
                results.extend(self._decide(asked, found, read, top_k, least, ban_stop_words))
            else:
                results.extend(list(islice(apart(each), top_k)) if distinct else each for each in found)
        return results

    def read(
        self, asked: Asked, proposed: Sequence[list[Prediction]], read: int
    ) -> Iterator[tuple[list[Prediction], list[Prediction], frozenset[str]]]:
        """For each text what NPM proposes, what the reader marks in BM25's best `read` passages and some of those where
        the best proposals occur, and the words of the blank's sentence."""
        prior = self.reader.config.prior
        for at in range(0, len(asked.texts), READ_AT_A_TIME):
            part = slice(at, at + READ_AT_A_TIME)
            with step("read"):
                sources = [
                    self._sources(words, found, read, rows)
                    for words, found, rows in zip(asked.searched[part], proposed[part], asked.hidden[part], strict=True)
                ]
                spans = self.reader.read(asked.texts[part], [[each.passage for each in group] for group in sources])
            for text, found, group, said in zip(asked.texts[part], proposed[part], sources, spans, strict=True):
                marked = predict_spans(group, said, PROPOSED, distinct=False, prior=prior)
                mask = MASK if MASK in text else self.encoder.tokenizer.mask_token
                yield found, marked, words_beside(text, mask)

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
        self,
        asked: Asked,
        proposed: Sequence[list[Prediction]],
        read: int,
        top_k: int,
        min_probability: float,
        ban_stop_words: bool,
    ) -> Iterator[list[Prediction]]:
        """What NPM and the reader decide together."""
        for text, (found, marked, said) in zip(asked.texts, self.read(asked, proposed, read), strict=True):
            if ban_stop_words:
                marked = [each for each in marked if naming(each.text)]
            best = combine(found, marked, self.config.read_weights, top_k, said)
            sure = calibrated(best, self.config.calibration, min_probability)
            yield [replace(each, sequence=self._filled(text, each.text)) for each in sure]

    def _fill(
        self,
        texts: Sequence[str],
        searched: Sequence[str],
        hidden: Sequence[Collection[int]],
        k: int,
        passages: int | None,
        options: PhraseOptions,
        ban_query: bool,
    ) -> list[list[Prediction]]:
        if k < 1:
            raise InputError(f"k is {k}; allowed is 1 or more neighbours; try k=4096")
        if passages is None and options.hybrid:
            raise InputError(
                f"hybrid is {options.hybrid} and passages None; say how many passages to favour: passages=3"
            )
        with step("encode"):
            queries = self.encoder.blanks(texts)
        said = [self._said(text) if ban_query else frozenset() for text in texts]
        each = [replace(options, banned_tokens=options.banned_tokens | banned) for banned in said]
        words = searched or [self._words(text) for text in texts]
        answers = self._answers(words, queries, hidden, k, passages, each)
        return [
            [replace(answer, sequence=self._filled(text, answer.text)) for answer in found]
            for text, found in zip(texts, answers, strict=True)
        ]

    def _answers(
        self,
        searched: Sequence[str],
        queries: Sequence[tuple[Vector, Vector]],
        hidden: Sequence[Collection[int]],
        k: int,
        passages: int | None,
        options: Sequence[PhraseOptions],
    ) -> Iterator[list[Prediction]]:
        """What fills each text's blank; BM25 is asked for the words `searched`."""
        every_hit = self._hits(searched, queries, hidden, k, passages, options[0].hybrid)
        for query, each in zip(queries, options, strict=True):
            with step("search"):
                hits = next(every_hit)
            yield self._predict(hits, *query, each)

    def _hits(
        self,
        searched: Sequence[str],
        queries: Sequence[tuple[Vector, Vector]],
        hidden: Sequence[Collection[int]],
        k: int,
        passages: int | None,
        hybrid: float,
    ) -> Iterator[list[TokenHits]]:
        """The tokens nearest to each blank, in BM25's passages or everywhere."""
        if passages is None or hybrid:
            found = search_together(self._retriever.every_token(), hidden, np.stack(queries, axis=1), k)
            for words, hits, rows in zip(searched, found, hidden, strict=True):
                if passages is None:
                    yield hits
                else:
                    yield self._retriever.favour(hits, words, passages, rows)
            return
        tables = self._retriever.restricted(searched, passages, hidden)
        for keys, (q_start_D, q_end_D) in zip(tables, queries, strict=True):
            yield [replace(each, restricted=True) for each in search_all(keys, q_start_D, q_end_D, k)]

    def _predict(
        self, hits: Sequence[TokenHits], q_start_D: Vector, q_end_D: Vector, options: PhraseOptions
    ) -> list[Prediction]:
        if self.single:
            return predict_tokens(hits, q_start_D, TokenOptions.of(options))
        return predict_phrases(hits, q_start_D, q_end_D, options)

    @overload
    def ask(self, question: str, **options: Any) -> list[Prediction]: ...
    @overload
    def ask(self, question: Sequence[str], **options: Any) -> list[list[Prediction]]: ...
    def ask(
        self, question: Texts, *, template: str = ASK_TEMPLATE, **options: Any
    ) -> list[Prediction] | list[list[Prediction]]:
        """Answer a question by filling the blank of a template (GPT-3's form by default); options as in `fill`.

        BM25 is asked for the question alone. NPM answers by itself (`read=0`): `Reader.ask` reads.
        """
        if "{question}" not in template:
            raise InputError(f"template {template!r} has no {{question}}; for example {ASK_TEMPLATE!r}")
        questions = [question] if isinstance(question, str) else list(question)
        check_questions(questions)
        texts = [template.replace("{question}", each.strip()) for each in questions]
        answers = self.fill_many(texts, **{"read": 0, "searched": questions, **options})
        found = [[replace(each, sequence="") for each in group] for group in answers]
        return found[0] if isinstance(question, str) else found

    def classify(
        self,
        text: str,
        labels: Mapping[str, Sequence[str]],
        *,
        template: str = CLASSIFY_TEMPLATE,
        temperature: float = 5.0,
        passages: int | None = 3,
    ) -> list[Prediction]:
        """Rank labels by how well their words (fuzzy verbalizers) fit a template's blank, wherever they stand
        (NPM A.4). The predictions' texts are the labels.

        Restricted search takes the best `passages` for the text with each label's words, so that every label's
        words can be found. Every occurrence counts. Raises InputError, also naming a label none of whose words
        stands in the corpus.
        """
        if "{text}" not in template:
            raise InputError(f"template {template!r} has no {{text}}; for example {CLASSIFY_TEMPLATE!r}")
        filled = template.replace("{text}", text)
        q_start_D, q_end_D = self.encoder.blanks([filled])[0]
        words = {label: [self._groups(word) for word in given] for label, given in labels.items()}
        queries = {label: f"{self._words(filled)} {' '.join(given)}" for label, given in labels.items()}
        tables = (
            self._retriever.every_token() if passages is None else self._retriever.union(queries.values(), passages)
        )
        options = LabelOptions(temperature=temperature)
        found = predict_labels(tables, words, q_start_D, None if self.single else q_end_D, options)
        for label in (each.text for each in found if not each.evidence):
            if not self._retriever.best_places(" ".join(labels[label]), 1):
                given = ", ".join(labels[label])
                raise InputError(f"label {label!r}: none of its words ({given}) stands in the corpus; give it another")
        return found

    def query_vectors(self, text: str) -> tuple[Vector, Vector]:
        """The start and the end query of a text's blank: [D] each."""
        return self.encoder.blanks([text])[0]

    def token_vectors(self, passages: Sequence[Passage]) -> list[PassageVectors]:
        """Each passage's tokens, encoded now."""
        encoded = self.encoder.encode(passages)
        return [
            PassageVectors(each.tokens.ids_T, each.tokens.offsets_T2 + passage.start, each.vectors_TD)
            for passage, each in zip(passages, encoded, strict=True)
        ]

    def _words(self, text: str) -> str:
        """A text without its blank, for BM25."""
        return self._filled(text, " ")

    def _filled(self, text: str, phrase: str) -> str:
        return text.replace(MASK, phrase).replace(self.encoder.tokenizer.mask_token, phrase)

    def _token_ids(self, texts: Collection[str]) -> frozenset[int]:
        ids = [self.encoder.tokenizer.phrase(text).ids_T.tolist() for text in texts]
        return frozenset(i for each in ids for i in each)

    def _said(self, text: str) -> frozenset[int]:
        """The token ids of a text, but for the unknown token's, which is any word's."""
        return self._token_ids([self._words(text)]) - {self.encoder.tokenizer.hf.unk_token_id}

    def _groups(self, word: str) -> NDArray[np.uint64]:
        return self.encoder.tokenizer.phrase(word).group_T
