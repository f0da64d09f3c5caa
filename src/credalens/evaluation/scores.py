"""A few numbers for each input of a data set: all that evaluation needs of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.sources import Source
from credalens.prediction import CredalPrediction

__all__ = ["KINDS", "MEASURES", "RULES", "Scored", "score_of", "score_source"]

KINDS: Final = ("credal", "classical")
MEASURES: Final = ("epistemic", "total", "aleatoric")
RULES: Final = ("interval_dominance", "maximality", "e_admissibility")


@dataclass(frozen=True, eq=False)
class Scored:
    """One data set, scored.

    :ivar scores: "credal" or "classical" -> measure -> (rows,).
    :ivar dispute: share of probability on which the members do not agree, 1 - sum(lower), (rows,).
    :ivar set_size: rule -> number of classes left possible, (rows,).
    :ivar probs: "intersection" and "averaged" -> (rows, classes); empty unless asked for.
    :ivar sets: rule -> classes left possible, (rows, classes); empty unless asked for.
    """

    source: Source
    scores: dict[str, dict[str, NDArray]]
    dispute: NDArray
    set_size: dict[str, NDArray]
    probs: dict[str, NDArray]
    sets: dict[str, NDArray]

    @property
    def name(self) -> str:
        """The name of the data set."""
        return self.source.name


def score_source(
    source: Source,
    /,
    *,
    keep: bool,
    base: float,
    threads: int | None = None,
    report: Callable[[int], None] = lambda rows: None,
) -> Scored:
    """Score all rows, chunk by chunk; ``keep`` also the point predictions and sets, for data with labels."""
    parts = []
    for start, chunk in source.chunks():
        prediction = source.wrap(chunk, start=start, base=base, threads=threads)
        parts.append(_columns(prediction, keep))
        report(chunk.shape[1])
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Scored(
        source,
        {kind: {measure: columns[f"{kind} {measure}"] for measure in MEASURES} for kind in KINDS},
        columns["dispute"],
        {rule: columns[f"size {rule}"] for rule in RULES},
        {name: columns[name] for name in ("intersection", "averaged") if keep},
        {rule: columns[f"set {rule}"] for rule in RULES if keep},
    )


def score_of(prediction: CredalPrediction, kind: str, measure: str, /) -> NDArray:
    """One uncertainty of a prediction, (rows,). A single member has none that is epistemic, not even by rounding."""
    values: NDArray = getattr(prediction if kind == "credal" else prediction.classical, measure)
    return np.zeros_like(values) if measure == "epistemic" and prediction.n_members == 1 else values


def _columns(prediction: CredalPrediction, keep: bool) -> dict[str, NDArray]:
    columns = {f"{kind} {measure}": score_of(prediction, kind, measure) for kind in KINDS for measure in MEASURES}
    columns["dispute"] = np.maximum(1 - prediction.lower.sum(axis=-1), 0)
    for rule in RULES:
        chosen = prediction.predict_set(rule)
        columns[f"size {rule}"] = chosen.sum(axis=-1)
        columns |= {f"set {rule}": chosen} if keep else {}
    return columns | ({"intersection": prediction.probability, "averaged": prediction.mean} if keep else {})
