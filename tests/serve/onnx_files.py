"""Small networks as ONNX files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def write_linear(
    path: Path, weights: np.ndarray, *, softmax: bool = True, rows: str | int = "rows", extra: bool = False,
    free: tuple[str, ...] = (),
) -> Path:  # fmt: skip
    """A linear layer, with a softmax or without; with ``extra`` it also returns its logits.

    ``free`` are those of "features" and "classes" whose axis the file does not fix.
    """
    sizes = zip(("features", "classes"), weights.shape, strict=True)
    features, classes = (name if name in free else size for name, size in sizes)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["logits"])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [rows, classes])]
    if softmax:
        nodes.append(helper.make_node("Softmax", ["logits"], ["probabilities"], axis=-1))
        probabilities = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [rows, classes])
        outputs = [*(outputs if extra else []), probabilities]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, features])]
    graph = helper.make_graph(nodes, "linear", inputs, outputs, [numpy_helper.from_array(weights.astype("f"), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path
