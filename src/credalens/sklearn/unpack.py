"""The members in what users have: a list of classifiers, a forest, bagging, voting, or a pipeline or search around one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_regressor
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from credalens.checks.options import count_text
from credalens.sklearn.committee import Committee, FittedModel, fitted_model

FORESTS = (RandomForestClassifier, ExtraTreesClassifier)
SEARCHES = (GridSearchCV, RandomizedSearchCV)
ENSEMBLES = (
    "RandomForestClassifier, ExtraTreesClassifier, BaggingClassifier, VotingClassifier, CredalClassifier, a pipeline or a "
    "search with one"
)


def committee_of(models: Any, /, *, align: bool = False, votes: bool = False) -> Committee:
    """The members of a list or other iterable of models, or of one ensemble (which may be iterable itself)."""
    if isinstance(models, BaseEstimator):
        return _committee_of_ensemble(models, votes)
    if not isinstance(models, Iterable) or isinstance(models, str | bytes):
        raise TypeError(f"expected a list of fitted classifiers or a fitted ensemble; got {type(models).__name__}.")
    return committee_of_list(list(models), align=align, votes=votes)


def committee_of_list(
    models: Sequence[Any], /, *, align: bool = False, votes: bool = False, name: str = "models"
) -> Committee:
    """Fitted classifiers as members. Their classes must be the same, or with ``align`` are joined into one list."""
    if not models:
        raise ValueError("the list of models is empty; a credal prediction needs at least one fitted classifier.")
    named = {f"{name}[{n}] ({type(model).__name__})": model for n, model in enumerate(models)}
    class_lists = {title: _classes_of(title, model) for title, model in named.items()}
    for attribute in ("n_features_in_", "feature_names_in_"):
        _check_same(named, attribute)
    classes = _joined_classes(class_lists) if align else _common_classes(class_lists)
    position = {label: k for k, label in enumerate(classes.tolist())}
    members = [
        fitted_model(title, model, [position[label] for label in class_lists[title].tolist()], votes=votes)
        for title, model in named.items()
    ]
    return Committee([[member] for member in members], classes, models)


def _classes_of(name: str, model: Any) -> NDArray[Any]:
    """The class labels of a fitted classifier with a single output."""
    if not (hasattr(model, "predict_proba") or hasattr(model, "predict")):
        raise TypeError(f"{name} is not a classifier: it predicts nothing. Pass fitted scikit-learn classifiers.")
    if isinstance(model, BaseEstimator):
        _check_fitted(name, model)
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise TypeError(f"{name} has no classes_: it is not a fitted classifier. Is it a regressor?")
    if any(np.ndim(part) for part in classes):
        raise ValueError(
            f"{name} predicts {len(classes)} outputs; a credal prediction is over the classes of one. Wrap one model for "
            "each output."
        )
    if len(classes) < 2:
        raise ValueError(
            f"{name} knows {count_text(len(classes), 'class', 'classes')} ({list(classes)}); a prediction needs at least two."
        )
    return np.asarray(classes)


def _check_fitted(name: str, model: Any) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise NotFittedError(
            f"{name} is not fitted. Call its fit first, or train with CredalClassifier.fit."
        ) from error


def _check_same(models: dict[str, Any], attribute: str) -> None:
    """Refuse members that expect different X, where they have the attribute that says so."""
    values = [(name, getattr(model, attribute)) for name, model in models.items() if hasattr(model, attribute)]
    for name, value in values[1:]:
        first, expected = values[0]
        if not np.array_equal(value, expected):
            raise ValueError(
                f"all members must take the same X, but {name} has {attribute} = {value} and {first} has {expected}. "
                "Give members that use some of the columns a pipeline that selects them."
            )


def _common_classes(class_lists: dict[str, NDArray[Any]]) -> NDArray[Any]:
    first, expected = next(iter(class_lists.items()))
    for name, classes in class_lists.items():
        if set(classes.tolist()) != set(expected.tolist()):
            raise ValueError(
                f"{name} knows the classes {classes.tolist()}, {first} knows {expected.tolist()}. Pass align=True to join "
                "them (a class that a member does not know gets probability zero from it)."
            )
    return expected


def _joined_classes(class_lists: dict[str, NDArray[Any]]) -> NDArray[Any]:
    numbers = [name for name, classes in class_lists.items() if classes.dtype.kind in "biuf"]
    words = [name for name in class_lists if name not in numbers]
    if numbers and words:
        raise ValueError(
            f"{numbers[0]} has numbers as classes, {class_lists[numbers[0]].tolist()}, and {words[0]} has "
            f"{class_lists[words[0]].tolist()}: they have no common order. Train them on the same kind of labels."
        )
    return np.unique(np.concatenate(list(class_lists.values())))


def _committee_of_ensemble(model: Any, votes: bool) -> Committee:
    """The members of a fitted ensemble, through its ``estimators_``, which predict positions in its ``classes_``."""
    _check_fitted(type(model).__name__, model)
    if isinstance(model, (*SEARCHES, FrozenEstimator, Pipeline)):
        return _committee_inside(model, votes)
    if isinstance(committee := getattr(model, "_committee", None), Committee):  # of a CredalClassifier
        return replace(committee, sources=[model], origin=model)
    if is_regressor(model):
        raise TypeError(
            f"{type(model).__name__} is a regressor; a credal prediction is over classes. Pass classifiers."
        )
    if not isinstance(model, (*FORESTS, BaggingClassifier, VotingClassifier)):
        raise TypeError(
            f"{type(model).__name__} is not an ensemble whose members predict all classes on their own. Expected "
            f"{ENSEMBLES}; otherwise pass the list of fitted classifiers, or train members: "
            f"CredalClassifier({type(model).__name__}(...)).fit(X, y)."
        )
    classes = _classes_of(type(model).__name__, model)
    bagged = isinstance(model, BaggingClassifier)
    features = model.estimators_features_ if bagged else [None] * len(model.estimators_)
    members = [
        _model_of_ensemble(n, part, columns, len(classes), votes)
        for n, (part, columns) in enumerate(zip(model.estimators_, features, strict=True))
    ]
    dtype = "float32" if isinstance(model, FORESTS) else "any" if bagged else None
    return Committee([[member] for member in members], classes, [model], dtype=dtype)


def _model_of_ensemble(n: int, model: Any, features: Any, classes: int, votes: bool) -> FittedModel:
    """Its classes are positions in those of the ensemble, perhaps not all; if there are as many, they are in order."""
    name, positions = f"estimators_[{n}] ({type(model).__name__})", np.asarray(model.classes_)
    columns = np.arange(classes) if len(positions) == classes else positions
    if not np.isin(columns, np.arange(classes)).all():
        raise ValueError(
            f"{name} knows the classes {positions.tolist()}, which are not among the numbers 0 to {classes - 1} of the "
            f"ensemble's {classes} classes. Pass the list of fitted classifiers, with align=True to join their classes."
        )
    return fitted_model(name, model, columns, features=features, votes=votes)


def _committee_inside(model: Any, votes: bool) -> Committee:
    """The ensemble in a search, a frozen estimator, or at the end of a pipeline, whose other steps become a head."""
    if isinstance(model, Pipeline):
        committee = _committee_of_ensemble(model[-1], votes)
        heads = (model[:-1], *committee.heads) if len(model) > 1 else committee.heads
        return replace(committee, sources=[model], heads=heads)
    ensemble = model.estimator if isinstance(model, FrozenEstimator) else model.best_estimator_
    return replace(_committee_of_ensemble(ensemble, votes), sources=[model])
