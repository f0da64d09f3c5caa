"""Which score finds unknown inputs best, and from which severity on the credal line is the better one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.figures import SCORES as LINES
from credalens_paper.experiments.tables import OOD, WRAPPED
from credalens_paper.findings.lookup import Kind, Number, compared_lines, is_better, numbers_of
from credalens_paper.results.records import FigureResult, Line, Panel, Result
from credalens_paper.results.rendering.markdown import NONE, markdown_table
from credalens_paper.results.rendering.values import number_text, value_text

Score = tuple[str, str]
"""A variant and a measure."""
SCORES: Final = (("classical", "EU"), ("credal", "EU"), ("credal", "GH"), ("classical", "TU"), ("credal", "TU"))
CREDAL_EU: Final = ("credal", "EU")
RIVALS: Final = {
    "mutual information": ("classical", "EU"),
    "classical TU": ("classical", "TU"),
    "credal TU": ("credal", "TU"),
}


def _by_row(results: Sequence[Result]) -> dict[tuple[str, str, str], dict[Score, Number]]:
    """(backbone, method, OOD set) -> score -> its AUROC, for ensembles and networks of five."""
    rows: dict[tuple[str, str, str], dict[Score, Number]] = {}
    for label in ("OODMain", "OODMainTU", "GHComparison"):
        for number in numbers_of(results, Kind(label, {"method": WRAPPED, "metric": "AUROC", "ood_set": OOD})):
            keys = number.keys
            row = rows.setdefault((keys["backbone"], keys["method"], keys["ood_set"]), {})
            row.setdefault((keys["variant"], keys["measure"]), number)
    return rows


def _ours(row: Mapping[Score, Number]) -> dict[Score, float]:
    return {score: number.ours.mean for score, number in row.items() if number.ours}


def _paper(row: Mapping[Score, Number]) -> dict[Score, float]:
    return {score: number.paper.mean for score, number in row.items() if number.paper}


def scores_table(results: Sequence[Result], /) -> str:
    """AUROC of every score, the best of a row in bold, and the score that is best in the paper's numbers."""
    rows = []
    for (backbone, method, ood_set), row in _by_row(results).items():
        ours, paper = _ours(row), _paper(row)
        if ours:
            best = _best(ours)
            texts = [f"{ours[score]:.2f}" if score in ours else NONE for score in SCORES]
            marked = [f"**{text}**" if score == best else text for score, text in zip(SCORES, texts, strict=True)]
            printed = " ".join(_best(paper)) if paper else NONE
            n = min(number.ours.n for number in row.values() if number.ours)
            rows.append([display_name(backbone), method, display_name(ood_set), *marked, str(n), printed])
    names = [f"{variant} {measure}" for variant, measure in SCORES]
    return markdown_table(["Backbone", "Method", "OOD set", *names, "n", "Best in the paper"], rows)


def _best(means: Mapping[Score, float]) -> Score:
    return max(means, key=lambda score: means[score])


def levels_table(results: Sequence[Result], /) -> str:
    """Accuracy of the averaged predictions beside the paper's, clean and corrupted: how alike the networks are."""
    averaged = Kind("OODMain", {"variant": ("classical", None), "metric": "ACC", "ood_set": None})
    rows = []
    for clean in numbers_of(results, averaged):
        (corrupted,) = numbers_of(results, Kind("OODMain", {**clean.keys, "ood_set": "cifar10-c"}))
        counts = [number.ours.n for number in (clean, corrupted) if number.ours]
        if counts:
            values = [number_text(source, "ACC") for one in (clean, corrupted) for source in (one.ours, one.paper)]
            rows.append([display_name(clean.keys["backbone"]), clean.keys["method"], *values, str(max(counts))])
    return markdown_table(["Backbone", "Method", "Clean", "Paper", "CIFAR-10-C", "Paper", "n"], rows)


def score_sentence(results: Sequence[Result], /) -> str:
    """In how many rows another score beats credal EU, in ours and in the paper's numbers."""
    rows = _by_row(results).values()
    texts = []
    for name, rival in RIVALS.items():
        here, there = (_beaten([means(row) for row in rows], rival) for means in (_ours, _paper))
        if here[1]:
            ours, paper = (f"{won} of {total}" for won, total in (here, there))
            texts.append(f"{name} beats credal EU in {ours} rows (in the paper's numbers in {paper})")
    return f"By AUROC, {'; '.join(texts)}." if texts else ""


def _beaten(rows: Sequence[Mapping[Score, float]], rival: Score) -> tuple[int, int]:
    """In how many rows the rival is better, and of how many that have both."""
    both = [row for row in rows if CREDAL_EU in row and rival in row]
    return sum(row[rival] > row[CREDAL_EU] for row in both), len(both)


def size_sentence(results: Sequence[Result], /) -> str:
    """For which numbers of members the intersection probability is better calibrated at every severity, and where not."""
    worse = {
        panel.title: _severities(panel, *lines)[1]
        for result in results
        if result.label == "AblationStudyEnsemble"
        for panel, *lines in compared_lines(result)
    }
    lost = {title: severities for title, severities in worse.items() if severities}
    if not lost:
        return ""
    everywhere = ", ".join(title for title in worse if title not in lost) or "no N"
    places = "; ".join(f"{title} at {', '.join(severities)}" for title, severities in lost.items())
    return (
        f"On corrupted images the intersection probability has the lower ECE at every severity for {everywhere}; it has "
        f"the higher one for {places}. The paper sees it lower for every N. More members only widen the intervals."
    )


def severity_table(results: Sequence[Result], /) -> str:
    """For every panel of the figures against severity where the credal line is better and where it is worse."""
    pairs = [
        (result.label, *lines) for result in results for lines in (*compared_lines(result), *_reduced_lines(result))
    ]
    rows = [_severity_row(*pair) for pair in pairs]
    head = [
        "Figure",
        "Panel",
        "Metric",
        "Credal better at severity",
        "worse at",
        "Difference at the first",
        "at the last",
    ]
    return markdown_table([*head, "n"], rows)


def _reduced_lines(result: Result) -> Iterator[tuple[Panel, Line, Line]]:
    """Panels with the line of reduced classes, such as "Credal, J = 20", under titles that say so."""
    classical, credal = (name for name, _ in LINES)
    for panel in result.panels if isinstance(result, FigureResult) else ():
        lines = {line.name: line for line in panel.series or ()}
        for name in (name for name in lines if name.startswith(f"{credal}, ")):
            yield replace(panel, title=panel.title + name.removeprefix(credal)), lines[classical], lines[name]


def _differences(classical: Line, credal: Line) -> list[float]:
    return [ours - averaged for ours, averaged in zip(credal.mean, classical.mean, strict=True)]


def _metric(panel: Panel) -> str:
    return (panel.metric or "").partition(" ")[0]


def _severities(panel: Panel, classical: Line, credal: Line) -> tuple[list[str], list[str]]:
    """The severities at which the credal line is the better one, and those at which it is not."""
    better = [is_better(_metric(panel), difference) for difference in _differences(classical, credal)]
    won, lost = ([str(x) for x, wins in zip(credal.x, better, strict=True) if wins is side] for side in (True, False))
    return won, lost


def _severity_row(label: str, panel: Panel, classical: Line, credal: Line) -> list[str]:
    differences = _differences(classical, credal)
    ends = [value_text(differences[end], _metric(panel), sign="+") for end in (0, -1)]
    sides = [", ".join(severities) or NONE for severities in _severities(panel, classical, credal)]
    return [f"`{label}`", panel.title, _metric(panel), *sides, *ends, str(min(credal.n))]
