"""NumPy and Numba are enough for predictions, measures, decisions, evaluation and its page: nothing optional is imported."""

from __future__ import annotations

import subprocess
import sys

BLOCKED = ("scipy", "sklearn", "matplotlib", "pyarrow", "pandas", "typer", "rich", "torch", "ray", "triton")

SCRIPT = f"""
import sys, tempfile
sys.modules.update(dict.fromkeys({BLOCKED}))  # None: importing it raises ImportError

import numpy as np
import credalens
from credalens import evaluation

rng = np.random.default_rng(0)
probs = rng.dirichlet(np.ones(20), size=(4, 30))  # more classes than the exact sum of the Hartley measure takes
labels = rng.integers(0, 20, size=30)

prediction = credalens.wrap(probs)
prediction.classical, prediction.hartley, prediction.predict()
credalens.wrap_logits(np.log(probs))
lower, upper = credalens.probability_intervals(probs)
credalens.ProbabilityIntervals(lower, upper).tighten()
credalens.intersection_probability(lower, upper)
credalens.approximate_intervals(lower, upper, 5)
credalens.upper_entropy(lower, upper), credalens.lower_entropy(lower, upper)
credalens.generalized_hartley(lower, upper)
hull = credalens.ConvexHull(probs[..., :4] / probs[..., :4].sum(-1, keepdims=True))
hull.upper_entropy(), hull.lower_entropy(), hull.generalized_hartley()
credalens.classical_uncertainty(probs)
sets = credalens.credal_decision(lower, upper, "maximality")
credalens.set_utility(sets.sum(-1), sets[np.arange(30), labels])
summary = credalens.MemberSummary().update(probs[:2]).merge(credalens.MemberSummary().update(probs[2:]))
summary.prediction()

evaluation.ood_metrics(prediction.total[:15], prediction.total[15:])
evaluation.calibration_metrics(prediction.probability, labels)
evaluation.set_metrics(sets, labels)
correct = prediction.predict() == labels
evaluation.accuracy_rejection_curve(prediction.total, correct)
evaluation.auroc_interval(prediction.total[:15], prediction.total[15:])

evaluated = credalens.evaluate(probs, labels=labels, ood={{"flat": (probs + 1) / 21}}, replicates=40)
with tempfile.TemporaryDirectory() as folder:
    assert (evaluated.report(folder) / "report.html").exists()
try:
    import credalens.plots
except ImportError as error:
    assert "credalens[report]" in str(error)
"""


def test_the_numbers_need_numpy_and_numba_only():
    result = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
