"""The inputs worth looking at: the most uncertain, the most contradictory, and mistakes made with certainty.

Many classes are shown as the few that matter, and all the rest added up; three classes in the triangle, with the credal
polygon and the convex hull of the members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.core.intervals import ProbabilityIntervals, intersection_probability
from credalens.core.members import read_distributions, read_logits
from credalens.evaluation.data_sets import ScoredSet
from credalens.evaluation.results import ByMeasure, ByMethod, Result

Array = NDArray[np.float64]
CORNERS: Final[Array] = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
"""Where certainty in class 0, 1 and 2 lies in the plane: an equilateral triangle of side one."""
MOST_BARS = 8
"""With more members than this bars become too thin, and each member is a dot."""
MOST_CLASSES = 10
MOST_SAMPLES, MOST_OF_A_GROUP = 72, 5
DIGITS = 5


@dataclass(frozen=True, eq=False)
class ThreeClasses(Result):
    """The members, (members, 3), over three classes, for the triangle; None as a class is the rest."""

    classes: list[int | None]
    members: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MemberView(Result):
    """Members of one input, (members, entries), with bounds and both point predictions, (entries,).

    :ivar predicted: the class of the highest intersection probability.
    :ivar averaged: of the highest mean.
    :ivar classes: the classes of the entries.
    :ivar others: how many classes the last entry adds up, 0 for none.
    """

    label: int | None
    predicted: int
    averaged: int
    classes: list[int]
    others: int
    members: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    mean: NDArray[np.float64]
    probability: NDArray[np.float64]
    simplex: ThreeClasses | None

    def entry_names(self, names: Sequence[str], /) -> list[str]:
        """The names of the entries, by those of all classes."""
        return [names[k] for k in self.classes] + ([f"{self.others} others"] if self.others else [])

    def as_dict(self) -> dict[str, Any]:
        """Plain values, probabilities to five digits."""
        plain = super().as_dict()
        for part in filter(None, (plain, plain["simplex"])):
            part.update({name: _rounded(part[name]) for name in PROBABILITIES & part.keys()})
        return plain


PROBABILITIES = frozenset({"members", "lower", "upper", "mean", "probability"})


def _rounded(values: Any) -> Any:
    return [_rounded(value) for value in values] if isinstance(values, list) else round(values, DIGITS)


def view_members(
    members: NDArray, label: int | None = None, /, *, most: int = MOST_CLASSES, by_probability: bool = False
) -> MemberView:
    """One input's members, (members, classes), over at most ``most`` entries; ``label`` is the true class where it is known.

    Where there are more classes, the true one, both predicted ones and those of highest upper probability are kept, in
    their order or, with ``by_probability``, the most probable first.
    """
    lower, upper, mean = members.min(axis=0), members.max(axis=0), members.mean(axis=0)
    probability = np.asarray(intersection_probability(lower, upper))
    count, averaged = len(upper), int(mean.argmax())
    kept, ranked = np.arange(count), np.argsort(-probability, kind="stable")
    first, second = ranked[:2].tolist()
    simplex = None
    if count == 3:
        simplex = ThreeClasses([0, 1, 2], members)
    elif count > 3:
        simplex = ThreeClasses([first, second, None], two_and_rest(members, first, second))
    if count > most:
        rank = upper.copy()
        rank[[first, averaged, *([] if label is None else [label])]] += 1
        kept = np.sort(np.argsort(-rank, kind="stable")[: most - 1])
        if by_probability:
            kept = ranked[np.isin(ranked, kept)]
        rest = np.setdiff1d(np.arange(count), kept)
        # The lower and upper probability, within the credal set, that the class is one of the rest.
        low = max(lower[rest].sum(), 1 - upper[kept].sum())
        high = max(low, min(upper[rest].sum(), 1 - lower[kept].sum()))
        lower, upper = np.append(lower[kept], low), np.append(upper[kept], high)
        members, mean, probability = (
            np.concatenate([x[..., kept], x[..., rest].sum(axis=-1, keepdims=True)], axis=-1)
            for x in (members, mean, probability)
        )
    others = count - len(kept)
    return MemberView(label, first, averaged, kept.tolist(), others, members, lower, upper, mean, probability, simplex)


def two_and_rest(members: NDArray, first: int, second: int, /) -> NDArray:
    """Members (members, classes) over three classes: two of them, and the sum of the others."""
    rest = np.delete(members, [first, second], axis=1).sum(axis=1)
    return np.stack([members[:, first], members[:, second], rest], axis=1)


def to_plane(probabilities: Any, /) -> Array:
    """Distributions over three classes, (..., 3), as points of the plane, (..., 2).

    >>> to_plane([0.5, 0.5, 0.0])
    array([0.5, 0. ])
    """
    return np.asarray(probabilities, dtype=np.float64) @ CORNERS


def level_ends(k: int, value: float, /) -> Array:
    """The ends, (2, 2), of the segment of the triangle on which class k has this probability."""
    ends = np.zeros((2, 3))
    ends[:, k] = value
    ends[0, (k + 1) % 3] = ends[1, (k + 2) % 3] = 1 - value
    return to_plane(ends)


class Triangle:
    """The member distributions of one input over three classes, (members, 3), and what is drawn of them.

    :ivar polygon: the corners of the credal set in the plane, (v, 2).
    :ivar hull: those of the convex hull of the members.
    """

    def __init__(self, members: Array) -> None:
        self.members, self.averaged = members, members.mean(axis=0)
        self.lower, self.upper = members.min(axis=0), members.max(axis=0)
        self.intersection = np.asarray(intersection_probability(self.lower, self.upper))
        self.polygon = to_plane(credal_polygon(self.lower, self.upper))
        self.hull = convex_hull(to_plane(members))


def credal_polygon(lower: Any, upper: Any, /) -> Array:
    r"""The vertices of :math:`\{p : l \le p \le u, \sum_k p_k = 1\}` for three classes, in order around it, (v, 3).

    There are at most six; one where the bounds meet in a point, two where they leave a segment.

    >>> credal_polygon([0.2, 0.3, 0.5], [0.2, 0.3, 0.5])
    array([[0.2, 0.3, 0.5]])
    """
    if np.shape(lower) != (3,):
        raise ValueError(f"a triangle needs the bounds of one input over 3 classes, got shape {np.shape(lower)}.")
    vertices: Array = ProbabilityIntervals(np.asarray(lower), np.asarray(upper)).vertices()
    x, y = to_plane(vertices - vertices.mean(axis=0)).T
    return vertices[np.argsort(np.arctan2(y, x))]


def convex_hull(points: Any, /) -> Array:
    """The corners of the convex hull of points in the plane, counter-clockwise, (v, 2).

    Andrew's monotone chain, O(n log n): unlike Qhull it needs no care where the points are one or lie on a line.

    >>> convex_hull([[0, 0], [1, 0], [0.5, 0.1], [0.5, 1]]).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, 1.0]]
    """
    unique = np.unique(np.asarray(points, dtype=np.float64), axis=0)
    if len(unique) < 3:
        return unique
    below, above = _chain(unique), _chain(unique[::-1])
    return np.array(below[:-1] + above[:-1])


def _chain(points: Array) -> list[Array]:
    chain: list[Array] = []
    for point in points:
        while len(chain) >= 2:
            (dx, dy), (x, y) = chain[-1] - chain[-2], point - chain[-2]
            if dx * y - dy * x > 0:  # a turn to the left
                break
            chain.pop()
        chain.append(point)
    return chain


@dataclass(frozen=True, eq=False, kw_only=True)
class Sample(MemberView):
    """An input worth a look: its data set and row, why it was chosen, and its uncertainty."""

    set: str
    row: int
    groups: list[str]
    dispute: float
    scores: ByMethod[ByMeasure[float]]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, first which input it is and why it was chosen."""
        plain = super().as_dict()
        return {name: plain[name] for name in ("set", "row", "groups", "label", "dispute", "scores", *plain)}


