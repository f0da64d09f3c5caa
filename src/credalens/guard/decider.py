"""Guard: learns from calibration data which predictions to accept, and decides about new ones."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from credalens import __version__
from credalens.arrays import array_kind_of, to_numpy
from credalens.checks.arrays import read_columns, read_labels
from credalens.checks.options import (
    check_base,
    check_choice,
    check_count,
    check_fraction,
    check_temperatures,
    check_tolerance,
    check_trim,
)
from credalens.core.costs import read_costs
from credalens.core.recalibration import Recalibration, temperatures_of
from credalens.core.scores import DEFAULT, FALLBACK_SCORES, SCORES, default_score, highest_possible
from credalens.guard import binomial
from credalens.guard.conformal_sets import ConformalSets, of_earlier_version
from credalens.guard.cost_risk import CostCheck, CostPromise, cheapest_action
from credalens.guard.decisions import DecisionCounts, Decisions, PromiseCheck, Reason
from credalens.guard.limit_search import Costs, promised_limit
from credalens.guard.risk import Promise, Risk, read_risks
from credalens.guard.signature import (
    POINTS,
    CalibrationData,
    Signature,
    Slack,
    check_prediction,
    named_class,
    scores_of,
)
from credalens.prediction import CredalPrediction
from credalens.storage.saved import Saved, SavedFormat, checksum, number, numbers, plain_fields

UNIFORM: Final = ", because their credal sets contain the uniform distribution or nearly do"
MANY_SCORES: Final = 1 << 14  # at a time: worth a table, which takes a millisecond to make


def _from_version_1(stored: dict[str, Any]) -> dict[str, Any]:
    """The fields of a guard whose scores were compared to the last digit, and whose limit said where its threshold decides."""
    above = math.nextafter(number(stored["threshold"]), math.inf)
    limit = math.inf if number(stored["limit"]) >= above else stored["limit"]
    return _from_version_2({**stored, "limit": limit, "rounding": 0.0})


def _from_version_2(stored: dict[str, Any]) -> dict[str, Any]:
    """The fields of a guard whose sets drew theta in another way, and whose note was called members."""
    sets = stored["sets"] and of_earlier_version(stored["sets"])
    return _from_version_3({**stored, "note": stored["members"], "sets": sets})


def _from_version_3(stored: dict[str, Any]) -> dict[str, Any]:
    """The fields of a guard that knew of no recalibration and no costs."""
    return {**stored, "temperatures": [], "costs": None, "cost": None}


@final
@dataclass(frozen=True, eq=False, repr=False)
class Guard(Saved):
    """Accepts predictions or abstains, with a promise about each; made by :meth:`fit`, used by :meth:`decide`.

    :ivar signature: what predictions must have in common with those of the calibration data.
    :ivar score: the score of the catalogue that it compares.
    :ivar point: which point prediction names the class that it decides about, "intersection" or "mean".
    :ivar version: of credalens when it was fitted.
    :ivar note: on the members, by the person who fitted it.
    :ivar false_alarm_rate: the largest share of new inputs like the calibration data that are called unlike it, on average
        over calibration data; or None. For this guard alone see `false_alarm_range`.
    :ivar threshold: inputs with a higher score are unlike the calibration data; infinite without a false-alarm rate.
    :ivar limit: inputs with this score or a higher one are too uncertain for ``promises``; infinite without promises, and
        where the threshold alone decides.
    :ivar promises: error rates among accepted inputs, as they were tested.
    :ivar sets: sets of classes that are offered if no single class is accepted; or None.
    :ivar largest_set: the most classes that are offered.
    :ivar scores: of the calibration data, sorted.
    :ivar costs: of actions for true classes, (actions, classes), by which it acts; None where it names classes.
    :ivar cost: what is promised of the expected cost of accepted actions; or None.
    """

    FORMAT = SavedFormat("guard", 4, {1: _from_version_1, 2: _from_version_2, 3: _from_version_3})

    signature: Signature
    score: str
    point: str
    version: str
    note: str
    false_alarm_rate: float | None
    threshold: float
    limit: float
    promises: tuple[Promise, ...]
    sets: ConformalSets | None
    largest_set: int
    scores: NDArray[np.float64]
    costs: NDArray[np.float64] | None = None
    cost: CostPromise | None = None

    @classmethod
    def fit(
        cls,
        prediction: CredalPrediction,
        labels: Any = None,
        *,
        score: str | None = None,
        false_alarm_rate: float | None = 0.05,
        max_error: float | None = None,
        max_class_error: float | Mapping[int, float] | None = None,
        class_by: str = "true",
        groups: Mapping[str, Any] | None = None,
        costs: Any = None,
        max_cost: float | None = None,
        confidence: float = 0.95,
        point: str = "intersection",
        sets: ConformalSets | None = None,
        largest_set: int = 3,
        note: str = "",
        members: str = "",
    ) -> Guard:
        """Learn from predictions on calibration data: not used in training, and like the inputs to come.

        The guard abstains on inputs that are unlike these data, by the conformal p-value of ``score``
        (``CredalPrediction.score``), by default that of `default_score` for so many classes. On average over calibration
        data it calls at most a share ``false_alarm_rate`` of new inputs of the same kind unlike; a single guard may be above it
        (``false_alarm_range``); None or 0 promises nothing.
        With ``labels``, the index of each true class from 0, it can also promise that at most a share ``max_error`` of the
        accepted predictions is wrong, and at most ``max_class_error`` within a class (one number, or class -> number;
        ``class_by`` "true" or "predicted" class). ``groups``, column -> one value for each input, such as site or sex, asks
        for ``max_error`` in every group as well; new inputs need no groups to be decided about. These promises are about the
        guard itself: all hold together with probability ``confidence`` over the calibration data, also counting those for
        which nothing can be promised; how many of them there would be stands in each promise (``refused``,
        ``refused_at_highest``). ``point`` is the prediction that is judged, "intersection" or "mean".

        ``costs`` (actions, classes) say what each action costs for each true class, such as a refusal that always costs one.
        The guard then takes the action of least expected cost under ``point`` (``Decisions.action``), and promises that
        accepted actions cost at most ``max_cost`` on average: an expectation, with the same confidence, of costs that are
        bounded by the matrix.

        Scores count as equal where rounding explains their difference, so that decisions and promises do not depend on the
        precision of the members nor on where they were computed.

        With ``sets`` the guard offers up to ``largest_set`` classes if it cannot accept a single one: for inputs that are too
        uncertain for the promised error rate, or, if none is promised, for inputs whose set is not just the predicted class.
        ``note`` is a text on the members, kept in the file; ``members`` is its earlier name.

        >>> import numpy as np
        >>> from credalens import wrap
        >>> probs = np.random.default_rng(0).dirichlet([20, 2, 1], (5, 2000))
        >>> guard = Guard.fit(wrap(probs[:, :1000]), np.zeros(1000, int), max_error=0.01)
        >>> guard.promises[0].errors, guard.promises[0].bound < 0.01
        (0, True)
        >>> [round(rate, 3) for rate in guard.false_alarm_range]
        [0.037, 0.064]
        >>> guard.decide(wrap(np.full((5, 1, 3), 1 / 3))).reason
        array(['unlike the calibration data'], dtype='<U41')
        """
        check_prediction(prediction)
        if score is None:
            has_members, classes = prediction.n_members > 0, int(prediction.lower.shape[-1])
            score = default_score(classes, errors=not false_alarm_rate, members=has_members)
        data = CalibrationData.of(prediction, labels, groups, score=score, point=point)
        risks = read_risks(max_error, max_class_error, class_by, data.signature.classes, data.groups)
        options: dict[str, Any] = {"confidence": confidence, "sets": sets, "largest_set": largest_set}
        if (costs is None) != (max_cost is None):
            raise ValueError(
                "a promise about costs needs both: costs=, what actions cost, and max_cost=, what is promised."
            )
        if costs is not None:
            read_costs(costs, data.signature.classes)
            matrix = to_numpy(costs)[0].astype(np.float64)
            options["cost"] = matrix, cheapest_action(prediction, matrix, point).ravel(), max_cost
        note = note or members
        guard = cls.from_calibration(data, false_alarm_rate=false_alarm_rate, risks=risks, note=note, **options)
        if members:
            warnings.warn("members= of Guard.fit is called note= now.", DeprecationWarning, stacklevel=2)
        if guard.blindness:
            warnings.warn(guard.blindness, stacklevel=2)
        return guard

    @classmethod
    def from_calibration(
        cls,
        data: CalibrationData,
        /,
        *,
        false_alarm_rate: float | None = 0.05,
        risks: tuple[Risk, ...] = (),
        confidence: float = 0.95,
        sets: ConformalSets | None = None,
        largest_set: int = 3,
        note: str = "",
        cost: Costs | None = None,
    ) -> Guard:
        """Fit from a summary of the calibration data, which may come in parts."""
        check_fraction(confidence, "confidence")
        rate = check_fraction(false_alarm_rate, "false_alarm_rate") if false_alarm_rate else None
        if rate is None and not risks and cost is None:
            raise ValueError("nothing to promise: give a false_alarm_rate, a max_error with labels, or both.")
        ordered = np.sort(data.scores)
        if not len(ordered):
            raise ValueError("the calibration data are empty; a guard needs inputs like those it will meet.")
        if sets is not None and not isinstance(sets, ConformalSets):
            raise TypeError(
                f"sets must be what ConformalSets.fit(prediction, labels) returns; got {type(sets).__name__}."
            )
        if sets is not None and len(sets.thresholds) != (classes := data.signature.classes):
            raise ValueError(f"the sets are for {len(sets.thresholds)} classes and the prediction has {classes}.")
        threshold = math.inf if rate is None else binomial.alarm_threshold(ordered, rate)
        limit, promises, paid = promised_limit(data, ordered, threshold, risks, confidence, cost)
        return cls(
            signature=data.signature,
            score=data.score,
            point=data.point,
            version=__version__,
            note=note,
            false_alarm_rate=rate,
            threshold=threshold,
            limit=limit,
            promises=promises,
            sets=sets,
            largest_set=check_count(largest_set, "largest_set"),
            scores=ordered,
            costs=None if cost is None else cost[0],
            cost=paid,
        )

    @property
    def base(self) -> float:
        """Of the logarithm in which it was fitted."""
        return self.signature.base

    @property
    def classes(self) -> int:
        """How many classes predictions must have."""
        return self.signature.classes

    @property
    def n_members(self) -> int:
        """How many members predictions must have."""
        return self.signature.n_members

    @property
    def trim(self) -> float:
        """With which trim predictions must be made."""
        return self.signature.trim

    @property
    def n(self) -> int:
        """How many calibration inputs it learnt from."""
        return len(self.scores)

    @property
    def false_alarm_range(self) -> tuple[float, float] | None:
        """Where the false-alarm rate of this guard lies with probability 0.95 over calibration data.

        It is a range of the beta distribution with parameters a and n + 1 - a, where a is ``false_alarm_rate`` times n + 1,
        rounded down. If scores are tied, it is the interval of Clopper and Pearson of the share that lies above the threshold.
        """
        if self.false_alarm_rate is None:
            return None
        slack, allowed = self.slack(), binomial.most_hits(self.false_alarm_rate, self.n + 1)
        at_least = int((self.scores >= slack.lowest(self.threshold)).sum())
        if at_least == allowed and (np.diff(self.scores) > 0).all():
            return binomial.conformal_rate_range(self.false_alarm_rate, self.n)
        return binomial.binomial_interval(int((slack.lowest(self.scores) > self.threshold).sum()), self.n)

    @property
    def blindness(self) -> str:
        """Why the guard can call no input unlike the calibration data, and what to do; empty where it can."""
        if self.false_alarm_rate is None:
            return ""
        highest = highest_possible(self.score, classes=self.classes, members=self.n_members, base=self.base)
        share = binomial.share_at_top(self.scores, self.false_alarm_rate, highest, self.slack())
        if not share:
            return ""
        others = " or ".join(f"{name!r}" for name in FALLBACK_SCORES if name != self.score)
        return (
            f"{share:.1%} of the calibration inputs have the highest {self.score!r} there can be, {self.threshold:.4g}"
            f"{UNIFORM if self.score == DEFAULT else ''}. At a false-alarm rate of {self.false_alarm_rate:.3g} the guard "
            "therefore calls no input unlike the calibration data. Try another score, which is at its "
            f"highest value less often: {others} (score=, --score)."
        )

    @property
    def digest(self) -> str:
        """A short hash of everything that decides."""
        return checksum(plain_fields(self.saved_fields()))

    def decide(self, prediction: CredalPrediction) -> Decisions:
        """Accept or abstain, for each input of a prediction that was made as those of the calibration data."""
        self.check(Signature.of(prediction))
        return self.decide_rows(prediction)

    def check(self, signature: Signature, /) -> None:
        """Refuse predictions with a signature that it may not decide about."""
        self.signature.check(signature, score=self.score)
        if self.sets is not None:
            self.sets.fitted_on.check(signature)

    def decide_rows(self, prediction: CredalPrediction, /) -> Decisions:
        """`decide` without the check of the signature, which one part of a table has to pass for all."""
        scores, rounding = scores_of(prediction, self.score), prediction._rounding
        kind = array_kind_of(prediction.lower)
        if self.sets is None:
            return Decisions(kind.restore(self.accepts(scores, rounding)), scores, None, None, self, prediction, kind)
        masks = self.sets.masks(prediction)
        codes = self.reasons(scores, rounding)
        named = to_numpy(named_class(prediction, self.point))[0][..., None]
        sizes = masks.sum(axis=-1)
        alone = (sizes == 1) & np.take_along_axis(masks, named, axis=-1)[..., 0]
        limited = self.promises or self.cost is not None
        in_question = codes == Reason.RISKY if limited else (codes == Reason.LIKE) & ~alone
        by_size = np.where(sizes > self.largest_set, Reason.MANY, np.where(sizes > 0, Reason.SEVERAL, Reason.NONE))
        codes = np.where(in_question, by_size, codes).astype(np.int8)
        accepted = kind.restore(codes == Reason.LIKE)
        return Decisions(accepted, scores, kind.restore(masks), codes, self, prediction, kind)

    def recalibration(self, given: Recalibration | None = None, /) -> Recalibration | None:
        """The recalibration of the calibration data, or None; another one that is ``given`` is refused."""
        temperatures = self.signature.temperatures
        if given is not None and temperatures_of(given) != temperatures:
            self.signature.check(replace(self.signature, temperatures=temperatures_of(given)))
        return given or (Recalibration.of(temperatures, classes=self.classes) if temperatures else None)

    def slack(self, rounding: float | None = None, /) -> Slack:
        """By how much a score may be off; ``rounding`` is that of its members, by default of the calibration data."""
        return self.signature.slack(self.score, rounding)

    def p_values(self, scores: NDArray, rounding: float | None = None, /) -> NDArray[np.float64]:
        """The p-value of each score of being like the calibration data; ``rounding`` is that of its members."""
        lowest = self.slack(rounding).lowest(scores)
        return binomial.p_values(self.scores, lowest) if scores.size < MANY_SCORES else self._table.p_values(lowest)

    @cached_property
    def _table(self) -> binomial.PValueTable:
        return binomial.PValueTable.of(self.scores)

    def accepts(self, scores: NDArray, rounding: float | None = None, /) -> NDArray[np.bool_]:
        """Whether each score is accepted."""
        slack = self.slack(rounding)
        accepted = ~(slack.lowest(scores) > self.threshold)
        limited = self.promises or self.cost is not None
        return accepted & (scores < slack.lowest(self.limit)) if limited else accepted

    def reasons(self, scores: NDArray, rounding: float | None = None, /) -> NDArray[np.int8]:
        """The `Reason` why each score is accepted or not."""
        refused = np.where(self.slack(rounding).lowest(scores) > self.threshold, Reason.UNLIKE, Reason.RISKY)
        return np.where(self.accepts(scores, rounding), Reason.LIKE, refused).astype(np.int8)

    def check_promises(
        self, prediction: CredalPrediction, labels: Any = None, groups: Mapping[str, Any] | None = None
    ) -> tuple[PromiseCheck, ...]:
        """Whether the promises hold on other data; a sound one is called broken with a probability of at most 0.025."""
        return self.count(prediction, labels, groups).checks

    def count(
        self, prediction: CredalPrediction, labels: Any = None, groups: Mapping[str, Any] | None = None
    ) -> DecisionCounts:
        """Decide about every input, and count; promises about errors, groups and sets can be checked only with these."""
        decided = self.decide(prediction)
        accepted, rows = np.ravel(to_numpy(decided.accepted)[0]), decided.scores.size
        unlike = int((decided.codes == Reason.UNLIKE).sum())
        checks, errors, misses, cost = [], None, None, None
        if self.false_alarm_rate is not None:
            checks.append(PromiseCheck("false-alarm rate", self.false_alarm_rate, unlike, rows, self.n))
        if labels is not None:
            truth = read_labels(labels, "labels", np.broadcast_to(0, prediction.lower.shape)).ravel()
            named = np.ravel(to_numpy(decided.prediction)[0])
            wrong = accepted & (named != truth)
            errors = int(wrong.sum())
            if self.cost is not None and self.costs is not None:
                paid = self.costs[np.ravel(to_numpy(decided.action)[0]), truth][accepted]
                span = float(self.costs.max() - self.costs.min())
                cost = CostCheck(self.cost.max_cost, float(paid.sum()), len(paid), span)
            columns = read_columns(groups, rows)
            for promise in self.promises:
                if promise.column is not None and promise.column not in columns:
                    continue
                group = accepted & promise.concerns(named, truth, columns)
                hits, of = int((group & wrong).sum()), int(group.sum())
                checks.append(PromiseCheck(promise.name, promise.max_error, hits, of))
            if (sets := self.sets) is not None:
                masks = to_numpy(decided.set)[0].reshape(rows, -1)
                misses = int((~masks[np.arange(rows), truth]).sum())
                checks.append(PromiseCheck("sets without the true class", sets.alpha, misses, rows, sets.n_samples))
        offered = int((decided.codes == Reason.SEVERAL).sum())
        return DecisionCounts(rows, unlike, int(accepted.sum()), offered, errors, misses, tuple(checks), cost)

    def __repr__(self) -> str:
        rate = "" if self.false_alarm_rate is None else f", false_alarm_rate={self.false_alarm_rate:g}"
        promises = "".join(f", {promise.name} <= {promise.max_error:g}" for promise in self.promises)
        promises += f", expected cost <= {self.cost.max_cost:g}" if self.cost else ""
        return f"Guard(score={self.score!r}, n={self.n}{rate}{promises})"

    def saved_fields(self) -> dict[str, Any]:
        """The fields of the file, in their order."""
        signature = asdict(self.signature)
        head = {"score": self.score, "point": self.point, "base": signature.pop("base"), **signature}
        rest = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "signature"}
        promises = {promise.name: asdict(promise) for promise in self.promises}
        sets = None if self.sets is None else self.sets.saved_fields()
        cost = None if self.cost is None else asdict(self.cost)
        return {**head, **rest, "promises": promises, "sets": sets, "cost": cost, "n": self.n}

    @classmethod
    def restored(cls, stored: dict[str, Any], /) -> Guard:
        """The guard from the fields of a file."""
        rate, sets = stored["false_alarm_rate"], stored["sets"]
        return cls(
            signature=Signature(
                check_count(stored["classes"], "classes", least=2),
                check_count(stored["n_members"], "n_members", least=0),
                check_trim(stored["trim"]),
                check_tolerance(stored["rounding"]),
                check_base(stored["base"]),
                check_temperatures(stored["temperatures"]),
            ),
            score=check_choice(stored["score"], tuple(SCORES), "score"),
            point=check_choice(stored["point"], POINTS, "point"),
            version=str(stored["version"]),
            note=str(stored["note"]),
            false_alarm_rate=None if rate is None else check_fraction(rate, "false_alarm_rate"),
            threshold=number(stored["threshold"]),
            limit=number(stored["limit"]),
            promises=tuple(Promise(**fields) for fields in stored["promises"].values()),
            sets=None if sets is None else ConformalSets.restored(sets),
            largest_set=check_count(stored["largest_set"], "largest_set"),
            scores=numbers(stored["scores"]),
            costs=None if stored["costs"] is None else np.array([numbers(row) for row in stored["costs"]]),
            cost=None if stored["cost"] is None else CostPromise(**stored["cost"]),
        )


def guard_in_use(guard: Guard | None, /) -> Guard:
    """The guard of an adapter that was given one."""
    if not isinstance(guard, Guard):
        raise ValueError(
            f"there is no guard to decide with: pass guard=Guard.fit(prediction, labels), or Guard.load(path); got {guard!r}."
        )
    return guard
