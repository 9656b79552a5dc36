"""The reader's network: a query and a passage encoded together; a score for every span, and one for "no answer here".

Knows: the network. Does not know: its inputs (`spans`), training.

Shape suffixes that differ from the project's: S span size, W widths of spans.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from quoth.arrays import Floats, Ints
from quoth.encoders.bert import dense
from quoth.encoders.transformer import PADDED_TOKENS_PER_BATCH, tensors
from quoth.reader.config import NEVER, ReaderConfig
from quoth.text.tokenizer import PairArrays


class EndsHead(nn.Module):
    """A span's score is the sum of its first token's start logit and its last token's end logit (BERT, §4.2)."""

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.ends = dense(hidden, 2)
        self.width = width

    def forward(self, states_BTH: Tensor) -> Tensor:
        """The score of the span of w + 1 tokens from token t on: [B, T, W]; `NEVER` beyond the input."""
        start_BT, end_BT = self.ends(states_BTH).float().unbind(dim=-1)
        padded_BT = nn.functional.pad(end_BT, (0, self.width - 1), value=NEVER)
        scores_BTW: Tensor = start_BT[:, :, None] + padded_BT.unfold(1, self.width, 1)
        return scores_BTW


class SpanHead(nn.Module):
    """The span reader: s(i, j) = w · LayerNorm(ReLU(start_i + end_j)), an MLP of both ends' states. ORQA §3."""

    def __init__(self, hidden: int, width: int, size: int, layer_norm_eps: float = 1e-3) -> None:
        super().__init__()
        self.ends = dense(hidden, 2 * size)
        self.norm = nn.LayerNorm(size, layer_norm_eps)
        self.score = dense(size, 1)
        self.width = width

    def forward(self, states_BTH: Tensor) -> Tensor:
        """The score of the span of w + 1 tokens from token t on: [B, T, W]; −inf if it ends beyond the input."""
        start_BTS, end_BTS = self.ends(states_BTH).chunk(2, dim=-1)
        length = start_BTS.shape[1]
        padded_BTS = nn.functional.pad(end_BTS, (0, 0, 0, self.width - 1))
        end_BTSW = padded_BTS.unfold(1, self.width, 1)
        spans_BTWS = (start_BTS[:, :, None] + end_BTSW.transpose(2, 3)).relu()
        score_BTW: Tensor = self.score(self.norm(spans_BTWS)).squeeze(-1)
        ends_TW = torch.arange(length)[:, None] + torch.arange(self.width)
        return score_BTW.masked_fill((ends_TW >= length).to(score_BTW.device), -torch.inf)


class SpanReaderModel(nn.Module):
    """The encoder and its heads; weights are named `encoder.…`, `span.…`, `none.…`. With `evidence`, `relevance.…` of
    the first state through `pooler.…` and `evidence.…` of every state, behind upper layers of their own, `branch.…`."""

    def __init__(self, encoder: Any, config: ReaderConfig) -> None:
        super().__init__()
        self.encoder, self.config = encoder, config
        hidden, width, is_mlp = int(encoder.config.hidden_size), config.span_width, config.head == "mlp"
        self.span = SpanHead(hidden, width, config.span_hidden) if is_mlp else EndsHead(hidden, width)
        self.none = dense(hidden, 1)
        self._depth: int | None = None
        if config.evidence:
            self.pooler, self.relevance, self.evidence = dense(hidden, hidden), dense(hidden, 1), dense(hidden, 1)
        if config.evidence_layers:
            layers = encoder.encoder["layer"]
            self._depth = len(layers) - config.evidence_layers
            self.branch = copy.deepcopy(layers[self._depth :])

    def forward(self, batch: dict[str, Tensor], legal_BTW: Tensor) -> Tensor:
        """log odds of every span against "no answer here": [B, T, W]; `NEVER` if it is not legal.

        A span's score less the score of "no answer", which comes from the input's first state.
        """
        return self._odds(self.encoder(**batch).last_hidden_state, legal_BTW)

    def _odds(self, states_BTH: Tensor, legal_BTW: Tensor) -> Tensor:
        states_BTH = states_BTH.float()
        odds_BTW: Tensor = self.span(states_BTH).float() - self.none(states_BTH[:, 0]).float()[:, :, None]
        return odds_BTW.masked_fill(~legal_BTW, NEVER)

    def scores(self, batch: dict[str, Tensor], legal_BTW: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What `forward` and `marked` give, of the same states: for a network with evidence."""
        states_BTH, mask_BT = self.shared(batch), batch["attention_mask"]
        return (self._odds(self._upper(states_BTH, mask_BT), legal_BTW), *self.marked(states_BTH, mask_BT))

    def _upper(self, states_BTH: Tensor, mask_BT: Tensor) -> Tensor:
        """The states of spans, of shared ones."""
        if self._depth is None:
            return states_BTH
        states_BTH = self.encoder.through(self.encoder.encoder["layer"][self._depth :], states_BTH, mask_BT)
        return states_BTH

    def shared(self, batch: dict[str, Tensor]) -> Tensor:
        """The states that spans and evidence share [B, T, D]."""
        given = {} if self._depth is None else {"depth": self._depth}
        states_BTH: Tensor = self.encoder(**batch, **given).last_hidden_state
        return states_BTH

    def marked(self, states_BTH: Tensor, mask_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Of shared states, the log odds that a passage answers [B] and that a token is part of the evidence [B, T]."""
        if self._depth is not None:
            states_BTH = self.encoder.through(self.branch, states_BTH, mask_BT)
        states_BTH = states_BTH.float()
        relevance_B: Tensor = self.relevance(torch.tanh(self.pooler(states_BTH[:, 0])))[:, 0]
        return relevance_B, self.evidence(states_BTH)[..., 0]

    @property
    def shared_layers(self) -> int | None:
        """The number of lower layers that spans and evidence share; None: all."""
        return self._depth

    @property
    def layers(self) -> list[nn.Module]:
        """The encoder, and the upper layers that evidence has for itself."""
        return [self.encoder] if self._depth is None else [self.encoder, self.branch]

    @property
    def batch_tokens(self) -> int:
        """The most tokens of a batch, with padding."""
        return PADDED_TOKENS_PER_BATCH

    @torch.inference_mode()
    def states(self, batch: PairArrays) -> Floats:
        """As `SpanModel.states`."""
        return _array(self.shared(tensors(batch, next(self.parameters()).device)))

    @torch.inference_mode()
    def odds(self, states_BTD: Floats, mask_BT: Ints, legal_BTW: NDArray[np.bool_]) -> Floats:
        """As `SpanModel.odds`."""
        states_BTH = self._upper(*self._tensors(states_BTD, mask_BT))
        return _array(self._odds(states_BTH, torch.from_numpy(legal_BTW).to(states_BTH.device)))

    @torch.inference_mode()
    def marks(self, states_BTD: Floats, mask_BT: Ints) -> tuple[Floats, Floats]:
        """As `SpanModel.marks`."""
        relevance_B, evidence_BT = self.marked(*self._tensors(states_BTD, mask_BT))
        return _array(relevance_B), _array(evidence_BT)

    def _tensors(self, states_BTD: Floats, mask_BT: Ints) -> tuple[Tensor, Tensor]:
        weight = next(self.encoder.parameters())
        return torch.from_numpy(states_BTD).to(weight), torch.from_numpy(mask_BT).to(weight.device)


def _array(tensor: Tensor) -> Floats:
    array: Floats = tensor.float().cpu().numpy()
    return array
