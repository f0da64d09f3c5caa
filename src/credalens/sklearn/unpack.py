"""Find the members in what people have: a list of fitted classifiers, a forest, bagging, voting, a pipeline around one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from credalens.sklearn.members import Committee, Member, make_member

__all__ = ["committee_of", "committee_of_list"]

FORESTS = (RandomForestClassifier, ExtraTreesClassifier)
SEARCHES = (GridSearchCV, RandomizedSearchCV)
KNOWN = "RandomForestClassifier, ExtraTreesClassifier, BaggingClassifier, VotingClassifier, or a pipeline or search around one"


def committee_of(models: Any, /, *, align: bool = False, votes: bool = False) -> Committee:
    """The members of a list or other iterable of models, or of one ensemble (which may be iterable itself)."""
    if isinstance(models, BaseEstimator):
        return committee_of_ensemble(models, votes=votes)
    if not isinstance(models, Iterable) or isinstance(models, str | bytes):
        raise TypeError(f"expected a list of fitted classifiers or a fitted ensemble; got {type(models).__name__}.")
    return committee_of_list(list(models), align=align, votes=votes)


def committee_of_list(
    models: Sequence[Any], /, *, align: bool = False, votes: bool = False, name: str = "models"
) -> Committee:
    """Fitted classifiers as members. Their classes must be the same, or with ``align`` are joined into one list."""
    if not models:
        raise ValueError("the list of models is empty; a credal prediction needs at least one fitted classifier.")
    names = [f"{name}[{n}] ({type(model).__name__})" for n, model in enumerate(models)]
    known = [_classes_of(title, model) for title, model in zip(names, models, strict=True)]
    for attribute in ("n_features_in_", "feature_names_in_"):
        _check_same(names, models, attribute)
    classes = _union(names, known) if align else _common(names, known)
    position = {label: k for k, label in enumerate(classes.tolist())}
    members = [
        make_member(title, model, [position[label] for label in own.tolist()], votes=votes)
        for title, model, own in zip(names, models, known, strict=True)
    ]
    return Committee(members, classes, models)


def _classes_of(name: str, model: Any) -> NDArray[Any]:
    """The class labels of one fitted classifier with a single output."""
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
        raise ValueError(f"{name} knows {len(classes)} class ({list(classes)}); a prediction needs at least two.")
    return np.asarray(classes)


def _check_fitted(name: str, model: Any) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise NotFittedError(
            f"{name} is not fitted. Call its fit first, or train with CredalClassifier.fit."
        ) from error


def _check_same(names: Sequence[str], models: Sequence[Any], attribute: str) -> None:
    """Members that tell what X they expect must expect the same."""
    told = [
        (name, getattr(model, attribute))
        for name, model in zip(names, models, strict=True)
        if hasattr(model, attribute)
    ]
    for name, value in told[1:]:
        if not np.array_equal(value, told[0][1]):
            raise ValueError(
                f"all members must take the same X, but {name} has {attribute} = {value} and {told[0][0]} has {told[0][1]}. "
                "Give members that use some of the columns a pipeline that selects them."
            )


def _common(names: Sequence[str], known: Sequence[NDArray[Any]]) -> NDArray[Any]:
    for name, own in zip(names, known, strict=True):
        if set(own.tolist()) != set(known[0].tolist()):
            raise ValueError(
                f"{name} knows the classes {own.tolist()}, {names[0]} knows {known[0].tolist()}. Pass align=True to join "
                "them (a class that a member does not know gets probability zero from it)."
            )
    return known[0]


def _union(names: Sequence[str], known: Sequence[NDArray[Any]]) -> NDArray[Any]:
    numbers = [own.dtype.kind in "biuf" for own in known]
    if any(numbers) and not all(numbers):
        n, m = numbers.index(True), numbers.index(False)
        raise ValueError(
            f"{names[n]} has numbers as classes, {known[n].tolist()}, and {names[m]} has {known[m].tolist()}: they have no "
            "common order. Train them on the same kind of labels."
        )
    return np.unique(np.concatenate(known))


def committee_of_ensemble(model: Any, /, *, votes: bool = False) -> Committee:
    """The members of a fitted ensemble, through its ``estimators_``, which predict positions in its ``classes_``."""
    if isinstance(model, (*SEARCHES, FrozenEstimator, Pipeline)):
        return _committee_inside(model, votes)
    if not isinstance(model, (*FORESTS, BaggingClassifier, VotingClassifier)):
        raise TypeError(
            f"{type(model).__name__} is not an ensemble whose members predict all classes on their own. Expected {KNOWN}; "
            "otherwise pass the list of fitted classifiers."
        )
    classes = _classes_of(type(model).__name__, model)
    features = model.estimators_features_ if isinstance(model, BaggingClassifier) else [None] * len(model.estimators_)
    members = [
        _member_of_ensemble(n, part, columns, len(classes), votes)
        for n, (part, columns) in enumerate(zip(model.estimators_, features, strict=True))
    ]
    dtype = "float32" if isinstance(model, FORESTS) else "any" if isinstance(model, BaggingClassifier) else None
    return Committee(members, classes, [model], dtype=dtype)


def _member_of_ensemble(n: int, model: Any, features: Any, classes: int, votes: bool) -> Member:
    """Its own classes are the numbers of the ensemble's, perhaps not all; if there are as many, they are in order."""
    name, own = f"estimators_[{n}] ({type(model).__name__})", np.asarray(model.classes_)
    columns = np.arange(classes) if len(own) == classes else own
    if not np.isin(columns, np.arange(classes)).all():
        raise ValueError(
            f"{name} knows the classes {own.tolist()}, which are not among the numbers 0 to {classes - 1} of the ensemble's "
            f"{classes} classes. Pass the list of fitted classifiers, with align=True to join their classes."
        )
    return make_member(name, model, columns, features=features, votes=votes)


def _committee_inside(model: Any, votes: bool) -> Committee:
    """The ensemble in a search, a frozen estimator, or at the end of a pipeline, whose other steps become the head."""
    _check_fitted(type(model).__name__, model)
    if isinstance(model, Pipeline):
        inner = committee_of_ensemble(model[-1], votes=votes)
        return replace(inner, sources=[model], head=model[:-1] if len(model) > 1 else None)
    inside = model.estimator if isinstance(model, FrozenEstimator) else model.best_estimator_
    return replace(committee_of_ensemble(inside, votes=votes), sources=[model])
