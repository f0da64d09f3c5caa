"""The inputs worth a look: the most uncertain, the most contradictory, the mistakes nobody would have noticed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.member_array import read_distributions, read_logits
from credalens.core.intervals import intersection_probability
from credalens.evaluation.scores import KINDS, MEASURES, Scored
from credalens.plots.simplex.geometry import merge_to_three

__all__ = ["MOST_CLASSES", "describe_members", "worst_samples"]

MOST_CLASSES = 10
MOST_SAMPLES, MOST_OF_A_GROUP = 72, 5


def worst_samples(known: Scored, others: list[Scored], labels: NDArray | None, /) -> list[dict[str, Any]]:
    """A few inputs of every data set, each with what every member says of it.

    - "uncertain": highest total uncertainty.
    - "contradictory": the largest share of probability on which the members do not agree.
    - "missed": OOD inputs of lowest epistemic uncertainty, which a threshold finds last.
    - "wrong": ID inputs with a wrong label and the lowest total uncertainty.
    """
    count = max(1, min(MOST_OF_A_GROUP, MOST_SAMPLES // (3 * (1 + len(others)))))
    samples = []
    for scored in (known, *others):
        truth = labels if scored is known else None
        samples += _of_set(scored, _chosen(scored, truth, count, inside=scored is known), truth)
    return samples


def _chosen(scored: Scored, labels: NDArray | None, count: int, *, inside: bool) -> dict[int, list[str]]:
    """Row -> the groups it is in."""
    credal, every = scored.scores["credal"], np.arange(scored.source.rows)
    orders = {"uncertain": (-credal["total"], every), "contradictory": (-scored.dispute, every)}
    if not inside:
        orders["missed"] = (credal["epistemic"], every)
    elif labels is not None:
        wrong = np.flatnonzero(scored.probs["intersection"].argmax(axis=-1) != labels)
        orders["wrong"] = (credal["total"][wrong], wrong)
    found: dict[int, list[str]] = {}
    for group, (key, rows) in orders.items():
        for row in rows[np.argsort(key, kind="stable")[:count]]:
            found.setdefault(int(row), []).append(group)
    return found


def _of_set(scored: Scored, chosen: dict[int, list[str]], labels: NDArray | None) -> list[dict[str, Any]]:
    rows = np.array(sorted(chosen), dtype=np.intp)
    given = scored.source.take(rows)
    members = dict(zip(rows.tolist(), np.moveaxis(_probabilities(scored, given), 1, 0), strict=True))
    return [
        {
            "set": scored.name,
            "row": row,
            "groups": groups,
            "label": None if labels is None else int(labels[row]),
            "dispute": float(scored.dispute[row]),
            "scores": {kind: {m: float(scored.scores[kind][m][row]) for m in MEASURES} for kind in KINDS},
            **describe_members(members[row], None if labels is None else int(labels[row])),
        }
        for row, groups in chosen.items()
    ]


def _probabilities(scored: Scored, given: NDArray) -> NDArray:
    return (read_logits if scored.source.logits else read_distributions)(given).array


def describe_members(members: NDArray, true_class: int | None, /) -> dict[str, Any]:
    """One input's members, (members, classes), with bounds and both point predictions, for at most ten rows of a chart.

    Beyond ten classes the true one, the predicted ones and those of highest upper probability are kept and the rest is
    added up. ``simplex`` holds the same members over three classes, the two most probable ones and the rest.
    """
    lower, upper, mean = members.min(axis=0), members.max(axis=0), members.mean(axis=0)
    point = np.asarray(intersection_probability(lower, upper))
    kept = _kept(upper, [int(point.argmax()), int(mean.argmax()), *([] if true_class is None else [true_class])])
    rest = np.setdiff1d(np.arange(len(upper)), kept)
    low, high = lower[kept], upper[kept]
    if len(rest):  # lower and upper probability, within the credal set, that the class is one of the rest
        low = np.append(low, max(lower[rest].sum(), 1 - high.sum()))
        high = np.append(high, max(low[-1], min(upper[rest].sum(), 1 - lower[kept].sum())))
    return {
        "predicted": int(point.argmax()),
        "averaged": int(mean.argmax()),
        "classes": [int(k) for k in kept],
        "others": len(rest),
        "members": [_digits(_with_rest(row, kept, rest)) for row in members],
        "lower": _digits(low),
        "upper": _digits(high),
        "mean": _digits(_with_rest(mean, kept, rest)),
        "probability": _digits(_with_rest(point, kept, rest)),
        "simplex": _simplex(members, point),
    }


def _kept(upper: NDArray, always: list[int]) -> NDArray[np.intp]:
    if len(upper) <= MOST_CLASSES:
        return np.arange(len(upper))
    rank = upper.copy()
    rank[always] += 1
    return np.sort(np.argsort(-rank, kind="stable")[: MOST_CLASSES - 1])


def _with_rest(values: NDArray, kept: NDArray[np.intp], rest: NDArray[np.intp]) -> NDArray:
    return np.append(values[kept], values[rest].sum()) if len(rest) else values[kept]


def _simplex(members: NDArray, point: NDArray) -> dict[str, Any] | None:
    """The members over three classes: all there are, or the two most probable ones and the rest."""
    if len(point) < 3:
        return None
    if len(point) == 3:
        return {"classes": [0, 1, 2], "members": [_digits(row) for row in members]}
    first, second = (int(k) for k in np.argsort(-point, kind="stable")[:2])
    merged = merge_to_three(members, classes=(first, second))
    return {"classes": [first, second, None], "members": [_digits(row) for row in merged]}


def _digits(values: NDArray) -> list[float]:
    return [round(float(value), 5) for value in values]
