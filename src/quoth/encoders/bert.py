"""BERT, RoBERTa and MPNet encoders for inference, from a folder, without importing transformers.

Knows: the architectures (Devlin et al. 2019; Liu et al. 2019; Song et al. 2020) and the names of their weights. Does
not know: training, hubs, other architectures. Those go through transformers, whose output this module reproduces.

Why it exists: importing transformers' modelling code takes longer than all other steps of answering one query.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from quoth.encoders.config import GELU, BertConfig
from quoth.encoders.encoder import loaded
from quoth.encoders.rounding import LARGEST, SCALE, SMALLEST, names_of, rounded, whole
from quoth.errors import ModelNotFoundError

FARTHEST = 128
"""Tokens at this distance or farther share a bucket (T5, §2.1)."""


class States(NamedTuple):
    """The encoder's output, named as in transformers."""

    last_hidden_state: Tensor


class _Embeddings(nn.Module):
    def __init__(self, c: BertConfig) -> None:
        super().__init__()
        self.word_embeddings = _table(c.vocab_size, c.hidden_size)
        self.position_embeddings = _table(c.max_position_embeddings, c.hidden_size)
        if c.model_type != "mpnet":
            self.token_type_embeddings = _table(c.type_vocab_size, c.hidden_size)
        self.LayerNorm = nn.LayerNorm(c.hidden_size, c.layer_norm_eps)
        self._first = 0 if c.model_type == "bert" else c.pad_token_id + 1

    def forward(self, words_BTD: Tensor, types_BT: Tensor | None) -> Tensor:
        positions_T = torch.arange(self._first, self._first + words_BTD.shape[1], device=words_BTD.device)
        placed_BTD = words_BTD + self.position_embeddings(positions_T)
        if hasattr(self, "token_type_embeddings"):
            kinds = self.token_type_embeddings
            placed_BTD = placed_BTD + (kinds.weight[0] if types_BT is None else kinds(types_BT))
        embedded_BTD: Tensor = self.LayerNorm(placed_BTD)
        return embedded_BTD


def _table(size: int, width: int) -> nn.Embedding:
    """An embedding without initial values: drawing them on the meta device would import torch's compiler."""
    return nn.Embedding(size, width, _weight=torch.empty(size, width))


