"""Scores of samples: real numbers of any range, infinities included, one for each sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.arrays import as_array
from credalens.checks.bad_values import refuse_values
from credalens.checks.counted import count_text


def read_scores(x: Any, name: str, /) -> NDArray[np.float64]:
    """Real scores of any shape; NaN is refused, since it has no rank."""
    array = as_array(x, name)[0].astype(np.float64)
    remedy = "A missing score has no rank: find its cause, or drop the sample."
    refuse_values(np.isnan(array), array, name, "NaN", remedy)
    return array


def read_sample_scores(x: Any, name: str, /, *, least: int = 1) -> NDArray[np.float64]:
    """One real score for each of at least ``least`` samples."""
    array = read_scores(x, name)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, one score for each sample; got shape {array.shape}. "
            "Did you pass probabilities instead of an uncertainty? Flatten batches with .ravel()."
        )
    if array.size < least:
        raise ValueError(f"{name} holds {count_text(array.size, 'sample')}; this evaluation needs at least {least}.")
    return array


def read_paired_scores(id_a: Any, ood_a: Any, id_b: Any, ood_b: Any, /) -> list[NDArray[np.float64]]:
    """Two scores, a and b, of the same ID and the same OOD samples."""
    given = {"id_a": id_a, "ood_a": ood_a, "id_b": id_b, "ood_b": ood_b}
    scores = {name: read_sample_scores(x, name, least=2) for name, x in given.items()}
    check_same_samples(scores["id_a"], scores["id_b"], "id_a and id_b")
    check_same_samples(scores["ood_a"], scores["ood_b"], "ood_a and ood_b")
    return list(scores.values())


def check_same_samples(a: NDArray, b: NDArray, names: str, /) -> None:
    """Refuse two arrays that cannot belong to the same samples."""
    if a.shape != b.shape:
        raise ValueError(f"{names} must belong to the same samples in one order; got {a.shape} and {b.shape}.")
