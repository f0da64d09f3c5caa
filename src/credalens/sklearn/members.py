"""Fitted classifiers as members: one row of probabilities over the same classes, whatever each of them returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.parallel import Parallel, delayed

from credalens.core.members import MemberSummary

__all__ = ["Committee", "Group", "Member", "make_member"]


@dataclass(frozen=True, eq=False)
class Member:
    """One fitted classifier: ``columns[k]`` is where its k-th class stands among the classes of the committee.

    ``features`` are the columns of X it was trained on (all of them if None). It ``votes`` if it has no probabilities.
    """

    name: str
    model: Any
    columns: NDArray[np.intp]
    features: NDArray[np.intp] | None = None
    votes: bool = False

    @property
    def parts(self) -> Sequence[Member]:
        """Itself: a group of one."""
        return (self,)

    def probabilities(self, X: Any, classes: int, /) -> NDArray[np.float64]:
        """Probabilities (rows, classes); zero for a class this member does not know."""
        X = X if self.features is None else X[:, self.features]
        own = self._vote(X) if self.votes else np.asarray(self.model.predict_proba(X), dtype=np.float64)
        if own.ndim != 2 or own.shape[1] != len(self.columns):
            raise ValueError(
                f"{self.name} must predict probabilities of shape (rows, {len(self.columns)}), a column for each of its "
                f"classes_; got shape {own.shape}."
            )
        if np.array_equal(self.columns, np.arange(classes)):
            return own
        aligned = np.zeros((len(own), classes))
        aligned[:, self.columns] = own
        return aligned

    def _vote(self, X: Any) -> NDArray[np.float64]:
        """One-hot rows: all of the member's probability on the class it predicts."""
        own, labels = np.asarray(self.model.classes_), np.asarray(self.model.predict(X))
        hit = labels[:, None] == own
        if not hit.any(axis=1).all():
            row = int(hit.any(axis=1).argmin())
            raise ValueError(f"{self.name} predicts {labels[row]!r} at row {row}, which is not in its classes_ {own}.")
        return hit.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Group:
    """Several classifiers that make one member by averaging their probabilities."""

    parts: Sequence[Member]

    @property
    def name(self) -> str:
        """Where it begins and ends."""
        return f"the group {self.parts[0].name} to {self.parts[-1].name}"

    def probabilities(self, X: Any, classes: int, /) -> NDArray[np.float64]:
        """The mean probabilities (rows, classes) of its parts."""
        total = self.parts[0].probabilities(X, classes)
        for part in self.parts[1:]:
            total = total + part.probabilities(X, classes)  # in place it could change what a model keeps
        return total / len(self.parts)


def make_member(
    name: str, model: Any, columns: Any, /, *, features: NDArray[np.intp] | None = None, votes: bool = False
) -> Member:
    """A member that predicts probabilities, or votes if it cannot and ``votes`` allows it."""
    has_probabilities = hasattr(model, "predict_proba")
    if not has_probabilities and not votes:
        _raise_no_probabilities(name)
    return Member(name, model, np.asarray(columns, dtype=np.intp), features, votes=not has_probabilities)


def _raise_no_probabilities(name: str) -> NoReturn:
    raise ValueError(
        f"{name} has no predict_proba, so it gives no probabilities. Pass votes=True to count its predictions as one-hot "
        "votes, or calibrate it first, for example with sklearn.calibration.CalibratedClassifierCV."
    )


@dataclass(frozen=True, eq=False)
class Committee:
    """Members over the same classes, and how X must be read before they see it.

    ``head`` is a fitted transformer all members share. ``dtype`` is None when members take X as it came (so that data
    frames reach those that select columns by name), else the dtype of the plain or CSR array they were trained on.
    ``sources`` are the models that were given: each member's, or the ensemble the members are parts of.
    """

    members: Sequence[Member | Group]
    classes: NDArray[Any]
    sources: Sequence[Any]
    head: Any = None
    dtype: str | None = None

    @property
    def parts(self) -> list[Member]:
        """Every single classifier, grouped or not."""
        return [part for member in self.members for part in member.parts]

    def grouped(self, groups: int, /) -> Committee:
        """The members put together, in their order, to this many groups of (nearly) the same size."""
        parts = self.parts
        if not isinstance(groups, int | np.integer) or isinstance(groups, bool) or not 1 <= groups <= len(parts):
            raise ValueError(f"groups must be an integer from 1 to the number of models, {len(parts)}; got {groups!r}.")
        ends = [len(parts) * g // groups for g in range(groups + 1)]
        return replace(self, members=[Group(parts[a:b]) for a, b in pairwise(ends)])

    def read(self, X: Any, /) -> Any:
        """X as the members take it."""
        X = X if self.head is None else self.head.transform(X)
        if self.dtype is None:
            return X
        dtype = None if self.dtype == "any" else self.dtype
        return check_array(X, dtype=dtype, accept_sparse="csr", ensure_all_finite=False)

    def summary(self, X: Any, /, *, n_jobs: int | None = None) -> MemberSummary:
        """All members folded into one summary: each job holds one (rows, classes) state, however many members there are."""
        X, jobs = self.read(X), min(effective_n_jobs(n_jobs), len(self.members))
        parts = Parallel(n_jobs=jobs, require="sharedmem")(
            delayed(_fold)(self.members[job::jobs], X, len(self.classes)) for job in range(jobs)
        )
        return sum(parts, MemberSummary())

    def stack(self, X: Any, /, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """All members' probabilities (members, rows, classes)."""
        X = self.read(X)
        parts = Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(member.probabilities)(X, len(self.classes)) for member in self.members
        )
        return np.stack(parts)


def _fold(members: Sequence[Member | Group], X: Any, classes: int) -> MemberSummary:
    summary = MemberSummary()
    for member in members:
        p = member.probabilities(X, classes)
        try:
            summary.update(p, member_axis=None)
        except ValueError as error:
            raise ValueError(f"{member.name}: {error}") from error
    return summary
