"""Inputs that have broken something before: permutations, near-ties, votes, grids, one-hots, agreement, extreme sizes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attack.case import Case
from tests.strategies import KINDS, make_members

PARTS = (2, 3, 5, 7, 10, 20, 64, 100, 1000)
ALL_KINDS = (*KINDS, "permutations", "near_ties", "votes", "two_values", "nearly_agreeing", "common_part", "swaps")


class Grid(NamedTuple):
    """Bounds (rows, classes) that are whole numbers of n-ths, and n: every question about them has an exact answer."""

    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    parts: int

    def floats(self) -> tuple[NDArray, NDArray]:
        """The bounds as probabilities."""
        return self.lower / self.parts, self.upper / self.parts

    def tightened(self) -> Grid:
        """The same sets with every bound attained, without rounding."""
        least = self.parts - (self.upper.sum(axis=-1, keepdims=True) - self.upper)
        most = self.parts - (self.lower.sum(axis=-1, keepdims=True) - self.lower)
        return Grid(np.maximum(self.lower, least), np.minimum(self.upper, most), self.parts)


def ensemble(case: Case, /, *, rows: int, classes: tuple[int, int], members: tuple[int, int] = (1, 8)) -> NDArray:
    """Predictions (members, rows, classes) that sum to one in float64, each row of a kind of its own."""
    case.count(rows)
    count, number = case.between(*members), case.between(*classes)
    return np.stack([row(case, case.choose(*ALL_KINDS), count, number) for _ in range(rows)], axis=1)


def row(case: Case, kind: str, members: int, classes: int, /) -> NDArray:
    """One input's predictions (members, classes)."""
    rng = case.rng
    p: Any
    if kind == "permutations":
        p = _permutations(case, members, classes)
    elif kind == "near_ties":
        size = 10.0 ** -case.between(1, 16)
        p = np.ones((members, classes)) + size * rng.integers(-1, 2, (members, classes))
    elif kind == "votes":
        p = rng.multinomial(case.choose(*PARTS), rng.dirichlet(np.full(classes, 0.3)), members).astype(float)
    elif kind == "two_values":
        p = np.where(rng.random((members, classes)) < rng.random(), 1.0, rng.random() * 0.1 + 1e-9)
    elif kind == "common_part":
        p = common_part(case, members, classes)
    elif kind == "swaps":
        p = _swaps(case, members, classes)
    elif kind == "nearly_agreeing":
        p = rng.dirichlet(np.ones(classes)) * (1 + 10.0 ** -case.between(8, 16) * rng.random((members, classes)))
    else:
        return make_members(kind, members, classes, rng)
    return p / p.sum(axis=-1, keepdims=True)


def _permutations(case: Case, members: int, classes: int) -> NDArray:
    """Members that are permutations of one prediction, whose values lie close together here and there."""
    values = case.rng.dirichlet(np.full(classes, case.choose(0.1, 0.5, 1.0, 5.0))) + 1e-12
    if case.between(0, 1):
        values *= 1 + 10.0 ** -case.between(2, 14) * case.rng.random(classes)
        values = np.sort(values)
        values[1::2] = values[::2][: classes // 2] * (1 + 10.0 ** -case.between(6, 15))
    return np.stack([case.rng.permutation(values) for _ in range(members)])


def common_part(case: Case, members: int, classes: int, /) -> NDArray:
    """Members that share a part of their mass, so that the widths of all but a few classes are rounding."""
    few = case.between(1, max(1, classes // 2))
    p = np.zeros((members, classes))
    p[:, case.rng.permutation(classes)[:few]] = case.rng.dirichlet(np.full(few, case.choose(0.1, 1.0)), members)
    share = case.choose(0.1, 0.5, 0.9)
    return share * p + (1 - share) * case.rng.dirichlet(np.full(classes, case.choose(0.5, 5.0)))


def _swaps(case: Case, members: int, classes: int) -> NDArray:
    """Members that each swap two classes of one prediction."""
    p = np.repeat(case.rng.dirichlet(np.ones(classes))[None], members, axis=0)
    for one in p:
        pair = case.rng.integers(0, classes, 2)
        one[pair] = one[pair[::-1]]
    return p


def grid(case: Case, /, *, rows: int, classes: tuple[int, int], parts: tuple[int, ...] = PARTS) -> Grid:
    """Random sets of n-ths, not empty; bounds are not always attained, see ``tightened``."""
    case.count(rows)
    n, number = case.choose(*parts), case.between(*classes)
    inner = case.rng.multinomial(n, case.rng.dirichlet(np.full(number, case.choose(0.1, 1.0))), rows)
    reach = case.choose(0, 1, 2, n // 2, n)
    down, up = case.rng.integers(0, reach + 1, (2, rows, number)) * (case.rng.random((2, rows, number)) < 0.7)
    return Grid(np.maximum(inner - down, 0), np.minimum(inner + up, n), n)


def bounds(case: Case, /, *, rows: int, classes: tuple[int, int]) -> tuple[NDArray, NDArray]:
    """Lower and upper bounds (rows, classes) that are attained: of members, or of a grid."""
    if case.between(0, 1):
        return grid(case, rows=rows, classes=classes).tightened().floats()
    p = ensemble(case, rows=rows, classes=classes)
    return p.min(axis=0), p.max(axis=0)
