"""``repr`` of results names what they hold, and is short however much that is."""

from __future__ import annotations

import numpy as np
import pytest

from credalens import ConvexHull, MemberSummary, ProbabilityIntervals, wrap
from credalens.datasets import cifar10_ensemble, cifar100_ensemble
from credalens.evaluation import evaluate, pr_curve, reliability_curve, roc_curve

PROBS = np.random.default_rng(0).dirichlet([6, 2, 2], size=(5, 40))


@pytest.fixture(scope="module")
def evaluation():
    return evaluate(PROBS, labels=np.zeros(40, int), ood={"noise": np.flip(PROBS, -1)}, replicates=40)


def test_arrays_are_shown_as_dtype_and_shape():
    assert repr(wrap(PROBS).intervals) == "ProbabilityIntervals(lower=float64[40, 3], upper=float64[40, 3])"
    assert (
        repr(ProbabilityIntervals([0.1, 0.2], [0.7, 0.9])) == "ProbabilityIntervals(lower=float64[2], upper=float64[2])"
    )
    assert repr(ConvexHull(PROBS)) == "ConvexHull(probs=float64[5, 40, 3], member_axis=0)"
    assert repr(wrap(PROBS).classical).startswith("ClassicalUncertainty(total=float64[40], ")
    assert repr(MemberSummary().update(PROBS)).startswith("MemberSummary(count=5, lower=float64[40, 3], ")
    assert repr(cifar10_ensemble()).startswith("EnsemblePredictions(cifar10=float16[5, 10000, 10], ")
    assert repr(cifar100_ensemble()).startswith("Cifar100Predictions(cifar100=float16[5, 2000, 100], ")
    curve = reliability_curve(PROBS[0], np.zeros(40, int))
    assert repr(curve).startswith("ReliabilityCurve(edges=float64[16], ")


def test_tensors_are_shown_the_same_way():
    torch = pytest.importorskip("torch")
    assert repr(ConvexHull(torch.from_numpy(PROBS))) == "ConvexHull(probs=float64[5, 40, 3], member_axis=0)"


def test_numbers_are_shown_in_full():
    assert repr(wrap(np.full((2, 2), 0.5)).classical).startswith("ClassicalUncertainty(total=array(1.)")


def test_an_evaluation_and_all_it_holds_is_short(evaluation):
    parts = [evaluation, *vars(evaluation).values(), *evaluation.ood, *evaluation.samples]
    parts += [roc_curve(PROBS[0, :, 0], PROBS[1, :, 0]), pr_curve(PROBS[0, :, 0], PROBS[1, :, 0])]
    for part in parts:
        if not isinstance(part, tuple | dict):
            assert len(repr(part)) < 1000
    assert "Settings(base=2.0, " in repr(evaluation)
    assert "Recommendation(...)" in repr(evaluation)
    assert f"samples=tuple of {len(evaluation.samples)}" in repr(evaluation)
