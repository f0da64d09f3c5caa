"""What NumPy and Numba alone bring: predictions, measures, decisions, evaluation and its page; the rest names its extra."""

from __future__ import annotations

import importlib
from importlib.metadata import files, version

import numpy as np

import credalens
from credalens import evaluation

EXTRA_OF = {"plots": "report", "report.page": "report", "sklearn": "sklearn", "torch": "torch", "bayes": "torch"}


def measures(probs: np.ndarray, labels: np.ndarray) -> None:
    """The public functions on arrays."""
    prediction = credalens.wrap(probs)
    assert prediction.hartley.shape == prediction.classical.total.shape == prediction.predict().shape
    assert credalens.wrap_logits(np.log(probs)).total.shape == prediction.total.shape
    lower, upper = credalens.probability_intervals(probs)
    credalens.ProbabilityIntervals(lower, upper).tighten()
    credalens.intersection_probability(lower, upper)
    credalens.approximate_intervals(lower, upper, 5)
    assert (credalens.lower_entropy(lower, upper) <= credalens.upper_entropy(lower, upper)).all()
    credalens.generalized_hartley(lower, upper)
    hull = credalens.ConvexHull(probs[..., :4] / probs[..., :4].sum(-1, keepdims=True))
    assert (hull.lower_entropy() <= hull.upper_entropy()).all()
    hull.generalized_hartley()
    sets = credalens.credal_decision(lower, upper, "maximality")
    credalens.set_utility(sets.sum(-1), sets[np.arange(len(labels)), labels])
    evaluation.set_metrics(sets, labels)
    summary = credalens.MemberSummary().update(probs[:2]).merge(credalens.MemberSummary().update(probs[2:]))
    np.testing.assert_allclose(summary.prediction().upper, upper, rtol=1e-12)


def evaluated(probs: np.ndarray, labels: np.ndarray) -> None:
    """Metrics, the evaluation and its page."""
    prediction = credalens.wrap(probs)
    evaluation.ood_metrics(prediction.total[:15], prediction.total[15:])
    evaluation.auroc_interval(prediction.total[:15], prediction.total[15:])
    evaluation.calibration_metrics(prediction.probability, labels)
    evaluation.accuracy_rejection_curve(prediction.total, prediction.predict() == labels)
    found = credalens.evaluate(probs, labels=labels, ood={"flat": (probs + 1) / 21}, replicates=40)
    assert '"ood"' in found.to_json()


def names_its_extra(part: str) -> bool:
    """Whether the error of a part whose packages are missing says what to install."""
    try:
        importlib.import_module(f"credalens.{part}")
    except ImportError as error:
        return f"credalens[{EXTRA_OF[part]}]" in str(error)
    return False


def carries_licences() -> None:
    """Also the notices of what pages carry; an editable installation has the files of the day it was made."""
    paths = [path.as_posix() for path in files("credalens") or ()]
    if any(path.endswith("credalens/__init__.py") for path in paths):
        licences = [path for path in paths if "/licenses/" in path]
        assert all(any(path.endswith(name) for path in licences) for name in ("LICENSE", "NOTICE.txt")), licences


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    members = rng.dirichlet(np.ones(20), size=(4, 30))  # more classes than the exact sum of the Hartley measure takes
    classes = rng.integers(0, 20, size=30)
    measures(members, classes)
    evaluated(members, classes)
    assert credalens.datasets.cifar10_ensemble().cifar10.shape == (5, 10_000, 10)
    assert all(map(names_its_extra, EXTRA_OF))
    assert credalens.__version__ == version("credalens")
    carries_licences()
