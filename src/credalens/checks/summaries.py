"""Summaries of members: what may be folded in, what may be merged, what may be asked."""

from __future__ import annotations

from typing import Any, NoReturn

from credalens.checks.bad_rows import raise_bad_rows
from credalens.checks.member_array import raise_bad_member, read_members


def check_continues(summary: Any, shape: tuple[int, ...], member_axis: int | None, /) -> None:
    """Refuse an array with an axis too few or too many for the members so far, and say how to pass it."""
    if summary.array_kind is None:
        return
    member = tuple(summary.lower.shape)
    if len(shape) == len(member) + (member_axis is not None):
        return
    asked = "one member" if member_axis is None else f"members along member_axis={member_axis}"
    remedy = {
        len(member): "for one more member pass member_axis=None",
        len(member) + 1: "for several members pass member_axis=0",
    }.get(len(shape), "all members must predict the same inputs and classes")
    raise ValueError(
        f"probs of shape {shape} cannot be {asked} here: each of the {summary.count} so far has shape {member} "
        f"(*batch, classes); {remedy}."
    )


def check_merge(summary: Any, other: Any, /) -> None:
    """Two summaries of the same inputs: same library, batch and classes."""
    if type(summary) is not type(other):
        raise TypeError(f"a MemberSummary merges with another MemberSummary; got {type(other).__name__}.")
    if summary.keep != other.keep and (summary.count or summary.keep) and (other.count or other.keep):
        raise ValueError(
            f"summaries merge only if both keep the same number of values; got keep={summary.keep} and keep={other.keep}."
        )
    if summary.array_kind is None or other.array_kind is None:
        return
    libraries = summary.array_kind.library, other.array_kind.library
    if libraries[0] != libraries[1]:
        raise TypeError(f"cannot merge summaries of {libraries[0]} and {libraries[1]} arrays.")
    shapes = tuple(summary.lower.shape), tuple(other.lower.shape)
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"members must predict the same inputs and classes; got shapes {shapes[0]} and {shapes[1]} (*batch, classes)."
        )


def check_kept(keep: int, out: int, count: int, /) -> None:
    """Refuse a summary that keeps too few extreme values to leave out ``out`` members at each end."""
    if out > keep:
        raise ValueError(
            f"to leave out {out} of {count} members at each end a summary must keep that many values of every class; this one "
            f"has keep={keep}. Begin with MemberSummary(keep={out})."
        )


def check_not_empty(count: int, /) -> None:
    """At least one member folded in."""
    if count == 0:
        raise ValueError("this MemberSummary has no members yet; call update(probs) before prediction().")


def raise_bad_members(probs: Any, member_axis: int | None, name: str = "probs") -> NoReturn:
    """Raise the error for members that a summary refused: several along ``member_axis``, or None for one alone."""
    if member_axis is None:
        raise_bad_member(probs, name)
    raise_bad_rows(read_members(probs, member_axis=member_axis, name=name), name)
