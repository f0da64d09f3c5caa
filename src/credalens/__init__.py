"""Certified credal uncertainty for classifiers you already have.

>>> from credalens import wrap
>>> prediction = wrap([[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]])
>>> prediction
CredalPrediction(members=3, batch=(), classes=3, base=2)
"""

import importlib
from typing import TYPE_CHECKING, Any

from credalens.core.classical import ClassicalUncertainty, classical_uncertainty
from credalens.core.decisions import credal_decision, set_utility
from credalens.core.entropy import lower_entropy, upper_entropy
from credalens.core.hartley import generalized_hartley
from credalens.core.hull import ConvexHull
from credalens.core.imprecision import maximum_mean_imprecision
from credalens.core.intervals import (
    ProbabilityIntervals,
    approximate_intervals,
    intersection_probability,
    probability_intervals,
)
from credalens.core.recalibration import Recalibration
from credalens.core.summary import MemberSummary
from credalens.prediction import CredalPrediction, wrap, wrap_logits

if TYPE_CHECKING:
    from credalens.evaluation.evaluate import evaluate

__version__ = "0.1.0"

__all__ = [
    "ClassicalUncertainty",
    "ConvexHull",
    "CredalPrediction",
    "MemberSummary",
    "ProbabilityIntervals",
    "Recalibration",
    "__version__",
    "approximate_intervals",
    "classical_uncertainty",
    "credal_decision",
    "evaluate",
    "generalized_hartley",
    "intersection_probability",
    "lower_entropy",
    "maximum_mean_imprecision",
    "probability_intervals",
    "set_utility",
    "upper_entropy",
    "wrap",
    "wrap_logits",
]

_PARTS = (
    "bayes", "datasets", "evaluation", "guard", "mlflow", "plots", "report", "scoring", "serve", "sklearn", "storage", "torch",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a part of the package when it is first named, so that ``import credalens`` stays light."""
    if name == "evaluate":
        return importlib.import_module("credalens.evaluation").evaluate
    if name in _PARTS:
        return importlib.import_module(f"credalens.{name}")
    raise AttributeError(f"module 'credalens' has no attribute {name!r}")
