"""A reader by its name, ready to read: in ONNX Runtime, which starts in a tenth of PyTorch's time, where it can be.

Knows: graphs that lie beside the weights, what this machine has. Does not know: what the graph computes
(`scripts/reader_graph.py` makes it), how PyTorch loads a network (`weights`). torch is imported only where it is used.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from quoth.arrays import Floats
from quoth.encoders.config import wanted_dtype
from quoth.errors import ModelNotFoundError
from quoth.hub import GRAPH_FILE, READER_FILE, ModelSource, locate
from quoth.reader.config import NEVER, ReaderConfig
from quoth.reader.spans import SpanReader, check_room
from quoth.storage import read_json
from quoth.text.tokenizer import BATCH_TOKENS, FastTokenizer, PairArrays, PairTokenizer

_GPU_DRIVERS = ("/proc/driver/nvidia/version", "/dev/dxg", r"C:\Windows\System32\nvcuda.dll")


def open_reader(
    name: str, *, device: str | None = None, dtype: str | None = None, base: str | None = None
) -> SpanReader:
    """A reader by shipped name or folder, ready to read.

    In 8-bit integers, and so by default on most processors, a reader that has a graph is read by ONNX Runtime, else by
    PyTorch. Raises ModelNotFoundError if a file is missing or damaged, InputError on an unknown device or dtype.
    """
    source = locate(name, ReaderConfig, base)
    if by_graph(source, device, dtype) and (opened := _opened(source)):
        return opened
    from quoth.encoders.transformer import device_named, placed
    from quoth.reader.weights import load_reader

    model, tokenizer = load_reader(source)
    placed(model.encoder, device, dtype)  # the heads stay in fp32: they cost nothing, and rounded scores tie
    return SpanReader(model.to(device_named(device)), tokenizer)


def by_graph(source: ModelSource[ReaderConfig], device: str | None, dtype: str | None) -> bool:
    """Whether a reader is to be read by ONNX Runtime: it has a graph, it is to be on the processor, in int8, and
    PyTorch, if it is there already, would not be faster."""
    if not (source.is_whole and source.config.head == "ends" and (Path(source.base) / GRAPH_FILE).is_file()):
        return False
    if device != "cpu" and (device is not None or any(map(os.path.exists, _GPU_DRIVERS))):
        return False
    wanted = wanted_dtype(dtype)
    return wanted == "int8" or (wanted == "auto" and not ("torch" in sys.modules and _has_amx()))


@cache
def _has_amx() -> bool:
    """Whether the processor has AMX, with which PyTorch's bf16 takes half of the time of 8-bit integers."""
    try:
        return "amx_bf16" in Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return False


def _opened(source: ModelSource[ReaderConfig]) -> SpanReader | None:
    """The reader in ONNX Runtime; None if that is not installed, or its sums of 8-bit integers are not exact here."""
    folder = Path(source.base)
    try:
        model = GraphModel(folder, source.config)
    except (ModuleNotFoundError, SafetensorError, FileNotFoundError):
        return None  # PyTorch says what is wrong
    if not model.exact or (tokenizer := FastTokenizer.read(folder)) is None:
        return None
    longest = int(read_json(folder / "config.json")["max_position_embeddings"])
    check_room(source.config, longest, source.name)
    return SpanReader(model, PairTokenizer(tokenizer, True, longest))


class GraphModel:
    """A reader's network in ONNX Runtime: the graph of its folder, with the weights that are stored there."""

    batch_tokens = BATCH_TOKENS

    def __init__(self, folder: Path, config: ReaderConfig) -> None:
        import onnxruntime

        self.config = config
        weights = load_file(folder / "model.safetensors") | load_file(folder / READER_FILE)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = _threads()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # other work may need the cores
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(each) for each in weights.values()]
        options.add_external_initializers(list(weights), values)
        file = folder / GRAPH_FILE
        try:
            self._session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its errors have no class in common
            reason = str(error).strip().splitlines()[0]
            raise ModelNotFoundError(f"{file} does not fit the weights beside it ({reason}); fetch it again") from error

    @property
    def exact(self) -> bool:
        """Whether sums of products of 8-bit integers are exact on this processor; some older ones cut them off."""
        one = np.ones((1, 1), np.int64)
        return bool((self._run(["sums"], PairArrays(one, one, one))[0] == 64 * 127 * 127).all())

    def odds(self, batch: PairArrays, legal_BTW: NDArray[np.bool_]) -> Floats:
        """log odds of every span against "no answer here": [B, T, W]; `NEVER` if it is not legal.

        As `SpanReaderModel.forward` with the head `ends`.
        """
        ends_BT2, none_B1 = self._run(["ends", "none"], batch)
        padded_BT = np.pad(ends_BT2[:, :, 1], ((0, 0), (0, self.config.span_width - 1)))
        ends_BTW = sliding_window_view(padded_BT, self.config.span_width, axis=1)
        return np.where(legal_BTW, ends_BT2[:, :, :1] + ends_BTW - none_B1[:, :, None], np.float32(NEVER))

    def _run(self, outputs: list[str], batch: PairArrays) -> Any:
        inputs = {"input_ids": batch.ids_BT, "attention_mask": batch.mask_BT, "token_type_ids": batch.types_BT}
        return self._session.run(outputs, inputs)


def _threads() -> int:
    """As many as PyTorch would take: what OMP_NUM_THREADS says, or one per core (0)."""
    if torch := sys.modules.get("torch"):
        return int(torch.get_num_threads())
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdigit() else 0
