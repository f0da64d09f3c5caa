"""Conformal p-values and thresholds: their laws, their level by simulation, and crepes' numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens.guard.binomial import (
    PValueTable,
    alarm_threshold,
    binomial_interval,
    binomial_tail,
    conformal_excess,
    conformal_rate_range,
    largest_kept,
    p_values,
    upper_bound,
)
from tests import strategies  # noqa: F401 - its profile of hypothesis

scores = st.lists(st.one_of(st.integers(0, 5).map(float), st.floats(-1e9, 1e9)), min_size=1, max_size=60).map(np.array)
rates = st.sampled_from([0.01, 0.05, 0.1, 0.29, 1 / 3, 0.5, 0.99])


@given(scores, scores)
def test_p_values_are_what_the_formula_says(calibration, new):
    expected = [(1 + sum(calibration >= s)) / (len(calibration) + 1) for s in new]
    np.testing.assert_array_equal(p_values(np.sort(calibration), new), expected)


@given(scores, scores)
def test_the_table_gives_the_same_p_values(calibration, new):
    extremes = np.array([0.0, -0.0, np.inf, -np.inf, 5e-324, 1e300])
    for ordered in (np.sort(calibration), np.sort(np.concatenate([calibration, extremes]))):
        asked = np.concatenate([new, calibration, extremes, calibration * 1.0000000001])
        np.testing.assert_array_equal(PValueTable.of(ordered).p_values(asked), p_values(ordered, asked))


@given(scores, scores)
def test_a_higher_score_has_no_higher_p_value(calibration, new):
    assert (np.diff(p_values(np.sort(calibration), np.sort(new))) <= 0).all()


@given(scores, rates)
def test_p_values_are_super_uniform_when_each_sample_is_the_new_one(sample, rate):
    """Exchangeability by hand: over all choices of the new sample, at most a share ``rate`` has p <= rate."""
    small = [p_values(np.sort(np.delete(sample, i)), sample[i : i + 1])[0] <= rate for i in range(len(sample))]
    assert np.mean(small) <= rate


@given(scores, scores, rates)
def test_the_threshold_flags_exactly_the_small_p_values(calibration, new, rate):
    ordered = np.sort(calibration)
    if rate * (len(ordered) + 1) < 1 - 1e-9:
        with pytest.raises(ValueError, match=r"cannot promise .* at least \d+ are needed"):
            alarm_threshold(ordered, rate)
    else:
        np.testing.assert_array_equal(new > alarm_threshold(ordered, rate), p_values(ordered, new) <= rate)


def test_how_many_samples_are_needed_is_enough_and_not_too_many():
    with pytest.raises(ValueError, match=r"18 samples cannot promise .* at least 19 "):
        alarm_threshold(np.arange(18.0), 0.05)
    assert alarm_threshold(np.arange(19.0), 0.05) == 18.0


def draw(kind, rng, shape):
    """Scores: without ties, tied to a few values, or mostly one value."""
    values = rng.gamma(0.5, size=shape)
    return {"free": values, "tied": np.floor(4 * values), "saturated": np.where(values < 0.8, 0.0, values)}[kind]


@pytest.mark.parametrize(("kind", "least"), [("free", 0.045), ("tied", 0.01), ("saturated", 0.045)])
def test_the_false_alarm_rate_holds_and_is_used(kind, least):
    """10,000 draws of 99 calibration scores and a new one; the rate lies in the exact interval below 0.05."""
    rng = np.random.default_rng(0)
    ordered, new = np.sort(draw(kind, rng, (10_000, 99))), draw(kind, rng, 10_000)
    p = (1 + (ordered >= new[:, None]).sum(axis=1)) / 100
    assert all(
        p_values(row, s[None])[0] == q for row, s, q in zip(ordered[:50], new[:50, None][:, 0], p[:50], strict=True)
    )
    alarms = int((p <= 0.05).sum())
    low, high = binomial_interval(alarms, len(p), level=0.999)
    assert low <= 0.05
    assert high >= least


def test_the_binomial_is_scipys():
    stats = pytest.importorskip("scipy.stats")
    for hits, n, rate in ((0, 10, 0.3), (3, 200, 0.02), (40, 1000, 0.05), (10, 10, 0.5)):
        assert binomial_tail(hits, n, rate) == pytest.approx(stats.binom.cdf(hits, n, rate), rel=1e-10)
        bound = 1.0 if hits == n else stats.beta.ppf(0.95, hits + 1, n - hits)
        assert upper_bound(hits, n) == pytest.approx(bound, abs=1e-10)


def test_the_excess_is_scipys_beta_binomial():
    stats = pytest.importorskip("scipy.stats")
    for hits, n, rate, calibrated in ((0, 50, 0.05, 99), (7, 100, 0.05, 99), (60, 1000, 0.05, 400), (3, 3, 0.5, 1)):
        a = int(rate * (calibrated + 1) + 1e-9)
        expected = stats.betabinom.sf(hits - 1, n, a, calibrated + 1 - a)
        assert conformal_excess(hits, n, rate, calibrated) == pytest.approx(expected, rel=1e-9)


def test_the_range_of_one_guards_rate_is_scipys_beta():
    stats = pytest.importorskip("scipy.stats")
    for rate, calibrated, level in ((0.05, 99, 0.95), (0.03, 1000, 0.9), (0.5, 1, 0.95), (0.29, 99, 0.5)):
        a = int(rate * (calibrated + 1) + 1e-9)
        expected = stats.beta(a, calibrated + 1 - a).interval(level)
        assert conformal_rate_range(rate, calibrated, level=level) == pytest.approx(expected, abs=1e-10)


@given(st.integers(1, 60), st.sampled_from([0.05, 0.1, 0.5]), st.integers(0, 60))
def test_what_is_kept_ends_where_the_p_value_falls_below_the_level(n, rate, calibrated):
    p = [conformal_excess(hits, n, rate, calibrated) for hits in range(n + 1)]
    assert largest_kept(p.__getitem__, n, 0.025) == max(hits for hits in range(n + 1) if p[hits] > 0.025)


def test_p_values_are_those_of_crepes():
    base = pytest.importorskip("crepes.base")
    rng = np.random.default_rng(1)
    for kind in ("free", "tied", "saturated"):
        calibration, new = draw(kind, rng, 500), draw(kind, rng, 300)
        theirs = base.p_values_batch(calibration, new, smoothing=False)
        np.testing.assert_allclose(p_values(np.sort(calibration), new), np.ravel(theirs), rtol=1e-12)
