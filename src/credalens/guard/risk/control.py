r"""Risk control: the largest acceptance whose error rate is promised, by learn-then-test with a fixed sequence.

Inputs are accepted whose score lies below a limit. Limits are tried from strict to loose; each must pass an exact binomial
test of "the error rate among accepted inputs is above :math:`r`", :math:`P(X \le k \mid m, r) \le \delta` with k errors among
the m calibration inputs below the limit, and the first that fails ends the sequence. With probability :math:`1 - \delta`
all limits that passed keep their promise (Angelopoulos et al. 2021, Learn then test).

Limits are order statistics of the calibration scores at fixed places, which needs no correction. Given that a limit is the
(m + 1)-th smallest score, the m below it are independent draws from the inputs below it. And where the error rate up to a
limit crosses r, every stretch of scores between two crossings has the error rate r itself, so that which limits were passed
before tells nothing about the errors. Ties move a limit up to the next value. Several risks share a limit, which passes if
it passes for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.guard.binomial import binomial_tail, upper_bound
from credalens.guard.calibration import Outcomes
from credalens.guard.risk.promise import Promise, Risk

LIMITS: Final = 100
"""How many limits are tried: acceptance is found to about one percent of the inputs."""
TOLERANT: Final = 7
"""The first limit accepts so many times the fewest inputs that can promise anything, up to a quarter of all and at least a
tenth: a test of that size passes where the error rate is half of what is allowed, and not only where there is no error."""


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

    @property
    def fewest(self) -> int:
        """The fewest accepted inputs that can promise anything."""
        return math.ceil(math.log(1 - self.confidence) / math.log1p(-self.risk.max_error))

    @property
    def most(self) -> int:
        """How many inputs it concerns at the loosest limit."""
        return int(self.accepted.max(initial=0))

    def large_enough(self) -> NDArray[np.bool_]:
        """At which limits enough inputs are accepted for a test that tolerates errors."""
        return self.accepted >= max(self.fewest, min(TOLERANT * self.fewest, self.most // 4), self.most // 10)

    @property
    def first(self) -> int:
        """The strictest limit that is tested, where there is one."""
        return int(self.large_enough().argmax())

    def p_value(self, place: int, /) -> float:
        """Of "the error rate is above the one that is allowed"."""
        return binomial_tail(int(self.errors[place]), int(self.accepted[place]), self.risk.max_error)

    def bound(self, place: int, /) -> float:
        """The error rate that would be promised at this limit if it alone were tested."""
        return upper_bound(int(self.errors[place]), int(self.accepted[place]), level=self.confidence)

    def promise(self, place: int, /) -> Promise:
        """What was tested at one limit."""
        accepted, errors = int(self.accepted[place]), int(self.errors[place])
        return Promise(
            **vars(self.risk),
            confidence=self.confidence,
            accepted=accepted,
            errors=errors,
            p_value=self.p_value(place),
            bound=self.bound(place),
        )


def limits_of(ordered: NDArray, threshold: float, /) -> Limits:
    """At most `LIMITS` limits at fixed places, each moved up over ties; scores from ``threshold`` on are not accepted.

    A threshold at which several scores tie is a value that comes again: it is accepted as well, by the last limit.
    """
    below, upto = (int(np.searchsorted(ordered, threshold, side=side)) for side in ("left", "right"))
    end, last = (
        (upto, math.nextafter(threshold, math.inf)) if upto > below + 1 and threshold < math.inf else (below, threshold)
    )
    places = np.unique(np.linspace(0, end, LIMITS + 1).astype(int))
    counts = np.unique(np.searchsorted(ordered, ordered[places[1:] - 1], side="right"))
    counts = counts[counts <= end]
    values = np.append(ordered, math.inf)[counts]
    return Limits(np.where(counts == end, last, values), counts, len(ordered))


def risks_at(outcomes: Outcomes, risks: Sequence[Risk], limits: Limits, confidence: float, /) -> list[Tested]:
    """Accepted inputs and errors of every risk at every limit."""
    order = np.argsort(outcomes.scores, kind="stable")
    wrong = (outcomes.predicted != outcomes.labels)[order]

    def tested(risk: Risk) -> Tested:
        concerned = risk.concerns(outcomes.predicted, outcomes.labels)[order]
        accepted, errors = (np.append(0, np.cumsum(flags))[limits.counts] for flags in (concerned, concerned & wrong))
        return Tested(risk, accepted, errors, confidence)

    return [tested(risk) for risk in risks]


def last_passed(tested: Sequence[Tested], /) -> int | None:
    """The last limit before the first that fails; None where the first fails, or no limit is large enough."""
    passed = None
    for place in np.flatnonzero(np.all([entry.large_enough() for entry in tested], axis=0)).tolist():
        if any(entry.p_value(place) > 1 - entry.confidence for entry in tested):
            break
        passed = place
    return passed
