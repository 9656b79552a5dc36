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

from quoth.arrays import Floats, Ints
from quoth.config import ModelConfig
from quoth.encoders.config import BertConfig
from quoth.encoders.encoder import loaded, pair_tokenizer
from quoth.encoders.graph import GraphEncoder, Layers, change, graph_formats, in_pytorch, open_graph
from quoth.encoders.rounding import SCALE, Stored, names_of, whole
from quoth.hub import READER_FILE, WEIGHTS, ModelSource, graph_file, locate
from quoth.reader.config import BRANCH, NEVER, UNREADABLE, ReaderConfig
from quoth.reader.spans import SpanReader, check_room
from quoth.text.tokenizer import FastTokenizer, PairArrays

_ENCODER, _WORDS = "encoder.", "embeddings.word_embeddings.weight"


def open_reader(
    name: str,
    *,
    device: str | None = None,
    dtype: str | None = None,
    base: str | None = None,
    beside: ModelConfig | None = None,
) -> SpanReader:
    """A reader by shipped name or folder, ready to read; if it is named by a model with the settings `beside`, that
    model's `base` is its own only if their settings name the same.

    Raises ModelNotFoundError if a file is missing or damaged, InputError on an unknown device or dtype.
    """
    if beside is not None and locate(name, ReaderConfig).config.base != beside.base:
        base = None
    source = locate(name, ReaderConfig, base)
    formats = graph_formats(source.base, device, dtype)
    if formats and source.folder is not None and source.config.head == "ends" and (opened := _opened(source, formats)):
        return opened
    with in_pytorch(name, device, dtype):
        from quoth.encoders.transformer import device_named, placed
        from quoth.reader.weights import load_reader
    model, tokenizer = load_reader(source)
    for layers in model.layers:
        placed(layers, device, dtype)  # the heads stay in fp32: they cost nothing, and rounded scores tie
    return SpanReader(model.to(device_named(device)), tokenizer)


def _opened(source: ModelSource[ReaderConfig], formats: Sequence[str]) -> SpanReader | None:
    """The reader in ONNX Runtime; None if its weights do not fit, or in no format exact here. Raises ModelNotFoundError
    if a file cannot be read."""
    assert source.folder is not None
    folder, config = Path(source.base), source.config
    stored = loaded(folder / WEIGHTS, load_file)
    given = loaded(source.folder / READER_FILE, load_file, *UNREADABLE)
    names = ("span.ends", "none", *(("pooler", "relevance", "evidence") if config.evidence else ()))
    base, cut, own = BertConfig.read(folder), None, None
    if config.evidence_layers and base is not None:
        cut = base.num_hidden_layers - config.evidence_layers, base.num_hidden_layers
        if not graph_file(folder, formats[0], cut).is_file():
            return None
    try:
        if not source.is_whole:
            _change(stored, given)
        heads = {f"{name}.{kind}": whole(given, f"{name}.{kind}") for name in names for kind in ("weight", "bias")}
        encoder = open_graph(folder, stored, FastTokenizer(folder), formats, depth=cut and cut[0])
        if encoder is not None and cut is not None:
            every = stored, _branch(given, cut[0])
            of_spans, of_evidence = (Layers(folder, weights, encoder.dtype, cut) for weights in every)
            own = of_spans, of_evidence
    except (KeyError, ValueError):
        return None  # PyTorch says what is wrong
    if encoder is None:
        return None
    check_room(config, encoder.max_tokens, source.name)
    tokenizer = pair_tokenizer(encoder.tokenizer, encoder.config)
    return SpanReader(GraphReader(encoder, heads, config, own), tokenizer)


def _branch(given: Stored, first: int) -> Stored:
    """The weights of the upper layers of evidence under the names that the encoder's layers have from `first` on."""
    parts = [name.split(".", 2) for name in given if name.startswith(f"{BRANCH}.")]
    return {
        f"encoder.layer.{first + int(number)}.{rest}": given[f"{BRANCH}.{number}.{rest}"] for _, number, rest in parts
    }


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
    """A reader's network over an encoder in ONNX Runtime; `heads` are its weights besides those of layers. Where spans
    and evidence have `own` upper layers each, in that order, `encoder` has the layers below."""

    def __init__(
        self, encoder: GraphEncoder, heads: Stored, config: ReaderConfig, own: tuple[Layers, Layers] | None = None
    ) -> None:
        self.encoder, self.config, self._heads, self._own = encoder, config, heads, own
        self.batch_tokens = encoder.batch_tokens

    def states(self, batch: PairArrays) -> Floats:
        """As `SpanModel.states`."""
        return self.encoder.states(batch)

    def odds(self, states_BTD: Floats, mask_BT: Ints, legal_BTW: NDArray[np.bool_]) -> Floats:
        """As `SpanModel.odds`, with the head `ends`."""
        if self._own is not None:
            states_BTD = self._own[0](states_BTD, mask_BT)
        ends_BT2, none_B1 = self._head("span.ends", states_BTD), self._head("none", states_BTD[:, 0])
        padded_BT = np.pad(ends_BT2[:, :, 1], ((0, 0), (0, self.config.span_width - 1)))
        ends_BTW = sliding_window_view(padded_BT, self.config.span_width, axis=1)
        return np.where(legal_BTW, ends_BT2[:, :, :1] + ends_BTW - none_B1[:, :, None], np.float32(NEVER))

    def marks(self, states_BTD: Floats, mask_BT: Ints) -> tuple[Floats, Floats]:
        """As `SpanModel.marks`."""
        if self._own is not None:
            states_BTD = self._own[1](states_BTD, mask_BT)
        relevance_B1 = self._head("relevance", np.tanh(self._head("pooler", states_BTD[:, 0])))
        return relevance_B1[:, 0], self._head("evidence", states_BTD)[..., 0]

    def _head(self, name: str, states: Floats) -> Floats:
        """A linear layer of the last axis."""
        made: Floats = states @ self._heads[f"{name}.weight"].T + self._heads[f"{name}.bias"]
        return made
