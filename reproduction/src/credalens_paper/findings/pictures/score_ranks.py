"""The rank of every score on every pair of network and unknown inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from credalens.core.scores import SCORES
from credalens.evaluation.which_score import mean_ranks
from credalens_paper.findings.advice.ranking import DATA, DISTANCES, Group, catalogue, ranking
from credalens_paper.results.dots import DotPanel, draw_dots
from credalens_paper.results.records import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEXTS: Final = "texts (CLINC150)"
GROUPS: Final[Mapping[str, Group]] = {**DISTANCES, TEXTS: DATA[TEXTS]}


def draw_ranks(results: Sequence[Result], /) -> Figure | None:
    """A row for each score, the best mean rank on top; a dot for each pair."""
    cells = catalogue(results)
    overall = ranking(cells)
    if overall is None:
        return None
    ranks = {
        pair: mean_ranks({name: np.array([auroc]) for name, auroc in cell.items()}) for pair, cell in cells.items()
    }
    rows = {
        SCORES[score].label: {
            words.partition(" (")[0]: [of_pair[score] for pair, of_pair in ranks.items() if holds(pair)]
            for words, holds in GROUPS.items()
        }
        for score in overall.ranks
    }
    means = {SCORES[score].label: rank for score, rank in overall.ranks.items()}
    title = f"Scores on {len(cells)} pairs of network and unknown inputs"
    return draw_dots([DotPanel(title, "Rank by AUROC, 1 is best; stroke: mean", rows, means, is_whole=True)])
