"""What recalibrating members changes: ``python -m benchmarks.recalibration --labels FOLDER --texts FOLDER``.

The shipped ensembles of CIFAR-10 and CIFAR-100 (``--labels``: cifar10_labels.npy and cifar100_labels.npy, those of the test
sets), five MLPs on texts (``--texts``: the folder of clinc150.json.gz), and forests, gradient boosting and MLPs on three
tables of scikit-learn, which need no file. Temperatures are fitted through the credal prediction, through the mean and by
member on a third of the labelled inputs, and judged on the others: NLL, ECE and accuracy of either point prediction, AUROC of
unknown inputs by four scores. Five splits; for the tables members are trained anew for each, on half of the rows. Standard
errors are over the splits, and those of changes are paired. A change for the worse of more than two of them is listed.

Beside it, how many labelled inputs are needed: the NLL of the intersection probability with temperatures of fewer and fewer.
Cells that are in results/recalibration.json are kept; remove one to measure it again.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.provenance import provenance
from credalens import Recalibration, datasets, intersection_probability, wrap
from credalens.evaluation import calibration_metrics, ood_metrics
from credalens.evaluation.labelled import NLL_FLOOR
from credalens.prediction import CredalPrediction
from credalens_paper.data.texts import load_texts

TARGET: Final = Path("results/recalibration.json")
SPLITS, MEMBERS = 5, 5
SHARE: Final = 1 / 3
PLAIN: Final = "as they come"
WAYS: Final = ("credal", "averaged", "members")
SCORES: Final = ("total", "mean_total", "epistemic", "mean_epistemic")
SIZES: Final = (30, 100, 200, 500, 1000)
DRAWS: Final = 20
LOWER_IS_BETTER: Final = ("nll", "ece")
MOST_UNKNOWN: Final = 5000
Metrics = dict[str, float]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Members' probabilities for labelled inputs, and for unknown ones of some kinds, such as "near" and "far"."""

    probs: NDArray
    labels: NDArray[np.int64]
    unknown: dict[str, NDArray]


@dataclass(frozen=True)
class Cell:
    """A data set with one kind of members; ``load`` returns the predictions of a split."""

    data: str
    members: str
    load: Callable[[int], Labelled]


@dataclass(frozen=True)
class Table:
    """Rows of scikit-learn's; those of the classes ``left_out`` are near unknowns, and rows of shuffled columns far ones."""

    load: Callable[..., Any]
    left_out: tuple[int, ...]


TABLES: Final = {
    "digits": Table(load_digits, (8, 9)),
    "breast cancer": Table(load_breast_cancer, ()),
    "wine": Table(load_wine, (2,)),
}
MODELS: Final[dict[str, Callable[[int], Any]]] = {
    "forests of 20 trees": lambda seed: RandomForestClassifier(20, random_state=seed),
    "gradient boosting": lambda seed: GradientBoostingClassifier(subsample=0.5, max_features="sqrt", random_state=seed),
    "MLPs": lambda seed: make_pipeline(
        StandardScaler(), MLPClassifier((64,), alpha=0.0, max_iter=300, tol=1e-6, random_state=seed)
    ),
}


def normalised(probs: NDArray) -> NDArray[np.float64]:
    """Rows in float64 that sum to one, which those in half precision do not quite."""
    wide = probs.astype(np.float64)
    return wide / wide.sum(axis=-1, keepdims=True)


def shipped(name: str, labels: Path) -> Labelled:
    """A shipped ensemble: Tiny-ImageNet's images are near unknowns, SVHN's far ones."""
    ensemble = getattr(datasets, f"{name}_ensemble")()
    probs = normalised(getattr(ensemble, name))
    truth = np.load(labels / f"{name}_labels.npy", allow_pickle=False)[: probs.shape[1]]
    unknown = {"near": ensemble.tiny_imagenet, "far": ensemble.svhn}
    return Labelled(probs, truth, {kind: normalised(p[:, :MOST_UNKNOWN]) for kind, p in unknown.items()})


