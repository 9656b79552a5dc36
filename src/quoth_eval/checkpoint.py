"""A published checkpoint: its settings and weights, from a folder or the Hugging Face hub.

Knows: the files that hold them, safetensors or pickled, in one piece or several. Does not know: what they mean.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from quoth.errors import InputError, ModelNotFoundError
from quoth.storage import read_json

_FILES = ["config.json", "model*.safetensors", "pytorch_model*.bin", "tokenizer*", "vocab.txt"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint's name as given, its folder, its `config.json`, and its weights by their names there."""

    name: str
    folder: Path
    settings: dict[str, Any]
    weights: dict[str, Tensor]

    @property
    def kind(self) -> str:
        """The class it was saved from, such as RealmEmbedder."""
        return str((self.settings.get("architectures") or ["model of unknown kind"])[0])


def open_checkpoint(name: str, leave_out: Collection[str] = ()) -> Checkpoint:
    """A checkpoint in a folder or, by its id, on the hub; weights named in `leave_out` are not read.

    Raises ModelNotFoundError if it is not there or damaged, InputError if its weights are unsafe to load.
    """
    folder = Path(name) if Path(name).is_dir() else _fetched(name)
    if not (folder / "config.json").is_file():
        raise ModelNotFoundError(f"folder {str(folder)!r} has no config.json; name the folder of a checkpoint")
    return Checkpoint(name, folder, read_json(folder / "config.json"), _weights(folder, leave_out))


def _fetched(name: str) -> Path:
    """The folder in the Hugging Face cache of a hub id, downloaded if necessary."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=_FILES))
    except (OSError, LocalEntryNotFoundError, HfHubHTTPError, HFValidationError) as error:
        raise ModelNotFoundError(
            f"checkpoint {name!r} is neither a local folder nor available from the hub; download it on a machine "
            "with a network, and name its folder"
        ) from error


def _weights(folder: Path, leave_out: Collection[str]) -> dict[str, Tensor]:
    """Every tensor of the folder's weight files. Safetensors are preferred if there are both."""
    safe, pickled = sorted(folder.glob("model*.safetensors")), sorted(folder.glob("pytorch_model*.bin"))
    if not safe and not pickled:
        raise ModelNotFoundError(f"folder {str(folder)!r} has no model.safetensors and no pytorch_model.bin")
    found: dict[str, Tensor] = {}
    for file in safe:
        try:
            with safe_open(file, "pt") as opened:
                names = [name for name in opened.keys() if name not in leave_out]  # noqa: SIM118
                found |= {name: opened.get_tensor(name) for name in names}
        except SafetensorError as error:
            raise ModelNotFoundError(f"{file} is damaged ({error}); fetch it again") from error
    for file in [] if safe else pickled:
        found |= _read_pickle(file, leave_out)
    return found


def _read_pickle(file: Path, leave_out: Collection[str]) -> dict[str, Tensor]:
    """Tensors alone: unpickling anything else could run any code. Large ones stay on disk."""
    refusal = f"{file} is damaged or holds more than tensors, which could run code; fetch it again from one you trust"
    try:
        with warnings.catch_warnings(action="ignore"):
            loaded = torch.load(file, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(file))
    except Exception as error:  # whatever damage or malice makes of the unpickler
        raise InputError(refusal) from error
    if not isinstance(loaded, dict) or not all(isinstance(weight, Tensor) for weight in loaded.values()):
        raise InputError(refusal)
    return {name: weight for name, weight in loaded.items() if name not in leave_out}