class _SelfAttention(nn.Module):
    def __init__(self, c: BertConfig) -> None:
        super().__init__()
        self.query = nn.Linear(c.hidden_size, c.hidden_size)
        self.key = nn.Linear(c.hidden_size, c.hidden_size)
        self.value = nn.Linear(c.hidden_size, c.hidden_size)
        self._heads = c.num_attention_heads

    def forward(self, x_BTD: Tensor, mask_B11T: Tensor) -> Tensor:
        q, k, v = (
            part(x_BTD).unflatten(-1, (self._heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        return scaled_dot_product_attention(q, k, v, attn_mask=mask_B11T).transpose(1, 2).flatten(2)


class _Output(nn.Module):
    """A projection, added to the residual, then normalised."""

    def __init__(self, width: int, c: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(width, c.hidden_size)
        self.LayerNorm = nn.LayerNorm(c.hidden_size, c.layer_norm_eps)

    def forward(self, inner: Tensor, x_BTD: Tensor) -> Tensor:
        added_BTD: Tensor = self.LayerNorm(self.dense(inner) + x_BTD)
        return added_BTD


class _Attention(nn.ModuleDict):
    def __init__(self, c: BertConfig) -> None:
        super().__init__({"self": _SelfAttention(c), "output": _Output(c.hidden_size, c)})

    def forward(self, x_BTD: Tensor, mask_B11T: Tensor) -> Tensor:
        added_BTD: Tensor = self["output"](self["self"](x_BTD, mask_B11T), x_BTD)
        return added_BTD


class _MPNetAttention(nn.Module):
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


class _Layer(nn.Module):
    def __init__(self, c: BertConfig) -> None:
        super().__init__()
        self.attention = _MPNetAttention(c) if c.model_type == "mpnet" else _Attention(c)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(c.hidden_size, c.intermediate_size)})
        self.output = _Output(c.intermediate_size, c)
        self._approximate = GELU[c.hidden_act]

    def forward(self, x_BTD: Tensor, mask: Tensor) -> Tensor:
        x_BTD = self.attention(x_BTD, mask)
        inner = gelu(self.intermediate["dense"](x_BTD), approximate=self._approximate)
        result_BTD: Tensor = self.output(inner, x_BTD)
        return result_BTD


class BertEncoder(nn.Module):
    """The encoder without a pooler. Submodules are named as in transformers, so that weights and adapters fit."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = _Embeddings(config)
        layers = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))
        self.encoder = nn.ModuleDict({"layer": layers})

    def get_input_embeddings(self) -> nn.Module:
        """The module that maps token ids to vectors, which `forward` also takes as `inputs_embeds`."""
        table: nn.Module = self.embeddings.word_embeddings
        return table

    def forward(
        self,
        input_ids: Tensor | None = None,
        *,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        depth: int | None = None,
    ) -> States:
        """Hidden states [B, T, D] after the first `depth` layers (None: the last) of inputs padded on the right, given
        as ids [B, T] or as their vectors [B, T, D]. `attention_mask` [B, T] is 1 on tokens; `token_type_ids` [B, T] is
        1 on the second of a pair of texts (None: all 0; MPNet knows none)."""
        words_BTD = self.get_input_embeddings()(input_ids) if inputs_embeds is None else inputs_embeds
        x_BTD = self.embeddings(words_BTD, token_type_ids)
        layers: Any = self.encoder["layer"]
        return States(self.through(layers[:depth], x_BTD, attention_mask))

    def through(self, layers: Any, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """States after some layers of this encoder, or of one like it."""
        mask = self._mask(mask_BT.bool()[:, None, None, :])
        for layer in layers:
            x_BTD = layer(x_BTD, mask)
        return x_BTD

    def _mask(self, seen_B11T: Tensor) -> Tensor:
        """What attention takes: which tokens may be seen, or what is added for each pair of tokens."""
        return seen_B11T

    @classmethod
    def load(cls, folder: Path, config: BertConfig) -> BertEncoder:
        """The encoder of a folder, in fp32; its weights may be stored as `rounding` does. Raises ModelNotFoundError if
        weights are missing or do not fit `config.json`."""
        file = folder / "model.safetensors"
        saved = {_own_name(name): weight for name, weight in all_whole(loaded(file, load_file)).items()}
        with torch.device("meta"):
            model = cls(config)
        weights: dict[str, Tensor] = {}
        for name, expected in model.state_dict().items():
            if name not in saved:
                raise ModelNotFoundError(f"{file} lacks {name}; fetch it again")
            if (shape := list(saved[name].shape)) != list(expected.shape):
                raise ModelNotFoundError(f"{file}: {name} has shape {shape}, config.json says {list(expected.shape)}")
            weights[name] = saved[name]
        model.load_state_dict(weights, assign=True)
        return model


def _own_name(name: str) -> str:
    """A weight's name without the model's prefix, with layer norms spelled as they are today."""
    name = name.removeprefix("bert.").removeprefix("roberta.").removeprefix("mpnet.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def all_whole(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Every stored weight in fp32, by its name."""
    return {name: whole_tensor(stored, name) for name in names_of(stored)}


def whole_tensor(stored: Mapping[str, Tensor], name: str) -> Tensor:
    """The stored weight of that name in fp32."""
    scale_R1 = stored.get(f"{name}{SCALE}")
    if scale_R1 is None:
        return stored[name].float()
    return torch.from_numpy(whole({name: stored[name].numpy(), f"{name}{SCALE}": scale_R1.numpy()}, name))


class MPNetEncoder(BertEncoder):
    """MPNet: BERT without token types, with a bias for the distance of two tokens added to their attention."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        buckets, heads = config.relative_attention_num_buckets, config.num_attention_heads
        self.encoder["relative_attention_bias"] = _table(buckets, heads)

    def _mask(self, seen_B11T: Tensor) -> Tensor:
        buckets_TT = _buckets(seen_B11T.shape[-1], self.config, seen_B11T.device)
        bias_TTH = self.encoder["relative_attention_bias"](buckets_TT)
        bias_1HTT: Tensor = bias_TTH.permute(2, 0, 1)[None]
        return bias_1HTT.masked_fill(~seen_B11T, torch.finfo(bias_TTH.dtype).min)


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


def dense(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer with BERT's initial weights."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=0.02)
    nn.init.zeros_(layer.bias)
    return layer


class RoundedLinear(nn.Module):
    """A linear layer that multiplies 8-bit integers: its weights are rounded once, with a scale for each output, its
    inputs in each call, with a scale for each token."""

    weight_IO: Tensor
    scale_O: Tensor
    bias: Tensor

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None = None) -> None:
        super().__init__()
        stored = rounded("weight", weight_OI.detach().numpy())
        self.register_buffer("weight_IO", torch.from_numpy(stored["weight"]).T)
        self.register_buffer("scale_O", torch.from_numpy(stored[f"weight{SCALE}"]).flatten())
        self.register_buffer("bias", weight_OI.new_zeros(len(weight_OI)) if bias_O is None else bias_O.detach())

    @property
    def weight(self) -> Tensor:
        """fp32 [O, I]; some models look at it."""
        return (self.weight_IO * self.scale_O).T

    def forward(self, x: Tensor) -> Tensor:
        """fp32 [..., O] of fp32 [..., I]."""
        x_TI = x.flatten(0, -2)
        scale_T1 = x_TI.abs().amax(dim=1, keepdim=True).clamp_min(SMALLEST) / LARGEST
        whole_TO = torch._int_mm((x_TI / scale_T1).round_().to(torch.int8), self.weight_IO)
        y_TO = torch.addcmul(self.bias, whole_TO.float().mul_(scale_T1), self.scale_O)
        return y_TO.view(*x.shape[:-1], len(self.scale_O))


def round_linears(model: nn.Module) -> None:
    """Replace a model's linear layers, fp32 on the processor, by layers in 8-bit integers."""
    for module in list(model.modules()):
        for name, part in module.named_children():
            if isinstance(part, nn.Linear):
                setattr(module, name, RoundedLinear(part.weight, part.bias))
