r"""Risk control: the largest acceptance whose error rate is promised, by learn-then-test with three fixed sequences.

Inputs are accepted whose score lies below a limit. At a limit the hypothesis "the error rate among accepted inputs is above
:math:`r`" is rejected if :math:`P(X \le k \mid m, r) \le \delta_j`, X binomial, with k errors among the m calibration inputs
below the limit. Limits are tried from strict to loose (Angelopoulos et al. 2021, Learn then test) in three sequences that share
the probability :math:`\delta` of error, and the first limit that fails ends a sequence. One that was not ended when the next
begins hands on its share (the fallback procedure of Wiens, 2003). With probability :math:`1 - \delta` all limits that passed
keep their promise.

A sequence that begins with the fewest inputs which can promise anything ends at their first error; one that begins with more
promises nothing where only few are right. So the first begins with the fewest, the second at about a quarter of all, and the
last with most of them, where a small share suffices. Where the fewest are a tenth of all inputs or more, the first has most of
:math:`\delta` and the second no share of its own; elsewhere the second has most of it.

Limits are order statistics of the calibration scores at fixed places, which needs no correction. Given that a limit is the
(m + 1)-th smallest score, the m below it are independent draws from the inputs below it. And where the error rate up to a
limit crosses r, every stretch of scores between two crossings has the error rate r itself, so that which limits were passed
before tells nothing about the errors. What rounding explains lies at a limit, not below it. Several risks share a limit, which
passes if it passes for each of them: several risks, such as that of every group, need no correction, and cost acceptance where
one of them is high.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import check_choice, check_count, check_fraction
from credalens.guard.binomial import binomial_tail, upper_bound
from credalens.guard.signature import EXACT, CalibrationData, Slack

CLASS_BY: Final = ("true", "predicted")
Columns = Mapping[str, NDArray[np.object_]]
"""Column of groups -> the value of every input, as text."""


@dataclass(frozen=True)
class Risk:
    """The error rate of all accepted inputs, of those of one class, or of those with one value in a column of groups.

    :ivar of_class: None for all classes.
    :ivar class_by: whether inputs belong to a class by their "true" or by their "predicted" class.
    :ivar column: of the groups; None for all inputs.
    :ivar value: in that column, as text.
    """

    max_error: float
    of_class: int | None = None
    class_by: str = "true"
    column: str | None = None
    value: str | None = None

    @property
    def name(self) -> str:
        """In words."""
        if self.column is not None:
            return f"error rate where {self.column} is {self.value}"
        return "error rate" if self.of_class is None else f"error rate of {self.class_by} class {self.of_class}"

    def concerns(self, predicted: NDArray, labels: NDArray, groups: Columns, /) -> NDArray[np.bool_]:
        """Which inputs it is about."""
        if self.column is not None:
            return np.asarray(groups[self.column] == self.value, bool)
        if self.of_class is None:
            return np.ones(len(labels), bool)
        return (labels if self.class_by == "true" else predicted) == self.of_class


@dataclass(frozen=True)
class Promise(Risk):
    """A risk that was tested: ``errors`` of ``accepted`` calibration inputs, and the p-value of that.

    The confidence counts all calibration data, also those for which nothing can be promised. Where these are most, a guard that
    is returned owes that to luck more often. How many they would be, with as many inputs and the same error rate at all limits:

    :ivar bound: the error rate that these numbers rule out at the same confidence, at most ``max_error``.
    :ivar refused: the share of calibration data that would be refused if the error rate is the observed one.
    :ivar highest: the highest error rate that these numbers allow, the upper end of its exact 95 % interval.
    :ivar refused_at_highest: the share that would be refused if it is that; all that are not break the promise where
        ``highest`` is above ``max_error``.
    """

    confidence: float = 0.95
    accepted: int = 0
    errors: int = 0
    p_value: float = 1.0
    bound: float = 1.0
    refused: float | None = None  # as in files of older versions
    highest: float | None = None
    refused_at_highest: float | None = None


def read_risks(
    max_error: float | None, max_class_error: float | Mapping[int, float] | None, class_by: str, classes: int,
    groups: Columns | None = None, /,
) -> tuple[Risk, ...]:  # fmt: skip
    """The risks that a caller asks for; ``max_class_error`` is one number for every class, or class -> number.

    ``max_error`` is that of all inputs, and of those with each value of each column of ``groups``.
    """
    check_choice(class_by, CLASS_BY, "class_by")
    risks = [] if max_error is None else [Risk(check_fraction(max_error, "max_error"))]
    rates: Any = {} if max_class_error is None else max_class_error
    if not isinstance(rates, Mapping):
        rates = dict.fromkeys(range(classes), rates)
    for of_class, rate in rates.items():
        place = check_count(of_class, "a class of max_class_error", least=0, most=classes - 1)
        risks.append(Risk(check_fraction(rate, "max_class_error"), place, class_by))
    for column, values in (groups or {}).items():
        if max_error is None:
            raise ValueError("groups= asks for a promise in every group: say which, with max_error= (--max-error).")
        risks += [Risk(max_error, column=column, value=value) for value in sorted({*values})]
    return tuple(risks)


LIMITS: Final = 100
"""How many limits are tried: acceptance is found to about one percent of the inputs."""
TOLERANT: Final = 7
"""Times the fewest inputs that can promise anything, up to a quarter of all and at least a tenth: a test of that size passes
where the error rate is half of what is allowed, and not only where there is no error. Limits before it are not tried but for
the first."""
MANY: Final = 0.1
"""Of the calibration inputs: whether the fewest that can promise anything are many of them."""
FIRST_OF_FEW, FIRST_OF_MANY = 0.95, 0.2
"""The share of the first sequence where they are many, of few inputs, and where they are not."""
LATE, LAST = 0.6, 0.05
"""The part of what could be accepted at which the last sequence begins, and its share."""


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits from strict to loose, how many calibration scores lie below each, and how many scores there are."""

    values: NDArray[np.float64]
    counts: NDArray[np.int64]
    of: int


