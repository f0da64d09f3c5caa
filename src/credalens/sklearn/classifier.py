"""CredalClassifier: an ensemble of scikit-learn classifiers whose prediction is a credal set."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from credalens.arrays import top_class
from credalens.checks.arrays import check_label_kind
from credalens.checks.doubtful_members import warn_crude_members, warn_single_member
from credalens.checks.intervals import read_unrepaired_intervals
from credalens.checks.options import check_base, check_choice
from credalens.core.classical import ClassicalUncertainty
from credalens.core.decisions import decide
from credalens.core.intervals import intersection_probability
from credalens.core.recalibration import THROUGH, Recalibration, check_recalibration
from credalens.core.summary import MemberSummary
from credalens.guard import Decisions, Guard
from credalens.guard.decider import guard_in_use
from credalens.guard.signature import POINTS
from credalens.prediction import CredalPrediction, wrap
from credalens.sklearn.committee import Committee, committee_of, committee_of_list
from credalens.sklearn.fitting import fit_members, fit_recalibration, read_training_data

MANY_CLASSES: Final = 10
OTHER_GUARD: Final = (
    "the guard was fitted before these members were trained, and promises nothing about new ones. Fit it "
    "again: model.guard = Guard.fit(model.credal_predict(X_calibration), labels)."
)


@dataclass(frozen=True, eq=False, repr=False)
class CredalUncertainty:
    """Highest entropy in the credal set, lowest entropy, and their difference, each (rows,); and the classical three.

    What ``CredalClassifier.predict_uncertainty`` returns.
    """

    total: NDArray[np.float64]
    aleatoric: NDArray[np.float64]
    epistemic: NDArray[np.float64]
    classical: ClassicalUncertainty

    def __repr__(self) -> str:
        return f"CredalUncertainty(rows={len(self.total)})"


class CredalClassifier(ClassifierMixin, BaseEstimator):
    """An ensemble of classifiers that predicts probability intervals, one distribution inside them, and uncertainty.

    ``fit`` trains ``n_members`` clones of ``estimator``; ``from_fitted`` wraps models that are already trained. Members
    are folded one by one, so memory does not grow with their number.

    A pipeline that ends in a CredalClassifier has no ``predict_uncertainty``: put the pipeline inside, as ``estimator``, or
    wrap it when it is fitted, ``from_fitted(pipeline)``, which trains nothing.

    Parameters
    ----------
    estimator
        a classifier with ``predict_proba``; by default a random forest of 20 trees, so that five members have the
        accuracy of a forest of 100. Gradient boosting of any library does well too; single trees do not (``from_fitted``).
    n_members
        how many clones ``fit`` trains.
    resample
        how they differ. ``"bootstrap"``: each has its own rows, drawn with replacement within every class, so that
        every member knows every class, and its own seed. ``"reseed"``: each has all rows and its own seed; if the
        estimator ignores its seed, members are the same and epistemic uncertainty is zero. ``"auto"``: ``"reseed"`` for an
        estimator that draws its rows itself (its ``bootstrap`` is true, as that of a forest), else ``"bootstrap"``.
    votes
        let members without ``predict_proba`` vote: probability one for the class they predict.
    hull
        keep the members' probabilities (members, rows, classes) in ``credal_predict``, for its ``hull``.
    base
        of the logarithm in all uncertainties; 2 gives bits.
    guard
        a ``credalens.guard.Guard``, fitted on ``credal_predict`` of calibration rows, which ``decide`` uses. Its classes
        are positions in ``classes_``: ``Guard.fit(model.credal_predict(X), np.searchsorted(model.classes_, y))``.
    recalibrate
        fit temperatures for the members (`credalens.Recalibration`): ``"credal"`` so that the intersection probability has the
        lowest negative log-likelihood, ``"averaged"`` the mean, ``"members"`` each by itself; or use a ``Recalibration`` that
        was fitted on predictions of such members. None leaves probabilities as they come.
    recalibrate_on
        the rows that tell the temperature, by members that were not trained on them. A number of folds: for each fold
        members are trained on the others, so that ``fit`` takes that many times longer, and at last on all rows. A share
        below one, such as 0.2: these rows are held out, and the members see the others only.
    point
        what ``predict`` and ``predict_proba`` are of: ``"mean"``, the average of the members, or ``"intersection"``, the
        intersection probability. ``"auto"`` is the mean with fewer than ten classes: on real tables it is as accurate or
        better and has the lower NLL (results/few_classes.json).
    random_state
        seed or generator that decides the seeds of all members.
    n_jobs
        members trained at a time, and threads that predict (each folds its share of the members).

    Attributes
    ----------
    estimators_
        the fitted models. Each is a member, or the members are means of groups of them (``from_fitted``, ``groups``); how many
        members there are is ``credal_predict(X).n_members``.
    classes_
        the class labels, in the order of every last axis.
    recalibration_
        the ``Recalibration`` that is used, or None.
    n_features_in_, feature_names_in_
        as the members were fitted, if they have them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> credal = CredalClassifier(n_members=10, random_state=0).fit(X, y)
    >>> credal.predict_proba(X[:1]).shape, round(credal.score(X, y), 1)
    ((1, 3), 1.0)
    """

    # fit has no argument of this name, so scikit-learn's metadata routing would not offer it.
    __metadata_request__fit = {"sample_weight": None}  # noqa: RUF012

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_members: int = 5,
        resample: str = "auto",
        votes: bool = False,
        hull: bool = False,
        base: float = 2,
        guard: Guard | None = None,
        recalibrate: str | Recalibration | None = None,
        recalibrate_on: float = 5,
        point: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_members = n_members
        self.resample = resample
        self.votes = votes
        self.hull = hull
        self.base = base
        self.guard = guard
        self.recalibrate = recalibrate
        self.recalibrate_on = recalibrate_on
        self.point = point
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def from_fitted(
        cls,
        models: Any,
        /,
        *,
        groups: int | str | None = "auto",
        align: bool = False,
        votes: bool = False,
        hull: bool | None = None,
        base: float | None = None,
        guard: Guard | None = None,
        recalibration: Recalibration | None = None,
        point: str = "auto",
        n_jobs: int | None = None,
    ) -> CredalClassifier:
        """Wrap fitted models without training: a list of classifiers, or an ensemble whose parts become the members.

        Ensembles are random forests, extra trees, bagging and voting classifiers (whose weights are ignored) and
        CredalClassifiers, alone, at the end of a pipeline, or in a search. A forest in a list is one model, not its trees. All
        models of a list must know the same classes; ``align=True`` joins their classes instead, and a member gives
        probability zero to those it does not know. The trees in ``forest.estimators_`` know classes as numbers only: wrap the
        forest itself to keep its labels.

        Intervals reach from the lowest to the highest member. Trees with pure leaves say zero or one, so a hundred of them
        give intervals that say nothing: the mean is that of the forest, but the intersection probability, which is
        ``predict_proba`` with ten classes or more, becomes nearly uniform.
        ``groups="auto"`` therefore averages trees (and votes) in five groups, five small forests, also if all models of a
        list or of a CredalClassifier are trees; groups that a CredalClassifier has already are kept. It makes fewer groups,
        but at least two, if a group would have less than five trees, and none if there are less than four. A number sets the
        number of groups, None leaves every model a member. Models of other kinds are left alone, each a member.

        Why five: measured on digits, wine, iris and breast cancer (``python -m benchmarks.forests``,
        results/forests.json), the accuracy of the intersection probability with 20, 100 or 500 trees is within 0.3 points of
        the forest's own, on average over ten seeds, and total uncertainty finds the misclassified rows of random forests of
        100 trees with an AUROC of 89 to 94 %, as does the entropy of the forest (90 to 94 %); with ten groups it is 87
        to 93 %, with single trees 69 to 81 %. Epistemic uncertainty alone finds them worse (52 to 70 %).

        ``hull`` and ``base`` are by default those of a CredalClassifier that is wrapped, else False and 2 (bits).
        Its guard and its recalibration are not taken over, since groups can change the members: pass ``guard`` and
        ``recalibration``.

        Fitting the result again, or its ``clone``, trains clones of the ensemble, or of the first model in the list.
        """
        committee = committee_of(models, align=align, votes=votes)
        if groups is not None:
            committee = committee.grouped_if_crude() if groups == "auto" else committee.grouped(groups)
        origin, sources = committee.origin or cls(), committee.sources
        self = cls(
            sources[0],
            n_members=len(sources) if len(sources) > 1 else 5,
            votes=votes,
            hull=origin.hull if hull is None else hull,
            base=origin.base if base is None else check_base(base),
            guard=guard,
            point=check_choice(point, ("auto", *POINTS), "point"),
            n_jobs=n_jobs,
        )
        for attribute in ("n_features_in_", "feature_names_in_"):
            values = [getattr(model, attribute) for model in sources if hasattr(model, attribute)]
            if values:
                setattr(self, attribute, values[0])
        return self._use(committee, check_recalibration(recalibration))

    def fit(self, X: Any, y: Any, **fit_params: Any) -> CredalClassifier:
        """Train the members on rows X and one label for each row.

        ``sample_weight`` (for a pipeline ``step__sample_weight``) goes with its rows to every member whose estimator
        takes it; rows of weight zero are left out. It is not a named argument, because scikit-learn would then expect a row of
        weight two to give the same members as the row written twice, which a bootstrap does not.
        """
        check_base(self.base)
        estimator = self._estimator()
        validate_data(self, X, y, skip_check_array=True)
        data = read_training_data(X, y, fit_params, estimator)
        train = partial(
            fit_members,
            estimator,
            n_members=self.n_members,
            resample=self.resample,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )
        recalibration = self.recalibrate
        if isinstance(recalibration, str):
            recalibration, data = fit_recalibration(
                lambda rows: committee_of_list(train(rows), votes=self.votes),
                data,
                through=check_choice(recalibration, THROUGH, "recalibrate"),
                on=self.recalibrate_on,
                random_state=self.random_state,
            )
        models = train(data)
        if self.guard is not None:
            warnings.warn(OTHER_GUARD, stacklevel=2)
        committee = committee_of_list(models, votes=self.votes, name="estimators_")
        return self._use(committee, check_recalibration(recalibration))

    def _use(self, committee: Committee, recalibration: Recalibration | None) -> CredalClassifier:
        if recalibration is not None:
            recalibration.check(len(committee.groups), len(committee.classes))
        self.recalibration_ = recalibration
        warn_single_member(len(committee.groups), stacklevel=3)
        self._committee = committee
        self.estimators_ = [fitted.model for fitted in committee.models]
        self.classes_ = committee.classes
        return self

    def _estimator(self) -> Any:
        if self.estimator is None:
            return RandomForestClassifier(20)
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise TypeError(f"estimator must be a scikit-learn classifier, such as SVC(); got {self.estimator!r}.")
        return self.estimator

    def _checked(self, X: Any) -> Any:
        """X with the number and names of features it was trained on; its values are checked by the members."""
        check_is_fitted(self)
        if len(getattr(X, "shape", (0, 0))) == 1:
            raise ValueError(
                f"Expected a 2D array of rows, got a 1D array of shape {X.shape}. Reshape your data: X.reshape(1, -1) for "
                "one row, X.reshape(-1, 1) for one feature."
            )
        return validate_data(self, X, reset=False, skip_check_array=True)

    def _summary(self, X: Any) -> MemberSummary:
        X = self._checked(X)
        summary = self._committee.summary(X, recalibration=self.recalibration_, n_jobs=self.n_jobs)
        self._warn(summary)
        return summary

    def _warn(self, bounds: MemberSummary | CredalPrediction) -> None:
        if len(self._committee.groups) > 1:  # one alone caused a warning when it was fitted or wrapped
            warn_crude_members(bounds.lower, bounds.upper, remedy=self._committee.remedy, stacklevel=4)

    def credal_predict(self, X: Any) -> CredalPrediction:
        """Everything at once: intervals, intersection probability, uncertainties, and with ``hull=True`` the hull."""
        if not self.hull:
            return self._summary(X).prediction(base=self.base)
        X = self._checked(X)
        members = self._committee.stack(X, n_jobs=self.n_jobs)
        prediction = wrap(members, base=self.base, recalibration=self.recalibration_)
        self._warn(prediction)
        return prediction

    def decide(self, X: Any) -> Decisions:
        """Decide about every row by the guard: ``.accepted``, ``.p_value``, ``.reason``; ``.prediction`` is a position in
        ``classes_``."""
        return guard_in_use(self.guard).decide(self.credal_predict(X))

    def predict_interval(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lowest and the highest probability any member gives, each (rows, classes)."""
        summary = self._summary(X)
        return summary.lower, summary.upper

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The point prediction (rows, classes): the mean of the members or the intersection probability (``point``)."""
        return self._point(self._summary(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The label with the highest probability of the point prediction, (rows,); the mean breaks ties."""
        summary = self._summary(X)
        return self.classes_[top_class(self._point(summary), ties=summary.sum_probability)]

    def _point(self, summary: MemberSummary) -> NDArray[np.float64]:
        point = check_choice(self.point, ("auto", *POINTS), "point")
        if point == "mean" or (point == "auto" and len(self.classes_) < MANY_CLASSES):
            return np.asarray(summary.sum_probability / summary.count)
        return np.asarray(intersection_probability(summary.lower, summary.upper))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of ``predict`` on rows X with the labels y."""
        check_is_fitted(self)
        check_label_kind(y, self.classes_)
        return float(super().score(X, y, sample_weight))

    def predict_uncertainty(self, X: Any) -> CredalUncertainty:
        """Total, aleatoric and epistemic uncertainty of every row, and the classical three for comparison."""
        prediction = self.credal_predict(X)
        return CredalUncertainty(prediction.total, prediction.aleatoric, prediction.epistemic, prediction.classical)

    def predict_set(self, X: Any, rule: str = "maximality", costs: Any = None) -> NDArray[np.bool_]:
        """The labels that remain possible under ``rule`` (see ``credalens.credal_decision``), a mask (rows, classes).

        With ``costs`` (actions, classes), columns in the order of ``classes_``, the actions that remain, (rows, actions).
        """
        summary = self._summary(X)
        point = intersection_probability(summary.lower, summary.upper)
        mean = summary.sum_probability / summary.count
        intervals = read_unrepaired_intervals(summary.lower, summary.upper)
        return np.asarray(decide(intervals, rule, costs=costs, probability=point, mean=mean), np.bool_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is None or hasattr(self.estimator, "__sklearn_tags__"):
            inner = get_tags(self._estimator())
            tags.input_tags = inner.input_tags
            tags.classifier_tags = inner.classifier_tags or tags.classifier_tags
            tags.classifier_tags.multi_label = False
        return tags
