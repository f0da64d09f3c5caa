"""A committee: fitted classifiers whose probabilities are put over the same classes and folded into a summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_array
from sklearn.utils.parallel import Parallel, delayed

from credalens.checks.options import check_count
from credalens.core.members import MemberSummary

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
        p = self._votes(X) if self.votes else np.asarray(self.model.predict_proba(X), dtype=np.float64)
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

    def _votes(self, X: Any) -> NDArray[np.float64]:
        classes, labels = np.asarray(self.model.classes_), np.asarray(self.model.predict(X))
        votes = labels[:, None] == classes
        has_class = votes.any(axis=1)
        if not has_class.all():
            row = int(has_class.argmin())
            raise ValueError(
                f"{self.name} predicts {labels[row]!r} at row {row}, which is not in its classes_ {classes}."
            )
        return votes.astype(np.float64)


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
        """What to do if the members are nearly one-hot."""
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

    def summary(self, X: Any, /, *, n_jobs: int | None = None) -> MemberSummary:
        """The summary of all members. Each job holds one state (rows, classes), however many members there are."""
        X, jobs = self._prepared(X), min(effective_n_jobs(n_jobs), len(self.groups))
        summaries = Parallel(n_jobs=jobs, require="sharedmem")(
            delayed(_summary)(self.groups[job::jobs], X, len(self.classes)) for job in range(jobs)
        )
        return sum(summaries, MemberSummary())

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


def _summary(groups: Sequence[Sequence[FittedModel]], X: Any, classes: int) -> MemberSummary:
    summary = MemberSummary()
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
