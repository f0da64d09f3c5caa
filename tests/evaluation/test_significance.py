"""DeLong against every-pair sums and simulation; the bootstrap against DeLong, direct resampling and the limits."""

import math
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from credalens.evaluation import (
    auroc_interval,
    bootstrap_difference,
    bootstrap_interval,
    compare_auroc,
    ood_metrics,
)
from credalens.evaluation.intervals import compare_shares

lawful = settings(derandomize=True, deadline=None, max_examples=60)
samples = st.lists(st.integers(-4, 4).map(float), min_size=2, max_size=15)
Z95 = 1.959963984540054


def pair_matrix(id_scores, ood_scores):
    i, o = np.asarray(id_scores)[:, None], np.asarray(ood_scores)[None, :]
    return (o > i) + 0.5 * (o == i)


def slow_covariance(matrix_a, matrix_b):
    """DeLong's covariance of two AUROCs from their (ID, OOD) matrices of pairs."""

    def cov(x, y):
        return ((x - x.mean()) * (y - y.mean())).sum() / (len(x) - 1)

    n_id, n_ood = matrix_a.shape
    by_ood = cov(matrix_a.mean(axis=0), matrix_b.mean(axis=0)) / n_ood
    return by_ood + cov(matrix_a.mean(axis=1), matrix_b.mean(axis=1)) / n_id


@st.composite
def paired(draw, least=2):
    score = st.integers(-4, 4).map(float)
    id_a, ood_a = (draw(st.lists(score, min_size=least, max_size=least + 13)) for _ in range(2))
    id_b = draw(st.lists(score, min_size=len(id_a), max_size=len(id_a)))
    ood_b = draw(st.lists(score, min_size=len(ood_a), max_size=len(ood_a)))
    return id_a, ood_a, id_b, ood_b


@lawful
@given(samples, samples)
def test_the_interval_is_the_every_pair_sum_with_a_sample_at_each_end(id_scores, ood_scores):
    ends = [-np.inf, np.inf]
    value, pairs = pair_matrix(id_scores, ood_scores).mean(), pair_matrix(id_scores + ends, ood_scores + ends)
    margin = Z95 * np.sqrt(slow_covariance(pairs, pairs))
    ours = auroc_interval(id_scores, ood_scores)
    assert ours.value == pytest.approx(value, abs=1e-12)
    assert ours.low == pytest.approx(max(0, min(value, pairs.mean() - margin)), abs=1e-12)
    assert ours.high == pytest.approx(min(1, max(value, pairs.mean() + margin)), abs=1e-12)


@lawful
@given(paired(least=30))
def test_the_comparison_is_the_every_pair_sum_with_extremes(scores):
    gain = pair_matrix(*scores[:2]) - pair_matrix(*scores[2:])
    variance = 0.0
    for shares in (gain.mean(axis=0), gain.mean(axis=1)):
        peak = np.abs(shares).max()
        variance += np.var([*shares, peak, -peak], ddof=1) / (len(shares) + 2)
    ours, difference = compare_auroc(*scores), gain.mean()
    assert ours.difference == pytest.approx(difference, abs=1e-12)
    assert ours.high - ours.difference == pytest.approx(min(1 - difference, Z95 * np.sqrt(variance)), abs=1e-9)
    assume(variance > 1e-9)
    assert ours.p_value == pytest.approx(2 * NormalDist().cdf(-abs(difference) / np.sqrt(variance)), abs=1e-9)


@lawful
@given(paired() | paired(least=30))
def test_comparison_is_antisymmetric(scores):
    one, other = compare_auroc(*scores), compare_auroc(*scores[2:], *scores[:2])
    assert one.difference == -other.difference
    assert (one.low, one.high, one.p_value) == pytest.approx((-other.high, -other.low, other.p_value), abs=1e-14)


@lawful
@given(paired())
def test_too_few_samples_are_not_compared(scores):
    ours = compare_auroc(*scores)
    assert (ours.low, ours.high, ours.p_value, ours.method) == (-1.0, 1.0, 1.0, "too few samples")


REPEATS = 400
FEWEST_COVERED = binom.ppf(1e-4, REPEATS, 0.94)
"""Fewer would be seen once in ten thousand seeds if 94 of 100 intervals covered the truth."""


