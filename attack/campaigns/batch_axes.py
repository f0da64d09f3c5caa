"""Predictions with several batch axes, indexed in every way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import credalens
from attack import many_rows
from attack.case import Case, expect, expect_same

SCORES = ("total", "epistemic", "mean_total", "mean_epistemic", "mean_pairwise_kl", "hartley")


def attack(case: Case) -> None:
    """An index chooses the same inputs from bounds, averages, members and hull; one that reaches the classes is refused."""
    shape = tuple(case.between(1, 5) for _ in range(case.between(1, 3)))
    rows, classes = int(np.prod(shape)), case.between(2, 6)
    probs = many_rows.predictions(case, rows=rows, classes=classes, members=case.between(2, 5))
    members = probs.reshape(len(probs), *shape, classes)
    key = _key(case, shape)
    made = case.choose("wrap", "summary", "torch")
    places = _places(made, np.arange(rows).reshape(shape), key)
    flat, whole = (_made(made, p)[chosen] for p, chosen in ((probs, places), (members, key)))
    for name in SCORES:
        if made != "summary" or name != "mean_pairwise_kl":
            expect_same(f"{name} at {key}", np.asarray(whole.score(name)), np.asarray(flat.score(name)))
    for name in ("lower", "probability", "aleatoric_bound"):
        expect_same(f"{name} at {key}", np.asarray(getattr(whole, name)), np.asarray(getattr(flat, name)))
    if made != "summary" and places.size:
        hulls = [np.asarray(prediction.hull.lower_entropy()) for prediction in (whole, flat)]
        expect_same(f"the hull at {key}", *hulls)
    try:
        whole = _made(made, members)[(*(0 for _ in shape), 0)]
    except IndexError:
        return
    expect(False, f"an index of {len(shape) + 1} axes gave {whole}")


def _made(made: str, probs: Any) -> Any:
    if made == "summary":
        return credalens.MemberSummary().update(probs).prediction()
    if made == "torch":
        import torch

        return credalens.wrap(torch.from_numpy(probs))
    return credalens.wrap(probs)


def _places(made: str, numbers: NDArray, key: Any) -> NDArray:
    """What the library of the results chooses: torch and NumPy differ where lists and numbers are mixed."""
    if made != "torch":
        return numbers[key]
    import torch

    chosen: NDArray = torch.from_numpy(numbers)[key].numpy()
    return chosen


def _key(case: Case, shape: tuple[int, ...]) -> Any:
    """An index of some axes of the batch, each by a number, a slice, a list or a mask; now and then one mask for all."""
    if case.between(0, 5) == 0:
        return case.rng.random(shape) < 0.5
    entries: list[Any] = []
    lists = case.between(1, 4)  # of one length, as NumPy wants them
    for size in shape[: case.between(1, len(shape))]:
        kind = case.between(0, 2)
        if kind == 0:
            entries.append(case.between(0, size - 1))
        elif kind == 1:
            entries.append(slice(case.between(0, size), None, case.choose(1, 2)))
        else:
            entries.append(case.rng.integers(0, size, lists).tolist())
    if len(entries) < len(shape) and case.between(0, 1):
        entries.append(Ellipsis)
    return entries[0] if len(entries) == 1 and case.between(0, 1) else tuple(entries)
