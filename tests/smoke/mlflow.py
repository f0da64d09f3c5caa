"""The extra ``mlflow``: two ONNX files saved as one model, and loaded again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

import mlflow.pyfunc
import numpy as np

from credalens.mlflow import save_model


def field(number: int, value: bytes | int) -> bytes:
    """A field of a protocol buffer: a number below 128, or text and messages shorter than that."""
    return bytes([number << 3, value]) if isinstance(value, int) else bytes([number << 3 | 2, len(value)]) + value


def one_operator(path: Path, operator: bytes) -> Path:
    """An ONNX file with one operator from logits (rows, 3) to logits (rows, 3)."""
    shape = field(1, field(2, b"rows")) + field(1, field(1, 3))
    tensor = field(2, field(1, field(1, 1) + field(2, shape)))
    node = field(1, b"x") + field(2, b"y") + field(4, operator)
    graph = field(1, node) + field(2, b"g") + field(11, field(1, b"x") + tensor) + field(12, field(1, b"y") + tensor)
    path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(1, b"") + field(2, 17)))
    return path


if __name__ == "__main__":
    rows = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        files = [one_operator(Path(folder, name.decode()), name) for name in (b"Neg", b"Abs")]
        save_model(files, Path(folder, "model"), logits=True, input_example=rows)
        predicted = mlflow.pyfunc.load_model(str(Path(folder, "model"))).predict(rows)
    assert len(predicted) == 5
    assert (predicted["epistemic"] > 0).any()
