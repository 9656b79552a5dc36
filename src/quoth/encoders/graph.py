"""An encoder in ONNX Runtime, which starts in a tenth of PyTorch's time: the graphs that lie beside some bases.

Knows: when a graph is used instead of PyTorch, the weights of a folder and of an adapter to it as arrays, embeddings.
Does not know: what the graphs compute (`recipes/encoder_graph.py` makes them). torch is imported only where it is used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import load_file

from quoth.arrays import Floats, Ints
from quoth.encoders.config import BertConfig, wanted_dtype
from quoth.encoders.encoder import Encoder, adapter_parts, does_not_fit, fingerprint_of, loaded, shipped_fingerprint
from quoth.encoders.rounding import SCALE, Stored, names_of, rounded, whole
from quoth.errors import ModelNotFoundError, needs_torch
from quoth.hub import GRAPH_FORMATS, WEIGHTS, EncoderSource, graph_file
from quoth.storage import check_opens
from quoth.text.tokenizer import FastTokenizer, PairArrays

if TYPE_CHECKING:
    from quoth.encoders.transformer import Transformer

_SLOWER = ["SkipLayerNormFusion", "BiasGeluFusion"]
"""ONNX Runtime's optimisations that take a fifth more time than what they replace."""
_GPU_DRIVERS = ("/proc/driver/nvidia/version", "/dev/dxg", r"C:\Windows\System32\nvcuda.dll")
_work_is_long = False


def open_encoder(
    source: EncoderSource, *, device: str | None = None, dtype: str | None = None
) -> GraphEncoder | Transformer:
    """An encoder in ONNX Runtime if it has graphs for what is wanted (`graph_formats`), else in PyTorch.

    Raises ModelNotFoundError if the model cannot be loaded, InputError on an unknown dtype or device.
    """
    if formats := graph_formats(source.base, device, dtype):
        try:
            if encoder := _with_adapter(source, formats):
                return encoder
        except TypeError:
            pass  # an adapter in bf16, which NumPy may not have
    return open_in_pytorch(source, device, dtype)


def open_in_pytorch(source: EncoderSource, device: str | None, dtype: str | None) -> Transformer:
    """As `open_encoder`, never in ONNX Runtime."""
    with in_pytorch(source.base, device, dtype):
        from quoth.encoders.transformer import Transformer
    return Transformer.load(source, device=device, dtype=dtype)


def in_pytorch(name: str, device: str | None, dtype: str | None) -> AbstractContextManager[None]:
    """Where PyTorch is imported to run a model; raises InputError if it is not installed."""
    return needs_torch(f"{name} on device {device or 'auto'} in dtype {wanted_dtype(dtype)}")


def _with_adapter(source: EncoderSource, formats: Sequence[str]) -> GraphEncoder | None:
    folder, adapter = Path(source.base), source.adapter
    stored, tokenizer = loaded(folder / WEIGHTS, load_file), FastTokenizer(folder)
    fingerprint = shipped_fingerprint(folder) if adapter is None else None
    if fingerprint is None:
        weights = ((name, whole(stored, name)) for name in sorted(names_of(stored)))
        fingerprint = fingerprint_of(weights, tokenizer, adapter)
    if adapter is not None:
        for place, scale, b, a in adapter_parts(adapter, load_file):
            try:
                change(stored, f"{place}.weight", np.float32(scale) * (b.astype(np.float32) @ a.astype(np.float32)))
            except (KeyError, ValueError) as error:
                raise does_not_fit(adapter, place) from error
    return open_graph(folder, stored, tokenizer, formats, fingerprint)


def change(stored: Stored, name: str, added: Floats) -> None:
    """Add to a weight, which may be rounded. Raises KeyError, or ValueError if it has another size."""
    stored[name] = whole(stored, name) + added
    stored.pop(f"{name}{SCALE}", None)


def graph_formats(base: str, device: str | None, dtype: str | None) -> Sequence[str]:
    """The number formats in which ONNX Runtime is to run the encoder of a folder, the best first: it has graphs, it is
    to be on the processor, in 8-bit integers or fp32, and PyTorch, if it is there already, would not be faster."""
    needed = graph_file(Path(base), GRAPH_FORMATS[0]), Path(base) / "tokenizer.json"
    if not all(map(Path.is_file, needed)) or find_spec("onnxruntime") is None:
        return ()
    if device not in (None, "cpu") or (device is None and any(map(os.path.exists, _GPU_DRIVERS)) and _has_torch()):
        return ()
    wanted = wanted_dtype(dtype)
    if wanted == "auto":
        return () if _has_amx() and (sys.modules.get("torch") or (_work_is_long and _has_torch())) else GRAPH_FORMATS
    return [wanted] if wanted in GRAPH_FORMATS else ()


def prefer_pytorch() -> None:
    """From now on, take PyTorch where it is installed and would be faster, for work that is longer than its import."""
    global _work_is_long
    _work_is_long = True


def _has_torch() -> bool:
    return find_spec("torch") is not None


