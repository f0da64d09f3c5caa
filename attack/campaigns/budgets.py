"""Rows that the budget of the search leaves open: counted, warned of by every entrance, bounded all the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import credalens
from attack.case import Case, expect
from attack.ensembles import row

OPEN = 1e-9


def attack(case: Case) -> None:
    """Any budget: value and bound hold the optimum, more nodes never widen them, and open rows are warned of."""
    classes, members = case.between(8, case.choose(20, 120, 400)), case.between(2, case.choose(6, 50))
    kinds = [case.choose("flat", "near", "permutations", "swaps", "mixed") for _ in range(6)]
    probs = np.stack([row(case, kind, members, classes) for kind in kinds], axis=1)
    case.count(6)
    budgets = sorted(case.rng.choice([1, 10, 100, 1000, 10_000, 200_000], 2, replace=False).tolist())
    few, more = (_within(_entrance(case), probs, nodes) for nodes in budgets)
    for less, best in ((few, more), (more, few)):
        beaten = less.bound - best.value
        expect((beaten <= 1e-10).all(), f"a bound is {beaten.max():.3g} bits above a value that was found")


class Result:
    """Value and certified bound of every row."""

    def __init__(self, value: Any, bound: Any) -> None:
        self.value, self.bound = np.asarray(value), np.asarray(bound)


Entrance = Callable[[NDArray, int], Result]


def _within(entrance: Entrance, probs: NDArray, max_nodes: int) -> Result:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = entrance(probs, max_nodes)
    number = int((result.value - result.bound > OPEN).sum())
    said = [str(entry.message) for entry in caught if "not certified" in str(entry.message)]
    expected = [f"{number} of {probs.shape[1]} rows"] * (number > 0)
    expect([text.split(" are ")[0].split(" is ")[0] for text in said] == expected, f"{number} rows are open: {said}")
    return result


def _entrance(case: Case) -> Entrance:
    return case.choose(_wrap, _logits, _summary, _bounds, _gradients)


def _of(prediction: Any) -> Result:
    return Result(prediction.aleatoric, prediction.aleatoric_bound)


def _wrap(probs: NDArray, max_nodes: int) -> Result:
    return _of(credalens.wrap(probs, max_nodes=max_nodes))


def _logits(probs: NDArray, max_nodes: int) -> Result:
    return _of(credalens.wrap_logits(np.log(probs + 1e-300), max_nodes=max_nodes))


def _summary(probs: NDArray, max_nodes: int) -> Result:
    return _of(credalens.MemberSummary().update(probs).prediction(max_nodes=max_nodes))


def _bounds(probs: NDArray, max_nodes: int) -> Result:
    lower, upper = probs.min(axis=0), probs.max(axis=0)
    value, (bound, _) = credalens.lower_entropy(lower, upper, return_bounds=True, max_nodes=max_nodes)
    return Result(value, bound)


def _gradients(probs: NDArray, max_nodes: int) -> Result:
    import torch

    from credalens.torch import credal_prediction

    prediction = credal_prediction(torch.from_numpy(probs), max_nodes=max_nodes)
    return Result(prediction.aleatoric.numpy(), prediction.aleatoric_bound.numpy())
