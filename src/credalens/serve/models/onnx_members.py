"""ONNX files as members: each runs in ONNX Runtime, which executes a graph of known operators and loads no pickle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import count_text, needing
from credalens.guard import Guard
from credalens.prediction import CredalPrediction
from credalens.serve.content import ModelFile
from credalens.serve.models.member_outputs import wrap_members, wrap_options
from credalens.serve.models.served import ServedModel, TensorSpec
from credalens.serve.protocol.datatypes import DTYPES

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

    def inputs(self) -> tuple[TensorSpec, ...]:
        """What it takes, with -1 for sizes that are free."""
        return tuple(self._spec(tensor) for tensor in self.session.get_inputs())

    def _spec(self, tensor: Any) -> TensorSpec:
        if tensor.type not in DATATYPES:
            raise ValueError(
                f"{self.path}: input {tensor.name!r} is a {tensor.type}, which the protocol has no name for."
            )
        shape = tuple(size if isinstance(size, int) else -1 for size in tensor.shape)
        if not shape or shape[0] != -1:
            raise ValueError(
                f"{self.path}: input {tensor.name!r} has shape {list(tensor.shape)}, whose first axis must be free, since it "
                "holds the rows. Export the model with a dynamic batch axis."
            )
        return TensorSpec(tensor.name, (DATATYPES[tensor.type],), shape)

    def run(self, inputs: dict[str, NDArray], /) -> NDArray:
        """Its prediction for some rows."""
        try:
            return self.session.run([self.output.name], inputs)[0]
        except Exception as error:
            if type(error).__name__ not in (REFUSALS if self._has_free_sizes() else REFUSALS[:1]):
                raise
            raise ValueError(f"{self.path} refuses the inputs: {error}") from error

    def _has_free_sizes(self) -> bool:
        """Whether inputs have an axis whose size the file leaves open, besides the rows."""
        return any(-1 in spec.shape[1:] for spec in self.inputs())

    def classes(self) -> int | None:
        """How many classes it predicts: what the file says, else what a row of zeros shows; None where neither tells."""
        if len(self.output.shape) == 2 and isinstance(self.output.shape[1], int):
            return self.output.shape[1]
        if self._has_free_sizes():
            return None
        row = {x.name: np.zeros((1, *x.shape[1:]), DTYPES[x.datatypes[0]].newbyteorder("=")) for x in self.inputs()}
        try:
            return int(self.run(row).shape[-1])
        except Exception:  # a model may refuse zeros
            return None


def onnx_members(
    files: Sequence[str | os.PathLike[str] | ModelFile],
    guard: Guard | None = None,
    /,
    *,
    logits: bool = False,
    output: str | None = None,
    base: float | None = None,
    name: str = "model",
    version: str = "1",
) -> ServedModel:
    """Files with the same inputs, each of which predicts probabilities, or logits, rows x classes.

    ``output`` is the name of that prediction; it is not needed where a file has one output of floating-point numbers.
    """
    members = [load_member(x if isinstance(x, ModelFile) else ModelFile.read(x), output) for x in files]
    _check_guard(guard, len(members))
    inputs, classes = _common_inputs(members), _common_classes(members)
    options = wrap_options(guard, base)

    def predict(rows: dict[str, NDArray]) -> CredalPrediction:
        return wrap_members([member.run(rows) for member in members], logits=logits, **options)

    precision = "FP64" if _double(members) else "FP32"
    rest = {"float_datatype": precision, "guard": guard, "classes": classes}
    return ServedModel(name, version, "credalens_onnx", inputs, predict, **rest)  # type: ignore[arg-type]


def load_member(file: ModelFile, output: str | None = None, /) -> OnnxMember:
    """Load a file and find the output that is meant."""
    with file.opened() as model:
        try:
            session = onnxruntime.InferenceSession(model, _options(), providers=onnxruntime.get_available_providers())
        except Exception as error:
            raise ValueError(f"{file.path}: ONNX Runtime cannot load it ({error}).") from error
    return OnnxMember(file.path, session, _prediction_output(file.path, session.get_outputs(), output))


def _options() -> Any:
    """Threads of a member that has run do not spin, waiting for more work: they would take the cores from the next member."""
    options = onnxruntime.SessionOptions()
    for threads in ("intra_op", "inter_op"):
        options.add_session_config_entry(f"session.{threads}.allow_spinning", "0")
    return options


def _prediction_output(path: str, outputs: Sequence[Any], name: str | None) -> Any:
    tensors = [x for x in outputs if x.type in FLOATS and len(x.shape) in (0, 2)]
    chosen = [x for x in tensors if name in (None, x.name)]
    if len(chosen) != 1:
        listed = ", ".join(f"{x.name} {x.type} {x.shape}" for x in outputs)
        raise ValueError(
            f"{path}: expected one output of floating-point numbers, rows x classes{f', named {name}' if name else ''}; it has "
            f"{listed}. Name the right one with --output."
        )
    return chosen[0]


def _common_inputs(members: Sequence[OnnxMember]) -> tuple[TensorSpec, ...]:
    first, *rest = members
    for member in rest:
        if member.inputs() != first.inputs():
            raise ValueError(
                f"members must take the same inputs: {first.path} takes {_listed(first)}, {member.path} {_listed(member)}."
            )
    return first.inputs()


def _common_classes(members: Sequence[OnnxMember]) -> int | None:
    """The number of classes, as far as it is known: each file alone is right, together they would refuse every request."""
    numbers = {member.path: number for member in members if (number := member.classes()) is not None}
    if len(set(numbers.values())) > 1:
        listed = ", ".join(f"{path} predicts {number}" for path, number in numbers.items())
        raise ValueError(f"members must predict the same number of classes: {listed}.")
    number = next(iter(numbers.values()), None)
    if number is not None and number < 2:
        raise ValueError(f"members must predict at least two classes; {members[0].path} predicts {number}.")
    return number


def _listed(member: OnnxMember) -> str:
    return ", ".join(f"{spec.name} {spec.datatypes[0]} {list(spec.shape)}" for spec in member.inputs())


def _check_guard(guard: Guard | None, members: int) -> None:
    if guard is not None and guard.n_members != members:
        raise ValueError(
            f"the guard was fitted with {count_text(guard.n_members, 'member')} and there are {members}: intervals depend on "
            "their number, so that no promise would hold."
        )


def _double(members: Sequence[OnnxMember]) -> bool:
    return any(member.output.type == "tensor(double)" for member in members)
