"""LoRA adapters by PEFT: making one on an encoder, starting from a saved one, its settings as PEFT reads them.

Knows: PEFT's names and files. Does not know: losses and the training loop.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import nn

from quoth.encoders.encoder import adapter_parts
from quoth.encoders.transformer import apply_adapter, attend_in_fp32
from quoth.errors import InputError
from quoth.storage import atomic_write_bytes, atomic_write_json
from quoth.training.settings import LoopConfig

ADAPTER = "adapter_model.safetensors"


def trainable(
    encoder: Any, config: LoopConfig, device: torch.device, warm_start: str = ""
) -> tuple[Any, Mapping[str, nn.Parameter]]:
    """An encoder on a device as a run's settings train it, with adapter and dropout; and the weights that learn."""
    if config.bf16 and device.type == "cpu":
        attend_in_fp32(encoder)
    model = with_adapter(encoder, config.lora_rank, config.seed, warm_start).to(device)
    set_dropout(model, config.dropout)
    return model, {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def with_adapter(model: Any, rank: int, seed: int, warm_start: str = "") -> Any:
    """The model in evaluation mode (`set_dropout` changes that) with LoRA on all linear layers; rank 0: itself, all of
    it trainable, the adapter in folder `warm_start` added to its weights.

    Raises InputError when that adapter does not fit.
    """
    torch.manual_seed(seed)
    model.eval()
    if not rank:
        if warm_start:
            apply_adapter(model, Path(warm_start))
        return model
    from peft import LoraConfig, get_peft_model

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        adapted = get_peft_model(model, LoraConfig(r=rank, lora_alpha=rank, target_modules="all-linear"))
    if warm_start:
        _start_from(adapted, Path(warm_start), rank)
    return adapted


def set_dropout(model: nn.Module, share: float) -> None:
    """Let the model drop this share at each of its dropouts; 0: evaluation mode. Raises InputError if it has none."""
    dropouts = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    if share and not dropouts:
        raise InputError(f"dropout is {share}, but {type(model).__name__} has no dropout layers; it must be 0")
    model.train(share > 0)
    for module in dropouts:
        module.p = share


def merged_weights(model: nn.Module) -> dict[str, torch.Tensor]:
    """A model's weights with its adapter added, under the names that they have without an adapter."""
    # Not by PEFT's `merge_adapter` and `unmerge_adapter`: w + d - d is not w in floating point, and a run that saved
    # its model would end at other weights than one that did not.
    state = {name.replace(".base_layer.", "."): w for name, w in model.state_dict().items() if "lora_" not in name}
    for name, module in model.named_modules():
        if hasattr(module, "get_delta_weight"):
            state[f"{name}.weight"] = state[f"{name}.weight"] + module.get_delta_weight("default")
    return state


def save_adapter(folder: Path, model: Any, base: str) -> None:
    """Write a model's adapter in fp16, as PEFT reads it; `base` names the weights it belongs to."""
    from peft import get_peft_model_state_dict

    folder.mkdir(parents=True, exist_ok=True)
    weights = get_peft_model_state_dict(model, save_embedding_layers=False)
    halves = {name: weight.detach().half().cpu().contiguous() for name, weight in weights.items()}
    atomic_write_bytes(folder / ADAPTER, save(halves))
    # PEFT's own `save_pretrained` writes in place, and sets in any order.
    settings = model.peft_config["default"].to_dict() | {"inference_mode": True, "base_model_name_or_path": base}
    atomic_write_json(folder / "adapter_config.json", json.loads(json.dumps(settings, default=sorted)))


def _start_from(adapted: Any, folder: Path, rank: int) -> None:
    from peft import set_peft_model_state_dict

    if not (folder / ADAPTER).is_file():
        raise InputError(f"warm_start {str(folder)!r} has no {ADAPTER}; name a folder with a trained adapter")
    factors: dict[str, torch.Tensor] = {}
    own = 0
    for place, scale, b_OR, a_RI in adapter_parts(folder, load_file):
        own = len(a_RI)
        layer = f"base_model.model.{place}.lora"
        factors |= {f"{layer}_A.weight": a_RI, f"{layer}_B.weight": scale * b_OR}
    try:
        result: Any = set_peft_model_state_dict(adapted, factors)
        fits = not any("lora_" in name for name in result.missing_keys)
    except RuntimeError:  # a weight of another shape
        fits = False
    if not fits:
        raise InputError(
            f"warm_start {str(folder)!r}, of rank {own}, does not fit this model and lora_rank={rank}; use the ones "
            "that it was trained with"
        )
