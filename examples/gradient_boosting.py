"""Gradient boosting made credal: five boosted models, each with its own bootstrap of the rows and its own seed.

Any classifier with predict_proba can be the estimator: scikit-learn's here, and LightGBM, XGBoost and CatBoost where they are
installed. They learn the digits 0 to 7; 8 and 9, which they have never seen, are out of distribution (OOD).

Run: python examples/gradient_boosting.py (a few seconds on one core)
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from credalens.evaluation import ood_metrics
from credalens.sklearn import CredalClassifier

OTHERS = {
    "lightgbm": ("LGBMClassifier", {"n_estimators": 20, "num_leaves": 8, "n_jobs": 1, "verbose": -1}),
    "xgboost": ("XGBClassifier", {"n_estimators": 20, "max_leaves": 8, "n_jobs": 1}),
    "catboost": (
        "CatBoostClassifier",
        {"n_estimators": 20, "thread_count": 1, "verbose": False, "allow_writing_files": False},
    ),
}


def estimators() -> Iterator[Any]:
    """The gradient boosting of scikit-learn and of the other libraries that are installed."""
    yield HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=8, max_features=0.3, random_state=0)
    for package, (name, options) in OTHERS.items():
        if find_spec(package) is not None:
            yield getattr(import_module(package), name)(**options)


def main() -> None:
    """Train five members of each kind on the digits 0 to 7 and let them predict all ten digits."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    is_train, is_id = y_train < 8, y_test < 8

    print(
        "                                  accuracy on 0 to 7    total uncertainty    epistemic       AUROC of 8 and 9"
    )
    print(
        "                                one model  five members   ID     OOD         ID    OOD       by total uncertainty"
    )
    for estimator in estimators():
        credal = CredalClassifier(estimator, n_members=5, random_state=0)
        for model in (credal, estimator):
            model.fit(X_train[is_train], y_train[is_train])
        accuracies = [model.score(X_test[is_id], y_test[is_id]) for model in (estimator, credal)]
        uncertainty = credal.predict_uncertainty(X_test)
        means = [score[rows].mean() for score in (uncertainty.total, uncertainty.epistemic) for rows in (is_id, ~is_id)]
        auroc = ood_metrics(uncertainty.total[is_id], uncertainty.total[~is_id]).auroc
        print(
            f"{type(estimator).__name__:<32} {accuracies[0]:>7.1%} {accuracies[1]:>12.1%} {means[0]:>8.2f} {means[1]:>7.2f} "
            f"{means[2]:>10.2f} {means[3]:>6.2f} {auroc:>16.1%}"
        )


if __name__ == "__main__":
    with threadpool_limits(1):  # members this small are slower on several threads
        main()
