"""Numbers of guards and sets are those of the library's own, and their promises hold."""

from __future__ import annotations

import numpy as np
import pytest

from credalens import wrap
from credalens.guard import ConformalSets, Guard
from credalens_paper.experiments.cell_keys import ERROR_METRICS, SET_METRICS
from credalens_paper.experiments.paper_entries import BOTH
from credalens_paper.measures.assessment import Assessment, Extras, assess_members
from credalens_paper.measures.guarding import HALF, RATE, Halves, kept_numbers, turned_away_numbers
from reproduction.tests.standard_error import standard_error
from tests.strategies import batch_of

SCORES = ("total", "mean_epistemic")
EXTRAS = Extras(frozenset(SCORES))


HALVES = Halves(7, 20)


@pytest.mark.filterwarnings("ignore:.*the highest .* there can be")  # the numbers of such guards count too
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
    numbers |= turned_away_numbers(assessed, assess_members(unknown, extras=EXTRAS), labels, HALVES)
    side = "classical" if score.startswith("mean") else "credal"
    found = [numbers[f"{side}.{score}.{metric}"] for metric in ("false_alarms", "accepted_ACC", "turned_away")]
    np.testing.assert_allclose(found, 100 * np.mean([false, right, turned], axis=1), rtol=1e-12)


def sure_and_unsure(inputs, seed):
    """Members that agree more or less, and labels that they are right about the more often, the more they agree."""
    rng = np.random.default_rng(seed)
    truth, unsure = rng.integers(0, 3, inputs), rng.random((inputs, 1))
    return (1 - unsure) * np.eye(3)[truth] + unsure * rng.dirichlet([0.3] * 3, (4, inputs)), truth


@pytest.mark.parametrize("score", SCORES)
def test_errors_are_those_of_guards_that_promise_to_halve_them(score):
    known, labels = sure_and_unsure(1500, seed=1)
    unknown = batch_of("mixed", 4, 100, 3, seed=2)
    inside = wrap(known)
    usual = (inside.predict() != labels).mean()
    accepted, left, turned = [], [], []
    for learnt in HALVES.of(1500):
        try:
            guard = Guard.fit(
                inside[learnt], labels[learnt], score=score, false_alarm_rate=None, max_error=float(HALF * usual)
            )
        except ValueError:  # it can promise nothing, and accepts nothing
            accepted, left, turned = [*accepted, 0.0], [*left, 0.0], [*turned, 1.0]
            continue
        taken = guard.decide(inside[~learnt]).accepted
        accepted.append(taken.mean())
        left.append((inside[~learnt].predict() != labels[~learnt])[taken].mean() / usual)
        turned.append(1 - guard.decide(wrap(unknown)).accepted.mean())
    assessed = assess_members(known, extras=EXTRAS)
    numbers = kept_numbers(assessed, labels, HALVES)
    numbers |= turned_away_numbers(assessed, assess_members(unknown, extras=EXTRAS), labels, HALVES)
    side = "classical" if score.startswith("mean") else "credal"
    found = [numbers[f"{side}.{score}.{metric}"] for metric in (*ERROR_METRICS, "halved_turned_away")]
    expected = [np.mean(accepted), np.mean(left), np.mean(np.array(left) > HALF), np.mean(turned)]
    np.testing.assert_allclose(found, 100 * np.array(expected), rtol=1e-12)
    assert 10 < found[0] < 100
    assert found[3] > 0


def test_a_guard_that_can_promise_nothing_accepts_nothing_and_one_without_errors_everything():
    inside = Assessment({"credal.total": np.zeros(100)}, dict.fromkeys(BOTH, np.eye(2)[np.zeros(100, int)]))
    half_wrong, never_wrong = (
        kept_numbers(inside, labels, HALVES) | turned_away_numbers(inside, inside, labels, HALVES)
        for labels in (np.arange(100) % 2, np.zeros(100, int))
    )
    metrics = [f"credal.total.{metric}" for metric in (*ERROR_METRICS, "halved_turned_away")]
    assert [half_wrong[metric] for metric in metrics] == [0, 0, 0, 100]
    assert [never_wrong[metric] for metric in metrics] == [100, 0, 0, 0]


