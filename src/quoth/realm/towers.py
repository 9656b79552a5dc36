"""REALM's two towers: one makes vectors of passages, the other of queries (Guu et al. 2020, §3.2).

Knows: pooling and projection, in PyTorch. Does not know: the forms of the inputs (`passages`), where vectors are
stored.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from safetensors.torch import load_file
from torch import Tensor, nn

from quoth.arrays import Floats
from quoth.encoders.bert import dense
from quoth.encoders.encoder import loaded
from quoth.encoders.transformer import PADDED_TOKENS_PER_BATCH, Transformer, computed, tensors
from quoth.errors import ModelNotFoundError
from quoth.hub import ModelSource
from quoth.realm.config import REALMConfig
from quoth.text.tokenizer import PairArrays

Part = TypeVar("Part", bound=nn.Module)


class Tower(nn.Module):
    """An encoder with a head that turns its states into one vector. Its weights are named `encoder.…` (not saved with
    the head), `pooler.…`, `projection.…` and `norm.…`."""

    batch_tokens = PADDED_TOKENS_PER_BATCH

    def __init__(self, encoder: Any, config: REALMConfig) -> None:
        super().__init__()
        self.encoder, self.config = encoder, config
        hidden = int(encoder.config.hidden_size)
        self.dimensions = config.dimensions or hidden
        self.pooler = dense(hidden, hidden) if config.pooler else None
        self.projection = dense(hidden, config.dimensions) if config.dimensions else None
        eps = config.layer_norm_eps
        self.norm = None if eps is None else nn.LayerNorm(self.dimensions, eps)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """The vectors of a batch of inputs: [B, D]."""
        states_BTH = self.encoder(**batch).last_hidden_state
        is_mean = self.config.pooling == "mean"
        vectors_BD = mean_state(states_BTH, batch["attention_mask"]) if is_mean else states_BTH[:, 0]
        if self.pooler is not None:
            vectors_BD = self.pooler(vectors_BD).tanh()
        if self.projection is not None:
            vectors_BD = self.projection(vectors_BD)
        if self.norm is not None:
            vectors_BD = self.norm(vectors_BD)
        return nn.functional.normalize(vectors_BD, dim=-1) if self.config.normalize else vectors_BD

    def vectors(self, batch: PairArrays) -> Floats:
        """As `forward`, of arrays."""
        device = next(self.parameters()).device
        return computed(lambda: self(tensors(batch, device)))


def mean_state(states_BTH: Tensor, mask_BT: Tensor) -> Tensor:
    """The mean of each input's states: [B, H]."""
    mask_BT1 = mask_BT[:, :, None].to(states_BTH.dtype)
    return (states_BTH * mask_BT1).sum(dim=1) / mask_BT1.sum(dim=1)


def head_state(module: nn.Module) -> dict[str, Tensor]:
    """The weights of a module that are not its encoder's."""
    return {name: weight for name, weight in module.state_dict().items() if not name.startswith("encoder.")}


def opened(
    kind: Callable[[Any, REALMConfig], Part], encoder: Any, config: REALMConfig, file: Path | None, prefix: str
) -> Part:
    """A part of a REALM, a tower or its reader, over its loaded encoder. Its other weights are named `prefix.…` in the
    file; None leaves them as they are. Raises ModelNotFoundError if the file is missing, damaged or does not fit."""
    part = kind(encoder, config)
    expected = head_state(part)
    if file is None or not expected:
        return part
    stored = loaded(file, load_file, "cannot be read", "fetch or train the model again")
    saved = {name.removeprefix(f"{prefix}."): weight for name, weight in stored.items()}
    for name, weight in expected.items():
        if name not in saved or saved[name].shape != weight.shape:
            state = f"of shape {list(saved[name].shape)}" if name in saved else "missing"
            raise ModelNotFoundError(f"{file}: {prefix}.{name} is {state}, expected {list(weight.shape)}")
    part.load_state_dict({name: saved[name].float() for name in expected}, strict=False)
    return part


def like_encoder(part: Part) -> Part:
    """The part with its heads on its encoder's device and in its dtype."""
    weight = next(part.get_submodule("encoder").parameters())
    return part.to(device=weight.device, dtype=weight.dtype)


def load_tower(source: ModelSource[REALMConfig], part: str, encoder: Transformer) -> tuple[Tower, dict[str, Floats]]:
    """A tower with its head on its encoder's device and in its dtype, and the head in fp32. Raises
    ModelNotFoundError."""
    tower = opened(Tower, encoder.model, source.config, source.heads, part)
    head = {name: weight.detach().float().cpu().numpy() for name, weight in head_state(tower).items()}
    return like_encoder(tower).eval(), head
