"""The convex hull of the members as a credal set (paper, App. CredalSetsGenerations)."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import short_repr
from credalens.checks.arrays import check_subset
from credalens.checks.doubtful_members import warn_many_members
from credalens.checks.options import check_count, check_few_classes, count_text
from credalens.core.batches import for_each_chunk
from credalens.core.entropy import shannon_entropy
from credalens.core.hartley import subset_weights
from credalens.core.members import MemberArray, read_members
from credalens.core.options import Options

MAX_STEPS = 500
TOLERANCE = 1e-11  # bits; rows certified to this are done
OPEN = 1e-8  # bits; rounding leaves less
MOST_SUBSET_CLASSES = 16
MOST_PERMUTATION_CLASSES = 8


@dataclass(frozen=True, eq=False)
class ConvexHull:
    """All mixtures of the members, ``probs`` of shape (members, *batch, classes): inside the interval credal set.

    Use it if only mixtures of members shall count as possible, or to see how much the intervals add to them.

    Lower entropy is that of a member, since entropy is concave; upper entropy is a concave problem in the mixture weights,
    solved with a certificate. Neither needs the 2^C constraints. The constructions that do - lower probabilities of all
    subsets, Moebius masses, permutation vertices, Hartley - are here for few classes, for study and plots.

    >>> hull = ConvexHull([[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]])
    >>> f"{hull.upper_entropy():.3f} {hull.lower_entropy():.3f}"
    '1.585 1.157'
    """

    probs: Any
    member_axis: int = 0
    _members: MemberArray = field(init=False, repr=False)
    __repr__ = short_repr

    def __post_init__(self) -> None:
        warn_many_members(self.probs, "probs", stacklevel=3)
        object.__setattr__(self, "_members", read_members(self.probs, member_axis=self.member_axis).checked())

    @classmethod
    def _of_members(cls, members: MemberArray, /) -> ConvexHull:
        """The hull of members that were validated before."""
        count, _, classes = members.array.shape
        probs = members.array.reshape(count, *members.batch, classes)
        probs = members.array_kind.restore(probs.astype(members.array_kind.result_dtype, copy=False))
        hull = object.__new__(cls)
        hull.__dict__.update(probs=probs, member_axis=0, _members=members)
        return hull

    def upper_entropy(
        self,
        *,
        base: float = 2,
        return_distribution: bool = False,
        return_bounds: bool = False,
        max_steps: int = MAX_STEPS,
        threads: int | None = None,
    ) -> Any:
        r"""The highest entropy of a mixture of members.

        .. math:: \overline H = \max_{a \ge 0,\ \sum a = 1} H\Big(\sum_n a_n p_n\Big)

        Certificate (KKT): the optimum is at most max_n CE(p_n, q) for any mixture q, and equals H(q) at the best one.
        ``return_bounds`` adds the pair (value, that upper bound).

        Cost: a step takes O(N C) for N members, and O(k^2 (C + k)) for the k of them that are in use, at most about max(C, 64).
        Up to a hundred classes it takes 1 to 100 steps, more with more classes; per row 5 ms for 3000 members and 10 classes,
        0.4 s for 100 classes, 5 s for 1000 members and 300 classes. After ``max_steps`` steps the value is a lower bound of
        the highest entropy; rows where that leaves more than 1e-9 bits open are counted in a RuntimeWarning.
        """
        from credalens.kernels.hull import hull_upper_entropy_rows, hull_workspace

        options, max_steps = Options(base=base, threads=threads), check_count(max_steps, "max_steps")
        members = self._members.normalised()
        count, rows, classes = members.array.shape
        entropy, gap, q = np.empty(rows), np.empty(rows), np.empty((rows, classes))

        def work(start: int, stop: int) -> None:
            part = np.ascontiguousarray(members.array[:, start:stop])
            results = entropy[start:stop], gap[start:stop], q[start:stop]
            hull_upper_entropy_rows(part, TOLERANCE, max_steps, *results, *hull_workspace(count, classes, max_steps))

        for_each_chunk(work, rows, classes * count, threads=options.threads)
        if (number := int((gap > OPEN).sum())) > 0:
            warnings.warn(
                f"{number} of {count_text(rows, 'row')} {'is' if number == 1 else 'are'} not certified after "
                f"max_steps={max_steps}: the highest entropy is up to {gap.max():.3g} bits above the value. return_bounds=True "
                "gives the bound of each row; a larger max_steps narrows it.",
                RuntimeWarning,
                stacklevel=2,
            )
        np.maximum(entropy, 0.0, out=entropy)
        value = members.restore(entropy * options.unit)
        extras: list[Any] = [members.restore(q)] if return_distribution else []
        extras += [(value, members.restore((entropy + gap) * options.unit))] if return_bounds else []
        return (value, *extras) if extras else value

    def lower_entropy(self, *, base: float = 2) -> Any:
        """The lowest entropy in the hull: that of the member with the lowest."""
        members, unit = self._members.normalised(), Options(base=base).unit
        return members.restore(shannon_entropy(members.array).min(axis=0) * unit)

    def lower_probability(self, subset: Any, /) -> Any:
        """The lowest probability of a set of classes, given by their indices: min over members of p_n(A)."""
        members = self._members.normalised()
        chosen = check_subset(subset, members.array.shape[-1])
        return members.restore(members.array[..., chosen].sum(axis=-1).min(axis=0))

    def lower_probabilities(self) -> Any:
        """Lower probability of every subset, (*batch, 2^C), indexed by bit mask: bit k stands for class k."""
        members = self._members.normalised()
        return members.restore(_capacity(members.array))

    def mobius(self) -> Any:
        r"""Moebius masses of the lower probability, (*batch, 2^C), indexed by bit mask.

        .. math:: m(B) = \sum_{A \subseteq B} (-1)^{|B \setminus A|} \underline P(A)
        """
        members = self._members.normalised()
        mass = _capacity(members.array)
        masks, step = np.arange(mass.shape[-1]), 1
        while step < len(masks):
            has = (masks & step) > 0
            mass[:, has] -= mass[:, masks[has] ^ step]
            step *= 2
        return members.restore(mass)

    def permutation_vertices(self) -> Any:
        r"""The distributions that the paper's Eq. vertices builds from all C! permutations: (*batch, C!, C).

        .. math:: P^\pi(x_{\pi(i)}) = \underline P(\{x_{\pi(i)}, \dots, x_{\pi(C)}\}) - \underline P(\{x_{\pi(i+1)}, \dots\})

        They are the vertices of the credal set of the lower probability where that is 2-monotone. The lower envelope of
        arbitrary members need not be; then some of these points lie outside.
        """
        members = self._members.normalised()
        classes = members.array.shape[-1]
        check_few_classes(classes, MOST_PERMUTATION_CLASSES, "permutation_vertices()")
        capacity = _capacity(members.array)
        orders = np.array(list(itertools.permutations(range(classes))))
        tails = np.cumsum((1 << orders)[:, ::-1], axis=1)[:, ::-1]
        after = np.concatenate([tails[:, 1:], np.zeros((len(tails), 1), dtype=tails.dtype)], axis=1)
        mass = capacity[:, tails] - capacity[:, after]
        points = np.empty_like(mass)
        np.put_along_axis(points, np.broadcast_to(orders, mass.shape), mass, axis=-1)
        return members.restore(points)

    def generalized_hartley(self, *, base: float = 2) -> Any:
        """Generalized Hartley measure of the hull's lower probability, over all subsets of at most 16 classes."""
        members, unit = self._members.normalised(), Options(base=base).unit
        classes = members.array.shape[-1]
        total = _capacity(members.array) @ subset_weights(classes)
        return members.restore(np.maximum(math.log2(classes) - total, 0.0) * unit)


def _capacity(members: NDArray) -> NDArray:
    """Lower probability of every subset: (rows, 2^C)."""
    classes = members.shape[-1]
    check_few_classes(classes, MOST_SUBSET_CLASSES, "enumerating subsets")
    sums = np.zeros((*members.shape[:2], 1))
    for k in range(classes):
        sums = np.concatenate([sums, sums + members[..., k : k + 1]], axis=-1)
    return sums.min(axis=0)
