"""Which score finds unknown inputs best, and from which severity on the credal line is the better one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from credalens_paper.experiments.numbers import HIGHER
from credalens_paper.experiments.tables import OOD, WRAPPED
from credalens_paper.findings.cells import Cell, Kind, compared_lines, find_cells
from credalens_paper.results.rendering.markdown import NONE, markdown_table
from credalens_paper.results.rendering.names import shown
from credalens_paper.results.rendering.values import number_text, value_text

__all__ = ["levels_table", "score_sentence", "scores_table", "severity_table", "size_sentence"]

Result = Mapping[str, Any]
SCORES: Final = (("classical", "EU"), ("credal", "EU"), ("credal", "GH"), ("classical", "TU"), ("credal", "TU"))
OTHERS: Final = {
    "mutual information": ("classical", "EU"),
    "classical TU": ("classical", "TU"),
    "credal TU": ("credal", "TU"),
}
Row = tuple[str, str, str]


def _by_row(results: Sequence[Result]) -> dict[Row, dict[tuple[str, str], Cell]]:
    """(backbone, method, OOD set) -> score -> cell of its AUROC, for ensembles and networks of five."""
    rows: dict[Row, dict[tuple[str, str], Cell]] = {}
    for label in ("OODMain", "OODMainTU", "GHComparison"):
        for cell in find_cells(results, Kind(label, {"method": WRAPPED, "metric": "AUROC", "ood_set": OOD})):
            keys = cell["keys"]
            row = rows.setdefault((keys["backbone"], keys["method"], keys["ood_set"]), {})
            row.setdefault((keys["variant"], keys["measure"]), cell)
    return rows


def _means(row: Mapping[tuple[str, str], Cell], source: str) -> dict[tuple[str, str], float]:
    """Score -> AUROC, ours or the paper's, where there is one."""
    cells = {score: cell if source == "ours" else cell["paper"] for score, cell in row.items()}
    return {score: cell["mean"] for score, cell in cells.items() if cell and "mean" in cell}


def scores_table(results: Sequence[Result], /) -> str:
    """AUROC of every score, the best of a row in bold, and the score that is best in the paper's numbers."""
    rows = []
    for (backbone, method, ood_set), row in _by_row(results).items():
        ours, paper = _means(row, "ours"), _means(row, "paper")
        if not ours:
            continue
        known = [f"{ours[score]:.2f}" if score in ours else NONE for score in SCORES]
        marked = [f"**{text}**" if score == _best(ours) else text for score, text in zip(SCORES, known, strict=True)]
        printed = " ".join(_best(paper)) if paper else NONE
        n = min(cell["n"] for cell in row.values() if "n" in cell)
        rows.append([shown(backbone), method, shown(ood_set), *marked, str(n), printed])
    names = [f"{variant} {measure}" for variant, measure in SCORES]
    return markdown_table(["Backbone", "Method", "OOD set", *names, "n", "Best in the paper"], rows) if rows else ""


def _best(means: Mapping[tuple[str, str], float]) -> tuple[str, str]:
    return max(means.items(), key=lambda found: found[1])[0]


def levels_table(results: Sequence[Result], /) -> str:
    """Accuracy of the averaged predictions beside the paper's, clean and corrupted: how alike the networks are."""
    rows = []
    for cell in find_cells(
        results, Kind("OODMain", {"variant": ("classical", None), "metric": "ACC", "ood_set": None})
    ):
        keys = cell["keys"]
        same = {**keys, "ood_set": "cifar10-c"}
        corrupted = find_cells(results, Kind("OODMain", same))[0]
        if "mean" in cell or "mean" in corrupted:
            values = [number_text(found, "ACC") for one in (cell, corrupted) for found in (one, one["paper"])]
            rows.append(
                [shown(keys["backbone"]), keys["method"], *values, str(max(c.get("n", 0) for c in (cell, corrupted)))]
            )
    head = ["Backbone", "Method", "Clean", "Paper", "CIFAR-10-C", "Paper", "n"]
    return markdown_table(head, rows) if rows else ""


def score_sentence(results: Sequence[Result], /) -> str:
    """In how many rows another score beats credal EU, in ours and in the paper's numbers."""
    rows = _by_row(results).values()
    texts = []
    for name, other in OTHERS.items():
        counts = {source: _beaten([_means(row, source) for row in rows], other) for source in ("ours", "paper")}
        if counts["ours"][1]:
            ours, paper = (f"{won} of {total}" for won, total in counts.values())
            texts.append(f"{name} beats credal EU in {ours} rows (in the paper's numbers in {paper})")
    return f"By AUROC, {'; '.join(texts)}." if texts else ""


def _beaten(rows: Sequence[Mapping[tuple[str, str], float]], other: tuple[str, str]) -> tuple[int, int]:
    own = ("credal", "EU")
    both = [row for row in rows if own in row and other in row]
    return sum(row[other] > row[own] for row in both), len(both)


def size_sentence(results: Sequence[Result], /) -> str:
    """For which numbers of members the intersection probability is better calibrated at every severity, and where not."""
    worse = {
        panel["title"]: _severities(panel, *lines)[False]
        for result in results
        if result["label"] == "AblationStudyEnsemble"
        for panel, *lines in compared_lines(result)
    }
    lost = {title: at for title, at in worse.items() if at}
    if not lost:
        return ""
    everywhere = ", ".join(title for title in worse if title not in lost) or "no N"
    places = "; ".join(f"{title} at {', '.join(at)}" for title, at in lost.items())
    return (
        f"On corrupted images the intersection probability has the lower ECE at every severity for {everywhere}; it has "
        f"the higher one for {places}. The paper sees it lower for every N. More members only widen the intervals."
    )


def severity_table(results: Sequence[Result], /) -> str:
    """For every panel of the figures against severity where the credal line is better and where it is worse."""
    rows = [_severity_row(result["label"], *found) for result in results for found in compared_lines(result)]
    head = [
        "Figure",
        "Panel",
        "Metric",
        "Credal better at severity",
        "worse at",
        "Difference at the first",
        "at the last",
        "n",
    ]
    return markdown_table(head, rows) if rows else ""


def _differences(classical: Result, credal: Result) -> list[float]:
    return [own - other for own, other in zip(credal["mean"], classical["mean"], strict=True)]


def _severities(panel: Result, classical: Result, credal: Result) -> dict[bool, list[str]]:
    """Where the credal line is the better one (True) and where it is not."""
    higher = panel["metric"].split()[0] in HIGHER
    better = [(difference > 0) == higher and difference != 0 for difference in _differences(classical, credal)]
    return {side: [str(x) for x, won in zip(credal["x"], better, strict=True) if won is side] for side in (True, False)}


def _severity_row(label: str, panel: Result, classical: Result, credal: Result) -> list[str]:
    metric = panel["metric"].split()[0]
    where, differences = _severities(panel, classical, credal), _differences(classical, credal)
    ends = [value_text(differences[end], metric, sign="+") for end in (0, -1)]
    sides = [", ".join(where[side]) or NONE for side in (True, False)]
    return [f"`{label}`", panel["title"], metric, *sides, *ends, str(min(credal["n"]))]
