"""save_model(), log_model() and load_model(): write the files of a credal model, try them, and hand them to MLflow.

A saved model may call a factory: a function that its author marked, in a module that the caller imported or named.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import getattr_static, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar, final

import numpy as np

from credalens import __version__
from credalens.arrays import to_numpy
from credalens.checks.options import check_choice, needing
from credalens.core.recalibration import Recalibration, check_recalibration
from credalens.core.scores import SCORES
from credalens.guard import Guard
from credalens.mlflow.folder import GUARD, RECALIBRATION, Description
from credalens.serve.models import ServedModel, python_model
from credalens.serve.protocol import DTYPES
from credalens.storage.formats.onnx import external_files, is_beside
from credalens.storage.prediction_file import to_frame

LOADER: Final = "credalens.mlflow"
MARK: Final = "__builds_credal_members__"
NAMED: Final = "CREDALENS_FACTORIES"
Factory = TypeVar("Factory", bound=Callable[..., Any])


def save_model(model: Any, path: str | os.PathLike[str], /, *, input_example: Any, **options: Any) -> None:
    """Save members with their guard as an MLflow model; ``mlflow.pyfunc.load_model(path)`` reads it.

    ``model`` is a ``CredalWrapper`` or a list of ONNX files, which are saved with their external data. ``input_example``, an
    array or a data frame, gives the signature, and the saved model must predict it before MLflow gets the files. Pass a data
    frame if rows of data frames are to keep their index: with an array the signature is one of tensors, and MLflow drops it.
    Options:

    - ``guard`` decides about every row; by default it is that of the wrapper.
    - ``recalibration`` divides members by its temperatures; by default it is that of the wrapper, or of the guard.
    - ``factory="module:function"`` builds one member of a wrapper, with the JSON values of ``factory_options`` as keywords. It
      must be marked with :func:`member_factory`, and imported or named by the process that loads the model
      (:func:`load_model`). Only weights are saved.
    - ``logits=True`` if the ONNX files predict logits; ``output`` names the prediction if they have several outputs.
    - ``scores`` adds columns to total, aleatoric and epistemic, by their names in the catalogue.
    - Other options are those of ``mlflow.pyfunc.save_model``.
    """
    with _prepared(model, input_example, options) as prepared:
        _mlflow().pyfunc.save_model(str(path), **prepared)


def log_model(model: Any, name: str, /, *, input_example: Any, **options: Any) -> Any:
    """Log members with their guard to the active run, and to the registry with ``registered_model_name``.

    Options are those of :func:`save_model` and of ``mlflow.pyfunc.log_model``, whose result is returned.
    """
    with _prepared(model, input_example, options) as prepared:
        return _mlflow().pyfunc.log_model(name=name, **prepared)


def _mlflow() -> Any:
    """The package, imported on first use: that takes seconds."""
    with needing("mlflow", part="credalens.mlflow", extra="mlflow"):
        import mlflow.models
        import mlflow.pyfunc
    return mlflow


@contextmanager
def _prepared(model: Any, input_example: Any, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    ours = {name: options.pop(name) for name in signature(write_files).parameters if name in options}
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "credal"
        folder.mkdir()
        extra = write_files(model, folder, **ours)
        predicted = load_model(folder).predict(input_example)
        yield {
            "loader_module": LOADER,
            "data_path": str(folder),
            "signature": _mlflow().models.infer_signature(input_example, predicted),
            "input_example": input_example,
            "pip_requirements": [f"credalens[{extra}]=={__version__}"],
            **options,
        }


def write_files(
    model: Any, folder: Path, /, *, guard: Guard | None = None, recalibration: Recalibration | None = None, factory: str = "",
    factory_options: Mapping[str, Any] | None = None, logits: bool = False, output: str | None = None,
    scores: Sequence[str] = (),
) -> str:  # fmt: skip
    """Write the files of a model into an empty folder; returns the extras that loading needs."""
    checked = tuple(check_choice(name, tuple(SCORES), "a score") for name in scores)
    guard = guard if guard is not None else getattr(model, "guard", None)
    own = getattr(model, "recalibration", None)
    if own is not None and recalibration not in (None, own):
        raise ValueError(
            "the wrapper has a recalibration of its own; leave recalibration out, or make the wrapper with it."
        )
    recalibration = own or check_recalibration(recalibration)
    recalibration = recalibration if guard is None else guard.recalibration(recalibration)
    if isinstance(model, list | tuple):
        description = Description("onnx", checked, {"logits": logits, "output": output}, len(model))
        for source, name in zip(model, description.member_files(), strict=True):
            _copy_onnx(Path(source), folder / name)
        extra = "mlflow"
    else:
        from credalens.mlflow.torch_members import describe, write_weights

        description = describe(model, checked, factory, dict(factory_options or {}))
        write_weights(model, description, find_factory(factory, by_caller=True), folder)
        extra = "mlflow,torch"
    if guard is not None:
        guard.save(folder / GUARD)
    if recalibration is not None:
        recalibration.save(folder / RECALIBRATION)
    description.write(folder)
    return extra


def _copy_onnx(source: Path, target: Path) -> None:
    """Copy an ONNX file, and the files of its external data to where it will look for them."""
    target.parent.mkdir(parents=True)
    shutil.copyfile(source, target)
    try:
        locations = sorted(external_files(source.read_bytes()))
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
    for location in locations:
        copied = target.parent / location
        if not is_beside(location) or copied.exists():
            raise ValueError(
                f"{source}: its external data are in {location!r}. A model is saved with data in the folder of the ONNX file "
                f"or below it, in files that are not named {target.name!r}."
            )
        if not (data := source.parent / location).is_file():
            raise FileNotFoundError(2, f"No such file, the external data of {source.name}", str(data))
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(data, copied)


def load_model(path: str | os.PathLike[str], /, *, factory: str = "") -> CredalModel:
    """The model in the folder with ``credal.json`` that ``save_model`` wrote, as a ``CredalModel``.

    Use ``mlflow.pyfunc.load_model`` for a model of a registry or a run; it has the same ``predict``. Files that are not those
    that were saved are refused, a guard that is missing or another one too. The factory of a torch model must be in a module
    that you have imported, or be named by ``factory="module:function"`` or in the environment variable ``CREDALENS_FACTORIES``.
    """
    folder = Path(path)
    description = Description.read(folder)
    guard = Guard.load(folder / GUARD) if (folder / GUARD).exists() else None
    recalibration = Recalibration.load(folder / RECALIBRATION) if (folder / RECALIBRATION).exists() else None
    if description.kind == "onnx":
        from credalens.serve.onnx_members import onnx_members

        paths = [folder / name for name in description.member_files()]
        served = onnx_members(paths, guard, recalibration=recalibration, **description.options)
        dtype = np.dtype(DTYPES[served.inputs[0].datatypes[0]])
    else:
        from credalens.mlflow.torch_members import input_dtype, read_wrapper

        function = find_factory(factory or description.factory, by_caller=bool(factory))
        wrapper = read_wrapper(description, function, folder, recalibration)
        served, dtype = python_model(wrapper, guard), input_dtype(wrapper)
    return CredalModel(served, description.scores, dtype)


@final
class CredalModel:
    """The model that ``mlflow.pyfunc.load_model`` wraps: members behind one function, their guard, and further scores."""

    def __init__(self, served: ServedModel, scores: tuple[str, ...], dtype: np.dtype) -> None:
        self.served, self.guard, self.scores, self.dtype = served, served.guard, scores, dtype

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> Any:
        """A data frame with a row for each input: ``prediction.to_pandas()``, the scores, and what the guard decides.

        With a guard a row is about the class that the guard decides about. Rows of a data frame keep their index;
        if the model was saved with an array as ``input_example``, MLflow makes an array of it, and rows are numbered from 0.
        ``data`` is an array, a data frame whose columns are the features, or a dictionary of arrays by the inputs' names.
        """
        inputs = data
        if not isinstance(data, dict):
            name = self.served.inputs[0].name if self.served.inputs else "input"
            inputs = {name: data if isinstance(data, np.ndarray) else data.to_numpy(self.dtype)}
        writable = {name: np.require(x, requirements="W") for name, x in inputs.items()}  # as torch wants its memory
        prediction = self.served.predict(writable)
        decided = None if self.guard is None else self.guard.decide(prediction)
        frame = to_frame(prediction, predicted=decided and decided.prediction)
        columns = {name: prediction.score(name) for name in self.scores}
        if decided is not None:
            columns |= {name: getattr(decided, name) for name in ("decision", "p_value", "reason")}
        for name, values in columns.items():
            frame[name] = to_numpy(values)[0].ravel()
        rows_of_frame = isinstance(data, type(frame)) and len(data) == len(frame)
        return frame.set_index(data.index) if rows_of_frame else frame


def member_factory(function: Factory, /) -> Factory:
    """Mark a function of an importable module that builds one member, a ``torch.nn.Module`` with any weights.

    A saved model contains the name of its factory, and loading the model calls that function. Functions that are not marked
    are never called and modules that you have not imported are not imported, so that a model from somebody else runs no other
    code of yours.

    >>> @member_factory
    ... def small(width=8):
    ...     return nn.Linear(4, width)
    """
    setattr(function, MARK, True)
    return function


def find_factory(path: str, /, *, by_caller: bool) -> Callable[..., Any]:
    """Find the marked function "module:function" that the caller, or only a saved model, names.

    For a name from a saved model nothing is imported: its module must have been imported before, or the environment variable
    ``CREDALENS_FACTORIES``, a list with commas, name the function.
    """
    module, _, name = path.partition(":")
    if not (module and name.isidentifier()):
        raise ValueError(f"factory must read 'module:function', where the function builds one member; got {path!r}.")
    if by_caller or path in os.environ.get(NAMED, "").replace(" ", "").split(","):
        try:
            function = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(
                f"the factory {path!r} cannot be imported ({error}); the process that loads the model needs it as well."
            ) from error
    elif (imported := sys.modules.get(module)) is not None:
        function = vars(imported).get(name)
    else:
        raise ValueError(
            f"the saved model is built by {path!r}, whose module is not imported, and a saved model imports none by itself. If "
            f"you trust that module, import it before you load the model, or set {NAMED}={path} in the environment."
        )
    if getattr_static(function, MARK, False) is not True:
        raise ValueError(
            f"{path!r} is not marked as a factory, and a saved model may call nothing else; write "
            "@credalens.mlflow.member_factory above the function that builds one member."
        )
    return function
