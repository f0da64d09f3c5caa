"""Intervals that hold the distribution of people's labels with the promised probability."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import wrap
from credalens.guard import CoveringIntervals
from credalens.guard.binomial import binomial_interval, conformal_quantile
from credalens.guard.covering_intervals import largest_violations
from tests.strategies import ensembles


def answered(n, classes, seed, *, people=20, dtype=np.float64):
    """Members around a truth, and how many of some people chose each class."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(classes, 0.3), n)
    members = truth + 0.2 * (rng.dirichlet(np.ones(classes), (3, n)) - truth)
    return wrap(members.astype(dtype)), rng.multinomial(people, truth)


def inside(intervals, counts):
    """Strictly, without a tolerance."""
    h = counts / counts.sum(axis=-1, keepdims=True)
    return ((intervals.lower <= h) & (h <= intervals.upper)).all(axis=-1)


@pytest.mark.parametrize("people", [3, 50])  # few people: many ties
def test_the_promise_holds_and_is_not_far_exceeded(people):
    prediction, counts = answered(10_000, 4, seed=0, people=people)
    violations = largest_violations(prediction, counts)
    drawn = violations[
        np.random.default_rng(1).integers(0, 10_000, (10_000, 41))
    ]  # a calibration set and a new input each
    quantiles = np.sort(drawn[:, 1:])[:, 32]
    assert quantiles[0] == conformal_quantile(drawn[0, 1:], 0.2)
    held = int((drawn[:, 0] <= quantiles).sum())
    low, high = binomial_interval(held, 10_000, level=0.999)
    assert high >= 0.8
    assert low <= 0.8 + 1 / 41


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_inflated_intervals_hold_what_their_margin_says(dtype, adaptive):
    prediction, counts = answered(600, 5, seed=2, dtype=dtype)
    covering = CoveringIntervals.fit(prediction, counts, alpha=0.1, adaptive=adaptive)
    held = inside(covering.inflate(prediction), counts)
    violations = largest_violations(prediction, counts, adaptive=adaptive)
    assert (held >= (violations <= covering.margin)).all(), "rounding must not lose any"
    assert 0.9 <= held.mean() <= 0.92
    assert covering.raw_coverage == inside(prediction.intervals, counts).mean() < 0.5


@given(ensembles(max_classes=6), st.integers(0, 99))
def test_inflated_intervals_are_reachable_and_hold_the_old_ones(members, seed):
    prediction = wrap(np.repeat(members[:, None], 12, axis=1))
    counts = np.random.default_rng(seed).multinomial(5, members[0], 12)
    intervals = CoveringIntervals.fit(prediction, counts, alpha=0.2).inflate(prediction)
    assert intervals.is_reachable.all()
    assert (intervals.lower <= prediction.lower + 1e-12).all()
    assert (intervals.upper >= prediction.upper - 1e-12).all()


def test_an_adaptive_margin_is_narrower_near_zero_and_one():
    prediction, counts = answered(600, 5, seed=8, people=50)
    equal, adaptive = (CoveringIntervals.fit(prediction, counts, adaptive=a).inflate(prediction) for a in (False, True))
    certain = prediction.probability.max(axis=-1) > 0.8
    widths = [(x.upper - x.lower)[certain].mean() for x in (equal, adaptive)]
    assert widths[1] < widths[0]


def test_counts_and_shares_are_the_same():
    prediction, counts = answered(50, 3, seed=3)
    assert CoveringIntervals.fit(prediction, counts) == CoveringIntervals.fit(prediction, counts / 20)


def test_intervals_that_cover_stay_as_they_are():
    prediction, _ = answered(50, 3, seed=4)
    covering = CoveringIntervals.fit(prediction, prediction.mean)
    assert covering.margin == 0
    assert covering.inflate(prediction).lower == pytest.approx(prediction.lower, abs=1e-6)


def test_saved_ones_come_back(tmp_path):
    covering = CoveringIntervals.fit(*answered(50, 3, seed=5), adaptive=True)
    covering.save(tmp_path / "covering.json")
    assert CoveringIntervals.load(tmp_path / "covering.json") == covering


@pytest.mark.parametrize("adaptive", [False, True])
def test_too_few_samples_give_vacuous_intervals(adaptive):
    prediction, counts = answered(8, 3, seed=6)
    with pytest.warns(UserWarning, match=r"8 samples, fewer than the 9 "):
        covering = CoveringIntervals.fit(prediction, counts, adaptive=adaptive)
    lower, upper = covering.inflate(prediction)
    assert (lower == 0).all()
    assert (upper == 1).all()


def test_an_empty_batch_is_refused():
    prediction, counts = answered(20, 3, seed=9)
    with pytest.raises(ValueError, match="the batch is empty"):
        CoveringIntervals.fit(prediction[:0], counts[:0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda counts: counts[:, :2], "answers must have shape"),
        (lambda counts: -counts, "answers are negative"),
        (lambda counts: counts * np.nan, "not finite"),
        (lambda counts: counts * 0, "sums of answers are 0"),
    ],
)
def test_bad_answers_are_refused(change, message):
    prediction, counts = answered(20, 3, seed=7)
    with pytest.raises(ValueError, match=message):
        CoveringIntervals.fit(prediction, change(counts))
