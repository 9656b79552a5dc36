"""Write an encoder's network as graphs for ONNX Runtime into its folder; needs `pip install onnx`.

    python recipes/encoder_graph.py adapters/base-mini adapters/reader
    python recipes/encoder_graph.py adapters/reader --cut 8

There are two, `int8.onnx` and `fp32.onnx`. They have no weights: they name those that `encoders.graph` gives them. Both
compute what `BertEncoder` does from the sum of the embeddings on, the first one with linear layers as
`bert.RoundedLinear` has them. Its output `sums` is known: older processors do not add 8-bit products exactly. With
`--cut` there are two of each: up to that layer, and from it on.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from quoth.encoders.config import BertConfig
from quoth.hub import GRAPH_FORMATS, graph_file

INPUTS = ("embedded", "attention_mask")
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


class EncoderGraph(Graph):
    """The parts of the network, in fp32."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config, self.width = config, config.hidden_size

    def norm(self, x: str, name: str) -> str:
        """A layer norm."""
        weights = [self.stored(f"{name}.{part}", TensorProto.FLOAT, self.width) for part in ("weight", "bias")]
        return self.node("LayerNormalization", x, *weights, epsilon=self.config.layer_norm_eps)

    def linear(self, x: str, inputs: int, outputs: int, *names: str) -> str:
        """Linear layers of the same input, one beside the other."""
        weight = self.joined(TensorProto.FLOAT, (outputs, inputs), names, ".weight")
        return self.node("Gemm", x, weight, self.joined(TensorProto.FLOAT, (outputs,), names, ".bias"), transB=1)

    def joined(self, kind: int, shape: tuple[int, ...], names: Sequence[str], part: str) -> str:
        """A part of several layers, one below the other."""
        return self.node("Concat", *(self.stored(f"{name}{part}", kind, *shape) for name in names), axis=0)

    def hidden(self) -> str:
        """What is added to attention: 0 for a token, a very small number for padding."""
        seen = self.node("Sub", self.node("Cast", INPUTS[1], to=TensorProto.FLOAT), self.value(np.float32(1)))
        added = self.node("Mul", seen, self.value(np.float32(1e30)))
        return self.node("Unsqueeze", added, self.value(np.array([1, 2])))

    def layer(self, x: str, shape: str, hidden: str, prefix: str) -> str:
        """A layer of the encoder, of all tokens one below the other [BT, D]; `shape` is [B, T]."""
        heads, width = self.config.num_attention_heads, self.width
        parts = (f"{prefix}.attention.self.{part}" for part in ("query", "key", "value"))
        by_head = self.node("Concat", shape, self.value(np.array([3 * heads, width // heads])), axis=0)
        joined = self.node("Reshape", self.linear(x, width, width, *parts), by_head)
        turned = self.node("Transpose", joined, perm=[0, 2, 1, 3])
        q, k, v = self.nodes_of("Split", 3, turned, self.value(np.array([heads] * 3)), axis=1)
        q = self.node("Mul", q, self.value(np.float32((width // heads) ** -0.5)))
        similar = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        share = self.node("Softmax", self.node("Add", similar, hidden))
        seen = self.node("Transpose", self.node("MatMul", share, v), perm=[0, 2, 1, 3])
        attended = self.linear(self.flat(seen), width, width, f"{prefix}.attention.output.dense")
        x = self.norm(self.node("Add", attended, x), f"{prefix}.attention.output.LayerNorm")
        inner = self.linear(x, width, self.config.intermediate_size, f"{prefix}.intermediate.dense")
        outer = self.linear(self.node("Gelu", inner), self.config.intermediate_size, width, f"{prefix}.output.dense")
        return self.norm(self.node("Add", outer, x), f"{prefix}.output.LayerNorm")

    def flat(self, x: str) -> str:
        """All tokens one below the other: [BT, D]."""
        return self.node("Reshape", x, self.value(np.array([-1, self.width])))


class RoundedGraph(EncoderGraph):
    """The same in 8-bit integers."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.last = self.value(np.array([-1]))
        self.floor, self.largest = self.value(np.float32(1e-12)), self.value(np.float32(127))
        self.zero = self.value(np.uint8(128))

    def linear(self, x: str, inputs: int, outputs: int, *names: str) -> str:
        """As above; inputs are rounded with a scale for each token.

        They are moved by 128, to where processors multiply them fastest; the product is told so.
        """
        largest = self.node("Max", self.node("ReduceMax", self.node("Abs", x), self.last, keepdims=0), self.floor)
        scale = self.node("Div", largest, self.largest)
        moved_by = self.node("Expand", self.zero, self.node("Shape", scale))
        rounded = self.node("QuantizeLinear", x, scale, moved_by, axis=0)
        weight = self.node("Transpose", self.joined(TensorProto.INT8, (outputs, inputs), names, ".weight"), perm=[1, 0])
        scales = self.node("Squeeze", self.joined(TensorProto.FLOAT, (outputs, 1), names, ".weight.scale"), self.last)
        product = self.node("Cast", self.node("MatMulInteger", rounded, weight, self.zero), to=TensorProto.FLOAT)
        whole = self.node("Mul", self.node("Mul", product, self.node("Unsqueeze", scale, self.last)), scales)
        return self.node("Add", whole, self.joined(TensorProto.FLOAT, (outputs,), names, ".bias"))

    def sums(self) -> str:
        """A product whose sums are as large as they can be: 64 · 127 · 127."""
        extreme = self.value(np.full((4, 64), 255, np.uint8)), self.value(np.full((64, 16), 127, np.int8))
        return self.node("MatMulInteger", *extreme, self.zero)


def model_of(config: BertConfig, dtype: str, layers: tuple[int, int] | None = None) -> Any:
    """The graph of all layers, or from one up to another: the sum of the embeddings, or the states before the first
    layer, [B, T, D] and the mask [B, T] in; `states` [B, T, D], and `sums`, out."""
    first, last = layers or (0, config.num_hidden_layers)
    graph = RoundedGraph(config) if dtype == "int8" else EncoderGraph(config)
    x, shape, hidden = graph.flat(INPUTS[0]), graph.node("Shape", INPUTS[1]), graph.hidden()
    if first == 0:
        x = graph.norm(x, "embeddings.LayerNorm")
    for number in range(first, last):
        x = graph.layer(x, shape, hidden, f"encoder.layer.{number}")
    x = graph.node("Reshape", x, graph.node("Shape", INPUTS[0]))
    states = ["B", "T", config.hidden_size]
    outputs: dict[str, tuple[str, int, list[Any]]] = {"states": (x, TensorProto.FLOAT, states)}
    if isinstance(graph, RoundedGraph):
        outputs["sums"] = (graph.sums(), TensorProto.INT32, [4, 16])
    named = [helper.make_node("Identity", [inner], [name]) for name, (inner, *_) in outputs.items()]
    given = [
        helper.make_tensor_value_info(INPUTS[0], TensorProto.FLOAT, states),
        helper.make_tensor_value_info(INPUTS[1], TensorProto.INT64, states[:2]),
    ]
    made = [helper.make_tensor_value_info(name, kind, shape) for name, (_, kind, shape) in outputs.items()]
    whole = helper.make_graph([*graph.nodes, *named], "encoder", given, made, graph.values)
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="+", help="of a BERT with gelu")
    parser.add_argument("--cut", type=int, help="write graphs of the layers below this one and from it on")
    given = parser.parse_args()
    for folder in given.folder:
        config = BertConfig.read(folder)
        if config is None or config.model_type != "bert" or config.hidden_act != "gelu":
            parser.error(f"{folder} must have a BERT with gelu")
        cuts = ((0, given.cut), (given.cut, config.num_hidden_layers)) if given.cut else (None,)
        for dtype, layers in product(GRAPH_FORMATS, cuts):
            graph_file(folder, dtype, layers).write_bytes(model_of(config, dtype, layers).SerializeToString())


if __name__ == "__main__":
    main()
