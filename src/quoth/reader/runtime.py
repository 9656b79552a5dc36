"""A reader by its name, ready to read: in ONNX Runtime where it can be (`encoders.graph`), else in PyTorch.

Knows: the heads of a span reader over an encoder's states, as arrays; what a reader of the shipped base changes in it.
Does not know: how PyTorch loads a network (`weights`). torch is imported only where it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from safetensors.numpy import load_file

from quoth.arrays import Floats
from quoth.encoders.encoder import Encoder, loaded, pair_tokenizer
from quoth.encoders.graph import change, graph_formats, in_pytorch, open_graph
from quoth.encoders.rounding import SCALE, Stored, names_of, whole
from quoth.hub import READER_FILE, WEIGHTS, ModelSource, locate
from quoth.reader.config import NEVER, UNREADABLE, ReaderConfig
from quoth.reader.spans import SpanReader, check_room
from quoth.text.tokenizer import FastTokenizer, PairArrays

_ENCODER, _WORDS = "encoder.", "embeddings.word_embeddings.weight"


def open_reader(
    name: str, *, device: str | None = None, dtype: str | None = None, base: str | None = None
) -> SpanReader:
    """A reader by shipped name or folder, ready to read.

    Raises ModelNotFoundError if a file is missing or damaged, InputError on an unknown device or dtype.
    """
    source = locate(name, ReaderConfig, base)
    formats = graph_formats(source.base, device, dtype)
    if formats and source.folder is not None and source.config.head == "ends" and (opened := _opened(source, formats)):
        return opened
    with in_pytorch(name, device, dtype):
        from quoth.encoders.transformer import device_named, placed
        from quoth.reader.weights import load_reader
    model, tokenizer = load_reader(source)
    placed(model.encoder, device, dtype)  # the heads stay in fp32: they cost nothing, and rounded scores tie
    return SpanReader(model.to(device_named(device)), tokenizer)


def _opened(source: ModelSource[ReaderConfig], formats: Sequence[str]) -> SpanReader | None:
    """The reader in ONNX Runtime; None if its weights do not fit, or in no format exact here. Raises ModelNotFoundError
    if a file cannot be read."""
    assert source.folder is not None
    folder = Path(source.base)
    stored = loaded(folder / WEIGHTS, load_file)
    own = loaded(source.folder / READER_FILE, load_file, *UNREADABLE)
    try:
        if not source.is_whole:
            _change(stored, own)
        encoder = open_graph(folder, stored, FastTokenizer(folder), formats)
        heads = {name: whole(own, name) for name in ("span.ends.weight", "span.ends.bias", "none.weight", "none.bias")}
    except (KeyError, ValueError):
        return None  # PyTorch says what is wrong
    if encoder is None:
        return None
    check_room(source.config, encoder.max_tokens, source.name)
    tokenizer = pair_tokenizer(encoder.tokenizer, encoder.config)
    return SpanReader(GraphReader(encoder, heads, source.config), tokenizer)


def _change(stored: Stored, own: Stored) -> None:
    """Give an encoder the weights of a reader, which are all but the word embeddings: what is rounded is a difference
    from the base's (`weights`). Raises KeyError if one lacks, ValueError if one has another shape."""
    for name in names_of(stored):
        if name == _WORDS:
            continue
        given = whole(own, f"{_ENCODER}{name}")
        if given.shape != stored[name].shape:
            raise ValueError(name)
        if f"{_ENCODER}{name}{SCALE}" in own:
            change(stored, name, given)
        else:
            stored[name] = given
            stored.pop(f"{name}{SCALE}", None)


class GraphReader:
    """A reader's network over an encoder in ONNX Runtime; `heads` are its weights besides the encoder's."""

    def __init__(self, encoder: Encoder, heads: Stored, config: ReaderConfig) -> None:
        self.encoder, self.config, self._heads = encoder, config, heads
        self.batch_tokens = encoder.batch_tokens

    def odds(self, batch: PairArrays, legal_BTW: NDArray[np.bool_]) -> Floats:
        """log odds of every span against "no answer here": [B, T, W]; `NEVER` if it is not legal.

        As `SpanReaderModel.forward` with the head `ends`.
        """
        states_BTD = self.encoder.states(batch)
        ends_BT2, none_B1 = self._head("span.ends", states_BTD), self._head("none", states_BTD[:, 0])
        padded_BT = np.pad(ends_BT2[:, :, 1], ((0, 0), (0, self.config.span_width - 1)))
        ends_BTW = sliding_window_view(padded_BT, self.config.span_width, axis=1)
        return np.where(legal_BTW, ends_BT2[:, :, :1] + ends_BTW - none_B1[:, :, None], np.float32(NEVER))

    def _head(self, name: str, states: Floats) -> Floats:
        """A linear layer of the last axis."""
        made: Floats = states @ self._heads[f"{name}.weight"].T + self._heads[f"{name}.bias"]
        return made
