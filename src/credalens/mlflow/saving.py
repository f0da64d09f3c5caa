"""save_model() and log_model(): write the files of a credal model, try them, and hand them to MLflow."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from credalens import __version__
from credalens.checks.options import check_choice, needing
from credalens.core.scores import SCORES
from credalens.guard import Guard
from credalens.mlflow.factories import import_factory
from credalens.mlflow.folder import GUARD, Description
from credalens.mlflow.loading import load_model
from credalens.storage.formats.onnx import external_files, is_beside


def copy_onnx(source: str | os.PathLike[str], target: Path, /) -> None:
    """Copy an ONNX file, and the files of its external data to where it will look for them."""
    source = Path(source)
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
        if not (source.parent / location).is_file():
            raise FileNotFoundError(
                2, f"No such file, the external data of {source.name}", str(source.parent / location)
            )
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.parent / location, copied)


LOADER: Final = "credalens.mlflow"


def save_model(model: Any, path: str | os.PathLike[str], /, *, input_example: Any, **options: Any) -> None:
    """Save members with their guard as an MLflow model; ``mlflow.pyfunc.load_model(path)`` reads it.

    ``model`` is a ``CredalWrapper`` or a list of ONNX files, which are saved with their external data. ``input_example``, an
    array or a data frame, gives the signature, and the saved model must predict it before MLflow gets the files. Pass a data
    frame if rows of data frames are to keep their index: with an array the signature is one of tensors, and MLflow drops it.
    Options:

    - ``guard`` decides about every row; by default it is that of the wrapper.
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
    """The arguments for MLflow, and a folder of files that have been read again."""
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
    model: Any,
    folder: Path,
    /,
    *,
    guard: Guard | None = None,
    factory: str = "",
    factory_options: Mapping[str, Any] | None = None,
    logits: bool = False,
    output: str | None = None,
    scores: Sequence[str] = (),
) -> str:
    """Write the files of a model into an empty folder; returns the extras that loading needs."""
    checked = tuple(check_choice(name, tuple(SCORES), "a score") for name in scores)
    guard = guard if guard is not None else getattr(model, "guard", None)
    if isinstance(model, list | tuple):
        description = Description("onnx", checked, {"logits": logits, "output": output}, len(model))
        for source, name in zip(model, description.member_files(), strict=True):
            copy_onnx(source, folder / name)
        extra = "mlflow"
    else:
        from credalens.mlflow.torch_members import describe, write_weights

        description = describe(model, checked, factory, dict(factory_options or {}))
        write_weights(model, description, import_factory(factory), folder)
        extra = "mlflow,torch"
    if guard is not None:
        guard.save(folder / GUARD)
    description.write(folder)
    return extra
