"""Many inputs can share the highest score: what a guard promises then, and that it says so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import wrap
from credalens.guard import Guard
from credalens.guard.binomial import binomial_interval, conformal_rate_range, most_hits
from credalens.guard.calibration import Calibration
from credalens.guard.false_alarms import alarm_threshold, share_at_top
from credalens.guard.quantile import least_samples

REMEDY = r"score='mean_total' or 'mean_least_confidence' \(--score\)"


def guard_of(values, rate=0.05):
    made = {"score": "total", "point": "intersection", "base": 2.0, "classes": 2, "n_members": 5, "trim": 0.0}
    return Guard.from_calibration(Calibration(**made, values=np.asarray(values, float)), false_alarm_rate=rate)


def binary(rows, spread, seed=0):
    """Five members on two classes."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, rows) + rng.normal(0, spread, (5, rows))
    first = 1 / (1 + np.exp(-logits))
    return np.stack([first, 1 - first], axis=-1)


@given(st.lists(st.integers(0, 6), min_size=20, max_size=120), st.sampled_from([0.05, 0.1, 0.3]))
def test_a_share_at_the_top_means_that_no_calibration_input_is_flagged(values, rate):
    scores = np.array(values, float)
    share, allowed = share_at_top(scores, rate), most_hits(rate, len(scores) + 1)
    at_top = (scores == scores.max()).sum()
    assert share == (at_top / len(scores) if at_top > max(1, allowed) else 0)
    if share and len(scores) >= least_samples(rate):
        assert not (scores > alarm_threshold(np.sort(scores), rate)).any()
        lower = np.sort(scores[scores < scores.max()])
        assert not len(lower) or (scores > lower[-1]).mean() > rate  # the next threshold would flag too many


def test_members_that_disagree_on_two_classes_make_the_default_blind_and_it_says_so():
    prediction = wrap(binary(1000, 1.0))
    with pytest.warns(
        UserWarning, match=rf"% of the calibration inputs share the highest 'total', 1, because.*{REMEDY}"
    ):
        guard = Guard.fit(prediction)
    assert guard.decide(prediction).accepted.all()
    assert guard.false_alarm_range == binomial_interval(0, 1000)
    other = Guard.fit(prediction, score="mean_total")  # no warning
    assert not other.blindness
    assert other.false_alarm_range == conformal_rate_range(0.05, 1000)
    assert not other.decide(prediction).accepted.all()


def test_a_tie_elsewhere_is_not_laid_to_the_uniform_distribution():
    guard = guard_of([0.5] * 50 + [0.2] * 50)
    assert "share the highest 'total', 0.5. At a false-alarm rate of 0.05" in guard.blindness
    assert not guard_of(np.arange(100)).blindness
    assert guard.accepts(np.array([0.5, 0.51])).tolist() == [True, False]


@pytest.mark.parametrize("levels", [10, 30, 200])
def test_the_range_holds_the_rate_of_tied_scores(levels):
    """Scores of ``levels`` values, equally likely: the rate above a threshold is known."""
    rng, draws, inside = np.random.default_rng(levels), 400, 0
    for _ in range(draws):
        guard = guard_of(rng.integers(0, levels, 300))
        low, high = guard.false_alarm_range
        inside += low <= (levels - 1 - guard.threshold) / levels <= high
    assert binomial_interval(inside, draws, level=0.998)[1] >= 0.95
