"""REALM: retrieve, then predict (Guu et al. 2020), over the user's corpora.

Knows: how towers, retrieval and reader compose. The five steps are those of every model here: encode (towers)
→ search (retriever) → expand (reader: the spans of each passage) → score (marginal over passages) → explain (evidence).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
from numpy.typing import NDArray

from quoth.answers.calibration import calibrated
from quoth.answers.options import REALMAskOptions, REALMFillOptions
from quoth.answers.spans import Source, predict_spans
from quoth.corpus.bm25 import best_places
from quoth.corpus.corpus import Corpora, listed
from quoth.encoders.pairs import answer_ids, fill_in, masked_ids
from quoth.encoders.transformer import Transformer
from quoth.errors import InputError
from quoth.fields import Count, checked
from quoth.hub import locate
from quoth.index.fusion import weighted_sum
from quoth.index.retriever import Retriever
from quoth.model.base import FUSION_DEPTH, CorpusModel, Mode
from quoth.model.calls import Exclude, check_questions, documented, for_each, takes, with_mask
from quoth.model.model import remembered
from quoth.reader.network import SpanReader
from quoth.reader.weights import open_reader
from quoth.realm.config import REALMConfig
from quoth.realm.network import Reader, ReaderModel
from quoth.realm.reading import EncodedQuery, OwnReader
from quoth.realm.towers import PassageEncoder, load_heads
from quoth.records import Likelihood, Prediction
from quoth.results import Hits, Predictions
from quoth.timing import step

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

Combine = Literal["softmax", "marginal"]
LEAST_SHARE = 0.01
"""The share of the best fused score that a passage counts with at least: the last of both rankings has none."""


class REALM(CorpusModel):
    """A retrieval-augmented language model over one or several corpora."""

    keys = "passages"

    def __init__(self, encoder: PassageEncoder, reader: Reader | SpanReader, corpora: Sequence[Corpus] = ()) -> None:
        super().__init__(Retriever(corpora, encoder), encoder.name)
        self.encoder, self.reader = encoder, reader
        self.config, self.fingerprint = encoder.config, encoder.fingerprint

    @classmethod
    @remembered
    @documented
    def from_pretrained(
        cls,
        name: str | Path = "quoth-realm",
        corpus: Corpora = None,
        *,
        device: str | None = None,
        dtype: str | None = None,
        base: str | Path | None = None,
    ) -> REALM:
        """Load a REALM.

        Args:
            name (str | Path): A shipped model (quoth-realm, quoth-realm-base), or the folder of one that was trained or
                converted. Default: "quoth-realm".
            {corpus}
            {loading}

        Example:
            >>> quoth.REALM.from_pretrained(corpus=corpus)
            REALM('quoth-realm', keys='passages', corpora=[Corpus('tiny.quoth', documents=6, passages=6, snapshot=1)])
        """
        source = locate(str(name), REALMConfig, None if base is None else str(base))
        encoder = PassageEncoder.load(source, device=device, dtype=dtype)
        if reader := source.config.reader:
            folder = None if base is None else str(base)
            return cls(encoder, open_reader(reader, device=device, dtype=dtype, base=folder), listed(corpus))
        transformer = Transformer.load(source.part("reader"), device=device, dtype=dtype)
        model = ReaderModel(transformer.model, source.config)
        load_heads(source.heads, "reader", model)
        weight = next(transformer.model.parameters())
        own = Reader(model.to(device=weight.device, dtype=weight.dtype), encoder.tokenizer)
        return cls(encoder, own, listed(corpus))

    def over(self, corpora: Sequence[Corpus]) -> REALM:
        """This model over other corpora, with the same weights."""
        made = REALM(self.encoder, self.reader, corpora)
        made._call = self._call
        return made

    @overload
    def ask(  # type: ignore[overload-overlap]
        self,
        question: str,
        *,
        top_k: int = 5,
        passages: int | None = None,
        combine: Literal["softmax", "marginal"] | None = None,
        null_document: bool = False,
        mode: Literal["dense", "hybrid"] | None = None,
        min_probability: float | None = None,
        exclude: Exclude = (),
    ) -> Predictions: ...
    @overload
    def ask(
        self,
        question: Sequence[str],
        *,
        top_k: int = 5,
        passages: int | None = None,
        combine: Literal["softmax", "marginal"] | None = None,
        null_document: bool = False,
        mode: Literal["dense", "hybrid"] | None = None,
        min_probability: float | None = None,
        exclude: Exclude = (),
    ) -> list[Predictions]: ...
    @takes(REALMAskOptions)
    def ask(self, question: Sequence[str], options: REALMAskOptions, exclude: Exclude = ()) -> list[Predictions]:
        """Answer a question with spans of the passages nearest to it.

        Args:
            question: One question, or several.
            top_k (int): Number of answers. Default: 5.
            passages (int | None): Number of passages to read. Default: the model's (quoth-realm: 20).
            combine ("softmax" | "marginal" | None): How spans of several passages are combined. "softmax": one softmax
                over all spans (the released code), with the passage's relevance if the model adds it. "marginal":
                p(y|z,x) p(z|x), each normalised by itself (eq. 1). Default: the model's (quoth-realm: "softmax").
            mode ("dense" | "hybrid" | None): How passages are found. "dense": by the towers, as in the paper. "hybrid":
                by BM25 too, both scores scaled from 0 to 1 and added; for a model with the reader of a `Reader`, which
                weighs a passage by that sum. Default: "dense" with "marginal", or else the model's (quoth-realm:
                "hybrid").
            null_document (bool): Whether z in eq. 1 may be the null document too, an empty passage, in which there is
                no answer; only with "marginal". Default: False, as in the paper's fine-tuning.
            min_probability (float | None): As in `Reader.ask`, for a calibrated probability. Default: the reader's.
            exclude (Collection[int]): Passage rows that are never searched, in any corpus: one collection, or one for
                each question. Default: ().

        Returns:
            The answers, best first, or a list of such lists for several questions. A model with the reader of a
            `Reader`, such as quoth-realm, uses that reader's odds: with "softmax" the probability is calibrated; with
            "marginal" p(y|z,x) is normalised over a passage's spans and its own "no answer here": the rest of the
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
        combine = options.combine or self.config.defaults.combine
        null_D = self._null_if(options.null_document, combine)
        texts = [each.strip() for each in question]
        asked = [list(ids) for ids, _ in self.encoder.tokenizer.pieces(texts)]
        hybrid, least = self._is_hybrid(options.mode, combine), self._least(options.min_probability, combine)
        count = self._count(options.passages)
        questions = self._fused(texts, asked, count, exclude) if hybrid else self._questions(asked, count, exclude)
        found: list[Predictions] = []
        for text, encoded in zip(texts, questions, strict=True):
            null, by_eq_1 = self._relevance(null_D, encoded), combine == "marginal"
            if isinstance(self.reader, SpanReader):
                config = self.reader.config
                answers = self._read_spans(text, encoded, options.top_k, by_eq_1, config.prior if hybrid else 0.0, null)
                if not by_eq_1:
                    answers = calibrated(answers, config.calibration, least, config.defaults.not_found_below)
            else:
                answers = self._own.answers(encoded, options.top_k, by_eq_1, null)
            found.append(Predictions(answers))
        return found

    @property
    def _own(self) -> OwnReader:
        assert isinstance(self.reader, Reader)
        return OwnReader(self.reader, self.encoder, self._retriever)

    def _is_hybrid(self, mode: Literal["dense", "hybrid"] | None, combine: str) -> bool:
        """Whether BM25 helps to find passages. Raises InputError if it cannot."""
        if mode is None:
            mode = "dense" if combine == "marginal" else self.config.defaults.mode
        if mode == "hybrid" and combine == "marginal":
            raise InputError("mode is 'hybrid' and combine 'marginal', whose p(z|x) is the towers'; use mode='dense'")
        if mode == "hybrid" and not isinstance(self.reader, SpanReader):
            raise InputError(f"mode is 'hybrid', but {self.name} has a reader of its own; use mode='dense'")
        return mode == "hybrid"

    def _least(self, min_probability: float | None, combine: str) -> float:
        """What an answer's probability must reach. Raises InputError if it was asked for and nothing is calibrated."""
        read = self.reader.config.defaults.min_probability if isinstance(self.reader, SpanReader) else 0.0
        if min_probability is None:
            return read
        if combine == "marginal":
            raise InputError(
                "min_probability is given and combine is 'marginal', which is not calibrated; leave one out"
            )
        if not isinstance(self.reader, SpanReader):
            raise InputError(f"min_probability is given, but the reader of {self.name} is not calibrated; leave it out")
        return min_probability

    def _fused(
        self, texts: Sequence[str], asked: Sequence[Sequence[int]], count: int, exclude: Exclude
    ) -> list[EncodedQuery]:
        """The questions with the best passages by BM25 and the towers; relevance is the log of a passage's share of the
        best one's sum."""
        depth = max(count, FUSION_DEPTH)
        questions = []
        for text, each, hidden in zip(
            texts, self._questions(asked, depth, exclude), for_each(exclude, len(texts)), strict=True
        ):
            both = weighted_sum([best_places(self.corpora, text, depth, hidden), each.places])[:count]
            most = max((score for score, _ in both), default=1.0)
            places = [(math.log(max(score / most, LEAST_SHARE)), place) for score, place in both]
            questions.append(replace(each, places=places))
        return questions

    def _read_spans(
        self,
        text: str,
        question: EncodedQuery,
        top_k: int,
        marginal: bool,
        prior: float = 0.0,
        null: float | None = None,
    ) -> list[Prediction]:
        """What a span reader finds in the passages nearest to a question, or to a text with a blank."""
        assert isinstance(self.reader, SpanReader)
        corpora = self._retriever.corpora
        sources = [Source(self._retriever.passage(at), corpora[at[0]].name, score) for score, at in question.places]
        with step("expand"):
            [spans] = self.reader.read([text], [[each.passage for each in sources]])
        return predict_spans(sources, spans, top_k, marginal=marginal, prior=prior, null=null)

    def _count(self, passages: int | None) -> int:
        """The number of passages to read; by default `num_candidates` less the null document."""
        count = self.config.defaults.passages if passages is None else passages
        return self.config.num_candidates - 1 if count is None else count

    @overload
    def fill(  # type: ignore[overload-overlap]
        self,
        text: str,
        *,
        top_k: int = 5,
        passages: int | None = None,
        combine: Literal["softmax", "marginal"] | None = None,
        null_document: bool | None = None,
        exclude: Exclude = (),
    ) -> Predictions: ...
    @overload
    def fill(
        self,
        text: Sequence[str],
        *,
        top_k: int = 5,
        passages: int | None = None,
        combine: Literal["softmax", "marginal"] | None = None,
        null_document: bool | None = None,
        exclude: Exclude = (),
    ) -> list[Predictions]: ...
    @takes(REALMFillOptions)
    def fill(self, text: Sequence[str], options: REALMFillOptions, exclude: Exclude = ()) -> list[Predictions]:
        """Fill the blank of a text from the passages nearest to it.

        A model with a reader of its own predicts masked words: p(y|x) = Σ_z p(y|z,x) p(z|x), where z are the passages
        read and the null document, an empty one, for what the model knows without any passage; y are the words of one
        token that occur in these passages. With the reader of a `Reader`, such as quoth-realm's, y are spans.

        Args:
            text: One text, or several, each with one blank: `[MASK]`, `<mask>` or `___`.
            top_k (int): Number of answers. Default: 5.
            passages (int | None): Number of passages to read. Default: the model's (quoth-realm: 20).
            combine ("softmax" | "marginal" | None): As in `ask`. Default: the model's (quoth-realm: "softmax"), and
                "marginal" (eq. 1) for a reader of its own, which has nothing else.
            null_document (bool | None): As in `ask`. Default: True with "marginal", as in the paper.
            exclude (Collection[int]): As in `ask`. Default: ().

        Returns:
            The predictions, best first, or a list of such lists for several texts. Probabilities are shares, not
            calibrated; with spans, what is missing to 1 is the probability of no answer.

        Raises:
            InputError: A text without exactly one blank, "softmax" with a reader of its own; else as `ask`.

        Source:
            REALM, equation 1 (Guu et al., 2020).

        Example:
            >>> realm.fill("Carmen was composed by [MASK].", top_k=1)[0].text
            'Georges Bizet'
        """
        texts = [self._with_mask(each) for each in text]
        masked = [masked_ids(self.encoder.tokenizer, each, self._room) for each in texts]
        spans = isinstance(self.reader, SpanReader)
        combine = options.combine or (self.config.defaults.combine if spans else "marginal")
        checked("combine", combine, Combine if spans else Literal["marginal"])
        null = options.null_document
        null_D = self._null_if(combine == "marginal" if null is None else null, combine)
        found: list[Predictions] = []
        for question, each in zip(self._questions(masked, self._count(options.passages), exclude), texts, strict=True):
            relevance = self._relevance(null_D, question)
            if spans:
                answers = self._read_spans(each, question, options.top_k, combine == "marginal", null=relevance)
            else:
                answers = self._own.words(question, options.top_k, relevance)
            tokenizer = self.encoder.tokenizer
            found.append(Predictions(replace(one, sequence=fill_in(tokenizer, each, one.text)) for one in answers))
        return found

    def _with_mask(self, text: str) -> str:
        return with_mask(text, self.encoder.tokenizer.mask_token)

    def likelihood(self, text: str, answer: str, *, passages: int | None = None, exclude: Exclude = ()) -> Likelihood:
        """How likely a given answer is in the blank of a text, and which passages make it so (REALM Table 3).

        The blank becomes M masks, one for each of the answer's M word pieces, filled independently of each other: log
        p(y|x) = log Σ_z p(z|x) Π_m p(y_m|z,x). z are the passages nearest to the text with its masks, and the null
        document. Answers of different lengths have different numbers of masks: their probabilities are not shares of
        one sum. For an answer of one piece it is the probability that `fill` gives, unless the word has other tokens
        too (cased or byte-level vocabularies), which `fill` adds up.

        Args:
            text (str): A text with one blank: `[MASK]`, `<mask>` or `___`.
            answer (str): The words of the blank, whether or not they occur in the corpus.
            passages (int | None): Number of passages. Default: the model's, or one less than it was trained with.
            exclude (Collection[int]): As in `ask`. Default: ().

        Returns:
            log p(y|x), and log p(z|x), log p(y|z,x) and p(z|y,x) for each passage and, last, for the null document,
            whose `log_likelihood` is that of the reader without any passage.

        Raises:
            InputError: An answer that is empty, has more pieces than are read or cannot be spelled; a text without
                exactly one blank; a model whose reader marks spans and fills no masks, such as quoth-realm; else as
                `ask`.
            EmptyCorpusError: No passage to search.

        Source:
            REALM, equation 1 and section 3.2 (Guu et al., 2020).

        Example:
            >>> base = quoth.load("quoth-realm-base", corpus=corpus)
            >>> found = base.likelihood("Carmen is an opera by [MASK].", "Bizet", passages=2)
            >>> [each.passage is None for each in found.passages], round(sum(each.share for each in found.passages), 6)
            ([False, False, True], 1.0)
        """
        if isinstance(self.reader, SpanReader):
            raise InputError(
                f"the reader of {self.encoder.name} marks spans and fills no masks; use a model that "
                "`quoth train realm-pretrain` or `quoth convert` made"
            )
        tokenizer, text = self.encoder.tokenizer, self._with_mask(text)
        hidden = answer_ids(tokenizer, text, answer)
        if len(hidden) > self._room:
            raise InputError(
                f"answer {answer!r} has {len(hidden)} word pieces; it may have at most {self._room}; give a shorter one"
            )
        masked = masked_ids(tokenizer, text, self._room, len(hidden))
        [question] = self._questions([masked], self._count(passages), exclude)
        null = self.encoder.scale * float(self._null @ question.vector_D)
        return self._own.likelihood(question, answer.strip(), hidden, null)

    def search(self, query: str, k: int = 10, mode: Mode = "dense") -> Hits:
        """Find the k best passages, by vectors unless `mode` says otherwise.

        Args:
            query (str): What to look for.
            k (int): Number of passages. Default: 10.
            mode ("bm25" | "dense" | "hybrid"): By words, by vectors (requires `embed`), or by both, with reciprocal
                rank fusion. Default: "dense".

        Returns:
            The hits, best first; a hit has its passage and its score.

        Raises:
            InputError: Another mode, `k` below 1, or vectors missing.
            EmptyCorpusError: No passage to search.

        Example:
            >>> realm.search("Which river flows through Egypt?", k=1)[0].passage.title
            'Nile'
        """
        return super().search(query, k, mode)

    @property
    def _null(self) -> NDArray[np.float32]:
        """The vector of the null document: [D]."""
        vector_D: NDArray[np.float32] = self.encoder.passages([""], [""])[0].vectors_TD[0]
        return vector_D

    def _null_if(self, wanted: bool, combine: str) -> NDArray[np.float32] | None:
        """The vector of the null document: [D]; None if it is not one of z. Raises InputError if there is no z."""
        if wanted and combine != "marginal":
            raise InputError(f"null_document is True and combine {combine!r}; it is for combine='marginal'")
        return self._null if wanted else None

    def _relevance(self, null_D: NDArray[np.float32] | None, question: EncodedQuery) -> float | None:
        """f(x, null document)."""
        return None if null_D is None else self.encoder.scale * float(null_D @ question.vector_D)

    @property
    def _room(self) -> int:
        """Tokens of a question that are read, without its special ones."""
        return self.config.query_tokens - 2

    def _questions(self, asked: Sequence[Sequence[int]], passages: int, exclude: Exclude) -> list[EncodedQuery]:
        checked("passages", passages, Count, 20)
        with step("encode"):
            q_BD = self.encoder.vectors_of(asked)
        with step("search"):
            places = self._retriever.nearest_passages(q_BD, passages, for_each(exclude, len(asked)))
        return [EncodedQuery(ids[: self._room], *each) for ids, *each in zip(asked, q_BD, places, strict=True)]
