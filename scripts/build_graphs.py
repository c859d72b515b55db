"""Build `minilm.onnx` and `e5.onnx`: the computations of the embedders on this machine (BERT) without their weights.

Usage: python scripts/build_graphs.py [FOLDER]

Needs the development package `onnx`; running a graph does not. Weights are initialisers whose data is declared
external; dtrag.adapters.embedders.bert gives them to onnxruntime by these names. The operators of `com.microsoft`
are onnxruntime's own and run on every CPU it runs on.

Measured and rejected: SkipLayerNormalization (4 ms for what Add and LayerNormalization do in 1 ms); one scale per
column for the second feed-forward matrix (its input has outliers: cosine to float32 .995 against .997); blocks for all
matrices (cosine .999, but 20 ms a text of 128 tokens against 13.6).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dtrag.adapters.embedders import bert
from dtrag.adapters.embedders.bert import MiniLM
from dtrag.adapters.embedders.e5 import E5

HIDDEN, INNER, HEADS = 384, 1536, 12
EPSILON = 1e-12
OURS = "com.microsoft"
GRAPHS = (MiniLM.graph, E5.graph)


class GraphBuilder:
    """Collects nodes and weightless initialisers; every method returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def node(self, kind: str, inputs: list[str], output: str, domain: str = "", **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, domain=domain, **attributes))
        return output

    def weight(self, name: str, shape: list[int], kind: int = TensorProto.FLOAT) -> str:
        tensor = onnx.TensorProto(
            name=name, dims=shape, data_type=kind, data_location=onnx.TensorProto.DataLocation.EXTERNAL
        )
        tensor.external_data.add(key="location", value="given-by-the-embedder")
        self.initializers.append(tensor)
        return name

    def constant(self, name: str, values: list[int]) -> str:
        self.initializers.append(numpy_helper.from_array(np.array(values, dtype=np.int64), name))
        return name

    def by_column(self, x: str, name: str, inputs: int, outputs: int) -> str:
        """x @ weight + bias in int8, with one scale per column of the weight and one for x."""
        weight = self.weight(f"{name}.weight", [inputs, outputs], TensorProto.INT8)
        scale = self.weight(f"{name}.weight.scale", [outputs])
        bias = self.weight(f"{name}.bias", [outputs])
        return self.node("DynamicQuantizeMatMul", [x, weight, scale, "", bias], f"{name}.out", OURS)

    def by_block(self, x: str, name: str, inputs: int, outputs: int) -> str:
        """x @ weight + bias in int8, with one scale per block of inputs, in the weight and in each row of x."""
        blocks = inputs // bert.BLOCK
        weight = self.weight(f"{name}.weight", [outputs, blocks, bert.BLOCK], TensorProto.UINT8)
        scale = self.weight(f"{name}.weight.scale", [outputs * blocks])
        bias = self.weight(f"{name}.bias", [outputs])
        tensors = [x, weight, scale, "", "", bias]
        sizes = {"K": inputs, "N": outputs, "bits": 8, "block_size": bert.BLOCK}
        return self.node("MatMulNBits", tensors, f"{name}.out", OURS, accuracy_level=4, **sizes)

    def norm(self, x: str, name: str) -> str:
        tensors = [x, self.weight(f"{name}.weight", [HIDDEN]), self.weight(f"{name}.bias", [HIDDEN])]
        return self.node("LayerNormalization", tensors, f"{name}.out", axis=-1, epsilon=EPSILON)


def embeddings(graph: GraphBuilder, word_rows: int | None) -> str:
    """Words plus positions, normalised, shape (1, tokens, 384). A table of words is float16 in memory."""
    words = "tokens"
    if word_rows is not None:
        table = graph.weight("embeddings.word_embeddings.weight", [word_rows, HIDDEN], TensorProto.FLOAT16)
        rows = graph.node("Gather", [table, "tokens"], "words.half")
        words = graph.node("Cast", [rows], "words", to=TensorProto.FLOAT)
    length = graph.node("Shape", ["tokens"], "length", start=1, end=2)
    positions = graph.weight("positions", [bert.MAX_TOKENS, HIDDEN])
    here = graph.node("Slice", [positions, graph.constant("first", [0]), length, "first"], "positions.here")
    return graph.norm(graph.node("Add", [words, here], "embeddings.sum"), "embeddings.LayerNorm")


def layer(graph: GraphBuilder, number: int, x: str, *, qkv_by_block: bool) -> str:
    """One block of BERT: attention, feed-forward with the exact (erf) GELU, each added to its input and normalised."""
    here = f"encoder.layer.{number}."
    project = graph.by_block if qkv_by_block else graph.by_column
    qkv = project(x, f"{here}attention.self.qkv", HIDDEN, 3 * HIDDEN)
    parts = [f"{here}{part}" for part in ("query", "key", "value")]
    graph.nodes.append(helper.make_node("Split", [qkv], parts, name=f"{here}split", axis=-1, num_outputs=3))
    attention = graph.node("MultiHeadAttention", parts, f"{here}attention", OURS, num_heads=HEADS)
    dense = graph.by_column(attention, f"{here}attention.output.dense", HIDDEN, HIDDEN)
    x = graph.norm(graph.node("Add", [dense, x], f"{here}attention.sum"), f"{here}attention.output.LayerNorm")
    inner = graph.by_column(x, f"{here}intermediate.dense", HIDDEN, INNER)
    dense = graph.by_block(graph.node("Gelu", [inner], f"{here}gelu"), f"{here}output.dense", INNER, HIDDEN)
    return graph.norm(graph.node("Add", [dense, x], f"{here}sum"), f"{here}output.LayerNorm")


def build(parts: bert.Graph) -> bytes:
    """The model file: `tokens` (1, tokens) in, int64, or float32 rows of words; `vectors` float32 (1, 384) out.

    A vector is the mean of the last layer, of unit length.
    """
    graph = GraphBuilder()
    x = embeddings(graph, parts.word_rows)
    for number in range(parts.layers):
        x = layer(graph, number, x, qkv_by_block=parts.qkv_by_block)
    mean = graph.node("ReduceMean", [x, graph.constant("axis", [1])], "mean", keepdims=0)
    graph.node("LpNormalization", [mean], "vectors", axis=-1, p=2)
    if parts.word_rows is None:
        tokens = helper.make_tensor_value_info("tokens", TensorProto.FLOAT, [1, "length", HIDDEN])
    else:
        tokens = helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, "length"])
    vectors = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, [1, HIDDEN])
    body = helper.make_graph(graph.nodes, parts.file, [tokens], [vectors], graph.initializers)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(OURS, 1)]
    model = helper.make_model(body, opset_imports=opsets, ir_version=9, producer_name="dtrag")
    return bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(bert.__file__).parent
    for parts in GRAPHS:
        output = folder / parts.file
        output.write_bytes(build(parts))
        print(f"{output}: {output.stat().st_size} bytes")
