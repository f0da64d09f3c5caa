"""Members one at a time: a mergeable summary from which every quantity but the hull's derives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from credalens.arrays import (
    NUMPY,
    ArrayKind,
    all_reduce,
    array_kind_of,
    astype,
    largest,
    namespace,
    rounding_of_all,
    short_repr,
    smallest,
)
from credalens.checks.arrays import check_classes, read_array, row_tolerance
from credalens.checks.doubtful_members import warn_many_members
from credalens.checks.members import check_continues, check_member_axis, check_merge, raise_no_members
from credalens.checks.options import check_count
from credalens.core.members import in_common_precision, one_member, read_stack, roughest
from credalens.core.options import MAX_NODES, TOLERANCE, Options
from credalens.core.recalibration import Recalibration, check_recalibration

if TYPE_CHECKING:
    from credalens.prediction import CredalPrediction

MOST_AXES = 8  # of (*batch, classes) in an exchange between processes
ABSENT = -(2**62)


@dataclass(eq=False)
class MemberSummary:
    """(count, lower, upper, sum of p, sum of H(p)): a commutative monoid under (+, min, max, +, +).

    A thousand members take the memory of one: four arrays of at most (*batch, classes), in float64 on the members' device.
    ``update`` folds members in and returns the summary itself; ``merge`` combines two into a new one, in any grouping and
    order. ``MemberSummary()`` is the empty summary.

    ``MemberSummary(recalibration=r)`` divides members by their temperatures as they are folded in, the first one by the first
    temperature; ``r[3:]`` does so for a summary that begins with the fourth. ``temperatures`` are those of its members.

    ``MemberSummary(keep=k)`` also keeps the k + 1 lowest and highest values of every class, so that up to k members can be
    left out at each end: ``prediction(trim=0.1)`` of 40 members needs ``keep=4``.

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
    array_kind: ArrayKind | None = None
    keep: int = 0
    lowest: Any = None
    highest: Any = None  # of the negated values, so that both are sorted alike
    recalibration: Recalibration | None = None
    temperatures: tuple[float, ...] = ()
    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_count(self.keep, "keep", least=0)
        check_recalibration(self.recalibration)

    @property
    def origin(self) -> ArrayKind | None:
        """The earlier name of ``array_kind``."""
        return self.array_kind

    def update(self, probs: Any, /, *, member_axis: int | None = 0) -> MemberSummary:
        """Fold in members: (members, *batch, classes), or with ``member_axis=None`` one member (*batch, classes).

        Axes are never guessed: two axes are (members, classes) of a single input. What one member says of many inputs,
        (rows, classes), needs ``member_axis=None``.

        >>> one_member = [[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]]
        >>> MemberSummary().update(one_member, member_axis=None).count, MemberSummary().update(one_member).count
        (1, 3)
        """
        if member_axis == 0:
            warn_many_members(probs, "probs")
        least_rounding, probs = roughest(probs), read_array(in_common_precision(probs), "probs")
        check_continues(self, tuple(probs.shape), member_axis)
        if member_axis is None:
            members = [probs]
        else:
            axis = check_member_axis(member_axis, len(probs.shape), "probs")
            members = [probs[(slice(None),) * axis + (n, ...)] for n in range(probs.shape[axis])]
            if not members:
                raise_no_members("probs", tuple(probs.shape))
        merged = self
        for member in members:
            temperature = self.recalibration and self.recalibration.temperature(merged.count, member.shape[-1])
            if (summary := _summary_of(member, self.keep, temperature)) is None:
                if member_axis is None:
                    one_member(probs, "probs").refuse(one_member=True)
                read_stack(probs, member_axis, "probs").refuse()
            summary.array_kind = summary.array_kind and summary.array_kind.rounded_by(least_rounding)
            summary.recalibration = self.recalibration
            merged = merged.merge(summary)
        self.__dict__.update(merged.__dict__)  # only now: nothing changes where a member is refused
        return self

    def merge(self, other: MemberSummary, /) -> MemberSummary:
        """A new summary of all members of both, as precise as the more precise one."""
        check_merge(self, other)
        recalibration = self.recalibration or other.recalibration
        if self.array_kind is None or other.array_kind is None:
            return replace(other if self.array_kind is None else self, recalibration=recalibration)
        xp = namespace(self.array_kind.library)
        kept = (None, None)
        if self.keep:
            kept = (
                smallest(self.lowest, other.lowest, self.keep + 1),
                smallest(self.highest, other.highest, self.keep + 1),
            )
        return MemberSummary(
            self.count + other.count,
            xp.minimum(self.lower, other.lower),
            xp.maximum(self.upper, other.upper),
            self.sum_probability + other.sum_probability,
            self.sum_entropy + other.sum_entropy,
            self.array_kind.wider(other.array_kind),
            self.keep,
            *kept,
            recalibration,
            self.temperatures + other.temperatures,
        )

    def bounds(self, out: int = 0, /) -> tuple[Any, Any]:
        """The lowest and highest values of every class, with ``out`` members left out at each end."""
        if out == 0:
            return self.lower, self.upper
        if out > self.keep:
            raise ValueError(
                f"to leave out {out} of {self.count} members at each end a summary must keep that many values of every class; "
                f"this one has keep={self.keep}. Begin with MemberSummary(keep={out})."
            )
        return self.lowest[out], -self.highest[out]

    def __add__(self, other: MemberSummary) -> MemberSummary:
        return self.merge(other)

    def prediction(
        self,
        *,
        base: float = 2,
        trim: float = 0,
        max_nodes: int = MAX_NODES,
        tolerance: float = TOLERANCE,
        threads: int | None = None,
    ) -> CredalPrediction:
        """The credal prediction of the members folded in so far: what ``wrap`` gives for all of them at once."""
        from credalens.prediction import from_summary

        options = Options(base=base, trim=trim, max_nodes=max_nodes, tolerance=tolerance, threads=threads)
        if self.recalibration is not None and 0 < self.count < len(self.recalibration.temperatures):
            self.recalibration.check(self.count, self.lower.shape[-1])
        return from_summary(self, options)

    def all_reduce(self, group: Any = None) -> MemberSummary:
        """A new summary of the members of all processes of a ``torch.distributed`` group, the same in each.

        Every process calls this with a summary of predictions for the same inputs. A process without members calls it on an
        empty summary and gets torch tensors. Results are as precise as those of the most precise process. The cost is the
        transfer of one summary, whatever the number of members.
        """
        if self.keep:
            raise ValueError(
                "all_reduce() adds summaries that keep only the bounds; gather those with keep= and merge() them."
            )
        shape = _agreed_shape(tuple(self.lower.shape) if self.count else None, group)
        if shape is None:
            return replace(self)
        summary = self
        if not self.count:  # adds nothing to a minimum, a maximum or a sum
            kind = ArrayKind("torch", "cpu", "float64")
            nothing = kind.restore(np.zeros(shape))
            summary = MemberSummary(0, nothing + np.inf, nothing - np.inf, nothing, nothing.sum(-1), kind)
        count = int(all_reduce(np.array([self.count]), "SUM", group=group)[0])
        temperatures = _agreed_temperatures(summary, count, group)
        return MemberSummary(
            count,
            all_reduce(summary.lower, "MIN", group=group),
            all_reduce(summary.upper, "MAX", group=group),
            all_reduce(summary.sum_probability, "SUM", group=group),
            all_reduce(summary.sum_entropy, "SUM", group=group),
            _agreed_array_kind(summary, group),
            recalibration=self.recalibration,
            temperatures=temperatures,
        )


