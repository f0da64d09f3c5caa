"""Numbers of guards are those of the guard itself, and its promise holds on average."""

from __future__ import annotations

import numpy as np
import pytest

from credalens import wrap
from credalens.guard import Guard
from credalens_paper.measures.assessment import Assessment, Extras, assess_members
from credalens_paper.measures.guarding import RATE, Halves, kept_numbers, turned_away_numbers
from tests.strategies import batch_of

SCORES = ("total", "mean_epistemic")
EXTRAS = Extras(frozenset(SCORES), guards=True)


HALVES = Halves(7, 20)


@pytest.mark.parametrize("score", SCORES)
def test_the_numbers_are_those_of_guards_on_the_same_halves(score):
    known, unknown = batch_of("peaked", 4, 300, 3, seed=1), batch_of("mixed", 4, 100, 3, seed=2)
    labels = np.random.default_rng(3).integers(0, 3, 300)
    inside, outside = wrap(known), wrap(unknown)
    false, right, turned = [], [], []
    for learnt, _ in HALVES.fitted(np.zeros(300)):
        guard = Guard.fit(inside[learnt], score=score, false_alarm_rate=RATE)
        accepted = guard.decide(inside[~learnt]).accepted
        false.append(1 - accepted.mean())
        right.append((inside[~learnt].predict() == labels[~learnt])[accepted].mean())
        turned.append(1 - guard.decide(outside).accepted.mean())
    assessed = assess_members(known, extras=EXTRAS)
    numbers = kept_numbers(assessed, labels, HALVES)
    numbers |= turned_away_numbers(assessed, assess_members(unknown, extras=EXTRAS), HALVES)
    side = "classical" if score.startswith("mean") else "credal"
    found = [numbers[f"{side}.{score}.{metric}"] for metric in ("false_alarms", "accepted_ACC", "turned_away")]
    np.testing.assert_allclose(found, 100 * np.mean([false, right, turned], axis=1), rtol=1e-12)


def test_halves_are_halves_and_others_for_another_seed():
    first, second = ([learnt for learnt, _ in Halves(seed, 3).fitted(np.arange(50.0))] for seed in (0, 1))
    assert {int(learnt.sum()) for learnt in (*first, *second)} == {25}
    assert len({learnt.tobytes() for learnt in (*first, *second)}) == 6


def test_names_of_the_paper_are_not_measured_twice():
    assessed = assess_members(batch_of("peaked", 4, 60, 3, seed=1), extras=EXTRAS)
    numbers = turned_away_numbers(assessed, assessed, HALVES)
    assert sorted(numbers) == ["classical.mean_epistemic.turned_away", "credal.total.turned_away"]


def test_false_alarms_keep_the_promise_on_average():
    rng = np.random.default_rng(4)
    points, labels = {"credal": np.eye(2)[np.zeros(79, int)]}, np.zeros(79, int)
    rates = [
        kept_numbers(Assessment({"credal.total": rng.random(79)}, points), labels, HALVES)["credal.total.false_alarms"]
        for _ in range(300)
    ]
    assert np.mean(rates) == pytest.approx(100 * RATE, abs=0.3)  # of 39 scores the second largest is the threshold


@pytest.mark.parametrize("metric", ["false_alarms", "turned_away", "accepted_ACC"])
def test_guards_are_fitted_where_a_number_asks_for_one(metric):
    assert Extras.of([f"credal.total.{metric}"]) == Extras(frozenset({"total"}), guards=True)
    assert not Extras.of(["credal.total.AUROC"]).guards
