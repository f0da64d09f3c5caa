"""Members one at a time: a mergeable summary from which every quantity but the hull's derives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from credalens.arrays import Origin, namespace, origin_of, to_numpy, widen
from credalens.checks import (
    check_classes,
    check_member_axis,
    check_merge,
    raise_bad_rows,
    raise_no_members,
    read_array,
    read_members,
    row_tolerance,
)

__all__ = ["MemberSummary"]


@dataclass(eq=False)
class MemberSummary:
    """(count, lower, upper, sum of p, sum of H(p)): a commutative monoid under (+, min, max, +, +).

    A thousand members need the memory of one: four arrays of at most (*batch, classes), in float64 on the members' own
    device. ``update`` folds members in and returns the summary itself; ``merge`` combines two into a new one, in any
    grouping and order. ``MemberSummary()`` is the empty summary.

    >>> from credalens import MemberSummary, wrap
    >>> members = [[[0.2, 0.6, 0.2]], [[0.1, 0.2, 0.7]], [[0.7, 0.1, 0.2]]]
    >>> summary = MemberSummary().update(members[:1]).merge(MemberSummary().update(members[1:]))
    >>> bool(summary.prediction().total[0] == wrap(members).total[0])
    True
    """

    count: int = 0
    lower: Any = None
    upper: Any = None
    sum_probability: Any = None
    sum_entropy: Any = None
    origin: Origin | None = None

    def update(self, probs: Any, /, *, member_axis: int | None = 0) -> MemberSummary:
        """Fold in members: (members, *batch, classes), or with ``member_axis=None`` one member (*batch, classes)."""
        probs = read_array(probs, "probs")
        if member_axis is None:
            return self._become(self.merge(_summary_of_one(probs)))
        axis = check_member_axis(member_axis, len(probs.shape), "probs")
        if probs.shape[axis] == 0:
            raise_no_members("probs", tuple(probs.shape))
        merged = self
        for n in range(probs.shape[axis]):
            merged = merged.merge(_summary_of_one(probs[(slice(None),) * axis + (n,)]))
        return self._become(merged)

    def merge(self, other: MemberSummary, /) -> MemberSummary:
        """The summary of all members of both, as a new summary."""
        check_merge(self, other)
        if self.origin is None or other.origin is None:
            return other._copy() if self.origin is None else self._copy()
        xp = namespace(self.origin)
        return MemberSummary(
            self.count + other.count,
            xp.minimum(self.lower, other.lower),
            xp.maximum(self.upper, other.upper),
            self.sum_probability + other.sum_probability,
            self.sum_entropy + other.sum_entropy,
            self.origin,
        )

    def __add__(self, other: MemberSummary) -> MemberSummary:
        return self.merge(other)

    def prediction(self, *, base: float = 2, threads: int | None = None) -> Any:
        """The credal prediction of the members folded in so far: what ``wrap`` gives for all of them at once."""
        from credalens.prediction import from_summary

        return from_summary(self, base=base, threads=threads)

    def _copy(self) -> MemberSummary:
        return MemberSummary(self.count, self.lower, self.upper, self.sum_probability, self.sum_entropy, self.origin)

    def _become(self, other: MemberSummary) -> MemberSummary:
        """Take over the state of ``other``: nothing changes before all members have been folded in."""
        self.__dict__.update(other.__dict__)
        return self


def _summary_of_one(p: Any) -> MemberSummary:
    """The summary of one member (*batch, classes), its rows checked and renormalised in its own library."""
    origin = origin_of(p)
    xp = namespace(origin)
    if len(p.shape) < 1:
        raise ValueError(f"a member's prediction must have shape (*batch, classes); got shape {tuple(p.shape)}.")
    check_classes(p.shape[-1], "probs", tuple(p.shape))
    q = widen(p, origin)
    total = q.sum(-1)[..., None]
    good = ((q >= 0).all() & (abs(total - 1) <= row_tolerance(origin.dtype)).all()) if q.shape[0] else True
    if not bool(good):
        raise_bad_rows(read_members(to_numpy(p)[0][None]))
    q = q / total
    terms = q * xp.log2(xp.where(q > 0, q, xp.ones_like(q)))
    return MemberSummary(1, q, q, q, -terms.sum(-1), origin)
