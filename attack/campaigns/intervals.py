"""Bounds of members, the intersection probability, tightening, membership and vertices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import credalens
from attack import truths
from attack.case import Case, expect, expect_close
from attack.ensembles import ensemble, grid
from tests import oracles

ROUNDING = 1e-13


def attack(case: Case) -> None:
    """Intervals, intersection probability, tighten, contains and vertices against exact arithmetic."""
    (_of_grid if case.between(0, 1) else _of_members)(case)


def _of_members(case: Case) -> None:
    probs = ensemble(case, rows=5, classes=(2, case.choose(4, 30, 300)), members=(1, case.choose(3, 60)))
    p = truths.member_rows(probs)
    lower, upper = credalens.probability_intervals(probs)
    expect_close("lower", lower, p.min(axis=0), tolerance=ROUNDING)
    expect_close("upper", upper, p.max(axis=0), tolerance=ROUNDING)
    prediction = credalens.wrap(probs)
    expect_close("wrap().lower", prediction.lower, lower, tolerance=0)
    expect_close("wrap().upper", prediction.upper, upper, tolerance=0)
    expect_close("wrap().mean", prediction.mean, p.mean(axis=0), tolerance=ROUNDING)
    _check_sets(lower, upper, prediction.probability)
    expect(credalens.ProbabilityIntervals(lower, upper).contains(probs).all(), "contains() denies a member")


def _of_grid(case: Case) -> None:
    loose = grid(case, rows=5, classes=(2, case.choose(3, 6, 12, 200)))
    tight = loose.tightened()
    lower, upper = credalens.ProbabilityIntervals(*loose.floats()).tighten()
    expect_close("tighten().lower", lower, tight.floats()[0], tolerance=ROUNDING)
    expect_close("tighten().upper", upper, tight.floats()[1], tolerance=ROUNDING)
    attained = (loose.lower == tight.lower).all(axis=-1) & (loose.upper == tight.upper).all(axis=-1)
    reachable = credalens.ProbabilityIntervals(*loose.floats()).is_reachable
    expect((np.asarray(reachable) == attained).all(), f"is_reachable: {reachable}, expected {attained}")
    _check_sets(*tight.floats(), credalens.intersection_probability(*tight.floats()))
    if lower.shape[-1] <= 6:
        _check_vertices(*tight.floats())


def _check_sets(lower: NDArray, upper: NDArray, probability: NDArray) -> None:
    """What holds for every set whose bounds are attained."""
    rows = zip(lower, upper, strict=True)
    expect_close("intersection", probability, [truths.intersection(a, b) for a, b in rows], tolerance=ROUNDING)
    expect_close("its sum", probability.sum(axis=-1), np.ones(len(lower)), tolerance=1e-12)
    intervals = credalens.ProbabilityIntervals(lower, upper)
    expect(np.asarray(intervals.is_reachable).all(), "is_reachable is false for bounds that are attained")
    expect(np.asarray(intervals.contains(probability)).all(), "contains() denies the intersection probability")
    again = intervals.tighten()
    expect_close("tighten() of a tight lower", again.lower, lower, tolerance=1e-12)
    expect_close("tighten() of a tight upper", again.upper, upper, tolerance=1e-12)
    credalens.ProbabilityIntervals(again.lower, again.upper)


def _check_vertices(lower: NDArray, upper: NDArray) -> None:
    found = credalens.ProbabilityIntervals(lower, upper).vertices()
    for low, high, points in zip(lower, upper, found, strict=True):
        expect_close(
            "vertices()", np.unique(points.round(9), axis=0), _distinct(oracles.vertices(low, high)), tolerance=1e-9
        )


def _distinct(points: NDArray) -> NDArray:
    return np.unique(points.round(9) + 0.0, axis=0)
