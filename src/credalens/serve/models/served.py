"""ServedModel: a model behind the protocol, whatever it is made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray

from credalens.checks.options import count_text
from credalens.guard import Guard
from credalens.prediction import CredalPrediction
from credalens.serve.limits import Limits
from credalens.serve.protocol.datatypes import datatype_of
from credalens.serve.protocol.errors import RequestError

UNSENT: Final = re.compile(r"[/\x00-\x1f\x7f\ud800-\udfff]")
Predict = Callable[[dict[str, NDArray]], CredalPrediction]


@dataclass(frozen=True)
class TensorSpec:
    """Name, datatypes and shape of an input, for ``app(..., inputs=[...])``; -1 in the shape stands for any size.

    :ivar datatypes: those that are accepted, such as "FP32"; the first is shown in the metadata.

    >>> TensorSpec("pixels", ("FP32", "FP64"), (-1, 3, 32, 32)).metadata()
    {'name': 'pixels', 'datatype': 'FP32', 'shape': [-1, 3, 32, 32]}
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
    """A model as the server sees it: a function from arrays to a credal prediction, with its name, version and inputs.

    ``app`` makes one of a wrapper, a classifier or a function. Make one yourself only for options that ``app`` lacks.

    :ivar inputs: empty if the model accepts any input.
    :ivar predict: raises a RequestError, whose words the client gets, or a ValueError or TypeError, whose words stay in the
        log, for inputs that it refuses; a BadRowError for a bad row of a member.
    :ivar row_axis: the axis of rows, the same for every input.
    :ivar class_axis: the axis of classes, whose size is limited; None if inputs have none.
    :ivar quick_values: inputs with at most this many values are predicted in the event loop, without a thread.
    :ivar has_members: whether predictions keep their members.
    :ivar float_datatype: of the outputs, as shown in the metadata.
    :ivar wraps: name of the members' outputs in errors about their rows.
    :ivar guard: that decides about predictions, or None.
    :ivar classes: how many classes predictions have; None if that is not known before the first one.
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
    classes: int | None = None

    def __post_init__(self) -> None:
        """Refuse a name or a version that no path of a request can hold."""
        for what, value in (("name", self.name), ("version", self.version)):
            if not isinstance(value, str) or value in ("", ".", "..") or UNSENT.search(value):
                raise ValueError(
                    f"the model's {what} must be a string without '/' and control characters, and not empty, '.' or '..', "
                    f"since it is part of paths; got {value!r:.80}."
                )

    def check(self, inputs: dict[str, NDArray], limits: Limits, /) -> int:
        """Refuse inputs that the model does not take; returns the number of their rows."""
        if self.inputs:
            self._check_declared(inputs)
        rows = {name: self._rows(name, array) for name, array in inputs.items()}
        if len(set(rows.values())) != 1:
            raise RequestError(f"inputs must have the same number of rows; got {rows or 'no input'}.")
        (count,) = set(rows.values())
        if count > limits.rows:
            raise RequestError(
                f"input {next(iter(rows))!r} has {count_text(count, 'row')}; at most {limits.rows:,} are accepted."
            )
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
                    f"input {name!r} has {array.shape[self.class_axis]} classes; at most {most} are accepted."
                )
