"""Decisions of guards on predictions of real networks: fitted on half of the test images, judged on the other half.

`python -m benchmarks.guard.decisions_on_halves DATA PREDICTIONS`, with the folders of `benchmarks.guard.real_predictions`.
Writes results/guard/decisions.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.guard.real_predictions import HALVES, SCORES, Ensemble, from_arguments
from benchmarks.provenance import provenance
from credalens.guard import Guard

TARGET: Final = Path("results/guard/decisions.json")
RATE: Final = 0.05
LARGEST_ERRORS: Final = {"CIFAR-10": 0.02, "CIFAR-100": 0.1}


def false_alarms(ensembles: list[Ensemble], score: str) -> dict[str, Any]:
    """Of a guard that promises a rate of false alarms: that rate, accuracy, accuracy of what it accepts, OOD caught."""
    rows = []
    for ensemble in ensembles:
        for a, b in ensemble.halves(HALVES // len(ensembles)):
            guard = Guard.fit(ensemble.known[a], score=score, false_alarm_rate=RATE)
            accepted, right = guard.decide(ensemble.known[b]).accepted, _right(ensemble, b)
            caught = [1 - guard.decide(other).accepted.mean() for other in ensemble.ood.values()]
            rows.append([1 - accepted.mean(), right.mean(), right[accepted].mean(), *caught])
    names = ("false_alarms", "accuracy", "accepted_accuracy", *ensembles[0].ood)
    return {
        "score": score,
        "halves": len(rows),
        **dict(zip(names, np.mean(rows, axis=0).round(4).tolist(), strict=True)),
    }


def promised_errors(ensembles: list[Ensemble], score: str, largest: float) -> dict[str, Any]:
    """Of a guard that promises an error rate: what it accepts, the error there, and in how many halves it is too high."""
    rows = []
    for ensemble in ensembles:
        for a, b in ensemble.halves(HALVES // len(ensembles)):
            guard = Guard.fit(
                ensemble.known[a], ensemble.labels[a], score=score, false_alarm_rate=None, max_error=largest
            )
            accepted, right = guard.decide(ensemble.known[b]).accepted, _right(ensemble, b)
            error = 1 - right[accepted].mean()
            rows.append([accepted.mean(), error, error > largest])
    names = ("accepted", "error", "broken")
    means = dict(zip(names, np.mean(rows, axis=0).round(4).tolist(), strict=True))
    return {"score": score, "max_error": largest, "halves": len(rows), **means}


def _right(ensemble: Ensemble, rows: NDArray) -> NDArray:
    return ensemble.known[rows].predict() == ensemble.labels[rows]


def main() -> None:
    """Measure and write."""
    _, ensembles = from_arguments()
    content = {
        "provenance": provenance(),
        "rate": RATE,
        "false_alarms": {name: [false_alarms(each, score) for score in SCORES] for name, each in ensembles.items()},
        "promised_errors": {
            name: [promised_errors(each, score, LARGEST_ERRORS[name]) for score in SCORES]
            for name, each in ensembles.items()
        },
    }
    TARGET.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
