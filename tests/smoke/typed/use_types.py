"""A project that uses credalens and is checked with `mypy --strict`. An unused "type: ignore" is an error there, so each
of them proves that a mistake is found, which it is not where the types do not arrive (py.typed is missing)."""

from typing import assert_type

import numpy as np

import credalens
from credalens import CredalPrediction, evaluation

probs = np.full((3, 5, 4), 0.25)
prediction = credalens.wrap(probs, base=2)
assert_type(prediction, CredalPrediction)
assert_type(prediction.intervals, credalens.ProbabilityIntervals)
assert_type(prediction.n_members, int)
assert_type(credalens.MemberSummary().update(probs).prediction(), CredalPrediction)
assert_type(evaluation.ood_metrics([0.1], [0.2]).auroc, float)
assert_type(credalens.evaluate(probs, ood={"other": probs}).to_json(), str)

print(prediction.no_such_attribute)  # type: ignore[attr-defined]
credalens.wrap(probs, base="two")  # type: ignore[arg-type]
credalens.wrap(probs, no_such_option=1)  # type: ignore[call-arg]
