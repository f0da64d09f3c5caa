"""Intervals from anywhere give what members with these bounds give, and say what needs members."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from credalens import CredalPrediction, ProbabilityIntervals, wrap
from credalens.core.scores import SCORES
from credalens.guard import ConformalSets, DriftAlarm, Guard
from tests.strategies import batch_of, ensembles

OF_MEMBERS = [name for name, score in SCORES.items() if score.averaged]


@given(ensembles())
def test_bounds_of_members_give_the_same_prediction(p):
    expected = wrap(p[:, None])
    made = CredalPrediction.from_intervals(expected.lower, expected.upper, expected.mean)
    for name in ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic", "hartley"):
        np.testing.assert_allclose(getattr(made, name), getattr(expected, name), atol=1e-9, err_msg=name)
    assert (made.predict() == expected.predict()).all()
    assert (made.predict_set() == expected.predict_set()).all()
    for name in set(SCORES) - set(OF_MEMBERS) - {"imprecision"}:
        np.testing.assert_allclose(made.score(name), expected.score(name), atol=1e-6, err_msg=name)


@pytest.fixture
def intervals():
    expected = wrap(batch_of("peaked", 5, 60, 4))
    return CredalPrediction.from_intervals(expected.lower, expected.upper)


def test_what_needs_members_says_so(intervals):
    assert intervals.n_members == 0
    assert "intervals" in repr(intervals)
    for name in OF_MEMBERS:
        with pytest.raises(ValueError, match="made from intervals"):
            intervals.score(name)
    for attribute in ("classical", "hull"):
        with pytest.raises(ValueError, match="made from intervals"):
            getattr(intervals, attribute)
    with pytest.raises(ValueError, match="point='intersection'"):
        Guard.fit(intervals, np.zeros(60, int), point="mean", max_error=0.9)


def test_a_mean_brings_its_confidence_and_no_more(intervals):
    with_mean = CredalPrediction.from_intervals(intervals.lower, intervals.upper, intervals.probability)
    assert with_mean.score("mean_least_confidence").shape == (60,)
    with pytest.raises(ValueError, match="made from intervals"):
        with_mean.score("mean_total")


def test_guards_sets_and_files_work(intervals, tmp_path):
    labels = np.asarray(intervals.predict())
    guard, sets = Guard.fit(intervals, labels, max_error=0.5), ConformalSets.fit(intervals, labels)
    guard.save(tmp_path / "guard.json")
    intervals.save(tmp_path / "p.npz")
    loaded = CredalPrediction.load(tmp_path / "p.npz")
    assert (Guard.load(tmp_path / "guard.json").decide(loaded).accepted == guard.decide(intervals).accepted).all()
    assert sets.predict_set(loaded).shape == (60, 4)
    alarm = DriftAlarm(intervals.total)
    alarm.update(loaded[:5].total)
    assert not alarm.alarm
    with pytest.raises(ValueError, match="0 members"):
        guard.decide(wrap(batch_of("peaked", 5, 60, 4)))
    assert next(iter(loaded.to_pandas())) == "prediction"


def test_two_classes_from_one_bound_each():
    made = CredalPrediction.from_intervals([0.2, 0.5], [0.5, 0.8], base=4)
    assert made.probability.round(3).tolist() == [0.35, 0.65]
    assert made.total == pytest.approx(0.5)


class TestRefusals:
    def test_bounds_that_none_reaches(self):
        with pytest.raises(ValueError, match="tighten"):
            CredalPrediction.from_intervals([0.0, 0.0, 0.0], [0.1, 0.6, 1.0])
        tight = ProbabilityIntervals([0.0, 0.0, 0.0], [0.1, 0.6, 1.0]).tighten()
        assert CredalPrediction.from_intervals(*tight).lower[2] == pytest.approx(0.3)

    def test_empty_sets_and_swapped_bounds(self):
        with pytest.raises(ValueError, match="empty"):
            CredalPrediction.from_intervals([0.6, 0.6], [0.7, 0.7])
        with pytest.raises(ValueError, match="swap"):
            CredalPrediction.from_intervals([0.5, 0.9], [0.1, 0.5])

    @pytest.mark.parametrize("mean", [[0.9, 0.1], [0.5, 0.4], [[0.3, 0.7]] * 2])
    def test_means_outside(self, mean):
        with pytest.raises(ValueError, match="mean"):
            CredalPrediction.from_intervals([0.2, 0.5], [0.5, 0.8], mean)
