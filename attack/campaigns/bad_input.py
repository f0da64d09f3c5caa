"""Values, shapes and options that make no sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import credalens
from attack.case import Case, DefectError, expect
from attack.ensembles import ensemble

HUGE = 10**400


def attack(case: Case) -> None:
    """Bad values, shapes and options raise a ValueError or a TypeError that says something; never a number."""
    probs = ensemble(case, rows=case.between(1, 4), classes=(2, 12))
    spoil, call = case.choose(*CALLS)
    values, options = spoil(case, probs.copy())
    try:
        result = call(values, **options)
    except (ValueError, TypeError) as error:
        expect(len(str(error)) >= 20, f"the error says too little: {error!r}")
        return
    raise DefectError(f"{spoil.__name__} of {call.__name__} gave {result!r}")


def one_bad_value(case: Case, p: NDArray) -> tuple[Any, dict[str, Any]]:
    """NaN, infinity, a negative number or one that breaks the sum."""
    place = tuple(case.between(0, size - 1) for size in p.shape)
    p[place] = case.choose(np.nan, np.inf, -np.inf, -0.25, 2.0, 1e300, p[place] + 0.01)
    return p, {}


def one_bad_bound(case: Case, p: NDArray) -> tuple[Any, dict[str, Any]]:
    """Crossed, missing, negative, empty or unreachable bounds."""
    lower, upper = p.min(axis=0), p.max(axis=0)
    place = tuple(case.between(0, size - 1) for size in lower.shape)
    case.choose(lower, upper)[place] = case.choose(np.nan, -0.5, 1.5, np.inf)
    return (lower, upper), {}


def a_bad_option(case: Case, p: NDArray) -> tuple[Any, dict[str, Any]]:
    """Bases, budgets, tolerances, threads and axes that are no such thing."""
    name, choices = case.choose(*OPTIONS.items())
    return p, {name: case.choose(*choices)}


def a_bad_shape(case: Case, p: NDArray) -> tuple[Any, dict[str, Any]]:
    """No members, one class, a scalar, text, objects, ragged lists."""
    ragged = [[0.5, 0.5], [1.0]]
    return case.choose(p[:0], p[..., :1] * 0 + 1, p[0, 0], 0.5, "probs", None, ragged, p.astype(complex), p > 2), {}


def _wrap(values: Any, **options: Any) -> Any:
    return credalens.wrap(values, **options)


def _classical(values: Any) -> Any:
    return credalens.classical_uncertainty(values)


def _summary(values: Any) -> Any:
    return credalens.MemberSummary().update(values)


def _hull(values: Any) -> Any:
    return credalens.ConvexHull(values)


def _entropies(values: Any) -> Any:
    return credalens.upper_entropy(*values), credalens.lower_entropy(*values)


def _hartley(values: Any) -> Any:
    return credalens.generalized_hartley(*values)


def _decision(values: Any) -> Any:
    lower, upper = values
    return credalens.credal_decision(lower, upper, "maximality")


OPTIONS: dict[str, tuple[Any, ...]] = {
    "base": (1, 0, -2, np.nan, np.inf, HUGE, "2", None, True),
    "max_nodes": (0, -1, 2**70, HUGE, 2.5, "many", None, True),
    "tolerance": (-1.0, np.nan, np.inf, HUGE, "small", None),
    "threads": (0, -3, 1.5, "all"),
    "member_axis": (7, -9, -1, 1.0, "first", None),
}
Spoil = Callable[[Case, NDArray], tuple[Any, dict[str, Any]]]
CALLS: tuple[tuple[Spoil, Callable[..., Any]], ...] = (
    *((one_bad_value, call) for call in (_wrap, _classical, _summary, _hull)),
    *((one_bad_bound, call) for call in (_entropies, _hartley, _decision)),
    *((a_bad_shape, call) for call in (_wrap, _classical, _summary, _hull)),
    (a_bad_option, _wrap),
)
