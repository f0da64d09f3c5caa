"""Models in Python: a CredalWrapper, a CredalClassifier, or any function that returns members' probabilities."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import NDArray

from credalens.guard import Guard
from credalens.prediction import CredalPrediction
from credalens.serve.models.member_outputs import words_for_clients, wrap_members, wrap_options
from credalens.serve.models.served import Predict, ServedModel, TensorSpec

Inputs = dict[str, NDArray]


def python_model(
    model: Any,
    guard: Guard | None = None,
    /,
    *,
    name: str = "model",
    version: str = "1",
    inputs: tuple[TensorSpec, ...] = (),
    logits: bool = False,
) -> ServedModel:
    """A model in Python behind the protocol; rows are the first axis of every input.

    A lone input is handed over as it is, several as keywords. A CredalWrapper gets tensors on the device of its members.
    """
    if (adapted := _torch_model(model)) is not None:
        predict, has_members = adapted
        return ServedModel(name, version, "credalens_torch", inputs, predict, has_members=has_members)
    if _is_instance(model, "credalens.sklearn", "CredalClassifier"):
        predict = partial(_predict_rows, model)
        classes = getattr(model, "classes_", None)
        options = {
            "has_members": model.hull,
            "float_datatype": "FP64",
            "classes": None if classes is None else len(classes),
        }
        return ServedModel(name, version, "credalens_sklearn", inputs or _features(model), predict, **options)
    if not callable(model):
        raise TypeError(
            "model must be a CredalWrapper, a fitted CredalClassifier, or a function from arrays to members' "
            f"probabilities (members, rows, classes); got {type(model).__name__}."
        )
    return ServedModel(name, version, "credalens_python", inputs, _predict_by(model, guard, logits))


def _features(classifier: Any) -> tuple[TensorSpec, ...]:
    """The rows that a classifier takes; anything where it does not say how many features they have, as for texts."""
    features = getattr(classifier, "n_features_in_", None)
    return () if features is None else (TensorSpec("input", ("FP64", "FP32"), (-1, features)),)


def _predict_rows(classifier: Any, inputs: Inputs) -> CredalPrediction:
    """Texts are handed over as lists, since scikit-learn takes an array of one axis for features."""
    rows = {name: x.tolist() if x.dtype == object and x.ndim == 1 else x for name, x in inputs.items()}
    return call(classifier.credal_predict, rows)


def call(function: Callable[..., Any], inputs: dict[str, Any], /) -> Any:
    """Call with a lone input, or with several by their names."""
    return function(*inputs.values()) if len(inputs) == 1 else function(**inputs)


def _predict_by(model: Callable[..., Any], guard: Guard | None, logits: bool) -> Predict:
    options = wrap_options(guard, None)

    def predict(inputs: Inputs) -> CredalPrediction:
        returned = call(model, inputs)
        if isinstance(returned, CredalPrediction):
            return returned
        with words_for_clients(500, "the model's output: "):
            return wrap_members(returned, logits=logits, **options)

    return predict


def _torch_model(model: Any) -> tuple[Predict, bool] | None:
    if not _is_instance(model, "credalens.torch", "CredalWrapper"):
        return None
    import torch

    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))

    def predict(inputs: Inputs) -> CredalPrediction:
        tensors = {name: torch.from_numpy(array).to(device) for name, array in inputs.items()}
        try:
            return call(model.predict_batch, tensors)
        except RuntimeError as error:  # what layers raise for shapes and dtypes that they cannot take
            if type(error).__name__ == "OutOfMemoryError":
                raise
            raise ValueError(f"its layers refuse these shapes or datatypes: {error}") from error

    return predict, bool(model.hull)


def _is_instance(model: Any, module: str, name: str) -> bool:
    """Whether a model is of a class whose module need not be installed: if it is not imported, nothing is its instance."""
    return module in sys.modules and isinstance(model, getattr(sys.modules[module], name))
