"""DeLong against every-pair sums and simulation; the bootstrap against DeLong, direct resampling and the limits."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from credalens.evaluation import (
    auroc_interval,
    bootstrap_difference,
    bootstrap_interval,
    compare_auroc,
    ood_metrics,
)

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
def paired(draw):
    id_a, ood_a = draw(samples), draw(samples)
    score = st.integers(-4, 4).map(float)
    id_b = draw(st.lists(score, min_size=len(id_a), max_size=len(id_a)))
    ood_b = draw(st.lists(score, min_size=len(ood_a), max_size=len(ood_a)))
    return id_a, ood_a, id_b, ood_b


@lawful
@given(samples, samples)
def test_delong_interval_is_the_every_pair_sum(id_scores, ood_scores):
    pairs = pair_matrix(id_scores, ood_scores)
    assume(0 < pairs.mean() < 1)
    margin = Z95 * np.sqrt(slow_covariance(pairs, pairs))
    ours = auroc_interval(id_scores, ood_scores)
    assert ours.value == pytest.approx(pairs.mean(), abs=1e-12)
    assert ours.low == pytest.approx(max(0, pairs.mean() - margin), abs=1e-12)
    assert ours.high == pytest.approx(min(1, pairs.mean() + margin), abs=1e-12)


@lawful
@given(paired())
def test_paired_delong_is_the_every_pair_sum(scores):
    a, b = pair_matrix(*scores[:2]), pair_matrix(*scores[2:])
    variance = slow_covariance(a, a) + slow_covariance(b, b) - 2 * slow_covariance(a, b)
    assume(variance > 1e-9)
    ours = compare_auroc(*scores)
    difference = a.mean() - b.mean()
    assert ours.method == "delong"
    assert (ours.a, ours.b, ours.difference) == pytest.approx((a.mean(), b.mean(), difference), abs=1e-12)
    assert ours.high - ours.difference == pytest.approx(min(1 - difference, Z95 * np.sqrt(variance)), abs=1e-9)
    assert ours.p_value == pytest.approx(2 * NormalDist().cdf(-abs(difference) / np.sqrt(variance)), abs=1e-9)


@lawful
@given(paired())
def test_comparison_is_antisymmetric(scores):
    one, other = compare_auroc(*scores), compare_auroc(*scores[2:], *scores[:2])
    assert (one.difference, one.low, one.high) == (-other.difference, -other.high, -other.low)
    assert one.p_value == other.p_value


def test_delong_covers_the_truth():
    rng = np.random.default_rng(1)
    truth = NormalDist().cdf(1 / np.sqrt(2))
    intervals = [auroc_interval(rng.normal(size=60), rng.normal(1.0, size=80)) for _ in range(600)]
    assert 0.92 <= np.mean([i.low <= truth <= i.high for i in intervals]) <= 0.975


def test_paired_delong_keeps_its_level_and_sees_differences():
    rng = np.random.default_rng(2)

    def p_value(gain):
        id_common, ood_common = rng.normal(size=100), rng.normal(1.0, size=80)
        id_a, id_b = id_common + rng.normal(size=(2, 100))
        ood_a, ood_b = ood_common + rng.normal(size=(2, 80))
        return compare_auroc(id_a, ood_a + gain, id_b, ood_b).p_value

    assert 0.025 <= np.mean([p_value(0.0) <= 0.05 for _ in range(600)]) <= 0.08
    assert np.mean([p_value(1.0) <= 0.05 for _ in range(100)]) > 0.9


def test_tiny_p_values_keep_their_digits():
    rng = np.random.default_rng(3)
    id_a, ood_a = rng.normal(size=500), rng.normal(2.0, size=500)
    result = compare_auroc(id_a, ood_a, rng.normal(size=500), rng.normal(size=500))
    assert 0 < result.p_value < 1e-30


def test_perfect_separation_is_not_certainty():
    # Five disjoint pairs, all in order: 0.05 ** (1 / 5) = 0.549.
    for method in ("delong", "bootstrap"):
        ours = auroc_interval(np.arange(5), np.arange(5, 15), method=method)
        assert (ours.value, ours.high, ours.method) == (1.0, 1.0, "disjoint pairs")
        assert ours.low == pytest.approx(0.05**0.2)
    assert auroc_interval(np.arange(5, 15), np.arange(5)).high == pytest.approx(1 - 0.05**0.2)


def test_the_pair_bound_is_exact_in_the_least_favourable_case():
    """ID constant, OOD above it with the bound's own probability: the bound misses the truth in 5 % of the samples."""
    rng = np.random.default_rng(4)
    truth = 0.05 ** (1 / 4) - 1e-6
    drawn = np.where(rng.random((3000, 4)) < truth, 1.0, -1.0)
    misses = [auroc_interval(np.zeros(50), ood_scores).low > truth for ood_scores in drawn if ood_scores.min() > 0]
    assert 0.04 < sum(misses) / len(drawn) < 0.06


def test_perfect_against_constant_is_hoeffding():
    # 2 exp(-k d^2 / 2) with k = 30 pairs and d = 1/2.
    result = compare_auroc(np.zeros(30), np.ones(40), np.zeros(30), np.zeros(40))
    assert (result.difference, result.method) == (0.5, "hoeffding")
    assert result.p_value == pytest.approx(2 * np.exp(-30 * 0.25 / 2))
    assert result.low == pytest.approx(0.5 - np.sqrt(2 * np.log(40) / 30))
    assert compare_auroc([0, 0], [1, 1], [0, 0], [0, 0]).p_value == 1.0


def test_a_score_against_itself():
    rng = np.random.default_rng(5)
    id_scores, ood_scores = rng.normal(size=20), rng.normal(size=30)
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
    exact, drawn = auroc_interval(*a), auroc_interval(*a, method="bootstrap", replicates=1500)
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
    for method in ("delong", "bootstrap"):
        narrow, wide = (auroc_interval(*scores, level=level, method=method) for level in (0.5, 0.99))
        assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: auroc_interval([1.0], [2.0, 3.0]), ValueError, "id_scores holds 1 samples.*at least 2"),
        (lambda: auroc_interval([1, 2], [2, 3], level=1.0), ValueError, "level must lie strictly between"),
        (lambda: auroc_interval([1, 2], [2, 3], level="95"), TypeError, "level must be a number"),
        (lambda: auroc_interval([1, 2], [2, 3], method="wald"), ValueError, "method must be one of 'delong'"),
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
