"""Training a reader: questions and blanks with the passages that answer them, or do not.

Knows: how examples become inputs and batches, hard negatives, the loss. Does not know: the loop, files' formats.

Shape suffixes that differ from the project's: W widths of spans.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from quoth.encoders.encoder import fingerprint_of
from quoth.encoders.transformer import pair_batch, parameters
from quoth.errors import InputError
from quoth.reader.config import NEVER, ReaderConfig, ReaderTrainConfig
from quoth.reader.data import ReadingExample, TitledText
from quoth.reader.evidence_loss import (
    OF_TAUGHT,
    OF_TOKENS,
    Marks,
    joined_marks,
    marked_loss,
    relevance_distillation,
    token_distillation,
)
from quoth.reader.network import SpanReaderModel
from quoth.reader.spans import Reading, legal_in, legal_spans, query_ids, windows
from quoth.reader.weights import save_reader, trained
from quoth.text.boundaries import MAY_END, MAY_START
from quoth.text.tokenizer import PairTokenizer, Pieces, Tokens, batches_by_length
from quoth.training.adapter import set_dropout
from quoth.training.epochs import by_length, turns
from quoth.training.grouped import grouped_logsumexp
from quoth.training.trainer import Step

_TEXTS_AT_A_TIME = 1024


@dataclass(frozen=True, slots=True)
class Input:
    """What the reader sees of a passage; the spans that are right, as first token and tokens beyond it: [R, 2]; and
    which of the passage's tokens are evidence, or None if nobody marked any: [T]."""

    reading: Reading
    right_R2: NDArray[np.int64]
    evidence_T: NDArray[np.bool_] | None = None


