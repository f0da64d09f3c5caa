"""OOD metrics against scikit-learn, against their definitions, and by hand at ties and limits."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from credalens.evaluation import ood_metrics, pr_curve, roc_curve

lawful = settings(derandomize=True, deadline=None, max_examples=80)
tied = st.integers(-3, 3).map(float)
wide = st.floats(-1e300, 1e300)
samples = st.one_of(st.lists(tied, min_size=1, max_size=25), st.lists(wide, min_size=1, max_size=25))


def truth(id_scores, ood_scores):
    return np.r_[np.zeros(len(id_scores)), np.ones(len(ood_scores))], np.r_[id_scores, ood_scores]


def fpr_by_definition(id_scores, ood_scores):
    """Try every threshold from the top; stop at the first that flags at least 95 % of OOD."""
    id_scores, ood_scores = np.asarray(id_scores), np.asarray(ood_scores)
    for t in sorted(ood_scores, reverse=True):
        if 100 * (ood_scores >= t).sum() >= 95 * len(ood_scores):
            return (id_scores >= t).mean()
    raise AssertionError


@lawful
@given(samples, samples)
def test_equal_to_scikit_learn(id_scores, ood_scores):
    y, s = truth(id_scores, ood_scores)
    ours = ood_metrics(id_scores, ood_scores)
    assert ours.auroc == pytest.approx(sk.roc_auc_score(y, s), abs=1e-12)
    assert ours.auprc == pytest.approx(sk.average_precision_score(y, s), abs=1e-12)
    assert ours.auprc_id == pytest.approx(sk.average_precision_score(1 - y, -s), abs=1e-12)
    fpr, tpr, _ = sk.roc_curve(y, s, drop_intermediate=False)
    assert ours.fpr95 == fpr[tpr >= 0.95][0]
    fpr, tpr, _ = sk.roc_curve(1 - y, -s, drop_intermediate=False)
    assert ours.fpr95_id == fpr[tpr >= 0.95][0]
    assert (ours.n_id, ours.n_ood) == (len(id_scores), len(ood_scores))


@lawful
@given(samples, st.lists(tied, min_size=1, max_size=60))
def test_fpr95_is_its_definition(id_scores, ood_scores):
    assert ood_metrics(id_scores, ood_scores).fpr95 == fpr_by_definition(id_scores, ood_scores)


@lawful
@given(samples, samples)
def test_auroc_counts_pairs_exactly(id_scores, ood_scores):
    i, o = np.asarray(id_scores)[:, None], np.asarray(ood_scores)
    assert ood_metrics(id_scores, ood_scores).auroc == (2 * (o > i).sum() + (o == i).sum()) / (2 * i.size * o.size)


@lawful
@given(samples, samples, st.randoms(use_true_random=False))
def test_order_of_samples_does_not_matter(id_scores, ood_scores, random):
    shuffled_id, shuffled_ood = random.sample(id_scores, len(id_scores)), random.sample(ood_scores, len(ood_scores))
    assert ood_metrics(shuffled_id, shuffled_ood) == ood_metrics(id_scores, ood_scores)


@lawful
@given(st.lists(tied, min_size=1, max_size=20), st.lists(tied, min_size=1, max_size=20))
def test_only_the_order_of_scores_matters(id_scores, ood_scores):
    squashed = [np.tanh(np.asarray(s) / 10) for s in (id_scores, ood_scores)]
    assert ood_metrics(*squashed) == ood_metrics(id_scores, ood_scores)


def test_by_hand():
    # Thresholds 1.4 (TPR 1/2, FPR 0), 0.9 (1/2, 1/4), 0.8 (1, 1/4), ...; 7 of 8 pairs are in order.
    ours = ood_metrics([0.1, 0.2, 0.3, 0.9], [0.8, 1.4])
    assert ours.auroc == 7 / 8
    assert ours.auprc == pytest.approx(1 / 2 * 1 + 1 / 2 * 2 / 3)
    assert ours.fpr95 == 1 / 4
    # Keeping 95 % of the four ID samples keeps all, up to 0.9, and with them the OOD sample at 0.8.
    assert ours.fpr95_id == 1 / 2


@pytest.mark.parametrize("n", [20, 40, 60, 100, 140, 220])
def test_exactly_95_percent_is_enough(n):
    ood_scores = np.r_[np.zeros(n // 20), np.full(n - n // 20, 2.0)]
    assert ood_metrics([1.0, 3.0], ood_scores).fpr95 == 0.5


@pytest.mark.parametrize("constant", [0.0, 1.0, -7.5, np.inf])
def test_constant_scores_are_worth_nothing(constant):
    ours = ood_metrics(np.full(30, constant), np.full(10, constant))
    assert (ours.auroc, ours.auprc, ours.auprc_id, ours.fpr95, ours.fpr95_id) == (0.5, 0.25, 0.75, 1.0, 1.0)


def test_infinite_scores_are_ranked():
    assert ood_metrics([-np.inf, 0.0, 1.0], [0.5, np.inf]) == ood_metrics([-9.0, 0.0, 1.0], [0.5, 9.0])


def test_entropies_above_one_are_taken_as_they_are():
    assert ood_metrics([1.2, 2.5], [2.9, 3.1]).auroc == 1.0


def test_torch_tensors_and_float32():
    torch = pytest.importorskip("torch")
    id_scores = torch.tensor([0.1, 0.4], requires_grad=True)
    assert ood_metrics(id_scores, torch.tensor([0.3, 0.9], dtype=torch.bfloat16)).auroc == 0.75


def test_interval_comes_on_request():
    assert ood_metrics([0.0, 2.0], [1.0, 3.0]).auroc_interval is None
    interval = ood_metrics([0.0, 2.0], [1.0, 3.0], confidence=0.9).auroc_interval
    assert interval.level == 0.9
    assert interval.low < 0.75 < interval.high


def test_as_dict_is_json():
    stored = json.loads(json.dumps(ood_metrics([0.0, 2.0], [1.0, 3.0], confidence=0.9).as_dict(), allow_nan=False))
    assert stored["auroc"] == 0.75
    assert stored["auroc_interval"]["method"] == "delong with extremes"
    assert all(type(v) in (int, float) for k, v in stored.items() if k != "auroc_interval")


@pytest.mark.parametrize(
    ("id_scores", "ood_scores", "error", "message"),
    [
        ([], [1.0], ValueError, "id_scores holds 0 samples"),
        ([1.0], [], ValueError, "ood_scores holds 0 samples"),
        ([1.0], [0.0, np.nan, np.nan], ValueError, r"2 of 3 ood_scores are NaN, the first at index \(1,\)"),
        ([[0.2, 0.8]], [1.0], ValueError, r"id_scores must be one-dimensional.*shape \(1, 2\)"),
        (3.0, [1.0], ValueError, "one-dimensional"),
        (["a"], [1.0], TypeError, "id_scores must hold real numbers"),
        ([1j], [1.0], TypeError, "id_scores must hold real numbers"),
        ([[1.0], [1.0, 2.0]], [1.0], ValueError, "id_scores must be a rectangular array"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), [1.0], TypeError, "masked"),
    ],
)
def test_bad_scores_are_refused(id_scores, ood_scores, error, message):
    for evaluate in (ood_metrics, roc_curve, pr_curve):
        with pytest.raises(error, match=message):
            evaluate(id_scores, ood_scores)


def test_tensors_without_readable_values_are_refused_by_name():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"ood_scores .* cannot be read.*to_dense"):
        ood_metrics([1.0], torch.ones(3).to_sparse())


@lawful
@given(samples, samples)
def test_roc_curve_is_scikit_learns(id_scores, ood_scores):
    ours = roc_curve(id_scores, ood_scores)
    fpr, tpr, threshold = sk.roc_curve(*truth(id_scores, ood_scores), drop_intermediate=False)
    for mine, theirs in ((ours.fpr, fpr), (ours.tpr, tpr), (ours.threshold, threshold)):
        np.testing.assert_array_equal(mine, theirs)
    assert ours.area == pytest.approx((np.diff(ours.fpr) * (ours.tpr[1:] + ours.tpr[:-1]) / 2).sum(), abs=1e-12)


@lawful
@given(samples, samples)
def test_pr_curve_is_scikit_learns(id_scores, ood_scores):
    ours = pr_curve(id_scores, ood_scores)
    precision, recall, threshold = sk.precision_recall_curve(*truth(id_scores, ood_scores))
    np.testing.assert_allclose(ours.precision[::-1], precision)
    np.testing.assert_allclose(ours.recall[::-1], recall)
    np.testing.assert_array_equal(ours.threshold[:0:-1], threshold)
    assert ours.area == pytest.approx(np.diff(ours.recall) @ ours.precision[1:], abs=1e-12)


@pytest.mark.parametrize("curve", [roc_curve, pr_curve])
def test_thinned_curves_keep_ends_area_and_shape(curve):
    rng = np.random.default_rng(0)
    id_scores, ood_scores = rng.normal(size=3000), rng.normal(1.0, size=2000)
    full, thinned = curve(id_scores, ood_scores), curve(id_scores, ood_scores, points=200)
    (x, y), (xs, ys) = ((c.fpr, c.tpr) if curve is roc_curve else (c.recall, c.precision) for c in (full, thinned))
    assert 100 < len(xs) <= 200 < len(x)
    assert thinned.area == full.area
    assert {(xs[0], ys[0]), (xs[-1], ys[-1])} == {(x[0], y[0]), (x[-1], y[-1])}
    assert set(zip(xs, ys, strict=True)) <= set(zip(x, y, strict=True))
    away = np.min(np.abs(x[:, None] - xs) + np.abs(y[:, None] - ys), axis=1)
    length = np.abs(np.diff(x)).sum() + np.abs(np.diff(y)).sum()
    assert away.max() <= length / 198


def test_thinning_needs_two_points():
    with pytest.raises(ValueError, match="points must be at least 2"):
        roc_curve([0.0], [1.0], points=1)
    with pytest.raises(TypeError, match="points must be an integer"):
        roc_curve([0.0], [1.0], points=2.5)


def test_curve_as_dict_has_no_infinity():
    stored = roc_curve([0.0], [1.0]).as_dict()
    assert json.loads(json.dumps(stored, allow_nan=False))["threshold"] == [None, 1.0, 0.0]