def _summary_of(p: Any, keep: int, temperature: float | None = None) -> MemberSummary | None:
    """The summary of one member (*batch, classes), renormalised in its own library; None if a row is not a distribution.

    It is divided by ``temperature``, if it has one.
    """
    array_kind = array_kind_of(p)
    xp = namespace(array_kind.library)
    if len(p.shape) < 1:
        raise ValueError(f"a member's prediction must have shape (*batch, classes); got shape {tuple(p.shape)}.")
    check_classes(p.shape[-1], "probs", tuple(p.shape))
    q = astype(p, "float64")
    total = xp.sum(q, axis=-1, keepdims=True)
    if not bool(xp.all((q >= 0) & (abs(total - 1) <= row_tolerance(array_kind.dtype)))):
        return None
    q = q / total
    if temperature is not None:
        q = (q / largest(q)[..., None]) ** (1 / temperature)
        q = q / xp.sum(q, axis=-1, keepdims=True)
    terms = q * xp.log2(xp.where(q > 0, q, total))  # any positive number does where q is 0
    low, high = (q[None], -q[None]) if keep else (None, None)
    applied = () if temperature is None else (temperature,)
    return MemberSummary(1, q, q, q, -xp.sum(terms, axis=-1), array_kind, keep, low, high, temperatures=applied)


def _agreed_shape(shape: tuple[int, ...] | None, group: Any) -> tuple[int, ...] | None:
    """The shape (*batch, classes) in every process that has one; if they differ, an error in all of them alike.

    Processes with different shapes must not start to exchange arrays: they would wait for each other, or worse.
    """
    form = np.full((2, MOST_AXES + 1), ABSENT)
    if shape is not None:
        form[0] = (len(shape), *shape[:MOST_AXES], *(0,) * (MOST_AXES - len(shape)))
        form[1] = -form[0]
    most, least = all_reduce(form, "MAX", group=group) * [[1], [-1]]
    if most[0] == ABSENT:
        return None
    shapes = [tuple(int(size) for size in sizes[1 : int(sizes[0]) + 1]) for sizes in (most, least)]
    if (most != least).any() or most[0] > MOST_AXES:
        raise ValueError(
            f"all processes must bring predictions of the same inputs and classes, with at most {MOST_AXES} axes; this one "
            f"has shape {shape}, and the largest and smallest among all are {shapes[0]} and {shapes[1]}."
        )
    return shapes[0]


def _agreed_temperatures(summary: MemberSummary, count: int, group: Any) -> tuple[float, ...]:
    """The temperatures of all members: those of one summary are lists of any length, so they are exchanged only if equal."""
    own = {*summary.temperatures} or ({0.0} if summary.count else set())
    extremes = np.array([max(own), -min(own)] if own else [-np.inf, -np.inf])
    highest, negated = all_reduce(extremes, "MAX", group=group)
    if highest != -negated:
        raise ValueError(
            f"all_reduce() adds summaries whose members have one temperature; these have {-negated:.6g} to {highest:.6g} (0 is "
            "none). Recalibrate all members alike, or gather the summaries and merge() them."
        )
    return (float(highest),) * count if highest else ()


def _agreed_array_kind(summary: MemberSummary, group: Any) -> ArrayKind:
    """The kind of array of this process, in the widest precision of all that have members, as when they merge."""
    array_kind = summary.array_kind or NUMPY
    rounding = array_kind.rounding
    own = [array_kind.result_dtype.itemsize, rounding, -rounding] if summary.count else [0, 0, -1]
    width, most, least = all_reduce(np.array(own, np.float64), "MAX", group=group)
    if array_kind.result_dtype.itemsize != width:
        array_kind = replace(array_kind, dtype=np.dtype(f"f{int(width)}").name)
    return array_kind.rounded_by(rounding_of_all(float(most), -float(least)))
