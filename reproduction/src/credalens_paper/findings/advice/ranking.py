"""Every score by its mean rank: over all networks and unknown inputs, by the data, and for near and far unknowns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from credalens.core.scores import SCORES
from credalens.evaluation.which_score import mean_ranks
from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.tables import C10, C100
from credalens_paper.findings.advice.sentence import Network, page
from credalens_paper.findings.lookup import Kind, numbers_of
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import joined, markdown_table

LABELS: Final = ("ScoreCatalogue", "TextIntents")
TITLE: Final = "Which score"
NOTE: Final = (
    "Mean rank by AUROC over pairs of network and set of unknown inputs, five members each; 1 is best, and of equal\n"
    "ranks the one of the higher mean AUROC comes first. The last two columns: by how many points of AUROC the score that is\n"
    "best over all pairs is behind the best score of each pair, mean / worst,\n"
    f"and the rank of credal epistemic uncertainty. All scores: {page(LABELS[0])}, {page(LABELS[1])}."
)


class Pair(NamedTuple):
    """A network and a set of unknown inputs."""

    id_set: str
    backbone: str
    method: str
    ood_set: str

    @property
    def text(self) -> str:
        """In plain words.

        >>> Pair("cifar10", "vit_base", "DE", "svhn").text
        'ViT-Base on CIFAR-10 against SVHN'
        """
        network = Network.of(CellKey(**self._asdict(), metric="AUROC"))
        return f"{network.kind} on {network.data} against {display_name(self.ood_set)}"


Cells = Mapping[Pair, Mapping[str, float]]
"""For every pair the AUROC by each score."""
Group = Callable[[Pair], bool]
DATA: Final[Mapping[str, Group]] = {
    "10 classes (CIFAR-10)": lambda pair: pair.id_set == C10,
    "100 classes (CIFAR-100)": lambda pair: pair.id_set == C100,
    "texts (CLINC150)": lambda pair: pair.id_set == "clinc150",
}
DISTANCES: Final[Mapping[str, Group]] = {
    "near unknowns (CIFAR-10 against CIFAR-100, or back)": lambda pair: pair.ood_set in (C10, C100),
    "far unknown objects (Tiny-ImageNet)": lambda pair: pair.ood_set == "tiny-imagenet",
    "far pictures of another kind (SVHN)": lambda pair: pair.ood_set == "svhn",
}


@dataclass(frozen=True)
class Ranking:
    """The scores by their mean rank on some pairs, the best first; of equal ranks the one of the higher mean AUROC."""

    cells: Cells
    ranks: Mapping[str, float]

    @property
    def best(self) -> str:
        """The score of the best mean rank."""
        return next(iter(self.ranks))

    def behind(self, name: str, /) -> list[float]:
        """By how many points of AUROC a score is behind the best one of each pair."""
        return [max(cell.values()) - cell[name] for cell in self.cells.values()]

    @property
    def leader(self) -> str:
        """The score of the highest mean AUROC."""
        return max(self.ranks, key=lambda name: self.less(name, self.best))

    def less(self, first: str, second: str, /) -> float:
        """Mean AUROC of a score less that of another."""
        return float(np.mean([cell[first] - cell[second] for cell in self.cells.values()]))


def catalogue(results: Sequence[Result], /) -> Cells:
    """The pairs in which every score was measured."""
    cells: dict[Pair, dict[str, float]] = {}
    for label in LABELS:
        for number in numbers_of(results, Kind(label, {"metric": "AUROC", "measure": tuple(SCORES)})):
            if number.ours:
                pair = Pair(*number.at(Pair._fields))
                cells.setdefault(pair, {})[number.keys["measure"]] = number.ours.mean
    most = max(map(len, cells.values()), default=0)
    return {pair: cell for pair, cell in cells.items() if len(cell) == most}


def ranking(cells: Cells, chosen: Group = lambda _: True, /) -> Ranking | None:
    """The mean ranks on the chosen pairs; None where there is none."""
    some = {pair: cell for pair, cell in cells.items() if chosen(pair)}
    if not some:
        return None
    ranks = mean_ranks({name: np.array([cell[name] for cell in some.values()]) for name in next(iter(some.values()))})
    aurocs = {name: float(np.mean([cell[name] for cell in some.values()])) for name in ranks}
    return Ranking(some, dict(sorted(ranks.items(), key=lambda item: (item[1], -aurocs[item[0]]))))


def groups(cells: Cells, chosen: Mapping[str, Group], /) -> dict[str, Ranking]:
    """The ranking of every group that was measured."""
    return {words: found for words, holds in chosen.items() if (found := ranking(cells, holds))}


def ranking_table(results: Sequence[Result], /) -> str:
    """The best scores of every group, how far the usual one is behind, and which one is chosen on the other pairs."""
    cells = catalogue(results)
    overall = ranking(cells)
    if not overall:
        return ""
    rows = []
    for words, found in {"all": overall, **groups(cells, {**DATA, **DISTANCES})}.items():
        behind = found.behind(overall.best)
        best = [f"`{name}` {rank:.1f}" for name, rank in list(found.ranks.items())[:2]]
        gaps = f"{np.mean(behind):.2f} / {max(behind):.2f}"
        rows.append([words, str(len(found.cells)), *best, gaps, f"{found.ranks['epistemic']:.1f}"])
    head = ["Unknown inputs", "Pairs", "Best", "Second", f"`{overall.best}` behind", "`epistemic`"]
    return joined(markdown_table(head, rows), NOTE, _all_ranks(cells, overall))


def _without(left_out: Pair) -> Group:
    return lambda pair: pair != left_out


def _all_ranks(cells: Cells, overall: Ranking) -> str:
    """All scores over all pairs, and which one is chosen where a pair is left out."""
    ranks = ", ".join(f"{SCORES[name].label} {rank:.1f}" for name, rank in overall.ranks.items())
    rankings = [ranking(cells, _without(pair)) for pair in cells]
    chosen = Counter(found.best for found in rankings if found)
    counts = " and ".join(f"{SCORES[name].label} for {count}" for name, count in chosen.most_common())
    return (
        f"Mean ranks of all {len(overall.ranks)} scores over all {len(cells)} pairs: {ranks}. Chosen on the other pairs, the "
        f"score is {counts} of {len(cells)}."
    )
