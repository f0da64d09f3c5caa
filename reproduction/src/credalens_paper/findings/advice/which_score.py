"""Which score to rank unknown inputs by: overall, by the data, and for near and far unknowns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from credalens.core.scores import SCORES
from credalens_paper.findings.advice.ranking import DATA, DISTANCES, TITLE, Ranking, catalogue, groups, ranking
from credalens_paper.findings.advice.sentence import Advice, listed, page, section
from credalens_paper.results.records import Result

MEANINGS: Final = {
    "total": "the highest entropy in the credal set",
    "mean_total": "the entropy of the average",
    "mean_aleatoric": "the mean entropy of the members",
    "aleatoric": "the lowest entropy in the credal set",
    "entropy": "the entropy of the intersection probability",
}
FEW_CLASSES: Final = "[with fewer than ten classes](scores.md#when-total-is-the-same-for-many-inputs)"
EQUAL: Final = 0.1
"""Points of AUROC below which scores are as good as each other."""
CLOSE: Final = 0.5
"""Points of mean AUROC over all pairs within which it matters little which score is taken."""


def which_score(results: Sequence[Result], /) -> Advice | None:
    """The score of the best mean rank, overall and by the data."""
    cells = catalogue(results)
    overall = ranking(cells)
    if not overall:
        return None
    best, rival = overall.best, "total" if overall.best == "epistemic" else "epistemic"
    by_data = "; ".join(f"{words} {_beside(found, best)}" for words, found in groups(cells, DATA).items())
    others = dict.fromkeys((*list(overall.ranks)[1:2], rival))
    ranks = ", ".join(f"`{name}` {'has ' if not at else ''}{overall.ranks[name]:.1f}" for at, name in enumerate(others))
    because = (
        f"Of {len(overall.ranks)} scores it has the best mean rank over {len(cells)} pairs of network and unknown data: "
        f"{overall.ranks[best]:.1f}; {ranks}.{_close(overall) or _leader(overall)} Best by data: {by_data}."
    )
    return Advice(f"Rank inputs by {score_words(best)}", because, (section(TITLE), FEW_CLASSES))


def _close(overall: Ranking) -> str:
    """The scores whose mean AUROC is near the highest, where the one of the best mean rank is among them."""
    behind = {name: overall.less(overall.leader, name) for name in overall.ranks}
    close = {name: less for name, less in behind.items() if less <= CLOSE}
    if len(close) < 2 or overall.best not in close:
        return ""
    names = listed([f"`{name}`" for name in close])
    return f" By mean AUROC {names} are within {max(close.values()):.2f} points: any of these will do."


def _leader(overall: Ranking) -> str:
    """The score of the highest mean AUROC, where that is another than the one of the best mean rank."""
    ahead = overall.less(overall.leader, overall.best)
    return f" By mean AUROC `{overall.leader}` is {ahead:.2f} points ahead of it." if ahead else ""


def near_and_far(results: Sequence[Result], /) -> Advice | None:
    """The scores of the best mean rank for near and for far unknowns."""
    cells = catalogue(results)
    overall, near = ranking(cells), groups(cells, DISTANCES)
    if not overall or len(near) < len(DISTANCES):
        return None
    places: dict[str, list[str]] = {}
    for words, found in near.items():
        places.setdefault(found.best, []).append(words)
    usual = overall.best
    do = "; ".join(f"{score_words(name, known=usual)} for {listed(names)}" for name, names in places.items())
    others = "".join(
        f" For {words} `{usual}` is {_distance(found, usual)} `{found.best}`."
        for words, found in near.items()
        if found.best != usual
    )
    counts = listed(dict.fromkeys(str(len(found.cells)) for found in near.values()))
    known = "" if set(places) == {usual} else f". If you do: {do}"
    because = f"By mean rank on {counts} networks.{others}"
    return Advice(
        f"If you do not know what will come, use `{usual}`{known}", because, (section(TITLE), page("NearOOD"))
    )


def score_words(name: str, /, *, known: str = "") -> str:
    """The name of a score in code, and in words unless it is known already."""
    return f"`{name}`" if name == known else f"`{name}` ({MEANINGS.get(name, SCORES[name].label)})"


def _beside(found: Ranking, usual: str) -> str:
    """The best score of a group; where it is another than the usual one, how the usual one compares."""
    if found.best == usual:
        return f"`{usual}`"
    return f"`{found.best}` (`{usual}` is {_distance(found, usual)} it)"


def _distance(found: Ranking, usual: str) -> str:
    """How far the usual score is from the best one of a group in mean AUROC."""
    less = found.less(usual, found.best)
    words = "behind" if less < 0 else "ahead of"
    return f"within {EQUAL} points of AUROC of" if abs(less) < EQUAL else f"{abs(less):.2f} points of AUROC {words}"
