"""What reads the passages that a REALM found: the reader that it was trained with, or that of a `Reader`.

Knows: questions, blanks and the null document as inputs of a reader, eq. 1 of REALM (Guu et al. 2020) over the
readings: spans, words of a blank, the likelihood of an answer; and what only one of the two readers can do. Does not
know: how passages are found.

Shape suffixes that differ from the project's: N passages that are read, C places of answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quoth.answers.equations import log_sum_exp
from quoth.answers.evidence import (
    AnswerSpan,
    Source,
    Spans,
    calibrated,
    chosen,
    log_retrieval,
    places_in,
    predict_spans,
    span_proposals,
)
from quoth.answers.options import answered_from
from quoth.corpus.bm25 import Ranking
from quoth.encoders.transformer import Transformer, pair_batch, run_batched
from quoth.errors import InputError
from quoth.fields import checked
from quoth.hub import ModelSource
from quoth.reader.spans import Reading, SpanReader, legal_spans
from quoth.realm.config import REALMAskOptions, REALMConfig
from quoth.realm.network import ReaderModel, readings
from quoth.realm.towers import like_encoder, opened
from quoth.records import Likelihood, PassageShare, Prediction
from quoth.text.boundaries import MAY_END, MAY_START
from quoth.text.tokenizer import PairTokenizer, answer_ids
from quoth.timing import step

Combine = Literal["softmax", "marginal"]


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A question, or a text with masks: its token ids, cut to what is read, its vector [D], and the passages nearest to
    it."""

    text: str
    ids: Sequence[int]
    vector_D: NDArray[np.float32]
    places: Ranking


@dataclass(frozen=True, slots=True)
class How:
    """How answers are read and combined: their number; by eq. 1 or by one softmax; the relevance of the null document,
    None if it is not one of z; whether BM25 helped to find the passages; the probability that an answer must reach."""

    top_k: int
    marginal: bool
    null: float | None = None
    hybrid: bool = False
    least: float = 0.0


