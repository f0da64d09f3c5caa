"""Everything about an input with two to six classes, for thousands of inputs at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import credalens
from attack import many_rows
from attack.case import Case, expect, expect_close
from credalens.core.scores import SCORES

ROUNDING = 1e-11
CLEAR = 1e-11  # a difference of bounds that rounding does not explain


def attack(case: Case) -> None:
    """Entropies, Hartley, imprecision, decisions and averages of thousands of inputs against sums over all subsets."""
    classes, members = case.choose(2, 3, 4, 5, 6), case.between(1, case.choose(3, 12))
    probs = many_rows.predictions(case, rows=case.choose(500, 5000), classes=classes, members=members)
    prediction = credalens.wrap(probs)
    p = probs / probs.sum(axis=-1, keepdims=True)
    lower, upper = prediction.lower, prediction.upper
    expect_close("lower", lower, p.min(axis=0), tolerance=1e-13)
    expect_close("upper", upper, p.max(axis=0), tolerance=1e-13)
    _check_entropies(prediction, p)
    _check_other_scores(prediction, p)
    _check_decisions(prediction)


def _check_entropies(prediction: credalens.CredalPrediction, p: NDArray) -> None:
    highest = many_rows.highest_entropy(prediction.lower, prediction.upper)
    lowest = many_rows.lowest_entropy(prediction.lower, prediction.upper)
    expect_close("total", prediction.total, highest, tolerance=ROUNDING)
    expect_close("aleatoric", prediction.aleatoric, lowest, tolerance=ROUNDING)
    expect_close("epistemic", prediction.epistemic, highest - lowest, tolerance=2 * ROUNDING)
    expect((prediction.aleatoric_bound <= prediction.aleatoric).all(), "a bound exceeds its value")
    expect_close("the bound", prediction.aleatoric_bound, prediction.aleatoric, tolerance=1e-9)
    of_each = many_rows.entropy(p).mean(axis=0)
    expect_close("mean_aleatoric", prediction.score("mean_aleatoric"), of_each, tolerance=ROUNDING)
    of_mean = many_rows.entropy(p.mean(axis=0))
    expect_close("mean_total", prediction.score("mean_total"), of_mean, tolerance=ROUNDING)


def _check_other_scores(prediction: credalens.CredalPrediction, p: NDArray) -> None:
    lower, upper = prediction.lower, prediction.upper
    expect_close("hartley", prediction.hartley, many_rows.hartley(lower, upper), tolerance=1e-10)
    imprecision = many_rows.imprecision(lower, upper)
    expect_close("imprecision", prediction.score("imprecision"), imprecision, tolerance=1e-11)
    width = (upper - lower).sum(axis=-1)
    alpha = np.clip((1 - lower.sum(axis=-1)) / np.where(width > 1e-15, width, 1.0), 0, 1) * (width > 1e-15)
    star = lower + alpha[:, None] * (upper - lower)
    expect_close("probability", prediction.probability, star, tolerance=1e-12)
    top = np.take_along_axis(prediction.probability, prediction.predict()[:, None], axis=-1)[:, 0]
    expect((top >= prediction.probability.max(axis=-1) * (1 - 1e-14)).all(), "predict() is not the top of p*")
    if (p == p[0]).all():
        for name in ("epistemic", "hartley", "imprecision", "mean_pairwise_kl"):
            expect(not prediction.score(name).any(), f"{name} of equal members is not zero")
    for name in SCORES:
        value = prediction.score(name)
        expect((value >= 0).all() and np.isfinite(value).all(), f"{name} is negative or not finite")


def _check_decisions(prediction: credalens.CredalPrediction) -> None:
    truth = many_rows.margins(prediction.lower, prediction.upper)
    sets = {rule: prediction.predict_set(rule) for rule in ("interval_dominance", "maximality", "e_admissibility")}
    for rule, margin in (("interval_dominance", truth.dominance), ("maximality", truth.maximality)):
        wrong = np.where(margin > CLEAR, sets[rule], (margin < -CLEAR) & ~sets[rule])
        expect(
            not wrong.any(), f"{rule}: {int(wrong.any(axis=-1).sum())} rows, the first {wrong.any(axis=-1).argmax()}"
        )
    expect((sets["interval_dominance"] >= sets["maximality"]).all(), "maximality keeps what dominance drops")
    expect((sets["maximality"] >= sets["e_admissibility"]).all(), "E-admissibility keeps what maximality drops")
    expect(sets["e_admissibility"].any(axis=-1).all(), "an empty set")
