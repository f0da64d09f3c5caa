"""
Gradient boosting
=================

Five boosted models, each with its own bootstrap of the rows and its own seed. Any classifier with ``predict_proba``
can be the estimator: scikit-learn's here, and LightGBM, XGBoost and CatBoost if they are installed. They learn the
digits 0 to 7; 8 and 9, which they have never seen, are out of distribution (OOD).
"""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from credalens.evaluation import ood_metrics, roc_curve
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


# %%
# ``CredalClassifier`` trains the members. Five of them cost five trainings; compare with a single model.
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
is_train, is_id = y_train < 8, y_test < 8
curves = {}

for estimator in estimators():
    name = type(estimator).__name__
    credal = CredalClassifier(estimator, n_members=5, random_state=0)
    with threadpool_limits(1):  # members this small are slower on several threads
        for model in (credal, estimator):
            model.fit(X_train[is_train], y_train[is_train])
        alone, together = (model.score(X_test[is_id], y_test[is_id]) for model in (estimator, credal))
        uncertainty = credal.predict_uncertainty(X_test)
    print(f"{name}: accuracy on 0 to 7 {alone:.1%} with one model, {together:.1%} with five")
    for kind in ("total", "epistemic"):
        scores = getattr(uncertainty, kind)
        curve = roc_curve(scores[is_id], scores[~is_id])
        curves[f"{name}, {kind}"] = (curve.fpr, curve.tpr)
        auroc = ood_metrics(scores[is_id], scores[~is_id]).auroc
        print(
            f"  {kind}: {scores[is_id].mean():.2f} bits on 0 to 7, {scores[~is_id].mean():.2f} on 8 and 9, AUROC {auroc:.1%}"
        )

# %%
# How many of the unknown digits are found for how many false alarms.
figure, axes = plt.subplots(figsize=(4.8, 4.2), layout="constrained")
for name, (fpr, tpr) in curves.items():
    axes.plot(fpr, tpr, label=name)
axes.plot([0, 1], [0, 1], color="gray", linewidth=0.8, linestyle=":")
axes.set(xlabel="false alarms", ylabel="unknown digits found")
axes.legend(frameon=False, loc="lower right")
plt.show()
