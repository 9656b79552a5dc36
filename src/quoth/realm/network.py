"""REALM's reader: a question and a passage encoded together, for masked words and for answer spans.

Knows: the knowledge-augmented encoder with its two heads (Guu et al. 2020, §3.2; the span reader of Lee et al. 2019),
and its inputs. Does not know: how passages were found, or how readings of several are combined.

Shape suffixes that differ from the project's: S span size, W widths of spans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from quoth.answers.equations import log_sum_exp
from quoth.answers.evidence import Spans
from quoth.encoders.bert import GELU, dense
from quoth.encoders.transformer import PairBatch, pair_batch, run_batched
from quoth.errors import InputError
from quoth.reader.network import Reading, SpanHead, legal_spans
from quoth.realm.config import REALMConfig
from quoth.text.boundaries import boundary_flags
from quoth.text.tokenizer import PairTokenizer, trimmed


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
    """The encoder's own, without any adapter around it."""
    found = [module for name, module in encoder.named_modules() if name.endswith("embeddings.word_embeddings")]
    if len(found) != 1:
        raise InputError(f"{type(encoder).__name__} has no word embeddings; a REALM requires a BERT or RoBERTa")
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


class Reader:
    """Reads passages, without gradients."""

    def __init__(self, model: ReaderModel, tokenizer: PairTokenizer) -> None:
        self.model, self.tokenizer = model.eval(), tokenizer
        self._device = next(model.parameters()).device

    def spans(self, read: Sequence[Reading]) -> list[Spans]:
        """The answers in each passage, as `legal_spans` gives them."""
        found = [Spans(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), -np.inf)] * len(read)
        for member, scores_TW in self._run(read, lambda part: self.model.span(self._states(part))):
            found[member] = _scored(read[member], scores_TW.astype(np.float64))
        return found

    def masked(self, read: Sequence[Reading]) -> NDArray[np.float32]:
        """log p(y|z, x) of every token of the vocabulary at the first mask of each input: [B, V]."""
        found = np.empty((len(read), len(self.model.mlm.bias)), np.float32)
        for member, log_p_V in self._run(read, lambda part: self._at_masks(part, 1)[:, 0]):
            found[member] = log_p_V
        return found

    def likelihood(self, read: Sequence[Reading], hidden_M: Sequence[int]) -> NDArray[np.float32]:
        """log p(y_m|z, x) of these tokens, one at each of the first M masks of each input: [B, M]."""
        found = np.empty((len(read), len(hidden_M)), np.float32)
        which = torch.arange(len(hidden_M)), list(hidden_M)
        for member, log_p_M in self._run(read, lambda part: self._at_masks(part, len(hidden_M))[:, *which]):
            found[member] = log_p_M
        return found

    def _at_masks(self, read: Sequence[Reading], masks: int) -> Tensor:
        """log p of the vocabulary at the first masks of the inputs, one per word piece: [B, M, V]."""
        ids = (each.pair.ids_T for each in read)
        at_BM = torch.from_numpy(np.stack([np.flatnonzero(each == self.tokenizer.mask_id)[:masks] for each in ids]))
        logits_BMV: Tensor = self.model.mlm(self._states(read)[torch.arange(len(read))[:, None], at_BM])
        return logits_BMV.float().log_softmax(dim=-1)

    def _states(self, read: Sequence[Reading]) -> Tensor:
        return self.model.states(pair_batch(self.tokenizer, [each.pair for each in read], self._device))

    def _run(
        self, read: Sequence[Reading], forward: Callable[[list[Reading]], Tensor]
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        return run_batched(read, [len(each.pair.ids_T) for each in read], forward)


def _scored(reading: Reading, scores_TW: NDArray[np.float64]) -> Spans:
    """The legal answers of a passage, by the scores of all spans of the input."""
    first_C, beyond_C = np.nonzero(legal_spans(reading, scores_TW.shape[1]))
    start_C, end_C = reading.offsets_T2[first_C, 0], reading.offsets_T2[first_C + beyond_C, 1]
    score_C = scores_TW[reading.body + first_C, beyond_C]
    return Spans(start_C, end_C, score_C, log_sum_exp(score_C))
