"""A committee: the members in what users have, whose probabilities are put over the same classes and folded into a summary.

Users have a list of classifiers, a forest, bagging, voting, or a pipeline or search around one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_regressor
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_array
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from credalens.checks.options import check_count, count_text
from credalens.core.recalibration import Recalibration, temperatures_of
from credalens.core.summary import MemberSummary

FORESTS = (RandomForestClassifier, ExtraTreesClassifier)
SEARCHES = (GridSearchCV, RandomizedSearchCV)
ENSEMBLES = (
    "RandomForestClassifier, ExtraTreesClassifier, BaggingClassifier, VotingClassifier, CredalClassifier, a pipeline or a "
    "search with one"
)
GROUPS, GROUP_SIZE, FEWEST = 5, 5, 4  # of crude members; measured: python -m benchmarks.forests

# What to do if members are nearly one-hot.
TOO_FEW = (
    "Two or three trees or votes are too few for groups: train more. Larger leaves of trees (min_samples_leaf) help "
    "predict_proba, but predict may lose accuracy."
)
UNGROUPED = (
    "Average these trees or votes in groups: CredalClassifier.from_fitted(models, groups='auto') of the forest or "
    "CredalClassifier, or of the list estimators_. Or train forests instead of trees."
)
GROUPED = (
    "The groups average too few trees or votes: take fewer groups, but at least two, train more, or give trees larger leaves "
    "(min_samples_leaf)."
)
CALIBRATE = "Calibrate the models, for example with sklearn.calibration.CalibratedClassifierCV."


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted classifier: ``columns[k]`` is the position of its k-th class among the classes of the committee.

    ``features`` are the columns of X it was trained on (None for all). If it ``votes``, its probabilities are one-hot rows
    of the class that it predicts.
    """

    name: str
    model: Any
    columns: NDArray[np.intp]
    features: NDArray[np.intp] | None = None
    votes: bool = False

    def probabilities(self, X: Any, classes: int, /) -> NDArray[np.float64]:
        """Probabilities (rows, classes); zero for a class that this model does not know."""
        X = X if self.features is None else X[:, self.features]
        if self.votes:
            own, labels = np.asarray(self.model.classes_), np.asarray(self.model.predict(X))
            p = (labels[:, None] == own).astype(np.float64)
            if not (known := p.any(axis=1)).all():
                row = int(known.argmin())
                raise ValueError(
                    f"{self.name} predicts {labels[row]!r} at row {row}, which is not in its classes_ {own}."
                )
        else:
            p = np.asarray(self.model.predict_proba(X), dtype=np.float64)
        if p.ndim != 2 or p.shape[1] != len(self.columns):
            raise ValueError(
                f"{self.name} must predict probabilities of shape (rows, {len(self.columns)}), a column for each of its "
                f"classes_; got shape {p.shape}."
            )
        if np.array_equal(self.columns, np.arange(classes)):
            return p
        aligned = np.zeros((len(p), classes))
        aligned[:, self.columns] = p
        return aligned

    @property
    def is_crude(self) -> bool:
        """Whether its probabilities are one-hot, or nearly: it votes or is a tree, perhaps at the end of a pipeline."""
        last = self.model[-1] if isinstance(self.model, Pipeline) else self.model
        return self.votes or isinstance(last, DecisionTreeClassifier)


def fitted_model(
    name: str, model: Any, columns: Any, /, *, features: NDArray[np.intp] | None = None, votes: bool = False
) -> FittedModel:
    """A model that predicts probabilities, or that votes if it cannot and ``votes`` allows it."""
    has_probabilities = hasattr(model, "predict_proba")
    if not has_probabilities and not votes:
        raise ValueError(
            f"{name} has no predict_proba, so it gives no probabilities. Pass votes=True to count its predictions as "
            "one-hot votes, or calibrate it first, for example with sklearn.calibration.CalibratedClassifierCV."
        )
    return FittedModel(name, model, np.asarray(columns, dtype=np.intp), features, votes=not has_probabilities)


