"""ServedModel: a model behind the protocol, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from credalens.guard import Guard
from credalens.prediction import CredalPrediction
from credalens.serve.limits import Limits
from credalens.serve.protocol.datatypes import datatype_of
from credalens.serve.protocol.errors import RequestError

Predict = Callable[[dict[str, NDArray]], CredalPrediction]


@dataclass(frozen=True)
class TensorSpec:
    """An input: its name, the datatypes it may have, and its shape, with -1 for any number.

    :ivar datatypes: the first is the one that the metadata show.
    """

    name: str
    datatypes: tuple[str, ...]
    shape: tuple[int, ...]

    def metadata(self) -> dict[str, Any]:
        """As the protocol shows it."""
        return {"name": self.name, "datatype": self.datatypes[0], "shape": list(self.shape)}

    def check(self, array: NDArray, /) -> None:
        """Refuse a tensor of another datatype or shape."""
        if (datatype := datatype_of(array)) not in self.datatypes:
            raise RequestError(f"input {self.name!r} must be {' or '.join(self.datatypes)}; got {datatype}.")
        pairs = zip(array.shape, self.shape, strict=False)
        if array.ndim != len(self.shape) or any(-1 != wanted != size for size, wanted in pairs):
            raise RequestError(
                f"input {self.name!r} must have shape {list(self.shape)}, -1 for any number; got {list(array.shape)}."
            )


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A name, a version, the inputs, and a function from inputs to a credal prediction of their rows.

    :ivar inputs: empty where the model takes what it is given.
    :ivar predict: raises a ValueError or TypeError for inputs that it cannot take, a BadRowError where a member's row is bad.
    :ivar row_axis: along which the rows of every input lie.
    :ivar class_axis: of every input, where it has one that limits apply to.
    :ivar quick_values: inputs of at most so many values are predicted at once, in the event loop.
    :ivar has_members: whether its predictions keep their members.
    :ivar float_datatype: of its outputs, as the metadata show it.
    :ivar wraps: what it makes credal, for errors about its rows.
    :ivar guard: that decides about its predictions, where there is one.
    """

    name: str
    version: str
    platform: str
    inputs: tuple[TensorSpec, ...]
    predict: Predict
    row_axis: int = 0
    class_axis: int | None = None
    quick_values: int = 0
    has_members: bool = True
    float_datatype: str = "FP32"
    guard: Guard | None = None
    wraps: str = "the members' output"

    def check(self, inputs: dict[str, NDArray], limits: Limits, /) -> int:
        """Refuse inputs that the model does not take; returns the number of their rows."""
        if self.inputs:
            self._check_declared(inputs)
        rows = {name: self._rows(name, array) for name, array in inputs.items()}
        if len(set(rows.values())) != 1:
            raise RequestError(f"inputs must have the same number of rows; got {rows or 'no input'}.")
        (count,) = set(rows.values())
        if count > limits.rows:
            raise RequestError(f"input {next(iter(rows))!r} has {count} rows; at most {limits.rows} are taken.")
        self._check_classes(inputs, limits.classes)
        return count

    def _check_declared(self, inputs: dict[str, NDArray]) -> None:
        names = [spec.name for spec in self.inputs]
        if set(inputs) != set(names):
            raise RequestError(f"model {self.name!r} takes the inputs {names}; got {list(inputs)}.")
        for spec in self.inputs:
            spec.check(inputs[spec.name])

    def _rows(self, name: str, array: NDArray) -> int:
        if array.ndim <= self.row_axis:
            raise RequestError(f"input {name!r} has no axis of rows, axis {self.row_axis}; got {list(array.shape)}.")
        return array.shape[self.row_axis]

    def _check_classes(self, inputs: dict[str, NDArray], most: int) -> None:
        if self.class_axis is None:
            return
        for name, array in inputs.items():
            if array.shape[self.class_axis] > most:
                raise RequestError(
                    f"input {name!r} has {array.shape[self.class_axis]} classes; at most {most} are taken."
                )
