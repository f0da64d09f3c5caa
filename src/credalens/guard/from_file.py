"""Guards and saved predictions: fit one from a file, and count its decisions about another."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

from numpy.typing import NDArray

from credalens.core.open_rows import collecting_open_rows, warn_of_all
from credalens.guard.conformal_sets import ConformalSets
from credalens.guard.decider import Guard
from credalens.guard.decisions import DecisionCounts, count_decisions
from credalens.storage.reading import Predictions
from credalens.storage.source import Source


def fit_predictions(
    predictions: Predictions,
    labels: NDArray | None = None,
    /,
    *,
    logits: bool = False,
    base: float = 2,
    set_alpha: float | None = None,
    set_method: str = "lac",
    threads: int | None = None,
    **options: Any,
) -> Guard:
    """`Guard.fit` on the predictions of a file, which are in memory meanwhile; other options are those of `Guard.fit`.

    ``set_alpha`` adds sets of classes that hold the true one with probability 1 - ``set_alpha``, by ``set_method``.
    """
    if set_alpha is not None and labels is None:
        raise ValueError("sets of classes need labels, the true classes of the calibration inputs.")
    source = Source(str(predictions.path), predictions, logits)
    prediction = source.wrap(predictions.read(0, predictions.rows), base=base, threads=threads)
    sets = None
    if set_alpha is not None:
        sets = ConformalSets.fit(prediction, labels, alpha=set_alpha, method=set_method)
    return Guard.fit(prediction, labels, sets=sets, **options)


def count_predictions(
    guard: Guard,
    predictions: Predictions,
    labels: NDArray | None = None,
    /,
    *,
    logits: bool = False,
    threads: int | None = None,
) -> DecisionCounts:
    """Count the decisions of a guard about the predictions of a file, read by rows; warns once of all rows that are open."""
    source, parts = Source(str(predictions.path), predictions, logits), []
    with collecting_open_rows() as open_rows:
        for start, chunk in source.chunks():
            prediction = source.wrap(chunk, start=start, base=guard.base, threads=threads)
            truth = None if labels is None else labels[start : start + chunk.shape[1]]
            parts.append(count_decisions(guard, prediction, truth))
    warn_of_all(open_rows, predictions.rows)
    if not parts:
        raise ValueError(f"{predictions.path}: holds no rows.")
    return reduce(add, parts)
