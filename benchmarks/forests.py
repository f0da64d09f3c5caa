"""What grouping the trees of a forest costs and brings: ``python -m benchmarks.forests``. Takes a few minutes.

Digits, wine, iris and breast cancer, ten seeds, each with its own split (a quarter for the test) and its own forest: accuracy
beside the forest's own, and how well uncertainty ranks the misclassified rows above the others (AUROC over the rows of all
seeds). The same for ``CredalClassifier()`` beside a forest of 100 trees. Writes results/forests.json.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split

from benchmarks.provenance import provenance
from credalens.evaluation import ood_metrics
from credalens.prediction import CredalPrediction
from credalens.sklearn import CredalClassifier

__all__ = ["Comparison", "compare", "main"]

DATASETS: Final = {"digits": load_digits, "wine": load_wine, "iris": load_iris, "breast cancer": load_breast_cancer}
FORESTS: Final = {
    "random forest, 20 trees": RandomForestClassifier(20),
    "random forest, 100 trees": RandomForestClassifier(100),
    "random forest, 500 trees": RandomForestClassifier(500),
    "extra trees, 100 trees": ExtraTreesClassifier(100),
}
GROUPS: Final = ("auto", 2, 3, 5, 10, 20, None)
SEEDS: Final = range(10)
TARGET: Final = Path("results/forests.json")
Split = tuple[NDArray, NDArray, NDArray, NDArray, int]  # X and y to train, X and y to test, seed
Make = Callable[[Any], CredalClassifier]


@dataclass(frozen=True)
class Comparison:
    """Accuracies in per cent, means over the seeds; AUROC in per cent of finding the misclassified rows, seeds pooled."""

    dataset: str
    forest: str
    members: str
    forest_accuracy: float
    accuracy: float
    auroc_forest_entropy: float
    auroc_total: float
    auroc_epistemic: float
    set_size: float


def splits(dataset: str, seeds: Sequence[int] = SEEDS) -> Iterator[Split]:
    """One stratified split for each seed."""
    X, y = DATASETS[dataset](return_X_y=True)
    for seed in seeds:
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
        yield X_train, y_train, X_test, y_test, seed


def compare(dataset: str, forest: str, ways: dict[str, Make], seeds: Sequence[int] = SEEDS) -> list[Comparison]:
    """Train the forest on every split and make it credal in each of these ways."""
    labels, means = [], []
    predictions: dict[str, list[CredalPrediction]] = {name: [] for name in ways}
    for X_train, y_train, X_test, y_test, seed in splits(dataset, seeds):
        trained = FORESTS[forest].set_params(random_state=seed).fit(X_train, y_train)
        labels.append(y_test)
        means.append(trained.predict_proba(X_test))
        for name, make in ways.items():
            credal = make(trained)
            credal = (
                credal if hasattr(credal, "classes_") else credal.set_params(random_state=seed).fit(X_train, y_train)
            )
            predictions[name].append(credal.credal_predict(X_test))
    return [_comparison(dataset, forest, name, labels, means, made) for name, made in predictions.items()]


def _comparison(
    dataset: str, forest: str, name: str, labels: list[NDArray], means: list[NDArray], made: list[CredalPrediction]
) -> Comparison:
    forest_right = [p.argmax(axis=1) == y for p, y in zip(means, labels, strict=True)]
    right = [p.predict() == y for p, y in zip(made, labels, strict=True)]
    entropies = [-(p * np.log2(np.maximum(p, 1e-300))).sum(axis=1) for p in means]
    return Comparison(
        dataset,
        forest,
        name,
        forest_accuracy=_percent([r.mean() for r in forest_right]),
        accuracy=_percent([r.mean() for r in right]),
        auroc_forest_entropy=_auroc(forest_right, entropies),
        auroc_total=_auroc(right, [p.total for p in made]),
        auroc_epistemic=_auroc(right, [p.epistemic for p in made]),
        set_size=float(np.concatenate([p.predict_set().sum(axis=1) for p in made]).mean()),
    )


def _percent(values: Sequence[float]) -> float:
    return 100 * float(np.mean(values))


def _auroc(right: Sequence[NDArray], scores: Sequence[NDArray]) -> float:
    is_right, score = np.concatenate(right), np.concatenate(scores)
    return 100 * ood_metrics(score[is_right], score[~is_right]).auroc


def _ways(forest: str) -> dict[str, Make]:
    ways: dict[str, Make] = {
        f"groups={groups!r}": lambda trained, groups=groups: CredalClassifier.from_fitted(trained, groups=groups)  # type: ignore[misc]
        for groups in GROUPS
    }
    if forest == "random forest, 100 trees":
        ways["CredalClassifier()"] = lambda trained: CredalClassifier()
    return ways


def main() -> None:
    """Measure, write the result file and print a line for each comparison."""
    warnings.simplefilter("ignore", UserWarning)  # single trees are nearly one-hot
    versions = {**provenance(), "scikit_learn": sklearn.__version__}
    rows = [row for dataset in DATASETS for forest in FORESTS for row in compare(dataset, forest, _ways(forest))]
    result = {"provenance": versions, "seeds": len(SEEDS), "comparisons": [asdict(row) for row in rows]}
    TARGET.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        sys.stdout.write(
            f"{row.dataset:<14} {row.forest:<25} {row.members:<19} {row.forest_accuracy:6.2f} {row.accuracy:6.2f}  "
            f"{row.auroc_forest_entropy:5.1f} {row.auroc_total:5.1f} {row.auroc_epistemic:5.1f}  {row.set_size:5.2f}\n"
        )


if __name__ == "__main__":
    main()
