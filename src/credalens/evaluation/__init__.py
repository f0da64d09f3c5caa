"""Evaluation: how well uncertainty finds OOD inputs, how calibrated predictions are, when to abstain.

``evaluate`` turns member predictions into one ``Evaluation``; the other functions measure one thing each. Scores,
probabilities and labels go in as NumPy arrays, torch tensors or anything NumPy reads; frozen results with Python floats
come out, each with ``as_dict()``.
"""

from credalens.evaluation.evaluate import Evaluation, evaluate
from credalens.evaluation.intervals import bootstrap_difference, bootstrap_interval
from credalens.evaluation.labelled import (
    CalibrationMetrics,
    RejectionCurve,
    ReliabilityCurve,
    SelectiveMetrics,
    SetMetrics,
    accuracy_rejection_curve,
    calibration_metrics,
    reliability_curve,
    selective_metrics,
    set_metrics,
)
from credalens.evaluation.model_comparison import ModelComparison, compare_models
from credalens.evaluation.ood import (
    OODMetrics,
    PRCurve,
    ROCCurve,
    auroc_interval,
    compare_auroc,
    ood_metrics,
    pr_curve,
    roc_curve,
)
from credalens.evaluation.results import Comparison, Interval
from credalens.evaluation.thresholds import Threshold, select_threshold

__all__ = [
    "CalibrationMetrics", "Comparison", "Evaluation", "Interval", "ModelComparison", "OODMetrics", "PRCurve", "ROCCurve",
    "RejectionCurve", "ReliabilityCurve", "SelectiveMetrics", "SetMetrics", "Threshold",
    "accuracy_rejection_curve", "auroc_interval", "bootstrap_difference", "bootstrap_interval", "calibration_metrics",
    "compare_auroc", "compare_models", "evaluate", "ood_metrics", "pr_curve", "reliability_curve", "roc_curve",
    "select_threshold", "selective_metrics", "set_metrics",
]  # fmt: skip
