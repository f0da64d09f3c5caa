"""Both entropies where vertices are too many to list: certificates, and a search that must not beat them."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

import credalens
from attack import truths
from attack.campaigns.few_classes import ROUNDING, check_distribution
from attack.case import Case, expect, expect_close
from attack.ensembles import bounds, ensemble, row
from tests import oracles

SIZES = ((12, 40), (41, 200), (201, 600), (1000, 5000))


def attack(case: Case) -> None:
    """Entropies of up to 5000 classes: distributions, certificates, and random vertices that must not be lower."""
    classes = SIZES[int(case.rng.choice(len(SIZES), p=[0.4, 0.4, 0.15, 0.05]))]
    lower, upper = _sets(case, classes)
    value, p = credalens.upper_entropy(lower, upper, return_distribution=True)
    pairs = list(zip(lower, upper, strict=True))
    expect_close("upper_entropy", value, [oracles.upper_entropy(*pair)[0] for pair in pairs], tolerance=ROUNDING)
    check_distribution("upper_entropy's distribution", p, lower, upper, value, 2)
    _check_lower(case, lower, upper, max_nodes=case.choose(1, 50, 2000))


def _sets(case: Case, classes: tuple[int, int]) -> tuple[NDArray, NDArray]:
    """Of members, of a grid, or of permutations with near-ties, which reach branch and bound."""
    kind = case.between(0, 2)
    if kind == 0:
        return bounds(case, rows=4, classes=classes)
    if kind == 1:
        probs = ensemble(case, rows=4, classes=classes, members=(1, 20))
    else:
        number, members = case.between(*classes), case.between(2, 6)
        probs = np.stack([row(case, "permutations", members, number) for _ in range(12)], axis=1)
    return probs.min(axis=0), probs.max(axis=0)


def _check_lower(case: Case, lower: NDArray, upper: NDArray, max_nodes: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value, p, (bound, _) = credalens.lower_entropy(
            lower, upper, return_distribution=True, return_bounds=True, max_nodes=max_nodes
        )
    number = int((value - bound > 1e-9).sum())
    said = [str(entry.message).partition(" of ")[0] for entry in caught]
    expect(said == [str(number)] * (number > 0), f"{number} rows are open, and the warnings say {said}")
    check_distribution("lower_entropy's distribution", p, lower, upper, value, 2)
    expect((bound <= value).all(), f"the bound exceeds the value by {(bound - value).max():.3g}")
    lowest = np.array(
        [truths.low_entropy_by_search(low, high, case.rng) for low, high in zip(lower, upper, strict=True)]
    )
    beaten = bound - lowest
    expect(
        (beaten <= 1e-10).all(), f"row {beaten.argmax()}: a vertex is {beaten.max():.3g} bits below the certified bound"
    )
