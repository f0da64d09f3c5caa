"""ONNX files as members: each runs in ONNX Runtime, which executes a graph of known operators and loads no pickle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import count_text, needing
from credalens.core.recalibration import Recalibration
from credalens.guard import Guard
from credalens.prediction import CredalPrediction, wrap_members
from credalens.serve.models import Inputs, ServedModel, TensorSpec, wrap_options
from credalens.serve.protocol import DTYPES
from credalens.serve.settings import ModelFile

with needing("onnxruntime", part="serving ONNX files", extra="serve"):
    import onnxruntime

onnxruntime.disable_telemetry_events()  # also of a runtime that was imported before, and on Windows, which has no variable

FLOATS: Final = {"tensor(float16)": "FP16", "tensor(float)": "FP32", "tensor(double)": "FP64"}
DATATYPES: Final = {
    **FLOATS,
    **{f"tensor({sign}int{bits})": f"{sign}int{bits}".upper() for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "tensor(bool)": "BOOL",
    "tensor(string)": "BYTES",
}
REFUSALS: Final = ("InvalidArgument", "Fail", "RuntimeException")
"""Names of ONNX Runtime's errors, which have no classes of their own. Operators raise the last two for sizes that do not fit,
which the runtime could not check where a file leaves them open."""


@dataclass(frozen=True, eq=False)
class OnnxMember:
    """A loaded file and the output that holds its prediction."""

    path: str
    session: Any
    output: Any

    @classmethod
    def load(cls, file: ModelFile, output: str | None, /) -> OnnxMember:
        """Load a file and find the output that is meant."""
        options = onnxruntime.SessionOptions()
        for threads in ("intra_op", "inter_op"):  # spinning, those of one member take the cores from the next
            options.add_session_config_entry(f"session.{threads}.allow_spinning", "0")
        with file.opened() as model:
            try:
                session = onnxruntime.InferenceSession(model, options, providers=onnxruntime.get_available_providers())
            except Exception as error:
                raise ValueError(f"{file.path}: ONNX Runtime cannot load it ({error}).") from error
        outputs = session.get_outputs()
        fitting = [x for x in outputs if x.type in FLOATS and len(x.shape) in (0, 2) and output in (None, x.name)]
        if len(fitting) != 1:
            listed = ", ".join(f"{x.name} {x.type} {x.shape}" for x in outputs)
            raise ValueError(
                f"{file.path}: expected one output of floating-point numbers, rows x classes"
                f"{f', named {output}' if output else ''}; it has {listed}. Name the right one with --output."
            )
        return cls(file.path, session, fitting[0])

    @cached_property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The inputs of the file, with -1 for sizes that are free."""
        specs = []
        for tensor in self.session.get_inputs():
            if tensor.type not in DATATYPES:
                raise ValueError(
                    f"{self.path}: input {tensor.name!r} is a {tensor.type}, which the protocol has no name for."
                )
            shape = tuple(size if isinstance(size, int) else -1 for size in tensor.shape)
            if not shape or shape[0] != -1:
                raise ValueError(
                    f"{self.path}: input {tensor.name!r} has shape {list(tensor.shape)}, whose first axis must be free, since "
                    "it holds the rows. Export the model with a dynamic batch axis."
                )
            specs.append(TensorSpec(tensor.name, (DATATYPES[tensor.type],), shape))
        return tuple(specs)

    @property
    def _has_free_sizes(self) -> bool:
        """Whether inputs have an axis whose size the file leaves open, besides the rows."""
        return any(-1 in spec.shape[1:] for spec in self.inputs)

    def run(self, inputs: Inputs, /) -> NDArray:
        """Predict some rows."""
        try:
            return self.session.run([self.output.name], inputs)[0]
        except Exception as error:
            if type(error).__name__ not in (REFUSALS if self._has_free_sizes else REFUSALS[:1]):
                raise
            raise ValueError(f"{self.path} refuses the inputs: {error}") from error

    def classes(self) -> int | None:
        """The number of classes that the file declares, else that a row of zeros shows; None if neither tells."""
        if len(self.output.shape) == 2 and isinstance(self.output.shape[1], int):
            return self.output.shape[1]
        if self._has_free_sizes:
            return None
        row = {x.name: np.zeros((1, *x.shape[1:]), DTYPES[x.datatypes[0]].newbyteorder("=")) for x in self.inputs}
        try:
            return int(self.run(row).shape[-1])
        except Exception:  # a model may refuse zeros
            return None


def onnx_members(
    files: Sequence[str | os.PathLike[str] | ModelFile], guard: Guard | None = None, /, *, logits: bool = False,
    output: str | None = None, base: float | None = None, recalibration: Recalibration | None = None, name: str = "model",
    version: str = "1",
) -> ServedModel:  # fmt: skip
    """Files with the same inputs, each of which predicts probabilities, or logits, rows x classes.

    ``output`` is the name of that prediction; it is not needed where a file has one output of floating-point numbers.
    """
    members = [OnnxMember.load(x if isinstance(x, ModelFile) else ModelFile.read(x), output) for x in files]
    if guard is not None and guard.n_members != len(members):
        raise ValueError(
            f"the guard was fitted with {count_text(guard.n_members, 'member')} and there are {len(members)}: intervals depend "
            "on their number, so that no promise would hold."
        )
    first, *rest = members
    for member in rest:
        if member.inputs != first.inputs:
            ours, theirs = (
                ", ".join(f"{spec.name} {spec.datatypes[0]} {list(spec.shape)}" for spec in x.inputs)
                for x in (first, member)
            )
            raise ValueError(f"members must take the same inputs: {first.path} takes {ours}, {member.path} {theirs}.")
    numbers = {member.path: number for member in members if (number := member.classes()) is not None}
    if len(set(numbers.values())) > 1:  # each file alone is right, together they would refuse every request
        listed = ", ".join(f"{path} predicts {number}" for path, number in numbers.items())
        raise ValueError(f"members must predict the same number of classes: {listed}.")
    classes = next(iter(numbers.values()), None)
    if classes is not None and classes < 2:
        raise ValueError(f"members must predict at least two classes; {first.path} predicts {classes}.")
    wrapping = wrap_options(guard, base, recalibration)

    def predict(rows: Inputs) -> CredalPrediction:
        return wrap_members([member.run(rows) for member in members], logits=logits, **wrapping)

    precision = "FP64" if any(member.output.type == "tensor(double)" for member in members) else "FP32"
    options: Any = {"float_datatype": precision, "guard": guard, "classes": classes}
    return ServedModel(name, version, "credalens_onnx", first.inputs, predict, **options)