def texts(folder: Path) -> Labelled:
    """Five MLPs on hashed n-grams of CLINC150; requests outside all intents are near unknowns."""
    train, test = (load_texts("clinc150", folder, split=split) for split in ("train", "test"))
    outside = load_texts("clinc150-oos", folder)
    networks = [
        MLPClassifier((128,), batch_size=128, learning_rate_init=3e-3, max_iter=10, random_state=seed).fit(
            train.images, train.labels
        )
        for seed in range(MEMBERS)
    ]
    known, unknown = (np.stack([n.predict_proba(part.images) for n in networks]) for part in (test, outside))
    return Labelled(known.astype(np.float64), test.labels, {"near": unknown.astype(np.float64)})


def table(name: str, model: str, split: int) -> Labelled:
    """Members trained on half of the rows of a table, and their predictions for the others."""
    X, y = TABLES[name].load(return_X_y=True)
    known = ~np.isin(y, TABLES[name].left_out)
    X_train, X_rest, y_train, y_rest = train_test_split(
        X[known], y[known], test_size=0.5, stratify=y[known], random_state=split
    )
    fitted = [MODELS[model](MEMBERS * split + seed).fit(X_train, y_train) for seed in range(MEMBERS)]
    rng = np.random.default_rng(split)
    unknown = {"near": X[~known]} if not known.all() else {}
    unknown["far"] = rng.permuted(X_rest, axis=0)
    probs, *of_unknown = (
        np.stack([member.predict_proba(rows) for member in fitted]) for rows in (X_rest, *unknown.values())
    )
    return Labelled(probs, y_rest, dict(zip(unknown, of_unknown, strict=True)))


def cells(labels: Path | None, texts_folder: Path | None) -> Iterator[Cell]:
    """All that can be measured here; what does not depend on the split is loaded once."""

    def once(load: Callable[[], Labelled]) -> Callable[[int], Labelled]:
        loaded: list[Labelled] = []

        def of_split(split: int) -> Labelled:
            loaded[:] = loaded or [load()]
            return loaded[0]

        return of_split

    for name in TABLES:
        for model in MODELS:
            yield Cell(name, model, lambda split, name=name, model=model: table(name, model, split))  # type: ignore[misc]
    if labels is not None:
        yield Cell("CIFAR-10", "ResNet-18", once(lambda: shipped("cifar10", labels)))
        yield Cell("CIFAR-100", "ResNet-18", once(lambda: shipped("cifar100", labels)))
    if texts_folder is not None:
        yield Cell("CLINC150", "MLPs", once(lambda: texts(texts_folder)))


def measure(cell: Cell) -> dict[str, Any]:
    """All metrics of all ways, and their changes, over the splits."""
    values: dict[str, list[Metrics]] = {way: [] for way in (PLAIN, *WAYS)}
    for split in range(SPLITS):
        data = cell.load(split)
        order = np.random.default_rng(split).permutation(len(data.labels))
        fit_rows, judged = np.split(order, [round(SHARE * len(order))])
        for way in values:
            fitted = None
            if way != PLAIN:
                fitted = Recalibration.fit(data.probs[:, fit_rows], data.labels[fit_rows], through=way)
            values[way].append(metrics(data, judged, fitted))
    changes = {way: [minus(a, b) for a, b in zip(values[way], values[PLAIN], strict=True)] for way in WAYS}
    return {
        "data": cell.data,
        "members": cell.members,
        "classes": int(data.probs.shape[-1]),
        "fitted_on": len(fit_rows),
        "judged_on": len(judged),
        "unknown": {kind: int(p.shape[1]) for kind, p in data.unknown.items()},
        "ways": {way: over_splits(of_way) for way, of_way in values.items()},
        "changes": {way: over_splits(of_way) for way, of_way in changes.items()},
        "labelled_inputs": needed(data),
    }


def metrics(data: Labelled, judged: NDArray[np.int64], recalibration: Recalibration | None) -> Metrics:
    """Of the judged inputs: NLL in nats, all others in per cent, and the temperature, averaged over the members."""
    prediction = wrap(data.probs[:, judged], recalibration=recalibration)
    found: Metrics = {} if recalibration is None else {"temperature": float(recalibration.temperatures.mean())}
    for method, point in (("credal", prediction.probability), ("averaged", prediction.mean)):
        of_point = calibration_metrics(point, data.labels[judged])
        found[f"nll {method}"] = of_point.nll
        found[f"ece {method}"] = 100 * of_point.ece
        found[f"accuracy {method}"] = 100 * of_point.accuracy
    for kind, probs in data.unknown.items():
        unknown = wrap(probs, recalibration=recalibration)
        found |= {f"auroc {kind} {name}": auroc(prediction, unknown, name) for name in SCORES}
    return found


