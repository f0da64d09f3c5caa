"""ServedModel: a model behind the protocol, and those that only do the credal part or call a model in Python."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from numpy.typing import NDArray

from credalens.checks.members import BadRowError
from credalens.checks.options import check_base, count_text
from credalens.core.recalibration import Recalibration, check_recalibration
from credalens.guard import Guard
from credalens.prediction import CredalPrediction, wrap_members
from credalens.serve.protocol import FLOATS, RequestError, datatype_of
from credalens.serve.settings import Limits

UNSENT: Final = re.compile(r"[/\x00-\x1f\x7f\ud800-\udfff]")
QUICK_VALUES: Final = 4096  # `wrap` takes less than a millisecond for them
Inputs = dict[str, NDArray]
Predict = Callable[[Inputs], CredalPrediction]


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
        """The input as the protocol describes it."""
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
        """Refuse a name or a version that no path of a request can hold, and a guard of other classes."""
        for what, value in (("name", self.name), ("version", self.version)):
            if not isinstance(value, str) or value in ("", ".", "..") or UNSENT.search(value):
                raise ValueError(
                    f"the model's {what} must be a string without '/' and control characters, and not empty, '.' or '..', "
                    f"since it is part of paths; got {value!r:.80}."
                )
        if self.guard is not None and self.classes not in (None, self.guard.classes):
            raise ValueError(f"the guard is for {self.guard.classes} classes; the model has {self.classes}.")

    def check(self, inputs: Inputs, limits: Limits, /) -> int:
        """Refuse inputs that the model does not take, or too many of them; returns the number of their rows."""
        if self.inputs:
            names = [spec.name for spec in self.inputs]
            if set(inputs) != set(names):
                raise RequestError(f"model {self.name!r} takes the inputs {names}; got {list(inputs)}.")
            for spec in self.inputs:
                spec.check(inputs[spec.name])
        rows = {}
        for name, array in inputs.items():
            if array.ndim <= self.row_axis:
                axis, got = self.row_axis, list(array.shape)
                raise RequestError(f"input {name!r} has no axis of rows, axis {axis}; got {got}.")
            rows[name] = array.shape[self.row_axis]
        if len(set(rows.values())) != 1:
            raise RequestError(f"inputs must have the same number of rows; got {rows or 'no input'}.")
        name, count = next(iter(rows.items()))
        if count > limits.rows:
            raise RequestError(f"input {name!r} has {count_text(count, 'row')}; at most {limits.rows:,} are accepted.")
        if self.class_axis is None:
            return count
        for name, array in inputs.items():
            if (classes := array.shape[self.class_axis]) > limits.classes:
                raise RequestError(f"input {name!r} has {classes} classes; at most {limits.classes} are accepted.")
            if (members := array.size // (classes * count)) > limits.members:  # no row can be computed without them all
                raise RequestError(f"input {name!r} has {members:,} members; at most {limits.members:,} are accepted.")
        return count


def wrap_options(
    guard: Guard | None, base: float | None, recalibration: Recalibration | None = None, /
) -> dict[str, Any]:
    """The options of ``wrap``: those of the guard, where there is one."""
    base = None if base is None else check_base(base)
    if guard is None:
        return {"base": base or 2.0, "recalibration": check_recalibration(recalibration)}
    if base not in (None, guard.base):
        raise ValueError(f"the guard was fitted in base {guard.base:g} and base {base:g} was passed; leave base out.")
    return {"base": guard.base, "trim": guard.trim, "recalibration": guard.recalibration(recalibration)}


@contextmanager
def words_for_clients(status: int, prefix: str = "") -> Iterator[None]:
    """Tell clients the words of our own checks of members' outputs, except for a bad row, which is named elsewhere."""
    try:
        yield
    except BadRowError:
        raise
    except (ValueError, TypeError) as error:
        raise RequestError(f"{prefix}{error}", status=status) from error


