"""A few numbers for each input of a data set: all that evaluation needs of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.results import ByMeasure, ByMethod
from credalens.evaluation.sources import Source
from credalens.prediction import CredalPrediction

RULES: Final = ("interval_dominance", "maximality", "e_admissibility")
Uncertainty = ByMethod[ByMeasure[NDArray]]
"""All uncertainties of a data set, (rows,) each."""


@dataclass(frozen=True, eq=False)
class ScoredSet:
    """One data set, scored.

    :ivar dispute: share of probability on which the members do not agree, 1 - sum(lower), (rows,).
    :ivar set_size: rule -> number of classes left possible, (rows,).
    :ivar points: intersection and averaged probability, (rows, classes); None without labels.
    :ivar sets: rule -> classes left possible, (rows, classes); empty without labels.
    """

    source: Source
    uncertainty: Uncertainty
    dispute: NDArray
    set_size: dict[str, NDArray]
    points: ByMethod[NDArray] | None
    sets: dict[str, NDArray]

    @property
    def name(self) -> str:
        """The name of the data set."""
        return self.source.name

    def scores(self, method: str, measure: str, /) -> NDArray:
        """One uncertainty of every input, (rows,)."""
        return self.uncertainty.of(method).of(measure)

    def mean_set_size(self) -> dict[str, float]:
        """How many classes each rule leaves possible on average."""
        return {rule: float(sizes.mean()) for rule, sizes in self.set_size.items()}


def score_source(
    source: Source,
    /,
    *,
    labelled: bool,
    base: float,
    threads: int | None = None,
    report: Callable[[int], None] = lambda rows: None,
) -> ScoredSet:
    """Score all rows, chunk by chunk; point predictions and sets only of data with labels."""
    parts = []
    for start, chunk in source.chunks():
        prediction = source.wrap(chunk, start=start, base=base, threads=threads)
        parts.append(_columns(prediction, labelled))
        report(chunk.shape[1])
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return ScoredSet(
        source,
        ByMethod.make(lambda method: ByMeasure.make(lambda measure: columns[f"{method} {measure}"])),
        columns["dispute"],
        {rule: columns[f"size {rule}"] for rule in RULES},
        ByMethod.make(lambda method: columns[f"point {method}"]) if labelled else None,
        {rule: columns[f"set {rule}"] for rule in RULES if labelled},
    )


def _columns(prediction: CredalPrediction, labelled: bool) -> dict[str, NDArray]:
    uncertainty = uncertainty_of(prediction)
    columns = {f"{method} {name}": x for method, measures in uncertainty.items() for name, x in measures.items()}
    columns["dispute"] = np.maximum(1 - prediction.lower.sum(axis=-1), 0)
    sets = {rule: prediction.predict_set(rule) for rule in RULES}
    columns |= {f"size {rule}": chosen.sum(axis=-1) for rule, chosen in sets.items()}
    if labelled:
        columns |= {f"set {rule}": chosen for rule, chosen in sets.items()}
        columns |= {"point credal": prediction.probability, "point classical": prediction.mean}
    return columns


def uncertainty_of(prediction: CredalPrediction, /) -> Uncertainty:
    """All uncertainties of a prediction. A single member has none that is epistemic, not even by rounding."""

    def read(method: str, measure: str) -> NDArray:
        values: NDArray = getattr(prediction if method == "credal" else prediction.classical, measure)
        return np.zeros_like(values) if measure == "epistemic" and prediction.n_members == 1 else values

    return ByMethod.make(lambda method: ByMeasure.make(lambda measure: read(method, measure)))