@pytest.mark.parametrize("sizes", [(50, 50), (30, 200), (200, 30), (500, 300)], ids=str)
@pytest.mark.parametrize("truth", [0.5, 0.9, 0.96, 0.99])
def test_the_interval_covers_the_truth(sizes, truth):
    """Once with two normal laws, once with few OOD samples among the ID ones and the others far above."""
    rng = np.random.default_rng([1, *sizes, round(100 * truth)])
    gap, far = np.sqrt(2) * NormalDist().inv_cdf(truth), 2 * truth - 1
    covered = np.zeros(2)
    for _ in range(REPEATS):
        id_scores, ood_scores = rng.normal(size=sizes[0]), rng.normal(size=sizes[1])
        shifts = gap, 20 * (rng.random(sizes[1]) < far)
        intervals = [auroc_interval(id_scores, ood_scores + shift) for shift in shifts]
        covered += [interval.low <= truth <= interval.high for interval in intervals]
    assert covered.min() >= FEWEST_COVERED


@pytest.mark.parametrize("truth", [0.5, 0.9, 0.99])
def test_the_comparison_covers_the_truth(truth):
    rng = np.random.default_rng([2, round(100 * truth)])
    gap, noise = np.sqrt(2) * NormalDist().inv_cdf(truth), np.array([[0.0], [1.0]])
    difference = truth - NormalDist().cdf(gap / 2)  # the second score has another unit of variance
    covered = 0
    for _ in range(REPEATS):
        id_a, id_b = rng.normal(size=30) + noise * rng.normal(size=30)
        ood_a, ood_b = rng.normal(gap, size=200) + noise * rng.normal(size=200)
        ours = compare_auroc(id_a, ood_a, id_b, ood_b)
        covered += ours.low <= difference <= ours.high
    assert covered >= FEWEST_COVERED


def test_the_paired_test_keeps_its_level_and_sees_differences():
    rng = np.random.default_rng(2)

    def p_value(gain):
        id_common, ood_common = rng.normal(size=100), rng.normal(1.0, size=80)
        id_a, id_b = id_common + rng.normal(size=(2, 100))
        ood_a, ood_b = ood_common + rng.normal(size=(2, 80))
        return compare_auroc(id_a, ood_a + gain, id_b, ood_b).p_value

    assert 0.01 <= np.mean([p_value(0.0) <= 0.05 for _ in range(600)]) <= 0.07
    assert np.mean([p_value(1.0) <= 0.05 for _ in range(100)]) > 0.9


def test_tiny_p_values_keep_their_digits():
    rng = np.random.default_rng(3)
    id_a, ood_a = rng.normal(size=500), rng.normal(2.0, size=500)
    result = compare_auroc(id_a, ood_a, rng.normal(size=500), rng.normal(size=500))
    assert 0 < result.p_value < 1e-30


@pytest.mark.parametrize("size", [2, 5, 50])
def test_perfect_separation_is_not_certainty(size):
    """``size`` disjoint pairs, all in order, exclude no more than an AUROC below 0.05 ** (1 / size)."""
    ours = auroc_interval(np.arange(size), np.arange(size, 2 * size))
    assert (ours.value, ours.high) == (1.0, 1.0)
    assert ours.low < 0.05 ** (1 / size)
    turned = auroc_interval(np.arange(size, 2 * size), np.arange(size))
    assert (turned.value, turned.low) == (0.0, 0.0)
    assert turned.high == pytest.approx(1 - ours.low)


def test_perfect_against_constant_is_not_certain_either():
    # Every V_a - V_b is 1/2, to which 1/2 and -1/2 are added.
    result = compare_auroc(np.zeros(30), np.ones(40), np.zeros(30), np.zeros(40))
    assert result.difference == 0.5
    variances = [np.var([0.5] * (n + 1) + [-0.5], ddof=1) / (n + 2) for n in (30, 40)]
    assert result.high - 0.5 == pytest.approx(Z95 * np.sqrt(sum(variances)))