def member_outputs(
    guard: Guard | None = None, /, *, logits: bool = False, base: float | None = None,
    recalibration: Recalibration | None = None, name: str = "credal", version: str = "1",
) -> ServedModel:  # fmt: skip
    """The model of a server that only does the credal part, behind servers that run the members.

    Its one input is ``probs``, or ``logits``: members x rows x classes. With a guard, the number of members and classes, the
    base and the trim must be those of the guard; its members are recalibrated as the guard's were.

    >>> member_outputs().inputs[0].name
    'probs'
    """
    tensor = "logits" if logits else "probs"
    shape = (-1, -1, -1) if guard is None else (guard.n_members, -1, guard.classes)
    options = wrap_options(guard, base, recalibration)

    def predict(inputs: Inputs) -> CredalPrediction:
        with words_for_clients(400):
            return wrap_members(inputs[tensor], logits=logits, **options)

    return ServedModel(
        name, version, "credalens_members", (TensorSpec(tensor, FLOATS, shape),), predict, row_axis=1, class_axis=2,
        quick_values=QUICK_VALUES, guard=guard, wraps=f"input {tensor!r}",
        classes=None if guard is None else guard.classes,
    )  # fmt: skip


def python_model(
    model: Any, guard: Guard | None = None, /, *, name: str = "model", version: str = "1",
    inputs: tuple[TensorSpec, ...] = (), logits: bool = False,
) -> ServedModel:  # fmt: skip
    """A model in Python: a CredalWrapper, a CredalClassifier, or any function that returns members' probabilities.

    Rows are the first axis of every input. A lone input is handed over as it is, several as keywords.
    """
    served = partial(ServedModel, name, version, guard=guard)
    if _is_instance(model, "credalens.torch", "CredalWrapper"):
        return served("credalens_torch", inputs, partial(_predict_tensors, model), has_members=bool(model.hull))
    if _is_instance(model, "credalens.sklearn", "CredalClassifier"):
        features, classes = getattr(model, "n_features_in_", None), getattr(model, "classes_", None)
        if features is not None:  # without a number of them, as for texts, it takes anything
            inputs = inputs or (TensorSpec("input", ("FP64", "FP32"), (-1, features)),)
        number = None if classes is None else len(classes)
        own: Any = {"has_members": model.hull, "float_datatype": "FP64", "classes": number}
        return served("credalens_sklearn", inputs, partial(_predict_rows, model), **own)
    if not callable(model):
        raise TypeError(
            "model must be a CredalWrapper, a fitted CredalClassifier, or a function from arrays to members' "
            f"probabilities (members, rows, classes); got {type(model).__name__}."
        )
    options = {"logits": logits, **wrap_options(guard, None)}
    return served("credalens_python", inputs, partial(_predict_members, model, options))


def _is_instance(model: Any, module: str, name: str) -> bool:
    """Whether a model is of a class whose module need not be installed: if it is not imported, there is no instance."""
    return module in sys.modules and isinstance(model, getattr(sys.modules[module], name))


def _call(function: Callable[..., Any], inputs: dict[str, Any]) -> Any:
    return function(*inputs.values()) if len(inputs) == 1 else function(**inputs)


def _predict_tensors(model: Any, inputs: Inputs) -> CredalPrediction:
    """Call a CredalWrapper with tensors on the device of its members."""
    import torch

    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    tensors = {name: torch.from_numpy(array).to(device) for name, array in inputs.items()}
    try:
        return _call(model.predict_batch, tensors)
    except RuntimeError as error:  # what layers raise for shapes and dtypes that they cannot take
        if type(error).__name__ == "OutOfMemoryError":
            raise
        raise ValueError(f"its layers refuse these shapes or datatypes: {error}") from error


def _predict_rows(model: Any, inputs: Inputs) -> CredalPrediction:
    """Call a CredalClassifier; texts as lists, since scikit-learn takes an array of one axis for features."""
    rows = {name: x.tolist() if x.dtype == object and x.ndim == 1 else x for name, x in inputs.items()}
    return _call(model.credal_predict, rows)


def _predict_members(model: Any, options: dict[str, Any], inputs: Inputs) -> CredalPrediction:
    returned = _call(model, inputs)
    if isinstance(returned, CredalPrediction):
        return returned
    with words_for_clients(500, "the model's output: "):
        return wrap_members(returned, **options)
