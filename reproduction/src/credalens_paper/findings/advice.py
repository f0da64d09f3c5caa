"""Which score to use, from the table of every score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from credalens.core.scores import SCORES
from credalens.evaluation.advice.which_score import mean_ranks
from credalens_paper.findings.lookup import Kind, numbers_of
from credalens_paper.results.records import Result

Cells = Mapping[tuple[str, str, str], Mapping[str, float]]
"""(training set, backbone, OOD set) -> score -> AUROC."""
SHOWN: Final = 5


def score_ranks_sentence(results: Sequence[Result], /) -> str:
    """The scores of best mean rank over all cells, and which one is chosen where a training set is left out."""
    cells = _catalogue(results)
    if not cells:
        return ""
    ranks = _ranks(cells)
    order = sorted(ranks, key=lambda name: ranks[name])
    best = ", ".join(f"{SCORES[name].label} {ranks[name]:.1f}" for name in order[:SHOWN])
    last = ", ".join(f"{SCORES[name].label} {ranks[name]:.1f}" for name in order[-3:])
    chosen = Counter(_best_without(cells, left_out) for left_out in cells)
    counts = " and ".join(f"{SCORES[name].label} for {count}" for name, count in chosen.most_common())
    return (
        f"Of {len(ranks)} scores over {len(cells)} pairs of network and OOD set, mean rank by AUROC (1 is best): {best}; last "
        f"{last}. Chosen on the other pairs, the score is {counts} of {len(cells)}."
    )


def _catalogue(results: Sequence[Result]) -> Cells:
    cells: dict[tuple[str, str, str], dict[str, float]] = {}
    for number in numbers_of(results, Kind("ScoreCatalogue", {"metric": "AUROC"})):
        if number.ours:
            place = (number.keys["id_set"], number.keys["backbone"], number.keys["ood_set"])
            cells.setdefault(place, {})[number.keys["measure"]] = number.ours.mean
    return cells


def _ranks(cells: Cells) -> dict[str, float]:
    names = next(iter(cells.values()))
    return mean_ranks({name: np.array([cell[name] for cell in cells.values()]) for name in names})


def _best_without(cells: Cells, left_out: tuple[str, str, str]) -> str:
    ranks = _ranks({place: cell for place, cell in cells.items() if place != left_out})
    return min(ranks, key=lambda name: ranks[name])
