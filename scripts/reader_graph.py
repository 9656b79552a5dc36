"""Write a reader's network as a graph for ONNX Runtime, `reader.onnx`, into its folder; needs `pip install onnx`.

    python scripts/reader_graph.py adapters/reader

The graph has no weights: it names those that are stored beside it, matrices in 8-bit integers with a scale per row. It
computes what `SpanReaderModel` does with the head `ends` over a BERT whose linear layers are `rounding.RoundedLinear`.
Its output `sums` is known: older processors do not add 8-bit products exactly.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from quoth.encoders.bert import BertConfig
from quoth.hub import GRAPH_FILE
from quoth.reader.config import ReaderConfig
from quoth.storage import read_json

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OPSET = 20
"""The first with Gelu."""


class Graph:
    """The nodes and values of a graph as they are added."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.values: list[Any] = []

    def node(self, kind: str, *inputs: str, **how: Any) -> str:
        """The name of a node's output."""
        return self.nodes_of(kind, 1, *inputs, **how)[0]

    def nodes_of(self, kind: str, count: int, *inputs: str, **how: Any) -> list[str]:
        """The names of a node's outputs."""
        names = [f"{kind}_{len(self.nodes)}_{number}" for number in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, names, **how))
        return names

    def value(self, array: Any) -> str:
        """The name of a constant."""
        name = f"value_{len(self.values)}"
        self.values.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def stored(self, name: str, kind: int, *shape: int) -> str:
        """The name of a weight that the session is given."""
        weight = TensorProto(name=name, data_type=kind, dims=shape, data_location=TensorProto.EXTERNAL)
        weight.external_data.add(key="location", value="weights")
        self.values.append(weight)
        return name


