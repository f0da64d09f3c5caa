"""Networks as ONNX files, five with random weights: the demo's, and a ResNet-18 with folded batch normalisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MEMBERS = 5


@dataclass
class Graph:
    """Nodes and weights of one network; every method appends a node and returns the name of its output."""

    seed: int
    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def add(self, operator: str, inputs: list[str], **attributes: Any) -> str:
        """Any operator with one output."""
        name = f"{operator}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def weight(self, *shape: int) -> str:
        """Of a scale that keeps the size of what passes through."""
        fan_in = int(np.prod(shape[1:])) or 1
        values = self._random.normal(0, np.sqrt(2 / fan_in), shape).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, f"weight{len(self.weights)}"))
        return str(self.weights[-1].name)

    def linear(self, x: str, wide: int, out: int) -> str:
        """A layer with its bias."""
        return self.add("Gemm", [x, self.weight(out, wide), self.weight(out)], transB=1)

    def convolution(self, x: str, wide: int, out: int, size: int, stride: int) -> str:
        """A convolution with its bias, which holds the batch normalisation."""
        options = {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [size // 2] * 4}
        return self.add("Conv", [x, self.weight(out, wide, size, size), self.weight(out)], **options)

    def block(self, x: str, wide: int, out: int, stride: int) -> str:
        """Two convolutions and what is added to them."""
        inner = self.add("Relu", [self.convolution(x, wide, out, 3, stride)])
        inner = self.convolution(inner, out, out, 3, 1)
        beside = x if (wide, stride) == (out, 1) else self.convolution(x, wide, out, 1, stride)
        return self.add("Relu", [self.add("Add", [inner, beside])])

    def save(self, path: Path, shape: tuple[int, ...], logits: str, classes: int) -> None:
        """With a softmax behind the logits, and any number of rows."""
        probabilities = self.add("Softmax", [logits], axis=-1)
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", *shape])]
        outputs = [helper.make_tensor_value_info(probabilities, TensorProto.FLOAT, ["rows", classes])]
        graph = helper.make_graph(self.nodes, path.stem, inputs, outputs, self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def demo_network(graph: Graph, classes: int) -> str:
    """As those of `credalens demo`: two hidden layers of 64 units."""
    hidden = "x"
    for _ in range(2):
        hidden = graph.add("Relu", [graph.linear(hidden, 64, 64)])
    return graph.linear(hidden, 64, classes)


def resnet18(graph: Graph, classes: int) -> str:
    """Of He et al. (2016), 11.2 million weights with 100 classes."""
    x = graph.add("Relu", [graph.convolution("x", 3, 64, 7, 2)])
    x = graph.add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for wide, out, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
        x = graph.block(graph.block(x, wide, out, stride), out, out, 1)
    pooled = graph.add("Flatten", [graph.add("GlobalAveragePool", [x])])
    return graph.linear(pooled, 512, classes)


def write_members(
    folder: Path, network: Callable[[Graph, int], str], shape: tuple[int, ...], classes: int
) -> tuple[str, ...]:
    """The paths of five files that differ in their seed."""
    paths = []
    for seed in range(MEMBERS):
        path, graph = folder / f"{network.__name__}{seed}.onnx", Graph(seed)
        graph.save(path, shape, network(graph, classes), classes)
        paths.append(str(path))
    return tuple(paths)
