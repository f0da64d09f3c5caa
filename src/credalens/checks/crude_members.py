"""Members whose credal set says little: a single one, all the same, or nearly one-hot. Each gets a warning with its remedy."""

from __future__ import annotations

import math
import warnings
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy

ROWS: Final = 256  # looked at, spread over all
SAME: Final = 1e-6  # widest interval of members that are the same
EASY_ROWS: Final = 30  # this many rows of which all are certain prove that members are the same; fewer may be easy ones
CERTAIN: Final = 0.99
DISAGREE: Final = 0.1  # widest interval from which on members disagree
CONTRADICTIONS: Final = 3  # rows at least: members may be certain and wrong of one hard input

SINGLE_MEMBER: Final = (
    "there is a single member, so lower and upper probabilities are the same and epistemic uncertainty is zero. Give several: "
    "models trained from other seeds or on other rows, or several samples of a stochastic model."
)
SAME_MEMBERS: Final = (
    "all members predict the same, so epistemic uncertainty is zero. Train them from different seeds, or on different rows if "
    "they ignore their seed."
)
ONE_HOT_MEMBERS: Final = (
    "the members are nearly one-hot: most inputs on which they disagree have several classes between 0 and 1, which says "
    "little."
)
MAKE_LESS_CERTAIN: Final = (
    "Make the members less certain: divide their logits by a temperature, fitted on labelled inputs, or average several "
    "of them to one, such as twenty samples in five groups: probs.reshape(5, 4, *probs.shape[1:]).mean(1)."
)


def warn_single_member(count: int, /, *, stacklevel: int = 2) -> None:
    """Warn if there is only one member."""
    if count == 1:
        warnings.warn(SINGLE_MEMBER, stacklevel=stacklevel + 1)


def warn_of_members(prediction: Any, /, *, stacklevel: int = 2) -> None:
    """Warn of the members of a ``CredalPrediction`` if their credal set says little."""
    if prediction.n_members == 1:
        warn_single_member(1, stacklevel=stacklevel + 1)
    else:
        warn_crude_members(prediction.lower, prediction.upper, stacklevel=stacklevel + 1)


def warn_crude_members(lower: Any, upper: Any, /, *, remedy: str = MAKE_LESS_CERTAIN, stacklevel: int = 2) -> None:
    """Warn if the bounds (*batch, classes) show that several members are all the same, or nearly one-hot.

    ``remedy`` says what to do about one-hot members. Looks at a sample of the rows. The words never change, so that Python
    shows them once for each place of a call.
    """
    low, high = (_sample(bounds) for bounds in (lower, upper))
    if not len(low):
        return
    if _all_same(low, high):
        warnings.warn(SAME_MEMBERS, stacklevel=stacklevel + 1)
    elif _nearly_one_hot(low, high):
        warnings.warn(f"{ONE_HOT_MEMBERS} {remedy}", stacklevel=stacklevel + 1)


def _sample(bounds: Any) -> NDArray[Any]:
    rows = bounds.reshape(-1, bounds.shape[-1])
    return to_numpy(rows[:: max(1, math.ceil(len(rows) / ROWS))])[0]


def _all_same(lower: NDArray[Any], upper: NDArray[Any]) -> bool:
    """Whether no interval has a width, though the rows are not only a few easy ones on which any members would agree."""
    if (upper - lower).max() > SAME:
        return False
    several_classes = len(np.unique(upper.argmax(axis=-1))) > 1
    return bool(upper.max(axis=-1).min() < CERTAIN) or (several_classes and len(upper) >= EASY_ROWS)


def _nearly_one_hot(lower: NDArray[Any], upper: NDArray[Any]) -> bool:
    """Whether members that disagree are mostly certain: of two classes or more, each with another member."""
    disagree = (upper - lower).max(axis=-1) > DISAGREE
    contradict = (upper >= CERTAIN).sum(axis=-1) >= 2
    return bool(contradict.sum() >= max(CONTRADICTIONS, disagree.sum() / 2))