class ReaderGraph(Graph):
    """The parts of the network."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config, self.width = config, config.hidden_size
        self.last = self.value(np.array([-1]))
        self.floor, self.largest = self.value(np.float32(1e-12)), self.value(np.float32(127))
        self.middle, self.zero = self.value(np.float32(128)), self.value(np.uint8(128))

    def rows(self, name: str, ids: str, size: int) -> str:
        """The vectors of an embedding."""
        name = f"embeddings.{name}_embeddings.weight"
        whole = self.node("Gather", self.stored(name, TensorProto.INT8, size, self.width), ids)
        scale = self.node("Gather", self.stored(f"{name}.scale", TensorProto.FLOAT, size, 1), ids)
        return self.node("Mul", self.node("Cast", whole, to=TensorProto.FLOAT), scale)

    def norm(self, x: str, name: str) -> str:
        """A layer norm."""
        weights = [self.stored(f"{name}.{part}", TensorProto.FLOAT, self.width) for part in ("weight", "bias")]
        return self.node("LayerNormalization", x, *weights, epsilon=self.config.layer_norm_eps)

    def linear(self, x: str, inputs: int, outputs: int, *names: str) -> str:
        """Linear layers of the same input, one beside the other: inputs are rounded with a scale for each token.

        They are moved by 128, to where processors multiply them fastest; the product is told so.
        """
        largest = self.node("Max", self.node("ReduceMax", self.node("Abs", x), self.last), self.floor)
        scale = self.node("Div", largest, self.largest)
        moved = self.node("Add", self.node("Round", self.node("Div", x, scale)), self.middle)
        parts = [self.stored(f"{name}.weight", TensorProto.INT8, outputs, inputs) for name in names]
        scales = [self.stored(f"{name}.weight.scale", TensorProto.FLOAT, outputs, 1) for name in names]
        biases = [self.stored(f"{name}.bias", TensorProto.FLOAT, outputs) for name in names]
        weight = self.node("Transpose", self.node("Concat", *parts, axis=0), perm=[1, 0])
        rounded = self.node("Cast", moved, to=TensorProto.UINT8)
        product = self.node("Cast", self.node("MatMulInteger", rounded, weight, self.zero), to=TensorProto.FLOAT)
        scaled = self.node("Squeeze", self.node("Concat", *scales, axis=0), self.last)
        whole = self.node("Mul", self.node("Mul", product, scale), scaled)
        return self.node("Add", whole, self.node("Concat", *biases, axis=0))

    def head(self, x: str, name: str, outputs: int) -> str:
        """A linear layer in fp32."""
        weight = self.stored(f"{name}.weight", TensorProto.FLOAT, outputs, self.width)
        product = self.node("MatMul", x, self.node("Transpose", weight, perm=[1, 0]))
        return self.node("Add", product, self.stored(f"{name}.bias", TensorProto.FLOAT, outputs))

    def embedded(self) -> str:
        """The states before the first layer."""
        length = self.node("Gather", self.node("Shape", INPUTS[0]), self.value(np.int64(1)))
        places = self.node("Range", self.value(np.int64(0)), length, self.value(np.int64(1)))
        words = self.rows("word", INPUTS[0], self.config.vocab_size)
        placed = self.node("Add", words, self.rows("position", places, self.config.max_position_embeddings))
        kinds = self.rows("token_type", INPUTS[2], self.config.type_vocab_size)
        return self.norm(self.node("Add", placed, kinds), "embeddings.LayerNorm")

    def hidden(self) -> str:
        """What is added to attention: 0 for a token, a very small number for padding."""
        seen = self.node("Sub", self.node("Cast", INPUTS[1], to=TensorProto.FLOAT), self.value(np.float32(1)))
        added = self.node("Mul", seen, self.value(np.float32(1e30)))
        return self.node("Unsqueeze", added, self.value(np.array([1, 2])))

    def layer(self, x: str, hidden: str, prefix: str) -> str:
        """A layer of the encoder."""
        heads, width = self.config.num_attention_heads, self.width
        parts = (f"{prefix}.attention.self.{part}" for part in ("query", "key", "value"))
        by_head = self.value(np.array([0, 0, 3 * heads, width // heads]))
        joined = self.node("Reshape", self.linear(x, width, width, *parts), by_head)
        turned = self.node("Transpose", joined, perm=[0, 2, 1, 3])
        q, k, v = self.nodes_of("Split", 3, turned, self.value(np.array([heads] * 3)), axis=1)
        q = self.node("Mul", q, self.value(np.float32((width // heads) ** -0.5)))
        similar = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        share = self.node("Softmax", self.node("Add", similar, hidden))
        seen = self.node("Transpose", self.node("MatMul", share, v), perm=[0, 2, 1, 3])
        flat = self.node("Reshape", seen, self.value(np.array([0, 0, width])))
        attended = self.linear(flat, width, width, f"{prefix}.attention.output.dense")
        x = self.norm(self.node("Add", attended, x), f"{prefix}.attention.output.LayerNorm")
        inner = self.linear(x, width, self.config.intermediate_size, f"{prefix}.intermediate.dense")
        outer = self.linear(self.node("Gelu", inner), self.config.intermediate_size, width, f"{prefix}.output.dense")
        return self.norm(self.node("Add", outer, x), f"{prefix}.output.LayerNorm")


def model_of(config: BertConfig) -> Any:
    """The graph: ids, mask and types [B, T] in; `ends` [B, T, 2], `none` [B, 1] and `sums` out."""
    graph = ReaderGraph(config)
    x, hidden = graph.embedded(), graph.hidden()
    for number in range(config.num_hidden_layers):
        x = graph.layer(x, hidden, f"encoder.layer.{number}")
    first = graph.node("Gather", x, graph.value(np.int64(0)), axis=1)
    extreme = graph.value(np.full((4, 64), 255, np.uint8)), graph.value(np.full((64, 16), 127, np.int8))
    outputs: dict[str, tuple[str, int, list[Any]]] = {
        "ends": (graph.head(x, "span.ends", 2), TensorProto.FLOAT, ["B", "T", 2]),
        "none": (graph.head(first, "none", 1), TensorProto.FLOAT, ["B", 1]),
        "sums": (graph.node("MatMulInteger", *extreme, graph.zero), TensorProto.INT32, [4, 16]),
    }
    named = [helper.make_node("Identity", [inner], [name]) for name, (inner, *_) in outputs.items()]
    given = [helper.make_tensor_value_info(name, TensorProto.INT64, ["B", "T"]) for name in INPUTS]
    made = [helper.make_tensor_value_info(name, kind, shape) for name, (_, kind, shape) in outputs.items()]
    whole = helper.make_graph([*graph.nodes, *named], "reader", given, made, graph.values)
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of a reader that is stored whole")
    folder = parser.parse_args().folder
    config = BertConfig.read(folder)
    settings = ReaderConfig.from_dict(read_json(folder / "quoth.json"))
    if config is None or config.model_type != "bert" or config.hidden_act != "gelu" or settings.head != "ends":
        parser.error(f"{folder} must be a reader with the head `ends` over a BERT with gelu")
    (folder / GRAPH_FILE).write_bytes(model_of(config).SerializeToString())


if __name__ == "__main__":
    main()
