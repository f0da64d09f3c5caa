"""Do promises hold for guards fitted on the rows that fitted the temperature: ``python -m benchmarks.recalibrated_promises``.

A temperature that is fitted on the calibration inputs makes their scores, formally, no longer exchangeable with those of new
inputs. So beside each such guard ("same") stands one of the same rows whose temperature was known before ("fixed": fitted on
the whole population). Rows are drawn from a population with replacement and guards are judged on all of it, so that what a
guard does is known exactly. A promise of errors, half of the population's error rate with confidence 0.95, may be broken in 5 %
of the draws; that of false alarms, and that of sets, are about the mean over the draws.

Made-up members that are too sure need no file; the shipped ensembles need labels: ``--labels FOLDER`` with cifar10_labels.npy
and cifar100_labels.npy, those of the test sets. ``--draws`` says how often; cases measured with as many draws are kept.
Writes results/recalibrated_promises.json. Two hundred draws take eight minutes of a core.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.provenance import provenance
from credalens import Recalibration, datasets, wrap
from credalens.guard import ConformalSets, Guard
from credalens.prediction import CredalPrediction

TARGET: Final = Path("results/recalibrated_promises.json")
FALSE_ALARM_RATE, ALPHA = 0.05, 0.1
MADE: Final = "made up"
POPULATION: Final = 4_000  # inputs at most, which guards are judged on
WAYS: Final = ("same", "fixed")


@dataclass(frozen=True)
class Case:
    """A population, how many of its inputs calibrate, through what the temperature is fitted, and the score of the guard.

    With three classes many inputs have the highest ``total``, so that a guard by it flags nothing; ``mean_total`` has no ties.
    """

    data: str
    n: int
    through: str
    score: str


CASES: Final = (
    *(Case(MADE, n, through, "mean_total") for n in (100, 300, 1000) for through in ("credal", "members")),
    Case("cifar10", 300, "credal", "total"),
    Case("cifar10", 1000, "credal", "total"),
    Case("cifar100", 500, "credal", "total"),
    Case("cifar100", 500, "members", "total"),
)


@dataclass(frozen=True, eq=False)
class Population:
    """Members' probabilities (members, rows, classes) and labels (rows,)."""

    probs: NDArray[np.float64]
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class Draw:
    """What one guard and its sets did on the population; ``broken`` is None where no guard could promise the error rate."""

    broken: bool | None
    false_alarms: float
    coverage: float


def made_up() -> Population:
    """Five noisy members that are almost twice as sure as they should be, of three classes."""
    rng = np.random.default_rng(7)
    true_logits = 1.2 * rng.normal(size=(POPULATION, 3))
    labels = (true_logits + rng.gumbel(size=true_logits.shape)).argmax(axis=-1)
    logits = 1.8 * (true_logits + 0.6 * rng.normal(size=(5, POPULATION, 3)))
    return Population(normalised(np.exp(logits - logits.max(axis=-1, keepdims=True))), labels)


def shipped(name: str, labels: Path) -> Population:
    """The first inputs of a shipped ensemble's own test set; the file of labels may hold more."""
    probs = getattr(getattr(datasets, f"{name}_ensemble")(), name)[:, :POPULATION].astype(np.float64)
    return Population(normalised(probs), np.load(labels / f"{name}_labels.npy", allow_pickle=False)[: probs.shape[1]])