@dataclass(frozen=True, eq=False)
class Tested:
    """A risk at every limit: how many accepted inputs it concerns, and how many of these are errors."""

    risk: Risk
    accepted: NDArray[np.int64]
    errors: NDArray[np.int64]
    confidence: float

    def fewest(self, share: float = 1.0, /) -> int:
        """The fewest accepted inputs that can promise anything, at a share of the probability of error."""
        return math.ceil(math.log(share * (1 - self.confidence)) / math.log1p(-self.risk.max_error) - 1e-9)

    @property
    def most(self) -> int:
        """How many inputs it concerns at the loosest limit."""
        return int(self.accepted.max(initial=0))

    def counts(self, place: int, /) -> tuple[int, int]:
        """Errors at one limit, and how many accepted inputs it concerns there."""
        return int(self.errors[place]), int(self.accepted[place])

    def p_value(self, place: int, /) -> float:
        """Of "the error rate is above the one that is allowed"."""
        return binomial_tail(*self.counts(place), self.risk.max_error)

    def bound(self, place: int, share: float = 1.0, /) -> float:
        """The error rate that would be promised if this limit alone were tested, at a share of the probability of error."""
        return upper_bound(*self.counts(place), level=1 - share * (1 - self.confidence))


class TestedRisk(Protocol):
    """What the search for a limit asks of a risk that is tested at every limit."""

    @property
    def accepted(self) -> NDArray[np.int64]:
        """How many accepted inputs it concerns at each limit."""

    @property
    def confidence(self) -> float:
        """One less the probability of error."""

    @property
    def most(self) -> int:
        """How many inputs it concerns at the loosest limit."""

    def fewest(self, share: float = 1.0, /) -> int:
        """The fewest accepted inputs that can promise anything, at a share of the probability of error."""

    def p_value(self, place: int, /) -> float:
        """Of the promise being broken at one limit."""


@dataclass(frozen=True)
class Plan:
    """The limits to try, decided before any error is seen.

    :ivar starts: the limits at which sequences begin, as places, and the share of the probability of error that each brings.
    :ivar begin: the limit from which on about each hundredth of what could be accepted is tried.
    """

    starts: dict[int, float]
    begin: int


