"""A reader's weights on disk: what training changed, small enough to be shipped.

Knows: names, files. Does not know: what the weights compute.

A reader of the shipped base is stored as differences: a matrix that the base has too is stored as its difference from
the base's, rounded; vectors and heads are stored as they are; word embeddings are the base's own. A reader of any other
base is stored whole: the folder is that of an encoder too, rounded, and `reader.safetensors` has the heads.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.numpy import save
from safetensors.torch import load_file
from torch import Tensor

from quoth.arrays import Floats
from quoth.encoders.bert import whole_tensor
from quoth.encoders.encoder import loaded, pair_tokenizer
from quoth.encoders.rounding import SCALE, Stored, rounded
from quoth.encoders.transformer import load_base, load_encoder
from quoth.errors import ModelNotFoundError
from quoth.hub import READER_FILE, SETTINGS_FILE, WEIGHTS, ModelSource
from quoth.reader.config import BRANCH, UNREADABLE, ReaderConfig
from quoth.reader.network import SpanReaderModel
from quoth.reader.spans import check_room
from quoth.storage import atomic_write_bytes, atomic_write_json
from quoth.text.tokenizer import PairTokenizer

_ENCODER = "encoder."
BESIDE_WEIGHTS = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def load_reader(
    source: ModelSource[ReaderConfig], *, with_dropouts: bool = False
) -> tuple[SpanReaderModel, PairTokenizer]:
    """The network (fp32, CPU) and what makes its inputs; with random heads if the source has no folder.

    `with_dropouts` takes the encoder of transformers, which has dropouts for training. Raises ModelNotFoundError if
    a file is missing or damaged, InputError if the encoder's inputs are too short.
    """
    encoder, hf = (load_base if with_dropouts else load_encoder)(source.encoder)
    model = SpanReaderModel(encoder, source.config).eval()
    if source.folder is not None:
        _apply(model, source.folder / READER_FILE, source.is_whole)
    tokenizer = pair_tokenizer(hf, encoder.config)
    check_room(source.config, tokenizer.longest, source.name)
    return model, tokenizer


def save_reader(
    folder: Path, model: SpanReaderModel, base: SpanReaderModel | Path, settings: dict[str, object]
) -> None:
    """Write what `load_reader` reads. `base` is the network as it was before any training, or the base's folder for a
    reader that is stored whole."""
    folder.mkdir(parents=True, exist_ok=True)
    parameters = trained(model)
    if isinstance(base, Path):
        save_encoder(folder, dict(model.encoder.named_parameters()), base)
        own, parameters = {}, {name: each for name, each in parameters.items() if not name.startswith(_ENCODER)}
    else:
        own = dict(base.named_parameters())
    stored: Stored = {}
    for name, parameter in parameters.items():
        weight = _array(parameter)
        if weight.ndim == 2 and name in own and name.startswith(_ENCODER):
            stored |= rounded(name, weight - _array(own[name]))
        elif weight.ndim == 2 and name.startswith(f"{BRANCH}."):
            stored |= rounded(name, weight)
        else:
            stored[name] = weight
    atomic_write_bytes(folder / READER_FILE, save(stored))
    atomic_write_json(folder / SETTINGS_FILE, settings)


def save_encoder(folder: Path, weights: Mapping[str, Tensor], base: Path) -> None:
    """Write an encoder's folder: its weights, matrices rounded; configuration and tokenizer are those of `base`."""
    folder.mkdir(parents=True, exist_ok=True)
    stored: Stored = {}
    for name, weight in weights.items():
        array = _array(weight)
        stored |= rounded(name, array) if array.ndim == 2 else {name: array}
    atomic_write_bytes(folder / WEIGHTS, save(stored))
    for file in (*(base / name for name in BESIDE_WEIGHTS), *base.glob("*.onnx")):
        if file.is_file():
            shutil.copyfile(file, folder / file.name)


def _array(weight: Tensor) -> Floats:
    array: Floats = weight.detach().float().cpu().contiguous().numpy()
    return array


def trained(model: SpanReaderModel, frozen_layers: int = 0) -> dict[str, torch.nn.Parameter]:
    """The weights that training changes: all but the word embeddings, and what the first layers need."""

    def is_frozen(name: str) -> bool:
        layer = re.search(r"\.layer\.(\d+)\.", name)
        return name.startswith(_ENCODER) and (layer is None or int(layer[1]) < frozen_layers)

    return {
        name: each
        for name, each in model.named_parameters()
        if not name.endswith("word_embeddings.weight") and not (frozen_layers and is_frozen(name))
    }


def _apply(model: SpanReaderModel, file: Path, heads_only: bool) -> None:
    stored = loaded(file, load_file, *UNREADABLE)
    with torch.no_grad():
        for name, weight in trained(model).items():
            if heads_only and name.startswith(_ENCODER):
                continue
            if name not in stored or stored[name].shape != weight.shape:
                raise ModelNotFoundError(f"{file} lacks {name} of shape {list(weight.shape)}; train it again")
            if f"{name}{SCALE}" in stored and name.startswith(_ENCODER):
                weight.add_(whole_tensor(stored, name))
            else:
                weight.copy_(whole_tensor(stored, name))
