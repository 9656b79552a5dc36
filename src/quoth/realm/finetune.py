"""Fine-tuning REALM to answer questions from a corpus (Guu et al. 2020 §4, after ORQA, Lee et al. 2019 §6).

Knows: distant supervision (a passage or span is right if an answer occurs in it), and the step's gradient. Does not
know: the loop, or where questions come from.

Shape suffixes that differ from the project's: K passages of the beam, R passages that are read, W widths of spans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quoth.corpus.corpus import Corpus
from quoth.datasets.judging import answer_ranges, holders
from quoth.datasets.questions import QAExample
from quoth.encoders.transformer import pair_batch
from quoth.errors import InputError
from quoth.index.retriever import Retriever
from quoth.reader.spans import Reading, legal_spans
from quoth.realm.config import FineTuneConfig
from quoth.realm.index_refresh import IndexRefresher
from quoth.realm.losses import marginal_choice_loss, relevance
from quoth.realm.network import readings
from quoth.realm.passages import PassageEncoder, passage_inputs, query_inputs
from quoth.realm.trained import REALMTask, TrainedREALM
from quoth.records import Passage
from quoth.training.distributed import SINGLE_PROCESS, World
from quoth.training.epochs import drawn
from quoth.training.trainer import Step


@dataclass(frozen=True, slots=True)
class Beam:
    """A question, its beam's relevance and which of the beam contain an answer; the passages to read, by their places
    in the beam, as the reader sees them."""

    question: QAExample
    relevance_K: Tensor
    right_K: Tensor
    read_R: Tensor
    passages: list[Passage]
    seen: list[Reading]


class FineTuneTask(REALMTask):
    """Learns to retrieve and to read from questions and their answers; the corpus's vectors stay as they are, or are
    made again by `index`.

    All of them are held in memory, four bytes per component. Raises InputError if the beam is larger than the corpus,
    no passage contains an answer to any question, or vectors are missing.
    """

    def __init__(
        self,
        model: TrainedREALM,
        encoder: PassageEncoder,
        corpus: Corpus,
        questions: Sequence[QAExample],
        config: FineTuneConfig,
        progress: Callable[[int], None] | None = None,
        world: World = SINGLE_PROCESS,
        index: IndexRefresher | None = None,
    ) -> None:
        super().__init__(model, config, world)
        self.config, self._corpus, self._index, self._encoder = config, corpus, index, encoder
        if config.retriever_beam_size > corpus.num_passages:
            raise InputError(
                f"`retriever_beam_size` ({config.retriever_beam_size}) must not exceed the corpus's "
                f"{corpus.num_passages} passages"
            )
        self._rows_P, vectors_PD = _vectors(corpus, encoder)
        self._z_PD = torch.from_numpy(vectors_PD).to(self.device)
        texts = (corpus.passage(row).text for row in self._rows_P.tolist())
        found = holders(questions, texts, progress=progress)
        self._questions = [(questions[number], np.array(places)) for number, places in sorted(found.items())]
        if not self._questions:
            raise InputError(
                f"no answer to any of the {len(questions)} questions occurs in {corpus.path}; give other questions, "
                "or a corpus that answers them"
            )

    def backward(self, step: int) -> Step:
        """Add the gradient of the retriever's and the reader's loss, the mean over the batch's questions."""
        staleness = self._refresh(step)
        numbers, totals = self._drawn(step), np.zeros(4)
        for part in self.parts(numbers, self.config.mini_batch_size):
            beams = self._retrieve([self._questions[number] for number in part])
            pairs = [reading.pair for beam in beams for reading in beam.seen]
            with self.model.autocast():
                states_BTH = self.model.reader.states(pair_batch(self.model.tokenizer, pairs, self.device))
                scores_BTW = self.model.reader.span(states_BTH).float()
            scores_QRTW = scores_BTW.reshape(len(beams), self.config.num_reader_passages, *scores_BTW.shape[1:])
            retriever = torch.stack([marginal_choice_loss(beam.relevance_K, beam.right_K) for beam in beams]).sum()
            reader = torch.stack(list(map(self._reader_loss, beams, scores_QRTW))).sum()
            ((retriever + reader) / len(numbers)).backward()  # type: ignore[no-untyped-call]
            found = sum(float(beam.right_K[: self.config.num_reader_passages].any()) for beam in beams)
            tokens = sum(len(pair.ids_T) for pair in pairs)
            totals += [retriever.item() / len(numbers), reader.item() / len(numbers), found / len(numbers), tokens]
        *means, tokens_of_all = self.summed(totals.tolist())
        measures = dict(zip(("retriever", "reader", "found"), means, strict=True)) | staleness
        return Step(means[0] + means[1], int(tokens_of_all), measures=measures)

    def _refresh(self, step: int) -> dict[str, float]:
        """Search with the newest vectors; how many steps old they are."""
        if self._index is None:
            return {}
        staleness = self._index.refresh(step, self.model)
        if self._index.encoder is not self._encoder:
            self._encoder = self._index.encoder
            rows_P, vectors_PD = _vectors(self._corpus, self._encoder)
            if not np.array_equal(rows_P, self._rows_P):
                raise InputError(
                    f"{self._corpus.path} was changed while it is trained on: its passages are not those that training "
                    "began with; train over a copy that nobody changes"
                )
            self._z_PD = torch.from_numpy(vectors_PD).to(self.device)
        return {"staleness": float(staleness)}

    def _fresh(self, beam_QK: Tensor) -> Tensor:
        """The vectors of these passages, by their places, with gradients: [Q, K, D]."""
        places_U, of_QK = torch.unique(beam_QK, return_inverse=True)
        passages = [self._corpus.passage(int(self._rows_P[at])) for at in places_U.tolist()]
        texts, titles = [p.text for p in passages], [p.title for p in passages]
        inputs = passage_inputs(self.model.tokenizer, self.model.config, texts, titles)
        return self.vectors(self.model.passages, inputs)[of_QK]

    def _drawn(self, step: int) -> list[int]:
        """The questions of a step."""
        return drawn(step, self.config.batch_size, len(self._questions), self.config.seed, 4)

    def _retrieve(self, drawn: Sequence[tuple[QAExample, NDArray[np.int64]]]) -> list[Beam]:
        """What there is to learn from questions, each with the places of the passages that answer it."""
        model, config = self.model, self.model.config
        ids = [ids for ids, _ in model.tokenizer.pieces([question.text for question, _ in drawn])]
        q_QD, beams = self.vectors(model.queries, query_inputs(model.tokenizer, config, ids)), []
        with torch.no_grad():
            beam_QK = (q_QD @ self._z_PD.T).topk(self.config.retriever_beam_size).indices
        z_QKD = self._z_PD[beam_QK] if self._index is None else self._fresh(beam_QK)
        relevance_QK = relevance(q_QD, z_QKD, config.similarity_scale)
        for (question, right), of_it, beam_K, relevance_K in zip(drawn, ids, beam_QK, relevance_QK, strict=True):
            right_K = torch.isin(beam_K, torch.from_numpy(right).to(self.device))
            read_R = torch.arange(self.config.num_reader_passages, device=self.device)
            if self.config.force_positive and bool(right_K.any()) and not bool(right_K[read_R].any()):
                read_R[-1] = right_K.nonzero()[0, 0]
            passages = [self._corpus.passage(int(self._rows_P[at])) for at in beam_K[read_R].tolist()]
            texts, titles = [p.text for p in passages], [p.title for p in passages]
            seen = readings(model.tokenizer, config, of_it[: config.question_room], texts, titles)
            beams.append(Beam(question, relevance_K, right_K, read_R, passages, seen))
        return beams

    def _reader_loss(self, beam: Beam, scores_RTW: Tensor) -> Tensor:
        config = self.model.config
        if config.add_relevance:
            scores_RTW = scores_RTW + beam.relevance_K[beam.read_R][:, None, None]
        scores, right = [], []
        for scores_TW, passage, reading in zip(scores_RTW, beam.passages, beam.seen, strict=True):
            legal_TW = torch.from_numpy(legal_spans(reading, config.span_width)).to(self.device)
            answers = answer_ranges(passage.text, beam.question)
            right_TW = torch.from_numpy(right_spans(reading, answers, legal_TW.shape[1]))
            scores.append(scores_TW[reading.body : reading.body + len(legal_TW)][legal_TW])
            right.append(right_TW.to(self.device)[legal_TW])
        return marginal_choice_loss(torch.cat(scores), torch.cat(right))

    def settings(self) -> dict[str, Any]:
        data = {"passages": len(self._rows_P), "questions": len(self._questions)}
        return {"model": self.model.config.to_dict(), "data": data}


