"""How well each uncertainty finds one OOD data set, and what credal sets change about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation import compare_auroc, ood_metrics, pr_curve, roc_curve
from credalens.evaluation.scores import KINDS, Scored
from credalens.evaluation.statistics.shared_bootstrap import Resampled, Resampling, resample

__all__ = ["DETECTORS", "detection", "detection_curves", "histograms"]

DETECTORS: Final = ("epistemic", "total")
"""The uncertainties that are used as scores for OOD; aleatoric uncertainty is not about it."""
RESAMPLED: Final = ("auprc", "fpr95")
POINTS, BINS = 160, 40


def detection(
    known: Scored, other: Scored, how: Resampling, /, *, step: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """For EU and TU: metrics of both kinds with intervals, and the paired difference credal - classical."""
    pairs = {
        f"{kind} {measure}": (known.scores[kind][measure], other.scores[kind][measure])
        for measure in DETECTORS
        for kind in KINDS
    }
    drawn = resample(pairs, RESAMPLED, how, step=step)
    result: dict[str, Any] = {"name": other.name, "rows": other.source.rows}
    for measure in DETECTORS:
        names = {kind: f"{kind} {measure}" for kind in KINDS}
        result[measure] = {kind: _metrics(pairs[name], drawn, name) for kind, name in names.items()}
        result[measure]["difference"] = _difference(pairs, drawn, *names.values())
    result["mean_set_size"] = {rule: float(sizes.mean()) for rule, sizes in other.set_size.items()}
    return result


def _metrics(pair: tuple[NDArray, NDArray], drawn: Resampled, name: str) -> dict[str, Any]:
    intervals = {f"{metric}_interval": drawn.interval(name, metric).as_dict() for metric in RESAMPLED}
    return ood_metrics(*pair, confidence=drawn.level).as_dict() | intervals


def _difference(pairs: dict[str, Any], drawn: Resampled, a: str, b: str) -> dict[str, Any]:
    auroc = {"auroc": compare_auroc(*pairs[a], *pairs[b], level=drawn.level).as_dict()}
    return auroc | {metric: drawn.difference(a, b, metric).as_dict() for metric in RESAMPLED}


def detection_curves(known: Scored, other: Scored, /) -> dict[str, Any]:
    """ROC and PR curves of EU and TU, credal and classical, thinned for drawing."""
    return {
        measure: {kind: _curves(known.scores[kind][measure], other.scores[kind][measure]) for kind in KINDS}
        for measure in DETECTORS
    }


def _curves(id_scores: NDArray, ood_scores: NDArray) -> dict[str, Any]:
    roc, pr = roc_curve(id_scores, ood_scores, points=POINTS), pr_curve(id_scores, ood_scores, points=POINTS)
    return {"roc": [_short(roc.fpr), _short(roc.tpr)], "pr": [_short(pr.recall), _short(pr.precision)]}


def histograms(known: Scored, others: list[Scored], /) -> dict[str, Any]:
    """For each uncertainty the share of inputs in each bin, the bins shared by all data sets (paper, entropy_plots)."""
    return {measure: {kind: _histogram(kind, measure, known, others) for kind in KINDS} for measure in DETECTORS}


def _histogram(kind: str, measure: str, known: Scored, others: list[Scored]) -> dict[str, Any]:
    scores = {one.name: one.scores[kind][measure] for one in (known, *others)}
    top = max(float(values.max()) for values in scores.values())
    edges = np.linspace(0.0, top if top > 0 else 1.0, BINS + 1)
    shares = {name: np.histogram(values, edges)[0] / len(values) for name, values in scores.items()}
    return {"edges": _short(edges), "share": {name: _short(share) for name, share in shares.items()}}


def _short(values: NDArray) -> list[float]:
    """Six significant digits: enough for any picture."""
    return [float(f"{value:.6g}") for value in values]
