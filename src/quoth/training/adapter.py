"""LoRA adapters by PEFT: making one on an encoder, starting from a saved one, its settings as PEFT reads them.

Knows: PEFT's names and files. Does not know: losses and the training loop.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import nn

from quoth.encoders.transformer import apply_adapter
from quoth.errors import InputError
from quoth.storage import atomic_write_bytes, atomic_write_json


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
        _warm_start(adapted, Path(warm_start) / "adapter_model.safetensors")
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
    state = {name.replace(".base_layer.", "."): w for name, w in model.state_dict().items() if "lora_" not in name}
    for name, module in model.named_modules():
        if hasattr(module, "get_delta_weight"):
            state[f"{name}.weight"] = state[f"{name}.weight"] + module.get_delta_weight("default")
    return state


def saved_name(parameter: str) -> str:
    """A parameter's name in `adapter_model.safetensors`."""
    return parameter.replace(".default.", ".")


def save_adapter(folder: Path, model: Any, base: str) -> None:
    """Write a model's adapter in fp16, as PEFT reads it; `base` names the weights it belongs to."""
    folder.mkdir(parents=True, exist_ok=True)
    adapter = {name: weight for name, weight in model.named_parameters() if "lora_" in name}
    weights = {saved_name(name): weight.detach().half().cpu().contiguous() for name, weight in adapter.items()}
    atomic_write_bytes(folder / "adapter_model.safetensors", save(weights))
    atomic_write_json(folder / "adapter_config.json", adapter_settings(model, base))


def adapter_settings(model: Any, base: str) -> dict[str, Any]:
    """What `adapter_config.json` says of an adapted model."""
    settings = model.peft_config["default"].to_dict()
    settings.update(inference_mode=True, base_model_name_or_path=base)
    plain: dict[str, Any] = _plain(settings)
    return plain


def _warm_start(adapted: Any, file: Path) -> None:
    if not file.is_file():
        raise InputError(f"warm_start {str(file.parent)!r} has no {file.name}; name a folder with a trained adapter")
    weights = load_file(file)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if not parameter.requires_grad:
                continue
            weight = weights.get(saved_name(name))
            if weight is None or weight.shape != parameter.shape:
                raise InputError(
                    f"warm_start {str(file.parent)!r} does not fit this model and lora_rank; "
                    "use the ones that it was trained with"
                )
            parameter.copy_(weight.float())


def _plain(value: Any) -> Any:
    """A setting as JSON writes it: sets sorted, enumerations by value."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return getattr(value, "value", value)
