"""Both entropies where all vertices can be listed."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

import credalens
from attack.case import Case, expect, expect_close
from attack.ensembles import bounds, ensemble
from tests import oracles

ROUNDING = 1e-11


def attack(case: Case) -> None:
    """Upper and lower entropy, bound and distributions against the list of all vertices."""
    classes = (2, case.choose(3, 6, 11))
    if case.between(0, 1):
        lower, upper = bounds(case, rows=4, classes=classes)
        base = case.choose(2, math.e, 10)
    else:
        lower, upper = _check_prediction(ensemble(case, rows=4, classes=classes), base := case.choose(2, math.e, 10))
    check_entropies(lower, upper, base, *_truths(lower, upper, base))
    _check_permuted(case, lower, upper)


def check_entropies(lower: NDArray, upper: NDArray, base: float, highest: NDArray, lowest: NDArray) -> None:
    """Values, their distributions and the bound of rows whose true entropies are known."""
    value, p = credalens.upper_entropy(lower, upper, base=base, return_distribution=True)
    expect_close("upper_entropy", value, highest, tolerance=ROUNDING)
    check_distribution("upper_entropy's distribution", p, lower, upper, value, base)
    value, q, (bound, same) = credalens.lower_entropy(
        lower, upper, base=base, return_distribution=True, return_bounds=True
    )
    expect_close("lower_entropy", value, lowest, tolerance=ROUNDING)
    check_distribution("lower_entropy's distribution", q, lower, upper, value, base)
    expect_close("the value of return_bounds", same, value, tolerance=0)
    expect((bound <= value).all(), f"the bound exceeds the value by {(bound - value).max():.3g}")
    expect_close("the bound", bound, value, tolerance=1e-9)


def check_distribution(what: str, p: NDArray, lower: NDArray, upper: NDArray, entropy: NDArray, base: float, /) -> None:
    """It lies in its set and has the entropy that was returned."""
    outside = max((lower - p).max(), (p - upper).max())
    expect(outside <= 1e-12, f"{what} leaves the bounds by {outside:.3g}")
    expect_close(f"{what}: its sum", p.sum(axis=-1), np.ones(len(p)), tolerance=1e-11)
    expect_close(f"{what}: its entropy", oracles.entropy(p) / math.log2(base), entropy, tolerance=1e-10)


def _check_prediction(probs: NDArray, base: float) -> tuple[NDArray, NDArray]:
    """All three parts of ``wrap`` against its own bounds, which the campaign ``intervals`` checks."""
    prediction = credalens.wrap(probs, base=base)
    lower, upper = prediction.lower, prediction.upper
    highest, lowest = _truths(lower, upper, base)
    expect_close("wrap().total", prediction.total, highest, tolerance=ROUNDING)
    expect_close("wrap().aleatoric", prediction.aleatoric, lowest, tolerance=ROUNDING)
    expect_close("wrap().epistemic", prediction.epistemic, highest - lowest, tolerance=ROUNDING)
    expect((prediction.aleatoric >= 0).all(), f"wrap().aleatoric is {prediction.aleatoric.min():.3g}")
    expect((prediction.epistemic >= 0).all(), f"wrap().epistemic is {prediction.epistemic.min():.3g}")
    expect((prediction.aleatoric_bound <= prediction.aleatoric).all(), "wrap().aleatoric_bound exceeds aleatoric")
    return lower, upper


def _truths(lower: NDArray, upper: NDArray, base: float) -> tuple[NDArray, NDArray]:
    pairs = list(zip(lower, upper, strict=True))
    highest = np.array([oracles.upper_entropy(*pair)[0] for pair in pairs])
    lowest = np.array([oracles.lower_entropy(*pair) for pair in pairs])
    return highest / math.log2(base), lowest / math.log2(base)


def _check_permuted(case: Case, lower: NDArray, upper: NDArray) -> None:
    order = case.rng.permutation(lower.shape[-1])
    for measure in (credalens.upper_entropy, credalens.lower_entropy):
        value, permuted = measure(lower, upper), measure(lower[:, order], upper[:, order])
        expect_close(f"{measure.__name__} of permuted classes", permuted, value, tolerance=ROUNDING)