def worst_samples(id_set: ScoredSet, ood_sets: list[ScoredSet], labels: NDArray | None, /) -> tuple[Sample, ...]:
    """A few inputs of every data set, each with what every member says of it.

    - "uncertain": highest total uncertainty; where it is the same, highest entropy of the mean.
    - "contradictory": the largest share of probability on which the members do not agree.
    - "missed": OOD inputs of lowest epistemic uncertainty, which a threshold finds last.
    - "wrong": ID inputs with a wrong label and the lowest total uncertainty.
    """
    count = max(1, min(MOST_OF_A_GROUP, MOST_SAMPLES // (3 * (1 + len(ood_sets)))))
    samples = []
    for scored in (id_set, *ood_sets):
        total, truth = scored.of("credal", "total"), labels if scored is id_set else None
        worst = {
            "uncertain": np.lexsort((-scored.of("averaged", "total"), -total)),
            "contradictory": np.argsort(-scored.dispute, kind="stable"),
        }
        if truth is not None and scored.predicted is not None:
            wrong = np.flatnonzero(scored.predicted.credal != truth)
            worst["wrong"] = wrong[np.argsort(total[wrong], kind="stable")]
        elif scored is not id_set:
            worst["missed"] = np.argsort(scored.of("credal", "epistemic"), kind="stable")
        groups: dict[int, list[str]] = {}
        for group, rows in worst.items():
            for row in rows[:count].tolist():
                groups.setdefault(row, []).append(group)
        samples += _samples(scored, groups, truth)
    return tuple(samples)


def _samples(scored: ScoredSet, groups: dict[int, list[str]], labels: NDArray | None) -> list[Sample]:
    rows = sorted(groups)
    read = read_logits if scored.source.logits else read_distributions
    members = dict(zip(rows, np.moveaxis(read(scored.source.take(np.array(rows))).array, 1, 0), strict=True))

    def sample(row: int) -> Sample:
        view = view_members(members[row], None if labels is None else int(labels[row]))
        scores = ByMethod.make(lambda method: ByMeasure.make(lambda name: float(scored.of(method, name)[row])))
        why: dict[str, Any] = {"groups": groups[row], "dispute": float(scored.dispute[row]), "scores": scores}
        return Sample(**vars(view), set=scored.name, row=row, **why)

    return [sample(row) for row in groups]
