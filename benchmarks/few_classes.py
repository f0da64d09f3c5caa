"""Which score, guard and point prediction suit few classes: ``python -m benchmarks.few_classes [--data FOLDER]``.

Real tables of two to thirteen classes, five kinds of members, three seeds; two fifths of the rows to train, three tenths as
calibration data, three tenths to test. The bundled tables alone take some minutes. A run that ended early goes on where it
was: cells that the result file has are not measured again. ``--summary`` prints the tables of ``few_classes_summary``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.few_classes_summary import summary
from benchmarks.provenance import provenance
from benchmarks.real_tables import BUNDLED, IN_FOLDER, Table, read_table
from credalens.core.recalibration import Recalibration
from credalens.core.scores import SCORES, highest_possible
from credalens.evaluation import calibration_metrics, ood_metrics
from credalens.guard import Guard
from credalens.prediction import CredalPrediction, wrap
from credalens.sklearn import CredalClassifier

__all__ = ["MODELS", "POINTS", "main", "measure"]

SEEDS: Final = range(3)
MEMBERS: Final = 5
TARGET: Final = Path("results/few_classes.json")
FALSE_ALARMS: Final = 0.05
UNLIKE: Final = "unlike the calibration data"
POINTS: Final = (
    "intersection", "intersection, through credal", "intersection, through averaged",
    "mean", "mean, through credal", "mean, through averaged",
    "single", "single, recalibrated",
)  # fmt: skip


@dataclass(frozen=True)
class Model:
    """How members are made: ``single`` is an estimator for these categories, ``credal`` makes members of such ones."""

    single: Callable[[NDArray[np.bool_]], Any]
    credal: Callable[[Any, int], Any]

    def members(self, is_category: NDArray[np.bool_], X: NDArray, y: NDArray, seed: int, /) -> CredalClassifier:
        """Train the members."""
        fitted = self.credal(self.single(is_category), seed).fit(X, y)
        if isinstance(fitted, CredalClassifier):
            return fitted
        return CredalClassifier.from_fitted(fitted, groups=MEMBERS, hull=True)

    def alone(self, is_category: NDArray[np.bool_], X: NDArray, y: NDArray, seed: int, /) -> Any:
        """One member, trained on all rows."""
        estimator = self.single(is_category)
        names = [name for name in estimator.get_params() if name.rpartition("__")[2] == "random_state"]
        return estimator.set_params(**dict.fromkeys(names, seed)).fit(X, y)


def _scaled(is_category: NDArray[np.bool_], last: Any) -> Any:
    """Standardised numbers and indicators of categories, for models that need them."""
    steps = [
        ("numbers", StandardScaler(), np.flatnonzero(~is_category)),
        ("categories", OneHotEncoder(handle_unknown="ignore", sparse_output=False), np.flatnonzero(is_category)),
    ]
    return make_pipeline(ColumnTransformer(steps), last)


def _committee(estimator: Any, seed: int, resample: str) -> CredalClassifier:
    return CredalClassifier(estimator, n_members=MEMBERS, resample=resample, hull=True, random_state=seed)


def _boosting(is_category: NDArray[np.bool_]) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(max_iter=50, max_leaf_nodes=15)


MODELS: Final = {
    "forest in groups": Model(
        lambda is_category: RandomForestClassifier(20),
        lambda forest, seed: clone(forest).set_params(n_estimators=20 * MEMBERS, random_state=seed),
    ),
    "boosting, bootstrap": Model(_boosting, lambda estimator, seed: _committee(estimator, seed, "bootstrap")),
    "boosting, subsamples": Model(
        _boosting,
        lambda estimator, seed: _committee(
            BaggingClassifier(estimator, n_estimators=1, max_samples=0.7, bootstrap=False), seed, "reseed"
        ),
    ),
    "logistic, bootstrap": Model(
        lambda is_category: _scaled(is_category, LogisticRegression(max_iter=300)),
        lambda estimator, seed: _committee(estimator, seed, "bootstrap"),
    ),
    "network, reseed": Model(
        lambda is_category: _scaled(is_category, MLPClassifier((32,), max_iter=100)),
        lambda estimator, seed: _committee(estimator, seed, "reseed"),
    ),
}


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows to train, to calibrate and to test on, as places."""

    train: NDArray[np.intp]
    calibration: NDArray[np.intp]
    test: NDArray[np.intp]

    @classmethod
    def of(cls, y: NDArray[np.int64], seed: int, /) -> Parts:
        """Each class by its share."""
        train, rest = train_test_split(np.arange(len(y)), train_size=0.4, stratify=y, random_state=seed)
        calibration, test = train_test_split(rest, train_size=0.5, stratify=y[rest], random_state=seed)
        return cls(train, calibration, test)