def limits_of(ordered: NDArray, threshold: float, slack: Slack = EXACT, /) -> Limits:
    """All limits that differ in what they accept; what is unlike the calibration data by ``threshold`` is never accepted.

    A limit is the next calibration score above those that it accepts and their ties. A threshold at which several scores tie
    is a value that comes again: it is accepted as well, by a last limit that is infinite.
    """
    below = int(np.searchsorted(ordered, slack.lowest(threshold), side="left"))
    upto = int(np.searchsorted(slack.lowest(ordered), threshold, side="right"))
    end, last = (upto, math.inf) if upto > below + 1 or threshold == math.inf else (below, threshold)
    tied = np.searchsorted(ordered, slack.highest(slack.highest(ordered[:end])), side="right")
    values = np.append(ordered, math.inf)[tied]
    counts, first = np.unique(np.searchsorted(ordered, slack.lowest(values), side="left"), return_index=True)
    inside = (counts > 0) & (counts < end)
    if not end:
        return Limits(np.empty(0), np.empty(0, np.int64), len(ordered))
    return Limits(np.append(values[first][inside], last), np.append(counts[inside], end), len(ordered))


def risks_at(data: CalibrationData, risks: Sequence[Risk], limits: Limits, confidence: float, /) -> list[Tested]:
    """Accepted inputs and errors of every risk at every limit."""
    if (predicted := data.predicted) is None or (labels := data.labels) is None:
        raise ValueError("a promise about errors needs labels, the true classes of the calibration inputs.")
    order = np.argsort(data.scores, kind="stable")
    wrong, tested = (predicted != labels)[order], []
    for risk in risks:
        concerned = risk.concerns(predicted, labels, data.groups)[order]
        accepted, errors = (np.append(0, np.cumsum(flags))[limits.counts] for flags in (concerned, concerned & wrong))
        tested.append(Tested(risk, accepted, errors, confidence))
    return tested


def plan_of(tested: Sequence[TestedRisk], limits: Limits, /) -> Plan | None:
    """Where the sequences begin; None where no limit accepts enough inputs of every risk."""

    def first_with(size: Callable[[TestedRisk], int]) -> int | None:
        """The first limit that accepts so many inputs of each risk."""
        large = np.all([entry.accepted >= size(entry) for entry in tested], axis=0)
        return int(large.argmax()) if large.any() else None

    def tolerant(entry: TestedRisk) -> int:
        """How many accepted inputs a test needs that tolerates errors."""
        return max(entry.fewest(), min(TOLERANT * entry.fewest(), entry.most // 4), entry.most // 10)

    fewest, few = first_with(lambda entry: entry.fewest()), first_with(lambda entry: entry.fewest(FIRST_OF_FEW))
    if few is None:
        return None if fewest is None else Plan({fewest: 1.0}, fewest)
    share = FIRST_OF_FEW if limits.counts[few] >= MANY * limits.of else FIRST_OF_MANY
    if (first := first_with(lambda entry: entry.fewest(share))) is None:
        return Plan({few: 1.0}, few)
    begin = max(first, first_with(tolerant) or 0)
    late = max(begin, int(np.searchsorted(limits.counts, LATE * limits.counts[-1])))
    starts: dict[int, float] = {}
    for place, part in ((first, share), (begin, 1 - LAST - share), (late, LAST)):
        starts[place] = starts.get(place, 0.0) + part
    return Plan({place: part for place, part in starts.items() if part > 0}, begin)


def last_passed(tested: Sequence[TestedRisk], limits: Limits, plan: Plan | None, /) -> int | None:
    """The loosest limit that passes before its sequence ends; None where none does."""
    if plan is None:
        return None
    wanted = np.linspace(0, limits.counts[-1], LIMITS + 1).astype(int)[1:]
    spread = np.searchsorted(limits.counts, wanted, side="left")
    passed, share = None, 0.0
    for place in sorted({*plan.starts, plan.begin, *spread[spread > plan.begin].tolist()}):
        share += plan.starts.get(place, 0.0)
        if share and all(entry.p_value(place) <= share * (1 - entry.confidence) * (1 + 1e-12) for entry in tested):
            passed = place
        else:
            share = 0.0
    return passed