class Inputs:
    """Encoder inputs of examples, made on demand; texts are tokenized once."""

    def __init__(
        self,
        examples: Sequence[ReadingExample],
        tokenizer: PairTokenizer,
        config: ReaderConfig,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.examples, self.tokenizer, self.config = examples, tokenizer, config
        self._queries = [query_ids(tokenizer, example.question, config.query_tokens) for example in examples]
        self._texts: dict[str, Pieces] = {}
        passages = {p.text: None for example in examples for p in (example.passage, *example.negatives)}
        titles = {p.title: None for example in examples for p in (example.passage, *example.negatives)}
        self._titles = {title: tokenizer.pieces([f"{title}."])[0][0] if title else [] for title in titles}
        every = list(passages)
        for at in range(0, len(every), _TEXTS_AT_A_TIME):
            part = every[at : at + _TEXTS_AT_A_TIME]
            self._texts.update(zip(part, tokenizer.pieces(part), strict=True))
            if progress:
                progress(at)

    def length(self, number: int) -> int:
        """About how many tokens an example with its passage has."""
        return len(self._queries[number]) + len(self._texts[self.examples[number].passage.text][0])

    def read(
        self,
        number: int,
        passage: TitledText,
        answers: Sequence[tuple[int, int]] = (),
        evidence: Sequence[tuple[int, int]] | None = None,
    ) -> Input:
        """The input of an example with a passage: the first window with an answer, else with evidence, else the
        first."""
        query, title = self._queries[number], self._titles[passage.title]
        shown = windows(self.tokenizer, self.config, query, title, Tokens.of(passage.text, self._texts[passage.text]))
        found = [
            Input(
                each,
                right_spans(each, answers, self.config.span_width),
                None if evidence is None else tokens_in(each, evidence),
            )
            for each in shown
        ]
        return max(
            found, key=lambda seen: (len(seen.right_R2) > 0, seen.evidence_T is not None and seen.evidence_T.any())
        )


def tokens_in(reading: Reading, ranges: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """Which tokens of a passage lie in any of these character ranges: [T]."""
    first_T, last_T = reading.offsets_T2.T
    inside_T = np.zeros(len(first_T), np.bool_)
    for start, end in ranges:
        inside_T |= (last_T > start) & (first_T < end)
    return inside_T


def right_spans(reading: Reading, answers: Sequence[tuple[int, int]], width: int) -> NDArray[np.int64]:
    """The legal spans that cover these character ranges, trimmed of tokens that may not start or end one: [R, 2]."""
    legal_TW, found = legal_spans(reading, width), list[tuple[int, int]]()
    start_T, end_T = reading.offsets_T2[:, 0], reading.offsets_T2[:, 1]
    starts, ends = (reading.flags_T & MAY_START) > 0, (reading.flags_T & MAY_END) > 0
    for start, end in answers:
        inside = np.flatnonzero((end_T > start) & (start_T < end))
        if not len(inside) or start_T[0] > start or end_T[-1] < end:
            continue
        first = next((t for t in inside.tolist() if starts[t]), -1)
        last = next((t for t in reversed(inside.tolist()) if ends[t]), -1)
        if 0 <= first <= last < first + width and legal_TW[first, last - first]:
            found.append((first, last - first))
    return np.array(sorted(set(found)), np.int64).reshape(-1, 2)


def reading_loss(odds_BTW: Tensor, right_BTW: Tensor, question_B: Tensor, num_questions: int) -> Tensor:
    """−log of the share of the right spans among all spans of a question's passages and "no answer": scalar.

    In plain words: of all possible answers to a question, how much of the softmax falls on the right ones? If no span
    is right, "no answer" is. One normalisation over all of a question's passages (Clark and Gardner 2018).
    Inputs: log odds of spans against "no answer" [B, T, W]; which are right [B, T, W]; the question of each input's
    passage [B].
    Formula: mean over questions of log(1 + Σ exp o) − log Σ_right exp o, the latter 0 if none is right.
    When to use: to train a reader.
    """
    return _reading_losses(odds_BTW, right_BTW, question_B, num_questions).mean()


def _reading_losses(odds_BTW: Tensor, right_BTW: Tensor, question_B: Tensor, num_questions: int) -> Tensor:
    """`reading_loss` of each question: [Q]."""
    right_B = odds_BTW.masked_fill(~right_BTW, NEVER).flatten(1).logsumexp(dim=1)
    every_Q = _log_sums(odds_BTW, question_B, num_questions)
    right_Q = grouped_logsumexp(right_B, question_B, num_questions)
    answered_Q = torch.zeros(num_questions, dtype=torch.bool, device=question_B.device)
    answered_Q[question_B[right_BTW.flatten(1).any(dim=1)]] = True
    return every_Q - right_Q.masked_fill(~answered_Q, 0.0)


def _log_sums(odds_BTW: Tensor, question_B: Tensor, num_questions: int) -> Tensor:
    """log(1 + Σ exp o) over the spans of each question's passages, and "no answer": [Q]."""
    every_B = odds_BTW.flatten(1).logsumexp(dim=1)
    numbers_Q = torch.arange(num_questions, device=question_B.device)
    values = torch.cat([every_B, every_B.new_zeros(num_questions)])
    return grouped_logsumexp(values, torch.cat([question_B, numbers_Q]), num_questions)


def distillation_loss(
    odds_BTW: Tensor, teacher_BTW: Tensor, question_B: Tensor, num_questions: int, temperature: float
) -> Tensor:
    """How far a reader's answers are from its teacher's (Hinton et al. 2015, §2): scalar.

    In plain words: the teacher's softmax over all spans of a question's passages and "no answer" is the target, so that
    what it takes for likely counts, not only what was marked.
    Inputs: log odds of spans against "no answer", the reader's and the teacher's [B, T, W]; the question of each
    input's passage [B].
    Formula: mean over questions of τ² Σ p log(p / q), p the softmax of the teacher's odds / τ and q the reader's.
    When to use: beside `reading_loss`, with a larger reader as the teacher.
    """
    return _distillation_losses(odds_BTW, teacher_BTW, question_B, num_questions, temperature).mean()


def _distillation_losses(
    odds_BTW: Tensor, teacher_BTW: Tensor, question_B: Tensor, num_questions: int, temperature: float
) -> Tensor:
    """`distillation_loss` of each question: [Q]."""
    own_BTW, taught_BTW = odds_BTW / temperature, teacher_BTW / temperature
    own_Q, taught_Q = (_log_sums(each, question_B, num_questions) for each in (own_BTW, taught_BTW))
    log_p_BTW = taught_BTW - taught_Q[question_B, None, None]
    log_q_BTW = own_BTW - own_Q[question_B, None, None]
    spans_B = (log_p_BTW.exp() * (log_p_BTW - log_q_BTW)).flatten(1).sum(dim=1)
    nothing_Q = (-taught_Q).exp() * (own_Q - taught_Q)
    return nothing_Q.index_add(0, question_B, spans_B) * temperature**2


class Marked(NamedTuple):
    """Inputs of one length: the log odds of their spans and which are right [B, T, W], the question of each [B], and
    the teacher's odds if there is one."""

    odds_BTW: Tensor
    right_BTW: Tensor
    question_B: Tensor
    taught_BTW: Tensor | None


def taught_loss(parts: Sequence[Marked], num_questions: int, *, weight: float, temperature: float) -> Tensor:
    """`reading_loss` of inputs of several lengths, and `distillation_loss` in its place with this weight if there is a
    teacher: scalar."""
    loss_Q, apart_Q = _losses(parts, num_questions, temperature)
    return (loss_Q if apart_Q is None else (1 - weight) * loss_Q + weight * apart_Q).mean()


def _losses(parts: Sequence[Marked], num_questions: int, temperature: float) -> tuple[Tensor, Tensor | None]:
    """`reading_loss` of each question, and its `distillation_loss` if there is a teacher: [Q]."""
    odds, right, question, taught = zip(*parts, strict=True)
    length = max(each.shape[1] for each in odds)

    def joined(each: Sequence[Tensor], beyond: float) -> Tensor:
        return torch.cat([pad(part, (0, 0, 0, length - part.shape[1]), value=beyond) for part in each])

    odds_BTW, question_B = joined(odds, NEVER), torch.cat(question)
    loss_Q = _reading_losses(odds_BTW, joined(right, False), question_B, num_questions)
    if taught[0] is None:
        return loss_Q, None
    return loss_Q, _distillation_losses(odds_BTW, joined(taught, NEVER), question_B, num_questions, temperature)


def _spans_are_known(shown: Sequence[Input]) -> bool:
    """Whether the right spans of a question's passages are marked, if any are right."""
    is_evidence = (seen.evidence_T is not None and seen.evidence_T.any() for seen in shown)
    return any(len(seen.right_R2) for seen in shown) or not any(is_evidence)


@dataclass(frozen=True)
class Teacher:
    """A reader to learn from, and its own inputs of the same examples."""

    model: SpanReaderModel
    inputs: Inputs

    @cached_property
    def digest(self) -> str:
        """Of its weights: a run resumes with the same teacher only."""
        return fingerprint_of(parameters(self.model), self.inputs.tokenizer.hf, None)


class ReadingTask:
    """Learns to mark the answer in the passage that has it."""

    def __init__(
        self,
        model: SpanReaderModel,
        base: SpanReaderModel | Path,
        inputs: Inputs,
        shares: Sequence[tuple[int, int, float]],
        config: ReaderTrainConfig,
        device: str = "cpu",
        teacher: Teacher | None = None,
    ) -> None:
        self.device, self._teacher = torch.device(device), teacher
        self.model, self._base, self._inputs, self._config = model.to(self.device), base, inputs, config
        if teacher:
            teacher.model.to(self.device)
        set_dropout(model, config.dropout)
        self._shares = shares
        model.requires_grad_(False)
        self.parameters: Mapping[str, torch.nn.Parameter] = trained(model, model.shared_layers or 0)
        for parameter in self.parameters.values():
            parameter.requires_grad_(True)
        self._epoch = lru_cache(maxsize=1)(self._batches)
        self._per_epoch = len(self._epoch(0))

    def steps_of(self, epochs: float) -> int:
        """The number of steps in this many epochs."""
        return max(round(epochs * self._per_epoch), 1)

    def backward(self, step: int) -> Step:
        """Add the gradient of `reading_loss`, and of `distillation_loss` if there is a teacher, for the step's
        questions. Those are skipped whose answer is no legal span of their passage, such as one longer than
        `span_width` (they would teach that there is none), and those that leave a teacher room for less of it."""
        batches = self._epoch(step // self._per_epoch)
        numbers = batches[step % self._per_epoch]
        both = [
            (inputs, taught)
            for number in numbers.tolist()
            if (inputs := self._shown(self._inputs, number, step))
            and (taught := self._taught(inputs, number, step)) is not None
        ]
        shown = [inputs for inputs, _ in both]
        skipped = len(numbers) - len(shown)
        if not shown:
            return Step(None, 0, skipped)
        read, taught = ([seen for inputs in part for seen in inputs] for part in zip(*both, strict=True))
        question_B = torch.tensor([q for q, inputs in enumerate(shown) for _ in inputs])
        parts, marks, taught_marks = list[Marked](), list[Marks](), list[Marks]()
        lengths = [len(seen.reading.pair.ids_T) for seen in read]
        order = [*batches_by_length(lengths, self._config.padded_tokens)]
        for members in order:
            part = [read[member] for member in members]
            odds_BTW, said = self._scores(self.model, self._inputs, part, question_B[members])
            right_BTW = torch.zeros(odds_BTW.shape, dtype=torch.bool)
            for row, seen in enumerate(part):
                first_R, beyond_R = seen.right_R2.T
                right_BTW[row, seen.reading.body + first_R, beyond_R] = True
            soft_BTW = None
            if taught:
                soft_BTW, its = self._soft(part, [taught[member] for member in members], question_B[members])
                taught_marks += its
            marks += said
            parts.append(Marked(odds_BTW, right_BTW.to(self.device), question_B[members].to(self.device), soft_BTW))
        loss = self._span_loss(parts, shown)
        if marks:
            loss = loss + self._evidence_loss(marks, taught_marks, [read[each] for part in order for each in part])
        loss.backward()  # type: ignore[no-untyped-call]
        return Step(loss.item(), sum(len(seen.reading.pair.ids_T) for seen in read), skipped)

    def _span_loss(self, parts: Sequence[Marked], shown: Sequence[Sequence[Input]]) -> Tensor:
        """The loss of spans: of answers that are marked, and of the teacher's where nobody marked evidence. Of a
        question whose evidence alone is marked, only the teacher knows which spans answer."""
        loss_Q, apart_Q = _losses(parts, len(shown), self._config.temperature)
        marked_Q = torch.tensor([each[0].evidence_T is not None for each in shown], device=self.device)
        known_Q = torch.tensor([_spans_are_known(each) for each in shown], device=self.device)
        if apart_Q is None:
            return (loss_Q * known_Q).mean()
        weight_Q = torch.where(marked_Q, (~known_Q).float(), self._config.teacher_weight)
        return ((1 - weight_Q) * loss_Q + weight_Q * apart_Q).mean()

    def _evidence_loss(self, parts: Sequence[Marks], taught: Sequence[Marks], read: Sequence[Input]) -> Tensor:
        """The loss of relevance and evidence: of what is marked, and of the teacher's beside it."""
        said = joined_marks(parts)
        known_B = torch.tensor([seen.evidence_T is not None for seen in read], device=self.device)
        loss = said.relevance_B.sum() * 0.0
        if known_B.any():
            marked = [seen.evidence_T for seen in read if seen.evidence_T is not None]
            target_N = torch.from_numpy(np.concatenate(marked)).float().to(self.device)
            has_B = torch.tensor([bool(own.any()) for own in marked], device=self.device)
            loss = loss + marked_loss(said.of(known_B), target_N, has_B)
        if taught:
            its = joined_marks(taught)
            tokens = token_distillation(said.of(~known_B), its.of(~known_B))
            loss = loss + OF_TAUGHT * (OF_TOKENS * tokens + relevance_distillation(said, its.relevance_B))
        return loss

    def _scores(
        self, model: SpanReaderModel, inputs: Inputs, read: Sequence[Input], question_B: Tensor
    ) -> tuple[Tensor, list[Marks]]:
        """A network's odds of spans [B, T, W], and its marks if it and the reader that learns have evidence."""
        batch = pair_batch(inputs.tokenizer, [seen.reading.pair for seen in read], self.device)
        legal_BTW = legal_in([seen.reading for seen in read], batch["input_ids"].shape[1], self.model.config.span_width)
        legal = torch.from_numpy(legal_BTW).to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._config.bf16):
            if not (model.config.evidence and self.model.config.evidence):
                odds_BTW: Tensor = model(batch, legal)
                return odds_BTW, []
            odds_BTW, relevance_B, evidence_BT = model.scores(batch, legal)
        bodies = [slice(seen.reading.body, seen.reading.body + len(seen.reading.offsets_T2)) for seen in read]
        return odds_BTW, [Marks.cut(relevance_B, evidence_BT, question_B.to(self.device), bodies)]

    def _taught(self, read: Sequence[Input], number: int, step: int) -> list[Input] | None:
        """The teacher's inputs of an example's windows, none without a teacher; None if its question in full leaves
        room for less. Raises InputError if they are of other tokens."""
        if self._teacher is None:
            return []
        taught = self._shown(self._teacher.inputs, number, step)
        ours, theirs = ([seen.reading.offsets_T2.tolist() for seen in inputs] for inputs in (read, taught))
        if ours == theirs:
            return taught
        if self._inputs.examples[number].in_full:
            return None
        raise InputError(
            f"teacher {self._config.teacher!r} cuts texts into other tokens than the reader; name one whose base "
            "has the same vocabulary and takes inputs as long"
        )

    @torch.no_grad()
    def _soft(self, read: Sequence[Input], taught: Sequence[Input], question_B: Tensor) -> tuple[Tensor, list[Marks]]:
        """The teacher's odds of the spans, each at its place in the reader's input [B, T, W], and its marks if any."""
        assert self._teacher is not None
        odds_BTW, marks = self._scores(self._teacher.model, self._teacher.inputs, taught, question_B)
        longest = max(len(seen.reading.pair.ids_T) for seen in read)
        soft_BTW = odds_BTW.new_full((len(read), longest, odds_BTW.shape[2]), NEVER)
        for row, (own, theirs) in enumerate(zip(read, taught, strict=True)):
            length = len(own.reading.offsets_T2)
            own_body, their_body = (slice(seen.reading.body, seen.reading.body + length) for seen in (own, theirs))
            soft_BTW[row, own_body] = odds_BTW[row, their_body]
        return soft_BTW, marks

    def _batches(self, epoch: int) -> list[NDArray[np.int64]]:
        """An epoch's batches: each file's share, examples of similar length together."""
        rng, config = np.random.default_rng((self._config.seed, epoch)), self._config
        drawn = [self._drawn(first, last, share, epoch) for first, last, share in self._shares]
        order, found = rng.permutation(np.concatenate(drawn)), list[NDArray[np.int64]]()
        lengths = [self._inputs.length(number) for number in order.tolist()]
        for batches in by_length(order, lengths, config.batch_size):
            found += [batches[i] for i in rng.permutation(len(batches)).tolist()]
        return found

    def _drawn(self, first: int, last: int, share: float, epoch: int) -> list[int]:
        """A file's examples of an epoch: the next `share` of them in an order of its own, over and over."""
        order = np.random.default_rng((self._config.seed, first)).permutation(np.arange(first, last))
        count = max(round(share * (last - first)), 1)
        return list(turns(epoch * count, (epoch + 1) * count, last - first, lambda _: order))

    def _shown(self, inputs: Inputs, number: int, step: int) -> list[Input]:
        """The passages that are read for an example in a step: its own, or not; and negatives, or none. Nothing if its
        answer cannot be marked."""
        config, example = self._config, inputs.examples[number]
        rng = np.random.default_rng((config.seed, 1, step, number))
        hidden, compared = rng.random() < config.unanswerable, rng.random() < config.negative_share
        none = None if example.evidence is None else ()
        negatives = [inputs.read(number, each, evidence=none) for each in example.negatives[: config.num_negatives]]
        if hidden and negatives:
            return negatives[:1]
        own = inputs.read(number, example.passage, example.answers, example.evidence)
        if example.answers and not len(own.right_R2) and not example.evidence:
            return []
        return [own, *negatives] if compared else [own]

    def save_model(self, folder: Path) -> None:
        """Write what `load_reader` reads."""
        save_reader(folder, self.model, self._base, self.model.config.to_dict())

    def settings(self) -> dict[str, Any]:
        digest = hashlib.sha256()
        for example in self._inputs.examples:
            negatives = "\0".join(negative.text for negative in example.negatives)
            marked = "" if example.evidence is None else f"\n{example.evidence}"
            shown = f"{example.question}\0{example.passage.text}\0{example.answers}\0{negatives}"
            digest.update(f"{shown}\n{example.in_full}{marked}".encode())
        shares = [share for *_, share in self._shares]
        data = {"digest of the examples": digest.hexdigest()[:16], "shares": shares}
        if self._teacher:
            data["digest of the teacher"] = self._teacher.digest
        return {"model": self.model.config.to_dict(), "data": data}