def measure(table: Table, model: str, seed: int, /) -> dict[str, Any]:
    """One cell of the result file; shares and AUROC are fractions, in the order of the catalogue of scores."""
    parts, make = Parts.of(table.y, seed), MODELS[model]
    train = table.X[parts.train], table.y[parts.train]
    credal = make.members(table.is_category, *train, seed)
    single = make.alone(table.is_category, *train, seed)
    X, truth, labels = table.X[parts.test], table.y[parts.test], table.y[parts.calibration]
    calibration, test = credal.credal_predict(table.X[parts.calibration]), credal.credal_predict(X)
    shuffled = credal.credal_predict(_shuffled(X, seed))
    alone, of_calibration = single.predict_proba(X), single.predict_proba(table.X[parts.calibration])
    recalibrated = [
        *(
            _recalibrated(calibration.hull.probs, labels, test.hull.probs, through)
            for through in ("credal", "averaged")
        ),
        _recalibrated(of_calibration[None], labels, alone[None], "averaged"),
    ]
    wrong = test.predict() != truth
    return {
        "table": table.name,
        "source": table.source,
        "classes": table.classes,
        "model": model,
        "seed": seed,
        "calibration_rows": len(parts.calibration),
        "calibration_errors": int((calibration.predict() != labels).sum()),
        "test_rows": len(parts.test),
        "test_errors": int(wrong.sum()),
        "errors": _found(test, wrong),
        "errors_of_mean": _found(test, test.mean.argmax(axis=-1) != truth),
        "shuffled": [_auroc(test.score(name), shuffled.score(name)) for name in SCORES],
        "held_out": _held_out(table, parts, make, seed),
        "points": _points(test, truth, alone, recalibrated),
        "guards": _guards(calibration, labels, test, truth, shuffled),
    }


def _shuffled(X: NDArray, seed: int) -> NDArray:
    """Every column in an order of its own: each value occurs, together they do not."""
    return np.random.default_rng(seed).permuted(X, axis=0)


def _rounded(value: float) -> float:
    return round(float(value), 3)


def _auroc(low: NDArray, high: NDArray) -> float | None:
    return _rounded(ood_metrics(low, high).auroc) if len(low) and len(high) else None


def _found(prediction: CredalPrediction, positive: NDArray[np.bool_]) -> list[float | None]:
    """AUROC of finding these rows among the others."""
    scores = (prediction.score(name) for name in SCORES)
    return [_auroc(score[~positive], score[positive]) for score in scores]


def _held_out(table: Table, parts: Parts, make: Model, seed: int) -> list[float | None] | None:
    """AUROC of finding a class that the members never saw: the second, third or fourth most common one, by seed."""
    if table.classes < 3:
        return None
    held = np.argsort(-np.bincount(table.y), kind="stable")[(seed + 1) % table.classes]
    train = parts.train[table.y[parts.train] != held]
    credal = make.members(table.is_category, table.X[train], table.y[train], seed)
    return _found(credal.credal_predict(table.X[parts.test]), table.y[parts.test] == held)


def _points(
    test: CredalPrediction, truth: NDArray, single: NDArray, recalibrated: Sequence[CredalPrediction | None]
) -> list[list[float] | None]:
    """Accuracy, NLL, ECE and Brier score of each of ``POINTS``; None where no temperature could be learnt."""

    def metrics(probs: NDArray, predicted: NDArray | None = None) -> list[float]:
        values = calibration_metrics(probs, truth, predicted=predicted)
        return [round(value, 4) for value in (values.accuracy, values.nll, values.ece, values.brier)]

    *of_members, alone = recalibrated
    ways = (test, *of_members)
    return [
        *(None if way is None else metrics(way.probability, way.predict()) for way in ways),
        *(None if way is None else metrics(way.mean) for way in ways),
        metrics(single),
        None if alone is None else metrics(alone.mean),
    ]


def _recalibrated(members: NDArray, labels: NDArray, test: NDArray, through: str) -> CredalPrediction | None:
    """Members of the test part, divided by temperatures that were fitted on the calibration data."""
    try:
        return wrap(test, recalibration=Recalibration.fit(members, labels, through=through))
    except ValueError:  # no temperature can be learnt from these rows
        return None


