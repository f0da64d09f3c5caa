"""Evaluation: how well uncertainty finds OOD inputs, how calibrated predictions are, when to abstain.

``evaluate`` turns member predictions into one ``Evaluation``; the other functions measure one thing each. Scores,
probabilities and labels go in as NumPy arrays, torch tensors or anything NumPy reads; frozen results with Python floats
come out, each with ``as_dict()``.
"""

from credalens.evaluation.evaluate import evaluate
from credalens.evaluation.metrics.calibration import (
    CalibrationMetrics,
    ReliabilityCurve,
    calibration_metrics,
    reliability_curve,
)
from credalens.evaluation.metrics.ood import OODMetrics, PRCurve, ROCCurve, ood_metrics, pr_curve, roc_curve
from credalens.evaluation.metrics.selective import (
    RejectionCurve,
    SelectiveMetrics,
    SetMetrics,
    accuracy_rejection_curve,
    selective_metrics,
    set_metrics,
)
from credalens.evaluation.metrics.threshold import Threshold, select_threshold
from credalens.evaluation.model_comparison import ModelComparison, compare_models
from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.results import Comparison, Interval
from credalens.evaluation.statistics.bootstrap import bootstrap_difference, bootstrap_interval
from credalens.evaluation.statistics.comparisons import auroc_interval, compare_auroc

__all__ = [
    "CalibrationMetrics",
    "Comparison",
    "Evaluation",
    "Interval",
    "ModelComparison",
    "OODMetrics",
    "PRCurve",
    "ROCCurve",
    "RejectionCurve",
    "ReliabilityCurve",
    "SelectiveMetrics",
    "SetMetrics",
    "Threshold",
    "accuracy_rejection_curve",
    "auroc_interval",
    "bootstrap_difference",
    "bootstrap_interval",
    "calibration_metrics",
    "compare_auroc",
    "compare_models",
    "evaluate",
    "ood_metrics",
    "pr_curve",
    "reliability_curve",
    "roc_curve",
    "select_threshold",
    "selective_metrics",
    "set_metrics",
]