@dataclass(frozen=True, eq=False)
class Committee:
    """Members over the same classes, and how X is prepared for them.

    A member is the average of one or several ``models``; ``groups`` are the models of each member. ``heads`` are fitted
    transformers that all members share, in their order. ``dtype`` is that of the plain or CSR array that the models were
    trained on ("any" for the one of X); None if they take X as it came, so that data frames reach those that select columns
    by name. ``sources`` are the models that the user passed: those of the committee, or the ensemble that holds them.
    ``origin`` is the CredalClassifier whose members these are, if it is wrapped again.
    """

    groups: Sequence[Sequence[FittedModel]]
    classes: NDArray[Any]
    sources: Sequence[Any]
    heads: Sequence[Any] = ()
    dtype: str | None = None
    origin: Any = None

    @property
    def models(self) -> list[FittedModel]:
        """The models of all members."""
        return [model for group in self.groups for model in group]

    @property
    def remedy(self) -> str:
        """The remedy where members are nearly one-hot."""
        models = self.models
        if not all(model.is_crude for model in models):
            return CALIBRATE
        if len(models) < FEWEST:
            return TOO_FEW
        return UNGROUPED if len(self.groups) == len(models) else GROUPED

    def grouped_if_crude(self) -> Committee:
        """``GROUPS`` groups if every model is a tree or votes; fewer, but two, if that left them less than ``GROUP_SIZE``.

        The point prediction of two members is their mean, so two groups of the same size predict as the ensemble does. Groups
        that a CredalClassifier has already are kept.
        """
        models = self.models
        is_single = len(self.groups) == len(models) >= FEWEST
        if not (is_single and all(model.is_crude for model in models)):
            return self
        return self.grouped(max(2, min(GROUPS, len(models) // GROUP_SIZE)))

    def grouped(self, count: Any, /) -> Committee:
        """The models, in their order, as this many groups of (nearly) the same size."""
        models = self.models
        count = check_count(count, f"groups of {len(models)} models ('auto', None or a number)", most=len(models))
        ends = [len(models) * g // count for g in range(count + 1)]
        return replace(self, groups=[models[start:stop] for start, stop in pairwise(ends)])

    def summary(
        self, X: Any, /, *, recalibration: Recalibration | None = None, n_jobs: int | None = None
    ) -> MemberSummary:
        """The summary of all members. Each job holds one state (rows, classes), however many members there are."""
        X, jobs = self._prepared(X), min(effective_n_jobs(n_jobs), len(self.groups))
        summaries = Parallel(n_jobs=jobs, require="sharedmem")(
            delayed(_summary)(self.groups[job::jobs], X, len(self.classes), recalibration and recalibration[job::jobs])
            for job in range(jobs)
        )
        return replace(sum(summaries, MemberSummary()), temperatures=temperatures_of(recalibration))

    def stack(self, X: Any, /, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """The probabilities of all members, (members, rows, classes)."""
        X = self._prepared(X)
        probs = Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(_mean_probabilities)(group, X, len(self.classes)) for group in self.groups
        )
        return np.stack(probs)

    def _prepared(self, X: Any) -> Any:
        for head in self.heads:
            X = head.transform(X)
        if self.dtype is None:
            return X
        dtype = None if self.dtype == "any" else self.dtype
        return check_array(X, dtype=dtype, accept_sparse="csr", ensure_all_finite=False)


def _summary(
    groups: Sequence[Sequence[FittedModel]], X: Any, classes: int, recalibration: Recalibration | None
) -> MemberSummary:
    summary = MemberSummary(recalibration=recalibration)
    for group in groups:
        p = _mean_probabilities(group, X, classes)
        try:
            summary.update(p, member_axis=None)
        except ValueError as error:
            name = group[0].name if len(group) == 1 else f"the group {group[0].name} to {group[-1].name}"
            raise ValueError(f"{name}: {error}") from error
    return summary


def _mean_probabilities(group: Sequence[FittedModel], X: Any, classes: int) -> NDArray[np.float64]:
    total = group[0].probabilities(X, classes)
    for model in group[1:]:
        total = total + model.probabilities(X, classes)  # not in place: the array may belong to the model
    return total / len(group) if len(group) > 1 else total


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
    for attribute in ("n_features_in_", "feature_names_in_"):  # where members have what says which X they expect
        values = [(title, getattr(model, attribute)) for title, model in named.items() if hasattr(model, attribute)]
        for title, value in values[1:]:
            first, expected = values[0]
            if not np.array_equal(value, expected):
                raise ValueError(
                    f"all members must take the same X, but {title} has {attribute} = {value} and {first} has {expected}. "
                    "Give members that use some of the columns a pipeline that selects them."
                )
    classes = _shared_classes(class_lists, align)
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


def _shared_classes(class_lists: dict[str, NDArray[Any]], align: bool) -> NDArray[Any]:
    """The classes that all lists have; with ``align`` those that any has, in order."""
    first, expected = next(iter(class_lists.items()))
    if not align:
        for name, classes in class_lists.items():
            if set(classes.tolist()) != set(expected.tolist()):
                raise ValueError(
                    f"{name} knows the classes {classes.tolist()}, {first} knows {expected.tolist()}. Pass align=True to join "
                    "them (a class that a member does not know gets probability zero from it)."
                )
        return expected
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
    if isinstance(model, Pipeline):  # around an ensemble; its other steps become a head
        inner = _committee_of_ensemble(model[-1], votes)
        heads = (model[:-1], *inner.heads) if len(model) > 1 else inner.heads
        return replace(inner, sources=[model], heads=heads)
    if isinstance(model, (*SEARCHES, FrozenEstimator)):
        inside = model.estimator if isinstance(model, FrozenEstimator) else model.best_estimator_
        return replace(_committee_of_ensemble(inside, votes), sources=[model])
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
    members = []
    for n, (part, columns) in enumerate(zip(model.estimators_, features, strict=True)):
        name, positions = f"estimators_[{n}] ({type(part).__name__})", np.asarray(part.classes_)
        if len(positions) == len(classes):  # if there are as many as the ensemble has, they are in its order
            positions = np.arange(len(classes))
        if not np.isin(positions, np.arange(len(classes))).all():
            raise ValueError(
                f"{name} knows the classes {positions.tolist()}, which are not among the numbers 0 to {len(classes) - 1} of "
                f"the ensemble's {len(classes)} classes. Pass the list of fitted classifiers, with align=True to join their "
                "classes."
            )
        members.append(fitted_model(name, part, positions, features=columns, votes=votes))
    dtype = "float32" if isinstance(model, FORESTS) else "any" if bagged else None
    return Committee([[member] for member in members], classes, [model], dtype=dtype)
