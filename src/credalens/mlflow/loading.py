"""A saved model: from arrays or a data frame to a data frame of predictions, scores and decisions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.guard import Guard
from credalens.mlflow.folder import Description
from credalens.serve.models.served import ServedModel
from credalens.serve.protocol.datatypes import DTYPES
from credalens.storage.prediction_file import to_frame


@final
class CredalModel:
    """What ``mlflow.pyfunc.load_model`` wraps: members behind one function, their guard, and further scores."""

    def __init__(self, served: ServedModel, guard: Guard | None, scores: tuple[str, ...], dtype: np.dtype) -> None:
        self.served, self.guard, self.scores, self.dtype = served, guard, scores, dtype

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> Any:
        """A data frame with a row for each input: ``prediction.to_pandas()``, the scores, and what the guard decides.

        With a guard a row is about the class that the guard decides about. Rows of a data frame keep their index;
        if the model was saved with an array as ``input_example``, MLflow makes an array of it, and rows are numbered from 0.
        ``data`` is an array, a data frame whose columns are the features, or a dictionary of arrays by the inputs' names.
        """
        prediction = self.served.predict(self._inputs(data))
        decided = None if self.guard is None else self.guard.decide(prediction)
        frame = to_frame(prediction, predicted=decided and decided.prediction)
        for name in self.scores:
            frame[name] = _column(prediction.score(name))
        if decided is not None:
            for name in ("decision", "p_value", "reason"):
                frame[name] = _column(getattr(decided, name))
        return frame.set_index(data.index) if _indexes(data, frame) else frame

    def _inputs(self, data: Any) -> dict[str, NDArray]:
        if isinstance(data, dict):
            return {name: np.require(values, requirements="W") for name, values in data.items()}
        name = self.served.inputs[0].name if self.served.inputs else "input"
        values = data if isinstance(data, np.ndarray) else data.to_numpy(self.dtype)
        return {name: np.require(values, requirements="W")}  # torch warns of memory that it must not write to


def _indexes(data: Any, frame: Any) -> bool:
    """Whether the input is a data frame of pandas whose rows are those of the frame."""
    return isinstance(data, type(frame)) and len(data) == len(frame)


def _column(values: Any) -> NDArray:
    return to_numpy(values)[0].ravel()


def load_model(path: str | os.PathLike[str], /, *, factory: str = "") -> CredalModel:
    """The model in the folder with ``credal.json`` that ``save_model`` wrote, as a ``CredalModel``.

    Use ``mlflow.pyfunc.load_model`` for a model of a registry or a run; it has the same ``predict``. Files that are not those
    that were saved are refused, a guard that is missing or another one too. The factory of a torch model must be in a module
    that you have imported, or be named by ``factory="module:function"`` or in the environment variable ``CREDALENS_FACTORIES``.
    """
    folder = Path(path)
    description = Description.read(folder)
    guard = description.guard(folder)
    if description.kind == "onnx":
        served, dtype = _onnx_model(description, guard, folder)
    else:
        served, dtype = _torch_model(description, guard, folder, factory)
    return CredalModel(served, guard, description.scores, dtype)


def _onnx_model(description: Description, guard: Guard | None, folder: Path) -> tuple[ServedModel, np.dtype]:
    from credalens.serve.models.onnx_members import onnx_members

    paths = [folder / name for name in description.member_files()]
    served = onnx_members(paths, guard, **description.options)
    return served, np.dtype(DTYPES[served.inputs[0].datatypes[0]])


def _torch_model(
    description: Description, guard: Guard | None, folder: Path, factory: str
) -> tuple[ServedModel, np.dtype]:
    from credalens.mlflow.factories import factory_of_model, import_factory
    from credalens.mlflow.torch_members import input_dtype, read_wrapper
    from credalens.serve.models.python_model import python_model

    function = import_factory(factory) if factory else factory_of_model(description.factory)
    wrapper = read_wrapper(description, function, folder)
    return python_model(wrapper, guard), input_dtype(wrapper)
