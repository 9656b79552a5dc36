"""The MPNet encoder for inference, from a folder, without importing transformers, whose output this module reproduces.

Knows: the architecture (Song et al. 2020), which is BERT's without token types, with a bias for the distance of two
tokens added to their attention. Does not know: training, hubs, other architectures.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from quoth.encoders.bert import GELU, BertConfig, BertEncoder, Embeddings, Output, States, table

FARTHEST = 128
"""Tokens at this distance or farther share a bucket (T5, §2.1)."""


class MPNetEncoder(BertEncoder):
    """The encoder without a pooler. Submodules are named as in transformers, so that weights and adapters fit."""

    def __init__(self, config: BertConfig) -> None:
        nn.Module.__init__(self)
        self.config = config
        self.embeddings = Embeddings(config)
        layers = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))
        buckets, heads = config.relative_attention_num_buckets, config.num_attention_heads
        self.encoder = nn.ModuleDict({"layer": layers, "relative_attention_bias": table(buckets, heads)})

    def forward(
        self,
        input_ids: Tensor | None = None,
        *,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
    ) -> States:
        """As `BertEncoder.forward`; there are no token types."""
        words_BTD = self.get_input_embeddings()(input_ids) if inputs_embeds is None else inputs_embeds
        x_BTD = self.embeddings(words_BTD, None)
        bias_TTH = self.encoder["relative_attention_bias"](_buckets(x_BTD.shape[1], self.config, x_BTD.device))
        hidden_B11T = ~attention_mask.bool()[:, None, None, :]
        bias_BHTT = bias_TTH.permute(2, 0, 1)[None].masked_fill(hidden_B11T, torch.finfo(bias_TTH.dtype).min)
        layers: Any = self.encoder["layer"]
        for layer in layers:
            x_BTD = layer(x_BTD, bias_BHTT)
        return States(x_BTD)


def _buckets(length: int, c: BertConfig, device: torch.device) -> Tensor:
    """The bucket of each pair of tokens by their signed distance, [T, T]: half of the buckets for either direction; of
    these, half for one distance each, the others for ranges that grow with the distance up to `FARTHEST`."""
    at_T = torch.arange(length, device=device)
    ahead_TT = at_T[None, :] - at_T[:, None]
    half = c.relative_attention_num_buckets // 2
    exact = half // 2
    distance_TT = ahead_TT.abs()
    growth = torch.log(distance_TT.clamp_min(1).float() / exact) / math.log(FARTHEST / exact)
    far_TT = (exact + (growth * (half - exact)).long()).clamp_max(half - 1)
    return torch.where(distance_TT < exact, distance_TT, far_TT) + half * (ahead_TT > 0)


class _Layer(nn.Module):
    def __init__(self, c: BertConfig) -> None:
        super().__init__()
        self.attention = _Attention(c)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(c.hidden_size, c.intermediate_size)})
        self.output = Output(c.intermediate_size, c)
        self._approximate = GELU[c.hidden_act]

    def forward(self, x_BTD: Tensor, bias_BHTT: Tensor) -> Tensor:
        x_BTD = self.attention(x_BTD, bias_BHTT)
        inner = gelu(self.intermediate["dense"](x_BTD), approximate=self._approximate)
        result_BTD: Tensor = self.output(inner, x_BTD)
        return result_BTD


class _Attention(nn.Module):
    def __init__(self, c: BertConfig) -> None:
        super().__init__()
        self.attn = nn.ModuleDict({name: nn.Linear(c.hidden_size, c.hidden_size) for name in ("q", "k", "v", "o")})
        self.LayerNorm = nn.LayerNorm(c.hidden_size, c.layer_norm_eps)
        self._heads = c.num_attention_heads

    def forward(self, x_BTD: Tensor, bias_BHTT: Tensor) -> Tensor:
        q, k, v = (self.attn[name](x_BTD).unflatten(-1, (self._heads, -1)).transpose(1, 2) for name in ("q", "k", "v"))
        seen_BHTD = scaled_dot_product_attention(q, k, v, attn_mask=bias_BHTT.to(q.dtype))
        added_BTD: Tensor = self.LayerNorm(self.attn["o"](seen_BHTD.transpose(1, 2).flatten(2)) + x_BTD)
        return added_BTD
