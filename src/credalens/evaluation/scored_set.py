"""A few numbers for each input of a data set: all that evaluation needs of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.crude_members import warn_of_members
from credalens.core.hartley import EXACT_CLASSES
from credalens.core.open_rows import collecting_open_rows, warn_of_all
from credalens.core.scores import SCORES
from credalens.evaluation.results import ByMeasure, ByMethod
from credalens.guard.signature import read_score
from credalens.prediction import CredalPrediction
from credalens.storage.source import Source

RULES: Final = ("interval_dominance", "maximality", "e_admissibility")
Uncertainty = ByMethod[ByMeasure[NDArray]]
"""All uncertainties of a data set, (rows,) each."""


@dataclass(frozen=True, eq=False)
class ScoredSet:
    """One data set, scored.

    :ivar scores: score of the catalogue -> its values, (rows,).
    :ivar dispute: share of probability on which the members do not agree, 1 - sum(lower), (rows,).
    :ivar set_size: rule -> number of classes left possible, (rows,).
    :ivar points: intersection and averaged probability, (rows, classes); None without labels.
    :ivar predicted: the class that each of them names, (rows,); None without labels.
    :ivar sets: rule -> classes left possible, (rows, classes); empty without labels.
    """

    source: Source
    scores: dict[str, NDArray]
    dispute: NDArray
    set_size: dict[str, NDArray]
    points: ByMethod[NDArray] | None
    predicted: ByMethod[NDArray] | None
    sets: dict[str, NDArray]

    @property
    def name(self) -> str:
        """The name of the data set."""
        return self.source.name

    @property
    def uncertainty(self) -> Uncertainty:
        """Total, aleatoric and epistemic uncertainty of every input, by both methods."""
        return ByMethod.make(lambda method: ByMeasure.make(lambda measure: self.of(method, measure)))

    def of(self, method: str, measure: str, /) -> NDArray:
        """One uncertainty of every input, (rows,)."""
        return self.scores[score_name(method, measure)]

    def mean_set_size(self) -> dict[str, float]:
        """How many classes each rule leaves possible on average."""
        return {rule: float(sizes.mean()) for rule, sizes in self.set_size.items()}


def score_name(method: str, measure: str, /) -> str:
    """What the catalogue calls an uncertainty of one method.

    >>> score_name("credal", "total"), score_name("classical", "total")
    ('total', 'mean_total')
    """
    return measure if method == "credal" else f"mean_{measure}"


def score_names(classes: int, /) -> tuple[str, ...]:
    """The scores of the catalogue; the Hartley measure, milliseconds per row beyond its exact range, only where it is quick."""
    return tuple(name for name in SCORES if name != "hartley" or classes <= EXACT_CLASSES)


def score_source(
    source: Source,
    /,
    *,
    names: Sequence[str],
    labelled: bool,
    in_distribution: bool,
    base: float,
    threads: int | None = None,
    report: Callable[[int], None] = lambda rows: None,
) -> ScoredSet:
    """Score all rows, chunk by chunk; point predictions and sets only of data with labels.

    Warns of members that are nearly one-hot or the same, if the data are in distribution, and once of all rows that are open.
    """
    parts, rows = [], 0
    with collecting_open_rows() as open_rows:
        for start, chunk in source.chunks():
            prediction = source.wrap(chunk, start=start, base=base, threads=threads)
            if start == 0 and in_distribution and prediction.n_members > 1:  # of one alone the summary in words tells
                warn_of_members(prediction)
            parts.append(_columns(prediction, names, labelled))
            rows += chunk.shape[1]
            report(chunk.shape[1])
    warn_of_all(open_rows, rows, stacklevel=4)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return ScoredSet(
        source,
        {name: columns[name] for name in names},
        columns["dispute"],
        {rule: columns[f"size {rule}"] for rule in RULES},
        ByMethod.make(lambda method: columns[f"point {method}"]) if labelled else None,
        ByMethod.make(lambda method: columns[f"class {method}"]) if labelled else None,
        {rule: columns[f"set {rule}"] for rule in RULES if labelled},
    )


def _columns(prediction: CredalPrediction, names: Sequence[str], labelled: bool) -> dict[str, NDArray]:
    columns = {name: read_score(prediction, name) for name in names}
    columns["dispute"] = np.maximum(1 - prediction.lower.sum(axis=-1), 0)
    sets = {rule: prediction.predict_set(rule) for rule in RULES}
    columns |= {f"size {rule}": chosen.sum(axis=-1) for rule, chosen in sets.items()}
    if labelled:
        columns |= {f"set {rule}": chosen for rule, chosen in sets.items()}
        columns |= {"point credal": prediction.probability, "point classical": prediction.mean}
        columns |= {"class credal": prediction.predict(), "class classical": prediction.mean.argmax(axis=-1)}
    return columns
