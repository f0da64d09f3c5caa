"""What recalibration would change, judged on inputs that no temperature was fitted on: cross-fitting in five folds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.core.options import collecting_open_rows
from credalens.core.recalibration import Recalibration
from credalens.evaluation.data_sets import ScoredSet
from credalens.evaluation.intervals import Resampling
from credalens.evaluation.labelled import ReliabilityCurve, reliability_curve, selective_metrics
from credalens.evaluation.ood import compare_auroc
from credalens.evaluation.prediction_quality import NEGLIGIBLE, JudgedRows, PredictionQuality, compare_points
from credalens.evaluation.results import ByMethod, Comparison, Result, Settings
from credalens.guard.signature import read_score
from credalens.prediction import CredalPrediction, wrap_members
from credalens.storage.source import Source

FOLDS: Final = 5
FEWEST: Final = 200  # labelled inputs, below which temperatures of four fifths of them say little
MOST_ROWS, MOST_VALUES = 20_000, 20_000_000  # of a data set that are looked at; values are members x rows x classes
SHOWN: Final = ("total", "epistemic")


@dataclass(frozen=True, eq=False)
class RecalibrationEffect(Result):
    """The temperature that members need, and how predictions change with it; comparisons are with it minus without.

    :ivar through: the prediction that it was fitted through, the recommended one: "credal" or "averaged".
    :ivar temperature: of all labelled inputs that were looked at, between ``low`` and ``high`` with probability 0.95.
    :ivar n: how many labelled inputs were looked at.
    :ivar accuracy: of each point prediction, as are ``nll`` and ``ece``.
    :ivar detection: OOD data set -> score -> AUROC.
    :ivar rejection: AURC of the recommended score and point prediction, of errors; less is better.
    :ivar reliability: of the recommended point prediction with it.
    :ivar recommended: whether NLL of that prediction is clearly better with it, and its accuracy not clearly worse.
    """

    through: str
    temperature: float
    low: float
    high: float
    n: int
    accuracy: ByMethod[Comparison]
    nll: ByMethod[Comparison]
    ece: ByMethod[Comparison]
    detection: dict[str, dict[str, Comparison]]
    rejection: Comparison
    reliability: ReliabilityCurve
    recommended: bool


def recalibration_effect(
    id_set: ScoredSet, ood_sets: Sequence[ScoredSet], labels: NDArray[np.int64], quality: PredictionQuality, /, *,
    score: str, rejection_score: str, settings: Settings, resampling: Resampling, threads: int | None = None,
) -> RecalibrationEffect | None:  # fmt: skip
    """Fit temperatures on folds of the labelled inputs, and judge each fold by that of the others.

    None where nothing can be fitted, as with few inputs or one-hot members.
    """
    if quality.point is None or id_set.points is None or id_set.predicted is None or len(labels) < FEWEST:
        return None
    method, source, rng = quality.point.method, id_set.source, np.random.default_rng(settings.seed)
    rows = np.sort(rng.permutation(len(labels))[: _most(source)])
    members, truth, folds = source.take(rows), labels[rows], rng.permutation(len(rows)) % FOLDS
    fit = partial(Recalibration.fit, logits=settings.logits, through=method, threads=threads)
    try:
        with _unwarned():
            whole = fit(members, truth)
            of_folds = [fit(members[:, folds != k], truth[folds != k]) for k in range(FOLDS)]
    except ValueError:
        return None
    names = tuple(dict.fromkeys((*SHOWN, score, rejection_score)))
    wrap = partial(wrap_members, logits=settings.logits, base=settings.base, threads=threads)
    with _unwarned():
        parts = [wrap(members[:, folds == k], recalibration=of_folds[k]) for k in range(FOLDS)]
    order = np.argsort(np.concatenate([np.flatnonzero(folds == k) for k in range(FOLDS)]))

    def joined(arrays: Sequence[NDArray]) -> NDArray:
        return np.concatenate(arrays)[order]

    points = ByMethod(joined([part.probability for part in parts]), joined([part.mean for part in parts]))
    named = ByMethod(joined([part.predict() for part in parts]), points.averaged.argmax(axis=-1))
    scores = {name: joined([read_score(part, name) for part in parts]) for name in names}
    after = ByMethod.make(lambda m: JudgedRows.of(points.of(m), truth, named.of(m)))
    before = {m: JudgedRows.of(id_set.points.of(m)[rows], truth, id_set.predicted.of(m)[rows]) for m in ByMethod.names}
    changed = {m: compare_points(after.of(m), before[m], bins=settings.bins, resampling=resampling) for m in before}
    own = {name: values[rows] for name, values in id_set.scores.items()}
    nll, accuracy = changed[method]["nll"], changed[method]["accuracy"]
    return RecalibrationEffect(
        through=method,
        temperature=float(whole.temperatures[0]),
        low=float(whole.ranges[0, 0]),
        high=float(whole.ranges[0, 1]),
        n=len(rows),
        **{name: ByMethod(changed["credal"][name], changed["averaged"][name]) for name in ("accuracy", "nll", "ece")},
        detection={
            ood_set.name: _detection(ood_set, partial(wrap, recalibration=whole), own, scores, settings.level)
            for ood_set in ood_sets
        },
        rejection=_compare_aurc(
            (scores[rejection_score], after.of(method).correct),
            (own[rejection_score], before[method].correct),
            resampling,
        ),
        reliability=reliability_curve(points.of(method), truth, bins=settings.bins, predicted=named.of(method)),
        recommended=nll.verdict == "better" and abs(nll.difference) >= NEGLIGIBLE and accuracy.verdict != "worse",
    )


@contextmanager
def _unwarned() -> Iterator[None]:
    """Say nothing of inputs that were warned of when they were scored as they come."""
    with collecting_open_rows(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _most(source: Source) -> int:
    members, _, classes = source.shape
    return max(FEWEST, min(MOST_ROWS, MOST_VALUES // (members * classes)))


def _detection(
    ood_set: ScoredSet,
    wrap: partial[CredalPrediction],
    before: Mapping[str, NDArray],
    after: Mapping[str, NDArray],
    level: float,
) -> dict[str, Comparison]:
    """AUROC of each score with the temperature of all labelled inputs, minus that without, on the same inputs."""
    rows = np.unique(np.linspace(0, ood_set.source.rows - 1, _most(ood_set.source)).astype(np.intp))
    with _unwarned():
        prediction = wrap(ood_set.source.take(rows))
    return {
        name: compare_auroc(values, read_score(prediction, name), before[name], ood_set.scores[name][rows], level=level)
        for name, values in after.items()
    }


def _compare_aurc(
    a: tuple[NDArray, NDArray[np.bool_]], b: tuple[NDArray, NDArray[np.bool_]], resampling: Resampling
) -> Comparison:
    """Compare by the paired bootstrap: each replicate draws the same inputs for both."""
    n, generator = len(a[0]), np.random.default_rng(resampling.seed)

    def areas(rows: NDArray[np.int64] | slice) -> tuple[float, float]:
        of_a, of_b = (selective_metrics(values[rows], correct[rows]).aurc for values, correct in (a, b))
        return of_a, of_b

    draws = (areas(generator.integers(n, size=n)) for _ in range(resampling.replicates))
    drawn = np.array([of_a - of_b for of_a, of_b in draws])
    return resampling.compare("aurc", *areas(slice(None)), drawn, n, 0)