class OwnReader:
    """REALM's own reader, without gradients: answers questions by spans, and fills blanks by masked words."""

    def __init__(self, model: ReaderModel, tokenizer: PairTokenizer, name: str = "") -> None:
        self.model, self.tokenizer, self.name = model.eval(), tokenizer, name
        self._device = next(model.parameters()).device

    @classmethod
    def load(
        cls, source: ModelSource[REALMConfig], tokenizer: PairTokenizer, device: str | None, dtype: str | None
    ) -> OwnReader:
        """Raises ModelNotFoundError, or InputError on an unknown device or dtype."""
        encoder = Transformer.load(source.part("reader"), device=device, dtype=dtype).model
        model = opened(ReaderModel, encoder, source.config, source.heads, "reader")
        return cls(like_encoder(model), tokenizer, source.name)

    def check(self, options: REALMAskOptions) -> float:
        """The probability that an answer must reach. Raises InputError: the spans' scores are no odds, which BM25's
        could be added to, and which could be calibrated."""
        if options.mode == "hybrid":
            raise InputError(f"mode is 'hybrid', but {self.name} has a reader of its own; use mode='dense'")
        for name in ("min_probability", "precision"):
            if getattr(options, name) is not None:
                raise InputError(f"{name} is given, but the reader of {self.name} is not calibrated; leave it out")
        return 0.0

    def combined(self, combine: str | None, default: str) -> str:
        """How the fillings of a blank are combined: eq. 1 is all that masked words have. Raises InputError."""
        checked("combine", combine or "marginal", Literal["marginal"])
        return "marginal"

    def answers(self, query: EncodedQuery, sources: Sequence[Source], how: How) -> list[Prediction]:
        """The best spans."""
        with step("expand"):
            read = self._read(query, sources)
            spans = self.spans([source.reading for source in read])
        return predict_answers(read, spans, self.model.config.add_relevance, how.top_k, how.marginal, how.null)

    def fillings(self, query: EncodedQuery, sources: Sequence[Source], how: How) -> list[Prediction]:
        """The best words of a blank."""
        with step("expand"):
            read = self._read(query, sources)
            nothing = [] if how.null is None else self._readings(query, [""], [""])
            log_p_NV = self.masked([*(source.reading for source in read), *nothing])
        return predict_words(read, how.null, log_p_NV, how.top_k)

    def likelihood(
        self, text: str, answer: str, found: Callable[[int], tuple[EncodedQuery, Sequence[Source], float]]
    ) -> Likelihood:
        """How likely an answer is in the masks of a text. `found` takes their number, and gives the text with its
        masks, the passages nearest to it and the null document's relevance. Raises InputError on an answer that cannot
        be spelled or has too many pieces."""
        hidden, room = answer_ids(self.tokenizer, text, answer), self.model.config.question_room
        if len(hidden) > room:
            raise InputError(
                f"answer {answer!r} has {len(hidden)} word pieces; it may have at most {room}; give a shorter one"
            )
        query, sources, null = found(len(hidden))
        with step("expand"):
            read, nothing = self._read(query, sources), self._readings(query, [""], [""])
            log_p_NM = self.at_masks([*(source.reading for source in read), *nothing], hidden)
        pieces = [self.tokenizer.hf.backend_tokenizer.id_to_token(token) for token in hidden]
        return explain_likelihood(read, null, answer.strip(), pieces, log_p_NM)

    def spans(self, read: Sequence[Reading]) -> list[Spans]:
        """The answers in each passage, as `legal_spans` gives them."""
        found = []
        rows = self._run(read, lambda part: self.model.span(self._states(part)))
        for reading, scores_TW in zip(read, rows, strict=True):
            first_C, beyond_C = np.nonzero(legal_spans(reading, scores_TW.shape[1]))
            start_C, end_C = reading.offsets_T2[first_C, 0], reading.offsets_T2[first_C + beyond_C, 1]
            score_C = scores_TW[reading.body + first_C, beyond_C].astype(np.float64)
            found.append(Spans(start_C, end_C, score_C, log_sum_exp(score_C)))
        return found

    def masked(self, read: Sequence[Reading]) -> NDArray[np.float32]:
        """log p(y|z, x) of every token of the vocabulary at the first mask of each input: [B, V]."""
        rows = self._run(read, lambda part: self._log_p(part, 1)[:, 0])
        return np.array(rows, np.float32).reshape(len(read), len(self.model.mlm.bias))

    def at_masks(self, read: Sequence[Reading], hidden_M: Sequence[int]) -> NDArray[np.float32]:
        """log p(y_m|z, x) of these tokens, one at each of the first M masks of each input: [B, M]."""
        which = torch.arange(len(hidden_M)), list(hidden_M)
        rows = self._run(read, lambda part: self._log_p(part, len(hidden_M))[:, *which])
        return np.array(rows, np.float32).reshape(len(read), len(hidden_M))

    def _log_p(self, read: Sequence[Reading], masks: int) -> Tensor:
        """log p of the vocabulary at the first masks of the inputs, one per word piece: [B, M, V]."""
        ids = (reading.pair.ids_T for reading in read)
        at_BM = torch.from_numpy(np.stack([np.flatnonzero(ids_T == self.tokenizer.mask_id)[:masks] for ids_T in ids]))
        logits_BMV: Tensor = self.model.mlm(self._states(read)[torch.arange(len(read))[:, None], at_BM])
        return logits_BMV.float().log_softmax(dim=-1)

    def _states(self, read: Sequence[Reading]) -> Tensor:
        return self.model.states(pair_batch(self.tokenizer, [reading.pair for reading in read], self._device))

    def _run(self, read: Sequence[Reading], forward: Callable[[list[Reading]], Tensor]) -> list[NDArray[np.float32]]:
        """What `forward` makes of each input, in their order."""
        rows = dict(run_batched(read, [len(reading.pair.ids_T) for reading in read], forward))
        return [rows[number] for number in range(len(read))]

    def _read(self, query: EncodedQuery, sources: Sequence[Source]) -> list[Read]:
        passages = [source.passage for source in sources]
        seen = self._readings(query, [passage.text for passage in passages], [passage.title for passage in passages])
        return [
            Read(source.passage, source.corpus, source.relevance, reading=reading)
            for source, reading in zip(sources, seen, strict=True)
        ]

    def _readings(self, query: EncodedQuery, texts: Sequence[str], titles: Sequence[str]) -> list[Reading]:
        return readings(self.tokenizer, self.model.config, query.ids, texts, titles)


class GivenReader:
    """The reader of a `Reader`: answers questions and fills blanks by spans, whose odds are calibrated."""

    def __init__(self, reader: SpanReader, name: str = "") -> None:
        self.reader, self.name = reader, name

    def check(self, options: REALMAskOptions) -> float:
        """The probability that an answer must reach, by default the reader's."""
        return answered_from(options, self.reader.config.defaults)

    def combined(self, combine: str | None, default: str) -> str:
        """How the fillings of a blank are combined. Raises InputError."""
        return str(checked("combine", combine or default, Combine))

    def answers(self, query: EncodedQuery, sources: Sequence[Source], how: How) -> list[Prediction]:
        """The best spans; with one softmax their probability is calibrated."""
        config = self.reader.config
        if how.marginal:
            return self._spans(query, sources, how)
        found = self._spans(query, sources, how, config.prior if how.hybrid else 0.0)
        return calibrated(found, config.calibration, sources, how.least, config.defaults.not_found_below)

    def fillings(self, query: EncodedQuery, sources: Sequence[Source], how: How) -> list[Prediction]:
        """The best spans for a blank; calibration is of questions only."""
        return self._spans(query, sources, how)

    def likelihood(self, text: str, answer: str, found: object) -> NoReturn:
        """Raises InputError: this reader fills no masks."""
        raise InputError(
            f"the reader of {self.name} marks spans and fills no masks; use a model that "
            "`quoth train realm-pretrain` or `quoth convert` made"
        )

    def _spans(self, query: EncodedQuery, sources: Sequence[Source], how: How, prior: float = 0.0) -> list[Prediction]:
        with step("expand"):
            [spans] = self.reader.read([query.text], [[source.passage for source in sources]])
        return predict_spans(sources, spans, how.top_k, marginal=how.marginal, prior=prior, null=how.null)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Source):
    """The texts that REALM's reader saw."""

    reading: Reading