def auroc(prediction: CredalPrediction, unknown: CredalPrediction, name: str) -> float:
    """How well a score tells the two apart, in per cent."""
    return 100 * ood_metrics(prediction.score(name), unknown.score(name)).auroc


def minus(a: Metrics, b: Metrics) -> Metrics:
    """The change of every metric that both have."""
    return {name: a[name] - b[name] for name in a.keys() & b.keys()}


def over_splits(values: list[Metrics]) -> dict[str, dict[str, float]]:
    """Mean and standard error of every metric."""
    columns = {name: np.array([each[name] for each in values]) for name in sorted(values[0])}
    return {
        name: {"mean": round(float(x.mean()), 5), "se": round(float(x.std(ddof=1) / len(x) ** 0.5), 5)}
        for name, x in columns.items()
    }


def needed(data: Labelled) -> list[dict[str, Any]]:
    """How temperatures of n inputs change the NLL of the intersection probability on the others, over the draws."""
    rows, before = np.arange(len(data.labels)), surprise(data.probs, data.labels)
    wrong = wrap(data.probs).predict() != data.labels
    found = []
    for n in SIZES:
        if 2 * n > len(rows):
            break
        drawn = [np.random.default_rng([n, draw]).permutation(rows)[:n] for draw in range(DRAWS)]
        fits, warned = zip(
            *(fit_noting_warnings(data.probs[:, some], data.labels[some]) for some in drawn), strict=True
        )
        changes = np.array(
            [
                (surprise(fit.apply(data.probs), data.labels) - before)[~np.isin(rows, some)].mean()
                for fit, some in zip(fits, drawn, strict=True)
            ]
        )
        temperatures, unwarned = [float(fit.temperatures[0]) for fit in fits], changes[~np.array(warned)]
        found.append(
            {
                "n": n,
                "mean_errors": round(float(n * wrong.mean()), 1),
                "lowest_temperature": round(min(temperatures), 4),
                "highest_temperature": round(max(temperatures), 4),
                "mean_change_of_nll": round(float(changes.mean()), 5),
                "worst_change_of_nll": round(float(changes.max()), 5),
                "worse": int((changes > 0).sum()),
                "warned": sum(warned),
                "worse_without_warning": int((unwarned > 0).sum()),
                "worst_without_warning": round(float(unwarned.max()), 5) if len(unwarned) else None,
            }
        )
    return found


def fit_noting_warnings(probs: NDArray, labels: NDArray[np.int64]) -> tuple[Recalibration, bool]:
    """A recalibration, and whether ``fit`` warned that its temperature is unsure."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = Recalibration.fit(probs, labels)
    return fitted, any("temperature" in str(each.message) for each in caught)


def surprise(probs: NDArray, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """The negative log-likelihood of each input; zero counts as 2.2e-16, as in ``calibration_metrics``."""
    point = intersection_probability(probs.min(axis=0), probs.max(axis=0))
    return -np.log(np.maximum(point[np.arange(len(labels)), labels], NLL_FLOOR))


def worse(measured: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Changes for the worse by more than two standard errors."""
    for cell in measured:
        for way in WAYS:
            for name, change in cell["changes"][way].items():
                loss = change["mean"] if name.startswith(LOWER_IS_BETTER) else -change["mean"]
                if loss > 2 * change["se"]:
                    yield {"data": cell["data"], "members": cell["members"], "way": way, "metric": name, **change}


def main() -> None:
    """Measure the cells that are not there yet, and write after each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--labels", type=Path, help="a folder with cifar10_labels.npy and cifar100_labels.npy")
    parser.add_argument("--texts", type=Path, help="a folder with clinc150.json.gz")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of nearly one-hot members, of few inputs, of training that could go on
    stored = json.loads(TARGET.read_text())["cells"] if TARGET.exists() else []
    for cell in cells(options.labels, options.texts):
        if any((each["data"], each["members"]) == (cell.data, cell.members) for each in stored):
            continue
        stored.append(measure(cell))
        content = {"provenance": provenance(), "splits": SPLITS, "cells": stored, "worse": list(worse(stored))}
        TARGET.write_text(json.dumps(content, indent=1) + "\n")
        sys.stdout.write(f"{cell.data}, {cell.members}: {stored[-1]['changes']['credal']}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
