"""A credal prediction in a file of its own, and as a data frame."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from credalens.arrays import to_numpy
from credalens.checks.options import check_base, check_count, check_temperatures, check_tolerance, check_trim, needing
from credalens.core.classical import ClassicalUncertainty
from credalens.prediction import ARRAYS, CredalPrediction
from credalens.storage.atomic import atomic_file, check_file
from credalens.storage.formats.arrays import npz_arrays
from credalens.storage.formats.files import check_unfolded, restoring

FORMAT: Final = "credalens-prediction-1"
CLASSICAL: Final = ("total", "aleatoric", "epistemic")
NUMBERS: Final = ("base", "n_members", "trim", "temperatures")


def save_prediction(prediction: CredalPrediction, path: str | os.PathLike[str], /) -> None:
    """Write all arrays and numbers of a prediction, without its members, to an ``.npz`` file."""
    target = check_file(path)
    if target.suffix != ".npz":
        raise ValueError(f"a prediction is saved as .npz; got {target}.")
    rows, batch = math.prod(prediction.total.shape), list(prediction.total.shape)
    values = {name: getattr(prediction, name) for name in ARRAYS}
    if prediction.n_members:
        values |= {f"classical_{name}": getattr(prediction.classical, name) for name in CLASSICAL}
    arrays = {name: to_numpy(x)[0].reshape(rows, *x.shape[len(batch) :]) for name, x in values.items()}
    numbers = {name: getattr(prediction, name) for name in NUMBERS}
    header = json.dumps(
        {
            "format": FORMAT,
            "batch": batch,
            "rounding": prediction._rounding,
            "has_mean": prediction._has_mean,
            **numbers,
        }
    ).encode()
    with atomic_file(target) as file:
        np.savez(file, header=np.frombuffer(header, np.uint8), **arrays)  # type: ignore[arg-type]


def load_prediction(path: str | os.PathLike[str], /) -> CredalPrediction:
    """Read what `save_prediction` wrote; every array is compared with its checksum."""
    source = Path(path)
    with restoring(source, f"prediction ({FORMAT})"):
        stored = npz_arrays(source)
        check_unfolded(sum(array.unfolded_bytes for array in stored.values()), source.stat().st_size, None)
        return _restored({name: array.read(0, array.rows) for name, array in stored.items()})


def _restored(stored: dict[str, Any]) -> CredalPrediction:
    header = json.loads(stored["header"].tobytes())
    if header["format"] != FORMAT:
        raise ValueError(f"format is {header['format']!r}")
    batch, bounds = tuple(header["batch"]), stored["lower"].shape
    arrays = {}
    n_members = check_count(header["n_members"], "n_members", least=0)
    for name in (*ARRAYS, *(f"classical_{name}" for name in CLASSICAL if n_members)):
        array, expected = stored[name], bounds if name in ARRAYS[:4] else bounds[:1]
        if array.shape != expected or array.dtype.kind != "f":
            raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not numbers of shape {expected}")
        arrays[name] = array.reshape(batch + array.shape[1:])
    classical = None
    if n_members:
        classical = ClassicalUncertainty(*(arrays.pop(f"classical_{name}") for name in CLASSICAL))
    return CredalPrediction(
        **arrays,
        base=check_base(header["base"]),
        n_members=n_members,
        trim=check_trim(header["trim"]),
        _classical=classical,
        _rounding=check_tolerance(header.get("rounding", 0.0)),
        _has_mean=bool(header.get("has_mean", True)),
        temperatures=check_temperatures(header.get("temperatures", [])),
    )


def to_frame(
    prediction: CredalPrediction, class_names: Sequence[str] | None = None, /, *, predicted: Any = None
) -> Any:
    """One row for each input, indexed by its place in the batch; ``predicted`` replaces the classes that it is about."""
    with needing("pandas", part="a data frame", extra="all"):
        import pandas as pd

    batch, classes = prediction.total.shape, prediction.lower.shape[-1]
    chosen = np.ravel(to_numpy(prediction.predict() if predicted is None else predicted)[0])
    of_chosen = {
        name: to_numpy(getattr(prediction, name))[0].reshape(-1, classes)[np.arange(len(chosen)), chosen]
        for name in ("probability", "lower", "upper")
    }
    names = chosen if class_names is None else [class_names[k] for k in chosen]
    entropies = {name: np.ravel(to_numpy(getattr(prediction, name))[0]) for name in CLASSICAL}
    index = pd.MultiIndex.from_tuples(list(np.ndindex(*batch))) if len(batch) > 1 else None
    return pd.DataFrame({"prediction": names, **of_chosen, **entropies}, index=index)
