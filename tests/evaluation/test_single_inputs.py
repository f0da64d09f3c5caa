"""Inputs that an evaluation shows: which ones, and what is said of each."""

from __future__ import annotations

import numpy as np
import pytest

from credalens import wrap
from credalens.evaluation.single_inputs import MOST_CLASSES, view_members
from tests.strategies import make_members


def test_samples_are_the_extreme_ones(data, found):
    known, labels, others = data
    for name, probs in {"in-distribution": known, **others}.items():
        chosen = [sample for sample in found.samples if sample.set == name]
        prediction = wrap(probs)
        by_total = np.lexsort((-prediction.classical.total, -prediction.total))  # ties by the entropy of the mean
        by_dispute = np.argsort(prediction.lower.sum(axis=-1), kind="stable")
        for group, order in (("uncertain", by_total), ("contradictory", by_dispute)):
            rows = {sample.row for sample in chosen if group in sample.groups}
            assert rows == set(order[: len(rows)].tolist())
            assert len(rows) == 5
        missed = {sample.row for sample in chosen if "missed" in sample.groups}
        assert missed == (set() if name == "in-distribution" else set(np.argsort(prediction.epistemic)[:5].tolist()))
        for sample in chosen:
            assert sample.predicted == prediction.probability[sample.row].argmax()
            assert sample.scores.credal.epistemic == prediction.epistemic[sample.row]
            assert sample.label == (labels[sample.row] if name == "in-distribution" else None)
            np.testing.assert_allclose(sample.members, probs[:, sample.row], atol=1e-5)


def test_wrong_samples_are_wrong_and_the_most_certain_of_those(data, found):
    known, labels, _ = data
    prediction = wrap(known)
    wrong = np.flatnonzero(prediction.probability.argmax(axis=-1) != labels)
    rows = {sample.row for sample in found.samples if "wrong" in sample.groups}
    assert len(wrong) > 5
    assert rows == set(wrong[np.argsort(prediction.total[wrong])][:5].tolist())


@pytest.mark.parametrize("kind", ["flat", "one_hot", "sparse", "agreeing"])
@pytest.mark.parametrize("classes", [2, 3, 10, 11, 40])
def test_a_described_sample_adds_up(kind, classes):
    members = make_members(kind, 4, classes, np.random.default_rng(classes))
    true_class = int(members.mean(axis=0).argmin())
    view = view_members(members, true_class)
    shown = np.array(view.members)
    assert len(view.classes) + bool(view.others) <= MOST_CLASSES
    assert len(view.classes) + view.others == classes
    assert {true_class, view.predicted, view.averaged} <= set(view.classes)
    assert (view.predicted, view.averaged) == (wrap(members).probability.argmax(), members.mean(axis=0).argmax())
    for rows in (*view.members, view.mean, view.probability):
        assert sum(rows) == pytest.approx(1, abs=2e-4)
    assert (shown >= np.array(view.lower) - 2e-5).all()
    assert (shown <= np.array(view.upper) + 2e-5).all()
    assert (view.simplex is None) == (classes == 2)


def test_the_rest_has_the_bounds_of_an_event():
    """Nine classes at most 8/75 each leave at least 0.04 to the rest, which no bound of a single class says."""
    rest = np.array([[0.04, 0.0, 0.0], [0.0, 0.04, 0.0]])
    view = view_members(np.hstack([np.full((2, 9), 0.96 / 9), rest]), None)
    assert (view.classes, view.others) == (list(range(9)), 3)
    assert (view.lower[-1], view.upper[-1]) == pytest.approx((0.04, 0.04))
    rest = np.array([[0.01, 0.01, 0.01], [0.03, 0.03, 0.03]])
    known = np.hstack([np.full((2, 8), 0.1), 1 - 0.8 - rest.sum(axis=1, keepdims=True)])
    view = view_members(np.hstack([known, rest]), None)
    assert (view.lower[-1], view.upper[-1]) == pytest.approx((0.03, 0.09))
