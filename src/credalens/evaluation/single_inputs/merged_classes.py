"""One input over a few classes, so that it fits in a picture: the classes that matter, and all the rest added up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from credalens.core.intervals import intersection_probability

MOST_BARS = 8
"""With more members than this bars become too thin, and each member is a dot."""


@dataclass(frozen=True, eq=False)
class FewClasses:
    """Members (members, entries), bounds and both point predictions (entries,).

    An entry is one of ``classes``; where ``rest`` classes were added up, the last entry is their sum. ``ranked`` are all
    classes, the one of highest intersection probability first.
    """

    classes: NDArray[np.intp]
    rest: int
    ranked: NDArray[np.intp]
    members: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    mean: NDArray[np.float64]
    probability: NDArray[np.float64]


def few_classes(
    members: NDArray, /, *, most: int, true_class: int | None = None, by_probability: bool = False
) -> FewClasses:
    """Members (members, classes) with at most ``most`` entries.

    Where there are more classes, the true one, both predicted ones and those of highest upper probability are kept, in
    their order or, with ``by_probability``, the most probable first.
    """
    lower, upper, mean = members.min(axis=0), members.max(axis=0), members.mean(axis=0)
    probability = np.asarray(intersection_probability(lower, upper))
    every, ranked = np.arange(len(upper)), np.argsort(-probability, kind="stable")
    if len(upper) <= most:
        return FewClasses(every, 0, ranked, members, lower, upper, mean, probability)
    always = [int(ranked[0]), int(mean.argmax()), *([] if true_class is None else [true_class])]
    kept = _kept(upper, always, most - 1)
    if by_probability:
        kept = ranked[np.isin(ranked, kept)]
    rest = np.setdiff1d(every, kept)
    low, high = _event_bounds(lower, upper, kept, rest)
    return FewClasses(
        kept,
        len(rest),
        ranked,
        np.c_[members[:, kept], members[:, rest].sum(axis=1)],
        np.append(lower[kept], low),
        np.append(upper[kept], high),
        np.append(mean[kept], mean[rest].sum()),
        np.append(probability[kept], probability[rest].sum()),
    )


def _kept(upper: NDArray, always: list[int], count: int) -> NDArray[np.intp]:
    rank = upper.copy()
    rank[always] += 1
    return np.sort(np.argsort(-rank, kind="stable")[:count])


def _event_bounds(
    lower: NDArray, upper: NDArray, kept: NDArray[np.intp], rest: NDArray[np.intp]
) -> tuple[float, float]:
    """The lower and upper probability, within the credal set, that the class is one of the rest."""
    low = max(lower[rest].sum(), 1 - upper[kept].sum())
    return float(low), float(max(low, min(upper[rest].sum(), 1 - lower[kept].sum())))


def two_and_rest(members: NDArray, first: int, second: int, /) -> NDArray:
    """Members (members, classes) over three classes: two of them, and the sum of the others."""
    rest = np.delete(members, [first, second], axis=1).sum(axis=1)
    return np.stack([members[:, first], members[:, second], rest], axis=1)
