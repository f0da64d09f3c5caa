"""Members folded in one by one, in groups, in any order."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

import credalens
from attack.case import Case, expect, expect_close
from attack.ensembles import ensemble

FIELDS = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic", "aleatoric_bound")


def attack(case: Case) -> None:
    """MemberSummary: any grouping, order and library of updates and merges gives what wrap gives at once."""
    probs = ensemble(case, rows=4, classes=(2, case.choose(5, 50)), members=(1, 12))
    dtype = case.choose(np.float64, np.float32)
    probs = probs.astype(dtype)
    summary = _merged(case, _summaries(case, probs))
    expect(summary.count == len(probs), f"{summary.count} members counted of {len(probs)}")
    tolerance = 1e-11 if dtype == np.float64 else 2.0**-20
    result, wanted = summary.prediction(), credalens.wrap(probs)
    for field in FIELDS:
        expect_close(field, getattr(result, field), getattr(wanted, field), tolerance=tolerance)
    for part in ("total", "aleatoric", "epistemic"):
        value, truth = getattr(result.classical, part), getattr(wanted.classical, part)
        expect_close(f"classical.{part}", value, truth, tolerance=tolerance)


def _summaries(case: Case, probs: NDArray) -> list[Any]:
    """Summaries of a random partition of the members, some of them empty."""
    groups = np.array_split(probs[case.rng.permutation(len(probs))], case.between(1, len(probs) + 2))
    return [_summary(case, group) for group in groups]


def _summary(case: Case, group: NDArray) -> Any:
    summary = credalens.MemberSummary()
    if not len(group):
        return summary
    if case.between(0, 1):
        return summary.update(group)
    for member in group:
        summary.update(member, member_axis=None)
    return summary


def _merged(case: Case, summaries: list[Any]) -> Any:
    """From left to right, or as a random tree."""
    if case.between(0, 1):
        return reduce(lambda a, b: a.merge(b), summaries)
    while len(summaries) > 1:
        a = summaries.pop(case.between(0, len(summaries) - 1))
        b = summaries.pop(case.between(0, len(summaries) - 1))
        summaries.append(a + b)
    return summaries[0]