def right_spans(reading: Reading, answers: Sequence[tuple[int, int]], width: int) -> NDArray[np.bool_]:
    """Which spans, by first token and tokens beyond it, are one of these ranges of the passage's characters: [T, W]."""
    right_TW = np.zeros((len(reading.offsets_T2), width), np.bool_)
    starts = {int(start): t for t, (start, _) in reversed(list(enumerate(reading.offsets_T2)))}
    ends = {int(end): t for t, (_, end) in enumerate(reading.offsets_T2)}
    for start, end in answers:
        first, last = starts.get(start), ends.get(end)
        if first is not None and last is not None and 0 <= last - first < width:
            right_TW[first, last - first] = True
    return right_TW


def _vectors(corpus: Corpus, encoder: PassageEncoder) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The rows of the corpus's live passages [P], ascending, and their vectors [P, D]."""
    rows, vectors = [], []
    for keys in Retriever([corpus], encoder).key_tables():
        live_P = np.ones(len(keys.passage_rows_P), np.bool_) if keys.live_P is None else keys.live_P
        rows.append(keys.passage_rows_P[live_P])
        # A table that a stopped embedding left may lack the keys of some passages, so a key's row is not its passage's.
        vectors.append(keys.vectors.floats(np.asarray(keys.offsets_P1[:-1])[live_P]))
    rows_P, vectors_PD = np.concatenate(rows), np.concatenate(vectors)
    ascending_P = np.argsort(rows_P, kind="stable")
    return rows_P[ascending_P], vectors_PD[ascending_P]
