r"""PIA as the paper prints it beside its sound form: how often its set is empty, and what is left of OOD detection.

Both keep the J - 1 classes of highest intersection probability. The printed bounds of the merged class are those of
the *kept* classes:

.. math:: r_L = \max(1 - \sum_{rest} u,\ \sum_{kept} l), \quad r_U = \min(1 - \sum_{rest} l,\ \sum_{kept} u)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.core.entropy import lower_entropy, upper_entropy
from credalens.core.intervals import (
    ProbabilityIntervals,
    approximate_intervals,
    intersection_probability,
)
from credalens.evaluation import ood_metrics
from credalens_paper.json_records import named

Array = NDArray[np.float64]
Intervals = tuple[NDArray[np.floating], NDArray[np.floating]]
ROUNDING: Final = 1e-9
"""Sums of bounds that miss one by less than this miss it by rounding; such a set counts as not empty."""


@dataclass(frozen=True, eq=False)
class Reduced:
    """One set: which inputs get an empty printed set, and EU without PIA, with the sound one, with the printed one."""

    empty: NDArray[np.bool_]
    exact: Array
    sound: Array
    printed: Array


@dataclass(frozen=True)
class ReductionEffect:
    """AUROC (%) by EU of each reduction, and the shares of empty printed sets.

    :ivar left_sound_auroc: on the inputs whose printed set is not empty; None where there are too few.
    """

    inside_empty: float = named("inside.empty")
    outside_empty: float = named("outside.empty")
    exact_auroc: float = named("exact.AUROC")
    sound_auroc: float = named("sound.AUROC")
    left_sound_auroc: float | None = named("left.sound.AUROC")
    left_printed_auroc: float | None = named("left.printed.AUROC")


def printed_intervals(lower: Array, upper: Array, classes: int, /) -> tuple[Array, Array]:
    """The bounds (inputs, classes) that the printed algorithm gives, valid or not.

    >>> low, high = printed_intervals(np.array([[0.6, 0.1, 0.1]]), np.array([[0.8, 0.2, 0.2]]), 2)
    >>> low.tolist(), high.tolist()
    ([[0.6, 0.6]], [[0.8, 0.8]])
    """
    order = np.argsort(-np.asarray(intersection_probability(lower, upper)), axis=-1, kind="stable")
    low, high = np.take_along_axis(lower, order, -1), np.take_along_axis(upper, order, -1)
    kept = slice(None), slice(None, classes - 1)
    rest = slice(None), slice(classes - 1, None)
    merged_low = np.maximum(1 - high[rest].sum(-1), low[kept].sum(-1))
    merged_high = np.minimum(1 - low[rest].sum(-1), high[kept].sum(-1))
    return np.c_[low[kept], merged_low], np.c_[high[kept], merged_high]


def empty_sets(lower: Array, upper: Array, /) -> NDArray[np.bool_]:
    """Which interval systems hold no distribution.

    >>> empty_sets(np.array([[0.6, 0.6], [0.2, 0.3]]), np.array([[0.8, 0.8], [0.7, 0.8]])).tolist()
    [True, False]
    """
    crossed = (lower > upper + ROUNDING).any(-1)
    return crossed | (lower.sum(-1) > 1 + ROUNDING) | (upper.sum(-1) < 1 - ROUNDING)


def reduce_rows(intervals: Intervals, classes: int, /, *, threads: int | None = None) -> Reduced:
    """Both reductions of the intervals (lower, upper) of a set to so many classes; EU is NaN where a set is empty."""
    lower, upper = (np.asarray(bound, np.float64) for bound in intervals)
    low, high = printed_intervals(lower, upper, classes)
    empty = empty_sets(low, high)
    printed = np.full(len(lower), np.nan)
    if not empty.all():
        valid = low[~empty], np.maximum(low, high)[~empty]  # crossed by rounding at most
        printed[~empty] = _epistemic(ProbabilityIntervals(*valid).tighten(), threads)
    whole, sound = ProbabilityIntervals(lower, upper), approximate_intervals(lower, upper, classes)
    return Reduced(empty, _epistemic(whole, threads), _epistemic(sound, threads), printed)


def _epistemic(intervals: ProbabilityIntervals, threads: int | None) -> Array:
    epistemic = upper_entropy(*intervals, threads=threads) - lower_entropy(*intervals, threads=threads)
    return np.maximum(np.asarray(epistemic), 0)


def reduction_effect(inside: Reduced, outside: Reduced, /) -> ReductionEffect:
    """Detection of the outside inputs by EU, without PIA and with either form of it."""
    left, beyond = ~inside.empty, ~outside.empty
    return ReductionEffect(
        inside_empty=float(inside.empty.mean()),
        outside_empty=float(outside.empty.mean()),
        exact_auroc=_auroc(inside.exact, outside.exact),
        sound_auroc=_auroc(inside.sound, outside.sound),
        left_sound_auroc=_auroc_of_some(inside.sound[left], outside.sound[beyond]),
        left_printed_auroc=_auroc_of_some(inside.printed[left], outside.printed[beyond]),
    )


def _auroc_of_some(inside: Array, outside: Array) -> float | None:
    return _auroc(inside, outside) if len(inside) and len(outside) else None


def _auroc(inside: Array, outside: Array) -> float:
    return 100 * ood_metrics(inside, outside).auroc
