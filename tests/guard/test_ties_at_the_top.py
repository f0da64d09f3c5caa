"""Many inputs can share the highest score: what a guard promises then, and that it says so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import wrap
from credalens.guard import Guard
from credalens.guard.binomial import alarm_threshold, binomial_interval, conformal_rate_range, share_at_top
from credalens.guard.signature import CalibrationData, Signature
from tests.strategies import batch_of

REMEDY = r"highest value less often: 'mean_total' or 'mean_least_confidence' \(score=, --score\)"


def guard_of(values, rate=0.05):
    signature = Signature(classes=2, n_members=5, trim=0.0)
    return Guard.from_calibration(
        CalibrationData(signature, "total", "intersection", np.asarray(values, float)), false_alarm_rate=rate
    )


def binary(rows, spread, seed=0):
    """Five members on two classes."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, rows) + rng.normal(0, spread, (5, rows))
    first = 1 / (1 + np.exp(-logits))
    return np.stack([first, 1 - first], axis=-1)


@given(st.lists(st.integers(0, 6), min_size=19, max_size=120), st.sampled_from([0.05, 0.1, 0.3]), st.integers(0, 8))
def test_a_guard_is_blind_exactly_where_its_threshold_is_the_highest_value_there_can_be(values, rate, highest):
    scores = np.minimum(np.array(values, float), highest)
    threshold = alarm_threshold(np.sort(scores), rate)
    expected = (scores == highest).mean() if threshold == highest else 0.0
    assert share_at_top(scores, rate, float(highest)) == expected


def test_members_that_disagree_on_two_classes_make_credal_total_blind_and_it_says_so():
    prediction = wrap(binary(1000, 1.0))
    with pytest.warns(UserWarning, match=rf"% of the calibration inputs .*'total'.*{REMEDY}"):
        guard = Guard.fit(prediction, score="total")
    assert guard.decide(prediction).accepted.all()
    assert guard.decide(wrap(np.full((5, 3, 2), 0.5))).accepted.all()
    assert guard.false_alarm_range == binomial_interval(0, 1000)
    other = Guard.fit(prediction)  # no warning
    assert other.score == "mean_total"
    assert not other.blindness
    assert other.false_alarm_range == conformal_rate_range(0.05, 1000)
    assert not other.decide(prediction).accepted.all()


@pytest.mark.parametrize("base", [2.0, np.e])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("classes", [2, 3, 5, 7])
def test_every_kind_of_number_reaches_the_highest_value(classes, dtype, base):
    flat = np.broadcast_to(np.full(classes, 1 / classes), (3, 40, classes)).astype(dtype)
    for score in ("total", "mean_total", "least_confidence", "set_size"):
        with pytest.warns(UserWarning, match=f"the highest '{score}' there can be"):
            Guard.fit(wrap(flat, base=base), score=score)


def test_a_tie_below_the_highest_value_does_not_make_blind():
    guard = guard_of([0.5] * 50 + [0.2] * 50)
    assert not guard.blindness
    assert guard.accepts(np.array([0.5, 0.51])).tolist() == [True, False]
    assert guard.false_alarm_range == binomial_interval(0, 100)


def test_the_score_in_use_is_not_its_own_remedy():
    flat = np.full((3, 40, 2), 0.5)
    with pytest.warns(UserWarning, match=r"'mean_least_confidence' \(score=, --score\)"):
        Guard.fit(wrap(flat), score="mean_total")


@pytest.mark.parametrize("rows", [30, 45, 300])
@pytest.mark.parametrize("levels", [3, 10, 30, 200])
def test_the_range_holds_the_rate_of_tied_scores(levels, rows):
    """Scores of ``levels`` values, equally likely: the rate above a threshold is known."""
    rng, draws, inside = np.random.default_rng(levels), 400, 0
    for _ in range(draws):
        guard = guard_of(rng.integers(0, levels, rows))
        low, high = guard.false_alarm_range
        inside += low <= (levels - 1 - guard.threshold) / levels <= high
    assert binomial_interval(inside, draws, level=0.998)[1] >= 0.95


@pytest.mark.parametrize(
    ("classes", "both", "errors"), [(2, "mean_total", "mean_least_confidence"), (6, "total", "total")]
)
def test_the_default_follows_the_number_of_classes_and_what_is_promised(classes, both, errors):
    prediction = wrap(batch_of("peaked", 5, 400, classes))
    labels = np.asarray(prediction.predict())
    assert Guard.fit(prediction).score == Guard.fit(prediction, labels, max_error=0.3).score == both
    assert Guard.fit(prediction, labels, max_error=0.3, false_alarm_rate=None).score == errors
