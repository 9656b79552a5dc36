"""REALM's reader: a question and a passage encoded together, for masked words and for answer spans.

Knows: the knowledge-augmented encoder with its two heads (Guu et al. 2020, §3.2; the span reader of Lee et al. 2019),
and its inputs. Does not know: how passages were found, and how readings of several come together.

Shape suffixes: B inputs, T tokens, H hidden size, W widths of spans, M masked tokens, V vocabulary, C spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from quoth.config import REALMConfig
from quoth.encoders.bert import GELU
from quoth.encoders.passage_encoder import dense
from quoth.errors import InputError
from quoth.predictors.span_reader import Reading, SpanHead, legal_spans, trimmed
from quoth.tokenizers.batching import batches_by_length
from quoth.tokenizers.boundaries import boundary_flags
from quoth.tokenizers.pairs import PairBatch, PairTokenizer


class MLMHead(nn.Module):
    """The masked LM head of BERT, over the encoder's own word embeddings."""

    def __init__(self, words: nn.Embedding, activation: str, layer_norm_eps: float) -> None:
        super().__init__()
        vocabulary, hidden = words.weight.shape
        self.transform = dense(hidden, hidden)
        self.norm = nn.LayerNorm(hidden, layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self._words = [words]
        self._approximate = GELU.get(activation, "none")

    def forward(self, states_MH: Tensor) -> Tensor:
        """Logits of every token of the vocabulary: [M, V]."""
        shaped_MH = self.norm(nn.functional.gelu(self.transform(states_MH), approximate=self._approximate))
        logits_MV: Tensor = shaped_MH @ self._words[0].weight.T + self.bias
        return logits_MV


class ReaderModel(nn.Module):
    """The knowledge-augmented encoder and its heads; weights are named `encoder.…`, `mlm.…` and `span.…`."""

    def __init__(self, encoder: Any, config: REALMConfig) -> None:
        super().__init__()
        self.encoder, self.config = encoder, config
        shape = encoder.config
        activation, eps = getattr(shape, "hidden_act", "gelu"), float(getattr(shape, "layer_norm_eps", 1e-12))
        self.mlm = MLMHead(_word_embeddings(encoder), activation, eps)
        self.span = SpanHead(int(shape.hidden_size), config)

    def states(self, batch: PairBatch) -> Tensor:
        """Last hidden states: [B, T, H]."""
        states_BTH: Tensor = self.encoder(**batch.arguments()).last_hidden_state
        return states_BTH


def _word_embeddings(encoder: Any) -> nn.Embedding:
    """The encoder's own, whatever adapter lies around it."""
    found = [module for name, module in encoder.named_modules() if name.endswith("embeddings.word_embeddings")]
    if len(found) != 1:
        raise InputError(f"{type(encoder).__name__} has no word embeddings; a REALM wants a BERT or RoBERTa")
    words: nn.Embedding = found[0]
    return words


def readings(
    tokenizer: PairTokenizer, config: REALMConfig, question: Sequence[int], texts: Sequence[str], titles: Sequence[str]
) -> list[Reading]:
    """What the reader sees of each passage with the same question, given by its token ids; at most half of the input is
    title."""
    heads = [f"{title}. " if title and config.reader_titles else "" for title in titles]
    found = tokenizer.pieces([head + text for head, text in zip(heads, texts, strict=True)])
    return [
        _reading(tokenizer, config, question, text, len(head), ids, ranges)
        for text, head, (ids, ranges) in zip(texts, heads, found, strict=True)
    ]


def _reading(
    tokenizer: PairTokenizer,
    config: REALMConfig,
    question: Sequence[int],
    text: str,
    head: int,
    ids: list[int],
    ranges: list[tuple[int, int]],
) -> Reading:
    first = next((i for i, (_, end) in enumerate(ranges) if end > head), len(ranges))
    title = ids[: min(first, config.reader_tokens // 2)]
    pair = tokenizer.pair(question, [*title, *ids[first:]], config.reader_tokens)
    body = pair.second + len(title)
    kept = ranges[first:][: max(len(pair.ids_T) - body - 1, 0)]
    offsets_T2 = trimmed(text, [(max(start - head, 0), end - head) for start, end in kept])
    return Reading(pair, body, offsets_T2, boundary_flags(text, offsets_T2))


@dataclass(frozen=True, slots=True)
class Spans:
    """Answers that stand in one passage: characters from start to end, and their scores: [C] each."""

    start_C: NDArray[np.int64]
    end_C: NDArray[np.int64]
    score_C: NDArray[np.float64]


class Reader:
    """Reads passages, without gradients."""

    def __init__(self, model: ReaderModel, tokenizer: PairTokenizer) -> None:
        self.model, self.tokenizer = model.eval(), tokenizer
        self._device = next(model.parameters()).device

    @torch.inference_mode()
    def spans(self, read: Sequence[Reading]) -> list[Spans]:
        """The answers that each passage holds, as `legal_spans` says."""
        found = [Spans(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))] * len(read)
        for members, states_BTH in self._encoded(read):
            scores_BTW = self.model.span(states_BTH).double().cpu().numpy()
            for member, scores_TW in zip(members, scores_BTW, strict=True):
                found[member] = _scored(read[member], scores_TW)
        return found

    @torch.inference_mode()
    def masked(self, read: Sequence[Reading]) -> NDArray[np.float32]:
        """log p(y|z, x) of every token of the vocabulary at the first mask of each input: [B, V]."""
        found = np.empty((len(read), len(self.model.mlm.bias)), np.float32)
        for members, log_p_BMV in self._at_masks(read, 1):
            found[members] = log_p_BMV[:, 0].cpu().numpy()
        return found

    @torch.inference_mode()
    def likelihood(self, read: Sequence[Reading], hidden_M: Sequence[int]) -> NDArray[np.float32]:
        """log p(y_m|z, x) of these tokens, one at each of the first M masks of each input: [B, M]."""
        found = np.empty((len(read), len(hidden_M)), np.float32)
        for members, log_p_BMV in self._at_masks(read, len(hidden_M)):
            found[members] = log_p_BMV[:, torch.arange(len(hidden_M)), list(hidden_M)].cpu().numpy()
        return found

    def _at_masks(self, read: Sequence[Reading], masks: int) -> Iterator[tuple[list[int], Tensor]]:
        """log p of the vocabulary at the first so many masks of inputs, those of the question: [B, M, V]."""
        for members, states_BTH in self._encoded(read):
            ids = (read[member].pair.ids_T for member in members)
            at_BM = torch.from_numpy(np.stack([np.flatnonzero(each == self.tokenizer.mask_id)[:masks] for each in ids]))
            logits_BMV = self.model.mlm(states_BTH[torch.arange(len(members))[:, None], at_BM])
            yield members, logits_BMV.float().log_softmax(dim=-1)

    def _encoded(self, read: Sequence[Reading]) -> Iterator[tuple[list[int], Tensor]]:
        for members in batches_by_length([len(each.pair.ids_T) for each in read]):
            batch = self.tokenizer.batch([read[member].pair for member in members], self._device)
            yield members, self.model.states(batch)


def _scored(reading: Reading, scores_TW: NDArray[np.float64]) -> Spans:
    """The legal answers of a passage, by the scores of all spans of the input."""
    first_C, beyond_C = np.nonzero(legal_spans(reading, scores_TW.shape[1]))
    start_C, end_C = reading.offsets_T2[first_C, 0], reading.offsets_T2[first_C + beyond_C, 1]
    return Spans(start_C, end_C, scores_TW[reading.body + first_C, beyond_C])