@cache
def _has_amx() -> bool:
    """Whether the processor has AMX, with which PyTorch's bf16 takes half of the time of 8-bit integers."""
    try:
        return "amx_bf16" in Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return False


def open_graph(
    folder: Path,
    stored: Stored,
    tokenizer: FastTokenizer,
    formats: Sequence[str],
    fingerprint: str = "",
    depth: int | None = None,
) -> GraphEncoder | None:
    """The encoder with these weights, or its first `depth` layers, in the first of these formats that this processor
    computes exactly; None if that is none of them. Raises ModelNotFoundError."""
    every = (GraphEncoder(folder, stored, tokenizer, dtype, fingerprint, depth) for dtype in formats)
    return next((encoder for encoder in every if encoder.exact), None)


class Layers:
    """Layers of an encoder in ONNX Runtime, all or those from `cut[0]` up to `cut[1]`. `stored` are weights, among them
    theirs, of which some may be rounded."""

    def __init__(self, folder: Path, stored: Stored, dtype: str, cut: tuple[int, int] | None) -> None:
        import onnxruntime

        names = stored if cut is None else _names_in(stored, *cut)
        weights = _in_format({name: stored[name] for name in names if "_embeddings." not in name}, dtype)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = _threads()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # other work may need the cores
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(each) for each in weights.values()]
        options.add_external_initializers(list(weights), values)
        file = graph_file(folder, dtype, cut)
        try:
            self._session = onnxruntime.InferenceSession(
                file, options, providers=["CPUExecutionProvider"], disabled_optimizers=_SLOWER
            )
        except Exception as error:  # its errors have no class in common
            check_opens(Path(file))
            reason = str(error).strip().splitlines()[0]
            raise ModelNotFoundError(f"{file} does not fit the weights beside it ({reason}); fetch it again") from error

    def __call__(self, x_BTD: Floats, mask_BT: Ints, output: str = "states") -> Floats:
        """The states after the layers [B, T, D]; x are those before them, or the sum of the embeddings."""
        found_BTD: Floats
        (found_BTD,) = self._session.run([output], {"embedded": x_BTD, "attention_mask": mask_BT})
        return found_BTD


def _names_in(stored: Stored, first: int, last: int) -> list[str]:
    """The names of the weights of some layers, and of what comes before the first one."""
    prefixes = [f"encoder.layer.{number}." for number in range(first, last)]
    return [name for name in stored if name.startswith((*prefixes, *(["embeddings."] if first == 0 else [])))]


class GraphEncoder(Encoder):
    """An encoder in ONNX Runtime, or its first `depth` layers. `stored` are its weights, of which those that no adapter
    changed may be rounded."""

    def __init__(
        self,
        folder: Path,
        stored: Stored,
        tokenizer: FastTokenizer,
        dtype: str,
        fingerprint: str,
        depth: int | None = None,
    ) -> None:
        super().__init__(BertConfig.read(folder), tokenizer, fingerprint)
        self.dtype = dtype
        self._embeddings = {name: stored[name] for name in stored if "_embeddings." in name}
        self._layers = Layers(folder, stored, dtype, None if depth is None else (0, depth))

    @property
    def exact(self) -> bool:
        """Whether sums of products of 8-bit integers, if there are any, are exact on this processor; some older ones
        cut them off."""
        if self.dtype != "int8":
            return True
        sums = self._layers(np.zeros((1, 1, self.dimensions), np.float32), np.ones((1, 1), np.int64), "sums")
        return bool((sums == 64 * 127 * 127).all())

    def states(self, batch: PairArrays, added_BTD: Floats | None = None) -> Floats:
        words_BTD = self._rows("word", batch.ids_BT)
        if added_BTD is not None:
            words_BTD += added_BTD
        words_BTD += self._rows("position", np.arange(batch.ids_BT.shape[1]))
        words_BTD += self._rows("token_type", np.array(0) if batch.types_BT is None else batch.types_BT)
        return self._layers(words_BTD, batch.mask_BT)

    def _rows(self, kind: str, ids: Ints) -> Floats:
        """The vectors of some ids [..., D]."""
        name = f"embeddings.{kind}_embeddings.weight"
        rows, scale = self._embeddings[name][ids].astype(np.float32), self._embeddings.get(f"{name}{SCALE}")
        if scale is not None:
            rows *= scale[ids]
        return rows


def _in_format(stored: Stored, dtype: str) -> Stored:
    """The weights as the graph of that format takes them."""
    if dtype == "fp32":
        return {name: whole(stored, name) for name in names_of(stored)}
    weights = dict(stored)
    for name in names_of(stored):
        if stored[name].ndim == 2 and f"{name}{SCALE}" not in stored:
            weights |= rounded(name, whole(stored, name))
    return weights


def _threads() -> int:
    """As many as PyTorch would take: what OMP_NUM_THREADS says, or one per core (0)."""
    if torch := sys.modules.get("torch"):
        return int(torch.get_num_threads())
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdigit() else 0