def predict_answers(
    read: Sequence[Read],
    spans: Sequence[Spans],
    add_relevance: bool,
    top_k: int,
    marginal: bool = False,
    null: float | None = None,
) -> list[Prediction]:
    """The `top_k` answers of highest score: log Σ exp over the spans of equal text, ignoring case and white space.

    A span's score is the reader's, plus its passage's relevance if that is added (ORQA §3), and the probability is the
    share among all spans of all passages, as in the released code. If `marginal`, the score is log p(y|z,x) + log
    p(z|x), each normalised by itself (REALM eq. 1): p(y|z,x) is the share among the spans of one passage, p(z|x) the
    softmax of the relevance of the passages read and, if its relevance `null` is given, of the null document, which has
    no span. If no span is legal, there is no answer.
    """
    with step("score"):
        relevance_N = np.array([source.relevance * add_relevance for source in read])
        log_prior_N, nothing = np.split(log_retrieval(read, null) if marginal else relevance_N, [len(read)])
        parts = [
            found.odds_C + log_prior - (found.total if marginal else 0.0)
            for found, log_prior in zip(spans, log_prior_N, strict=True)
        ]
        score_C = np.concatenate([np.zeros(0), *parts])
        total = log_sum_exp(np.concatenate([score_C, nothing]))
    return chosen(span_proposals(read, places_in(spans), score_C, total), top_k, distinct=False)


def predict_words(
    read: Sequence[Read], null: float | None, log_p_NV: NDArray[np.float32], top_k: int
) -> list[Prediction]:
    """The `top_k` words y of highest p(y|x) = Σ_z p(y|z,x) p(z|x) (REALM eq. 1), of those that occur in the passages.

    `log_p_NV` are log p(y|z,x) for each passage and, last, for the null document, if its relevance `null` is given. A
    word is a token that is a whole word. Its places share p(y|x), over the whole vocabulary, by p(z|x) p(y|z,x) of
    their passages, evenly within each; words whose spellings differ by more than case are distinct even if their token
    is the same.
    """
    with step("score"):
        joint_NV = log_retrieval(read, null)[:, None] + log_p_NV
        standing: dict[int, list[AnswerSpan]] = {}
        for n, each in enumerate(read):
            for word, start, end in _words(each.reading):
                standing.setdefault(word, []).append((n, start, end))
        scores = [np.zeros(0)]
        for word, at in standing.items():
            count = Counter(n for n, _, _ in at)
            weight_C = np.array([joint_NV[n, word] - np.log(count[n]) for n, _, _ in at])
            scores.append(weight_C - log_sum_exp(weight_C) + log_sum_exp(joint_NV[:, word]))
    places = [place for at in standing.values() for place in at]
    return chosen(span_proposals(read, places, np.concatenate(scores), 0.0), top_k, distinct=False)


def explain_likelihood(
    read: Sequence[Read], null: float, answer: str, pieces: Sequence[str], log_p_NM: NDArray[np.float32]
) -> Likelihood:
    """log p(y|x) = log Σ_z p(z|x) Π_m p(y_m|z,x) (REALM eq. 1, §3.2), and each passage's share of the sum.

    `log_p_NM` are log p(y_m|z,x) of the answer's pieces for each passage and, last, for the null document, whose
    relevance is `null`.
    """
    with step("score"):
        log_prior_N = log_retrieval(read, null)
        log_p_N = log_p_NM.astype(np.float64).sum(axis=1)
        total = log_sum_exp(log_prior_N + log_p_N)
        share_N = np.exp(log_prior_N + log_p_N - total)
    sources = [*((source.passage, source.corpus) for source in read), (None, "")]
    rows = zip(sources, log_prior_N.tolist(), log_p_N.tolist(), share_N.tolist(), strict=True)
    return Likelihood(answer, tuple(pieces), total, tuple(PassageShare(*source, *numbers) for source, *numbers in rows))


def _words(reading: Reading) -> Iterator[tuple[int, int, int]]:
    """The passage's tokens that are whole words: id, characters from start to end."""
    ids_T = reading.pair.ids_T[reading.body : reading.body + len(reading.flags_T)]
    for t in np.flatnonzero((reading.flags_T & MAY_START > 0) & (reading.flags_T & MAY_END > 0)).tolist():
        yield int(ids_T[t]), int(reading.offsets_T2[t, 0]), int(reading.offsets_T2[t, 1])
