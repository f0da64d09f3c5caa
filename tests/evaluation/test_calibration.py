"""Calibration metrics against scikit-learn, a bin-by-bin loop, and by hand at edges and limits."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from credalens.evaluation import calibration_metrics, reliability_curve

lawful = settings(derandomize=True, deadline=None, max_examples=60)


@st.composite
def predictions(draw):
    """Rows of small multiples, so that bin edges, ties, zeros and ones occur; with labels."""
    n, classes = draw(st.integers(1, 20)), draw(st.integers(2, 5))
    weights = draw(st.lists(st.lists(st.integers(0, 6), min_size=classes, max_size=classes), min_size=n, max_size=n))
    rows = np.array([w if sum(w) else [1] * classes for w in weights], dtype=float)
    labels = draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))
    return rows / rows.sum(axis=1, keepdims=True), np.array(labels)


def slow_ece(probs, labels, bins):
    total = 0.0
    for b in range(bins):
        members = [
            (p.max(), p.argmax() == y)
            for p, y in zip(probs, labels, strict=True)
            if b / bins <= p.max() < (b + 1) / bins or (b == bins - 1 and p.max() >= 1)
        ]
        if members:
            confidence, correct = np.mean(members, axis=0)
            total += len(members) / len(labels) * abs(correct - confidence)
    return total


@lawful
@given(predictions(), st.integers(1, 20))
def test_ece_is_the_sum_over_bins(case, bins):
    assert calibration_metrics(*case, bins=bins).ece == pytest.approx(slow_ece(*case, bins), abs=1e-12)


@lawful
@given(predictions())
def test_equal_to_scikit_learn(case):
    probs, labels = case
    ours, classes = calibration_metrics(probs, labels), range(probs.shape[1])
    assert ours.accuracy == sk.accuracy_score(labels, probs.argmax(axis=1))
    assert ours.nll == pytest.approx(sk.log_loss(labels, probs, labels=classes), abs=1e-12)
    one_hot = np.eye(len(classes))[labels]
    by_class = [sk.mean_squared_error(one_hot[:, k], probs[:, k]) for k in classes]
    assert ours.brier == pytest.approx(sum(by_class), abs=1e-12)


@lawful
@given(predictions(), st.integers(1, 20))
def test_reliability_curve_accounts_for_every_sample(case, bins):
    probs, labels = case
    curve = reliability_curve(probs, labels, bins=bins)
    filled = curve.count > 0
    assert curve.count.sum() == len(labels)
    assert (np.isnan(curve.confidence) == ~filled).all()
    assert (np.isnan(curve.accuracy) == ~filled).all()
    assert np.nansum(curve.accuracy * curve.count) == pytest.approx((probs.argmax(1) == labels).sum())
    slack = 1e-12
    assert (curve.confidence[filled] >= curve.edges[:-1][filled] - slack).all()
    assert (curve.confidence[filled] <= curve.edges[1:][filled] + slack).all()
    assert curve.ece == calibration_metrics(probs, labels, bins=bins).ece


@lawful
@given(predictions(), st.randoms(use_true_random=False))
def test_order_of_samples_does_not_matter(case, random):
    probs, labels = case
    order = random.sample(range(len(labels)), len(labels))
    one, other = calibration_metrics(probs, labels), calibration_metrics(probs[order], labels[order])
    assert one.as_dict() == pytest.approx(other.as_dict(), abs=1e-12)


def test_by_hand():
    # Bins of 0.2: {0.9 right, 0.8 wrong} and {0.6 wrong}: |1/2 - 0.85| * 2/3 + |0 - 0.6| / 3.
    ours = calibration_metrics([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1], bins=5)
    assert ours.accuracy == pytest.approx(1 / 3)
    assert ours.ece == pytest.approx(0.35 * 2 / 3 + 0.6 / 3)
    assert ours.nll == pytest.approx(-np.log([0.9, 0.2, 0.4]).mean())
    assert ours.brier == pytest.approx((2 * 0.01 + 2 * 0.64 + 2 * 0.36) / 3)
    assert (ours.n, ours.bins) == (3, 5)


def test_bins_are_half_open_and_the_last_is_closed():
    confidences = np.array([0.5, 0.58, 0.59, 0.9899, 0.99, 1.0])
    probs = np.stack([confidences, 1 - confidences], axis=1)
    count = reliability_curve(probs, np.zeros(6, int), bins=100).count
    assert {int(b): int(count[b]) for b in count.nonzero()[0]} == {50: 1, 58: 1, 59: 1, 98: 1, 99: 2}


@pytest.mark.parametrize("bins", [3, 7, 10, 15, 49, 100])
def test_a_confidence_on_an_edge_opens_the_next_bin(bins):
    confidences = np.arange((bins + 1) // 2, bins) / bins
    probs = np.stack([confidences, 1 - confidences], axis=1)
    count = reliability_curve(probs, np.zeros(len(probs), int), bins=bins).count
    assert count.tolist() == [0] * ((bins + 1) // 2) + [1] * len(confidences)


def test_a_probability_at_the_floor_is_not_floored():
    assert calibration_metrics([[0.25, 0.75]] * 2, [0, 1], floor=0.25).n_floored == 0
    assert calibration_metrics([[0.25, 0.75]] * 2, [0, 1], floor=0.26).n_floored == 1


def test_certain_and_right_is_perfect_and_certain_and_wrong_is_finite():
    right, wrong = (calibration_metrics(np.eye(3), labels) for labels in ([0, 1, 2], [1, 2, 0]))
    assert (right.accuracy, right.ece, right.nll, right.brier, right.n_floored) == (1.0, 0.0, 0.0, 0.0, 0)
    assert (wrong.accuracy, wrong.ece, wrong.brier, wrong.n_floored) == (0.0, 1.0, 2.0, 3)
    assert wrong.nll == pytest.approx(-np.log(wrong.floor)) == pytest.approx(36.0437, abs=1e-3)
    assert calibration_metrics(np.eye(3), [1, 2, 0], floor=1e-3).nll == pytest.approx(np.log(1000))


def test_batches_of_any_shape_and_low_precision():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(4), size=(5, 6)), rng.integers(0, 4, (5, 6))
    flat = calibration_metrics(probs.reshape(-1, 4), labels.ravel())
    assert calibration_metrics(probs, labels) == flat
    low = calibration_metrics(torch.from_numpy(probs).to(torch.bfloat16), torch.from_numpy(labels))
    assert low.brier == pytest.approx(flat.brier, abs=0.02)
    assert calibration_metrics(probs.astype(np.float16), labels).nll == pytest.approx(flat.nll, abs=0.01)


def test_results_are_plain():
    probs, labels = [[0.9, 0.1], [0.6, 0.4]], [0, 1]
    assert {type(v) for v in calibration_metrics(probs, labels).as_dict().values()} == {int, float}
    stored = json.loads(json.dumps(reliability_curve(probs, labels, bins=2).as_dict(), allow_nan=False))
    assert stored["accuracy"] == [None, 0.5]


ROWS = [[0.9, 0.1], [0.6, 0.4]]


@pytest.mark.parametrize(
    ("probs", "labels", "error", "message"),
    [
        (ROWS, [0, 2], ValueError, r"1 of 2 labels are out of range, the first at index \(1,\): 2. With 2 classes"),
        (ROWS, [-1, 0], ValueError, r"out of range, the first at index \(0,\): -1"),
        (ROWS, [0], ValueError, r"labels must have shape \(2,\).*got \(1,\).*one-hot"),
        ([ROWS] * 3, [0, 1], ValueError, r"labels must have shape \(3, 2\).*got \(2,\).*several members"),
        (ROWS, [[1, 0], [0, 1]], ValueError, "one-hot"),
        (ROWS, [0.0, 1.0], TypeError, "labels must be integers.*float64"),
        (ROWS, [True, False], TypeError, "labels must be integers.*bool"),
        ([[1.0], [1.0]], [0, 0], ValueError, "2 classes"),
        ([0.5, 0.5], 0, ValueError, "2 classes"),
        (np.empty((0, 3)), np.empty(0, int), ValueError, "at least 1 sample"),
        ([[0.9, 0.1], [0.6, 0.6]], [0, 1], ValueError, r"1 of 2 rows of probs.*\(1,\).*sums to 1.2"),
        ([[2.0, -1.0], [0.6, 0.4]], [0, 1], ValueError, r"index \(0,\).*class 1 is -1.*logits"),
        ([[np.nan, 1.0], [0.6, 0.4]], [0, 1], ValueError, "class 0 is nan; every value must be finite"),
        ([["a", "b"]], [0], TypeError, "real numbers"),
    ],
)
def test_bad_input_is_refused(probs, labels, error, message):
    for evaluate in (calibration_metrics, reliability_curve):
        with pytest.raises(error, match=message):
            evaluate(probs, labels)


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="bins must be at least 1"):
        calibration_metrics(ROWS, [0, 1], bins=0)
    with pytest.raises(ValueError, match="bins must be at most 10000; got 100000000"):
        reliability_curve(ROWS, [0, 1], bins=100_000_000)
    with pytest.raises(TypeError, match="bins must be an integer"):
        reliability_curve(ROWS, [0, 1], bins=1.5)
    with pytest.raises(ValueError, match="floor must lie strictly between 0 and 1"):
        calibration_metrics(ROWS, [0, 1], floor=0.0)