def test_a_score_against_itself():
    rng = np.random.default_rng(5)
    id_scores, ood_scores = rng.normal(size=40), rng.normal(size=30)
    for result in (
        compare_auroc(id_scores, ood_scores, id_scores, ood_scores),
        bootstrap_difference("auprc", id_scores, ood_scores, id_scores, ood_scores, replicates=50),
    ):
        assert (result.difference, result.low, result.high, result.p_value) == (0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize("metric", ["auroc", "auprc", "auprc_id", "fpr95", "fpr95_id"])
def test_counted_bootstrap_equals_resampling_the_scores(metric):
    rng = np.random.default_rng(6)
    scores = rng.integers(0, 8, 40), rng.integers(3, 11, 30), rng.integers(0, 9, 40), rng.integers(2, 12, 30)

    def slow(id_scores, ood_scores):
        return getattr(ood_metrics(id_scores, ood_scores), metric)

    fast, direct = (bootstrap_difference(m, *scores, replicates=60, seed=7) for m in (metric, slow))
    assert (fast.a, fast.b) == (slow(*scores[:2]), slow(*scores[2:]))
    assert (fast.low, fast.high, fast.p_value) == (direct.low, direct.high, direct.p_value)
    assert (fast.metric, direct.metric) == (metric, "slow")


def test_bootstrap_agrees_with_delong():
    rng = np.random.default_rng(8)
    common_id, common_ood = rng.normal(size=400), rng.normal(1.0, size=300)
    a = common_id + 0.3 * rng.normal(size=400), common_ood + 0.3 * rng.normal(size=300)
    b = common_id + rng.normal(size=400), common_ood + rng.normal(size=300)
    exact, drawn = auroc_interval(*a), bootstrap_interval("auroc", *a, replicates=1500)
    assert drawn.method == "bootstrap"
    assert (drawn.low, drawn.high) == pytest.approx((exact.low, exact.high), abs=0.005)
    exact, drawn = compare_auroc(*a, *b), bootstrap_difference("auroc", *a, *b, replicates=1500)
    assert (drawn.low, drawn.high) == pytest.approx((exact.low, exact.high), abs=0.006)
    assert drawn.p_value == 2 / 1501
    assert exact.p_value < 0.01


def test_seeds_repeat_and_differ():
    rng = np.random.default_rng(9)
    scores = rng.normal(size=30), rng.normal(1.0, size=30)
    first, again, other = (bootstrap_interval("auprc", *scores, replicates=80, seed=s) for s in (1, 1, 2))
    assert first == again
    assert first != other
    assert bootstrap_interval("auprc", *scores, replicates=80, seed=np.random.default_rng(1)) == first


def test_widening_the_level_widens_the_interval():
    rng = np.random.default_rng(10)
    scores = rng.normal(size=50), rng.normal(1.0, size=50)
    for interval in (auroc_interval, partial(bootstrap_interval, "auroc")):
        narrow, wide = (interval(*scores, level=level) for level in (0.5, 0.99))
        assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: auroc_interval([1.0], [2.0, 3.0]), ValueError, "id_scores holds 1 sample.*at least 2"),
        (lambda: auroc_interval([1, 2], [2, 3], level=1.0), ValueError, "level must lie strictly between"),
        (lambda: auroc_interval([1, 2], [2, 3], level="95"), TypeError, "level must be a number"),
        (lambda: compare_auroc([1, 2], [1, 2], [1, 2, 3], [1, 2]), ValueError, "id_a and id_b must belong"),
        (lambda: compare_auroc([1, 2], [1, 2], [1, 2], [1, 2, 3]), ValueError, "ood_a and ood_b must belong"),
        (lambda: bootstrap_interval("auc", [1, 2], [1, 2]), ValueError, "one of auroc, auprc"),
        (lambda: bootstrap_interval("auroc", [1, 2], [1, 2], replicates=39), ValueError, "at least 40"),
        (lambda: bootstrap_interval(lambda i, o: np.nan, [1, 2], [1, 2]), ValueError, "must be finite"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("n", [20, 25, 30, 100])
@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.2, 0.5])
def test_the_paired_accuracy_test_is_never_wrong_more_often_than_it_says(n, share):
    wrong = 0.0
    for either in range(n + 1):
        chance = math.comb(n, either) * share**either * (1 - share) ** (n - either)
        for only_a in range(either + 1):
            a = np.arange(n) < only_a
            b = (np.arange(n) >= only_a) & (np.arange(n) < either)
            test = compare_shares("accuracy", a, b, level=0.95)
            assert (test.p_value <= 0.05) == (test.low > 0 or test.high < 0)
            if test.p_value <= 0.05:
                wrong += chance * math.comb(either, only_a) / 2**either
        if chance < 1e-9 and either > n * share:
            break
    assert wrong <= 0.05
