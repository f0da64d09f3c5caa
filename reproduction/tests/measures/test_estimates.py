"""Numbers with intervals over inputs, against SciPy and the library's own paired test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from credalens.evaluation import compare_auroc
from credalens_paper.data.load import load_human_counts
from credalens_paper.measures.estimates import auroc_estimates, correlation_estimates, share_estimate


def scores(seed, count, shift):
    rng = np.random.default_rng(seed)
    base = rng.normal(shift, 1, count)
    return {"good": base, "bad": np.round(base + rng.normal(size=count), 1)}


def test_aurocs_and_paired_differences_agree_with_delongs_test():
    inside, outside = scores(0, 400, 0), scores(1, 300, 1)
    aurocs, (gain,) = auroc_estimates([inside], [outside], {"gain": ("good", "bad")})
    expected = compare_auroc(inside["good"], outside["good"], inside["bad"], outside["bad"])
    assert [one.mean for one in aurocs] == pytest.approx([100 * expected.a, 100 * expected.b])
    assert gain.mean == pytest.approx(100 * expected.difference)
    assert (gain.low, gain.high) == pytest.approx((100 * expected.low, 100 * expected.high), abs=0.3)


def test_several_runs_give_their_mean_and_equal_runs_the_interval_of_one():
    runs = [scores(seed, 200, 0) for seed in (2, 3)], [scores(seed, 200, 1) for seed in (4, 5)]
    alone = [auroc_estimates([a], [b], {})[0][0].mean for a, b in zip(*runs, strict=True)]
    assert auroc_estimates(*runs, {})[0][0].mean == pytest.approx(np.mean(alone))
    once, twice = (auroc_estimates([runs[0][0]] * n, [runs[1][0]] * n, {})[0] for n in (1, 2))
    assert once == twice


def test_rank_correlations_are_spearmans_also_of_resampled_ties():
    values, target = scores(6, 150, 0), np.round(scores(7, 150, 0)["bad"] + scores(6, 150, 0)["good"])
    whole, (gain,) = correlation_estimates([values], target, {"gain": ("good", "bad")}, resamples=200)
    for one in whole:
        assert one.mean == pytest.approx(spearmanr(values[one.name], target).statistic)
    rng = np.random.default_rng(0)
    drawn = [rng.integers(0, 150, 150) for _ in range(200)]
    slow = [spearmanr(values["good"][rows], target[rows]).statistic for rows in drawn]
    assert (whole[0].low, whole[0].high) == pytest.approx(tuple(np.quantile(slow, (0.025, 0.975))))
    assert gain.low < gain.mean < gain.high


def test_a_constant_score_correlates_with_nothing():
    (one,), _ = correlation_estimates([{"flat": np.zeros(20)}], np.arange(20.0), {}, resamples=10)
    assert (one.mean, one.low, one.high) == (0, 0, 0)


def test_shares_stay_between_none_and_all():
    assert share_estimate("rare", [np.arange(50) == 0]).low == 0
    assert share_estimate("common", [np.arange(50) > 0]).high == 100


def test_people_s_answers_come_from_their_file_or_the_reason_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"download cifar10h-counts\.npy"):
        load_human_counts("cifar10", tmp_path)
    np.save(tmp_path / "cifar10h_counts.npy", np.ones((5, 10), np.int16))
    with pytest.raises(ValueError, match=r"10,000 images, got int16 of shape \(5, 10\)"):
        load_human_counts("cifar10", tmp_path)
    np.save(tmp_path / "cifar10h_counts.npy", np.full((10_000, 10), 5, np.int16))
    assert (load_human_counts("cifar10", tmp_path).sum(axis=-1) == 50).all()