def test_a_score_at_the_limit_is_not_accepted():
    scores = np.repeat([0.0, 1.0], 200)
    labels = np.where(scores > 0, np.arange(400) % 2, 0)  # every second of the higher ones is wrong
    inside = Assessment({"credal.total": scores}, dict.fromkeys(BOTH, np.eye(2)[np.zeros(400, int)]))
    known, turned = kept_numbers(inside, labels, HALVES), turned_away_numbers(inside, inside, labels, HALVES)
    # The lower ones, whichever half they are in.
    assert known["credal.total.halved_accepted"] == pytest.approx(50, abs=5)
    assert known["credal.total.halved_left"] == 0
    assert turned["credal.total.halved_turned_away"] == 50


def test_the_average_breaks_ties_of_the_intersection_probability():
    points = {"credal": np.full((100, 2), 0.5), "classical": np.tile([0.4, 0.6], (100, 1))}
    inside = Assessment({"credal.total": np.arange(100.0)}, points)
    right, wrong = (kept_numbers(inside, np.full(100, label), HALVES)["credal.total.accepted_ACC"] for label in (1, 0))
    assert (right, wrong) == (100, 0)


@pytest.mark.parametrize(("variant", "method"), [("classical", "lac"), ("credal", "intersection")])
@pytest.mark.parametrize("guessed", [0, 100])
def test_sets_are_conformal_sets_on_the_same_halves(variant, method, guessed):
    known, labels = sure_and_unsure(300, seed=5)
    inside = wrap(known)
    labels[guessed:] = inside.predict()[guessed:]  # where all are right, some sets would be empty
    covered, sizes = [], []
    for learnt in HALVES.of(300):
        fitted = ConformalSets.fit(inside[learnt], labels[learnt], alpha=RATE, method=method)
        sets = fitted.predict_set(inside[~learnt])
        covered.append(sets[np.arange(150), labels[~learnt]].mean())
        sizes.append(sets.sum(axis=-1).mean())
    numbers = kept_numbers(assess_members(known, extras=EXTRAS), labels, HALVES)
    found = [numbers[f"{variant}.{metric}"] for metric in SET_METRICS]
    np.testing.assert_allclose(found, [100 * np.mean(covered), np.mean(sizes)], rtol=1e-12)


def test_sets_tell_small_probabilities_of_float32_apart():
    rng = np.random.default_rng(8)
    small = 1e-4 * (1 + 1e-5 * rng.random((300, 2)))
    known = np.repeat(np.column_stack([1 - small.sum(axis=-1), small])[None], 2, axis=0).astype(np.float32)
    labels, inside = rng.integers(0, 3, 300), wrap(known)
    sizes = [
        ConformalSets.fit(inside[learnt], labels[learnt], alpha=RATE).predict_set(inside[~learnt]).sum(axis=-1).mean()
        for learnt in HALVES.of(300)
    ]
    numbers = kept_numbers(assess_members(known, extras=EXTRAS), labels, HALVES)
    assert numbers["classical.classes_in_set"] == pytest.approx(np.mean(sizes), rel=1e-12)


def test_halves_are_halves_and_others_for_another_seed():
    first, second = ([learnt for learnt, _ in Halves(seed, 3).fitted(np.arange(50.0))] for seed in (0, 1))
    assert {int(learnt.sum()) for learnt in (*first, *second)} == {25}
    assert len({learnt.tobytes() for learnt in (*first, *second)}) == 6


def test_names_of_the_paper_are_not_measured_twice():
    assessed = assess_members(batch_of("peaked", 4, 60, 3, seed=1), extras=EXTRAS)
    numbers = turned_away_numbers(assessed, assessed, np.zeros(60, int), HALVES)
    assert {name.rpartition(".")[0] for name in numbers} == {"classical.mean_epistemic", "credal.total"}


def test_false_alarms_keep_the_promise_on_average():
    rng = np.random.default_rng(4)
    points, labels = dict.fromkeys(BOTH, np.eye(2)[np.zeros(79, int)]), np.zeros(79, int)
    rates = [
        kept_numbers(Assessment({"credal.total": rng.random(79)}, points), labels, HALVES)["credal.total.false_alarms"]
        for _ in range(300)
    ]
    assert np.mean(rates) == pytest.approx(100 * RATE, abs=0.3)  # of 39 scores the second largest is the threshold


def test_the_standard_error_of_false_alarms_is_how_means_over_halves_spread():
    halves, inputs = 25, 400
    scores = np.random.default_rng(1).random(inputs)
    drawn = [np.mean(scores[~learnt] > threshold) for learnt, threshold in Halves(0, 400 * halves).fitted(scores)]
    means = 100 * np.reshape(drawn, (400, halves)).mean(axis=1)
    assert means.std() == pytest.approx(standard_error(halves, inputs), rel=0.15)