def _guards(
    calibration: CredalPrediction,
    labels: NDArray,
    test: CredalPrediction,
    truth: NDArray,
    shuffled: CredalPrediction,
) -> dict[str, list[Any]]:
    """What guards by each score do; ``max_error`` is half the error rate of the test part, not of the calibration data."""
    wrong = test.predict() != truth
    columns: dict[str, list[Any]] = {
        name: [] for name in ("top", "blind", "caught", "false_alarms", "accepted", "error_left")
    }

    def put(**values: Any) -> None:
        for name, value in values.items():
            columns[name].append(_rounded(value) if isinstance(value, float) else value)

    for score in SCORES:
        guard = Guard.fit(calibration, score=score, false_alarm_rate=FALSE_ALARMS)
        highest = highest_possible(score, classes=guard.classes, members=guard.n_members, base=guard.base)
        put(
            top=float((guard.scores >= highest * (1 - 1e-9)).mean()),
            blind=int(bool(guard.blindness)),
            caught=float((guard.decide(shuffled).reason == UNLIKE).mean()),
            false_alarms=float((guard.decide(test).reason == UNLIKE).mean()),
        )
        accepted = _accepted(calibration, labels, test, score, wrong.mean() / 2)
        errors = None if accepted is None or not accepted.any() else float(wrong[accepted].mean())
        put(accepted=None if accepted is None else float(accepted.mean()), error_left=errors)
    return columns


def _accepted(
    calibration: CredalPrediction, labels: NDArray, test: CredalPrediction, score: str, max_error: float
) -> NDArray[np.bool_] | None:
    """What a guard with that promise accepts, nothing where it refuses to promise; None where no error can be halved."""
    if not max_error:
        return None
    try:
        guard = Guard.fit(calibration, labels, score=score, max_error=max_error)
    except ValueError:
        return np.zeros(len(test), bool)
    return np.asarray(guard.decide(test).accepted)


def _measure(task: tuple[str, str, int, Path | None]) -> dict[str, Any]:
    name, model, seed, folder = task
    warnings.simplefilter("ignore")  # trees nearly one-hot, networks that could be trained longer
    return measure(read_table(name, folder), model, seed)


def _key(cell: dict[str, Any]) -> tuple[str, str, int]:
    return cell["table"], cell["model"], cell["seed"]


def _write(path: Path, header: dict[str, Any], cells: Sequence[dict[str, Any]]) -> None:
    """One line for each cell; the file appears whole or not at all."""
    lines = ",\n".join(json.dumps(cell, separators=(",", ":")) for cell in cells)
    text = json.dumps(header, indent=1)[:-2] + ',\n "cells": [\n' + lines + "\n ]\n}\n"
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _tasks(names: Sequence[str], models: Sequence[str], seeds: Sequence[int], folder: Path | None) -> Iterator[Any]:
    """Every table once before the next seed, so that a run that ended early has seen all of them."""
    for seed in seeds:
        for name in names:
            for model in models:
                yield name, model, seed, folder


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, write the result file after each cell, and print the summary where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with further tables, as .csv.gz without a header")
    parser.add_argument("--out", type=Path, default=TARGET)
    parser.add_argument("--tables", nargs="*", help="only these")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--summary", action="store_true", help="measure nothing, print what the result file says")
    given = parser.parse_args(arguments)
    stored = json.loads(given.out.read_text(encoding="utf-8")) if given.out.is_file() else {"cells": []}
    if given.summary:
        sys.stdout.write(summary(stored))
        return
    header: dict[str, Any] = {"provenance": {**provenance(), "scikit_learn": sklearn.__version__}}
    header |= {"scores": list(SCORES), "points": list(POINTS), "point_metrics": ["accuracy", "nll", "ece", "brier"]}
    names = given.tables or [*BUNDLED, *(IN_FOLDER if given.data else ())]
    cells = {_key(cell): cell for cell in stored["cells"]}
    tasks = [task for task in _tasks(names, given.models, range(given.seeds), given.data) if task[:3] not in cells]
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the workers: cells are measured side by side
    with ProcessPoolExecutor(given.jobs) as workers:
        for cell in workers.map(_measure, tasks):
            cells[_key(cell)] = cell
            _write(given.out, header, list(cells.values()))
            sys.stdout.write(f"{cell['table']}, {cell['model']}, seed {cell['seed']}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
