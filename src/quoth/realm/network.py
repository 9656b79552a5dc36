"""The network of REALM's reader: a question and a passage encoded together, for masked words and for answer spans.

Knows: the knowledge-augmented encoder with its two heads (Guu et al. 2020, §3.2; the span reader of Lee et al. 2019),
and its inputs. Does not know: how passages were found, or how it is run (own_reader; training).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from quoth.encoders.bert import dense
from quoth.encoders.config import GELU
from quoth.errors import InputError
from quoth.reader.network import SpanHead
from quoth.reader.spans import Reading
from quoth.realm.config import REALMConfig
from quoth.text.boundaries import boundary_flags
from quoth.text.tokenizer import READ_OF_TITLE, PairTokenizer, trimmed


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
        # The encoder's own, without any adapter around them.
        words = [module for name, module in encoder.named_modules() if name.endswith("embeddings.word_embeddings")]
        if len(words) != 1:
            raise InputError(f"{type(encoder).__name__} has no word embeddings; a REALM requires a BERT or RoBERTa")
        shape = encoder.config
        activation, eps = getattr(shape, "hidden_act", "gelu"), float(getattr(shape, "layer_norm_eps", 1e-12))
        self.mlm = MLMHead(words[0], activation, eps)
        self.span = SpanHead(
            int(shape.hidden_size), config.span_width, config.span_hidden, config.reader_layer_norm_eps
        )

    def states(self, batch: dict[str, Tensor]) -> Tensor:
        """Last hidden states: [B, T, H]."""
        states_BTH: Tensor = self.encoder(**batch).last_hidden_state
        return states_BTH


def readings(
    tokenizer: PairTokenizer, config: REALMConfig, question: Sequence[int], texts: Sequence[str], titles: Sequence[str]
) -> list[Reading]:
    """What the reader sees of each passage with the same question, given by its token ids; at most half of the input is
    title."""
    heads = [f"{title[:READ_OF_TITLE]}. " if title and config.reader_titles else "" for title in titles]
    pieces = tokenizer.pieces([head + text for head, text in zip(heads, texts, strict=True)])
    found = []
    for text, head, (ids, ranges) in zip(texts, map(len, heads), pieces, strict=True):
        first = next((i for i, (_, end) in enumerate(ranges) if end > head), len(ranges))
        title = ids[: min(first, config.reader_tokens // 2)]
        pair = tokenizer.pair(question, [*title, *ids[first:]], config.reader_tokens)
        body = pair.second + len(title)
        kept = ranges[first:][: max(len(pair.ids_T) - body - 1, 0)]
        offsets_T2 = trimmed(text, [(max(start - head, 0), end - head) for start, end in kept])
        found.append(Reading(pair, body, offsets_T2, boundary_flags(text, offsets_T2)))
    return found