def normalised(probs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows that sum to one, which those in half precision do not quite."""
    return probs / probs.sum(axis=-1, keepdims=True)


def measure(case: Case, population: Population, draws: int) -> dict[str, Any]:
    """Broken promises, false alarms and coverage of both ways, and their differences, draw by draw."""
    probs, labels = population.probs, population.labels
    known = wrap(probs, recalibration=Recalibration.fit(probs, labels, through=case.through))
    error = float((known.predict() != labels).mean())
    made: dict[str, list[Draw]] = {way: [] for way in WAYS}
    for draw in range(draws):
        rows = np.random.default_rng([draw, case.n]).integers(len(labels), size=case.n)
        fitted = Recalibration.fit(probs[:, rows], labels[rows], through=case.through)
        for way, prediction in (("same", wrap(probs, recalibration=fitted)), ("fixed", known)):
            made[way].append(one_draw(prediction, labels, rows, case.score, 0.5 * error))
    return {
        **asdict(case),
        "draws": draws,
        "population": len(labels),
        "error": round(error, 5),
        "max_error": round(0.5 * error, 5),
        **{way: summary(made[way]) for way in WAYS},
        "same_minus_fixed": {
            name: mean_and_error(values(made["same"], name) - values(made["fixed"], name)) for name in NAMES
        },
    }


def one_draw(
    prediction: CredalPrediction, labels: NDArray[np.int64], rows: NDArray[np.int64], score: str, max_error: float
) -> Draw:
    """Fit a guard for either promise, and sets, on these rows, and judge them on all."""
    calibration, truth = prediction[rows], labels[rows]
    flags = Guard.fit(calibration, score=score, false_alarm_rate=FALSE_ALARM_RATE)
    sets = ConformalSets.fit(calibration, truth, alpha=ALPHA).predict_set(prediction)
    coverage = float(sets[np.arange(len(labels)), labels].mean())
    false_alarms = float(1 - flags.decide(prediction).accepted.mean())
    try:
        guard = Guard.fit(calibration, truth, score=score, max_error=max_error, false_alarm_rate=None)
    except ValueError:
        return Draw(None, false_alarms, coverage)
    decisions = guard.decide(prediction)
    wrong = decisions.prediction[decisions.accepted] != labels[decisions.accepted]
    return Draw(bool(wrong.mean() > max_error), false_alarms, coverage)


NAMES: Final = ("broken", "false_alarms", "coverage")


def values(draws: list[Draw], name: str) -> NDArray[np.float64]:
    """One number for each draw; a guard that was refused has broken nothing."""
    return np.array([float(getattr(draw, name) or 0) for draw in draws])


def mean_and_error(numbers: NDArray[np.float64]) -> dict[str, float]:
    """The mean over the draws and its standard error."""
    return {"mean": round(float(numbers.mean()), 5), "se": round(float(numbers.std() / len(numbers) ** 0.5), 5)}


def summary(draws: list[Draw]) -> dict[str, Any]:
    """How many guards could promise the error rate, and the three means."""
    fitted = sum(draw.broken is not None for draw in draws)
    return {"fitted": fitted, **{name: mean_and_error(values(draws, name)) for name in NAMES}}


def populations(labels: Path | None) -> Iterator[tuple[str, Population]]:
    """What can be measured here."""
    yield MADE, made_up()
    if labels is not None:
        for name in ("cifar10", "cifar100"):
            yield name, shipped(name, labels)


def main() -> None:
    """Measure the cases that are not there yet, and write after each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=200, help="draws of calibration inputs for each case")
    parser.add_argument("--labels", type=Path, help="a folder with cifar10_labels.npy and cifar100_labels.npy")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # of few inputs, and of a blind score
    stored = json.loads(TARGET.read_text()) if TARGET.exists() else {"cases": []}
    cases = {Case(**{name: case[name] for name in asdict(CASES[0])}): case for case in stored["cases"]}
    for data, population in populations(options.labels):
        for case in CASES:
            if case.data != data or (case in cases and cases[case]["draws"] >= options.draws):
                continue
            cases[case] = measure(case, population, options.draws)
            content = {
                "provenance": provenance(),
                "false_alarm_rate": FALSE_ALARM_RATE,
                "alpha": ALPHA,
                "cases": [cases[case] for case in CASES if case in cases],
            }
            TARGET.write_text(json.dumps(content, indent=1) + "\n")
            sys.stdout.write(f"{case} {cases[case]['same']} {cases[case]['fixed']}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
