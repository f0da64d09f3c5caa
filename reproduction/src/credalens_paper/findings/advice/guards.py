"""Thresholds: what a guard catches, by which score, and whether it can be expected to catch corrupted inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

from credalens.core.scores import SCORES
from credalens_paper.findings.advice.ranking import catalogue, ranking
from credalens_paper.findings.advice.sentence import Advice, ends, page
from credalens_paper.findings.lookup import Kind, estimates_of, numbers_of
from credalens_paper.results.records import Result

LABEL: Final = "TextScores"
CORRUPTED: Final = "OODTUVggRes"
CLOSE: Final = 0.5
"""Per cent caught by which a score must be better than the one to rank by, so that another is advised for guards."""
RELIABLE: Final = 80.0
"""AUROC in per cent from which on a score tells two sets apart."""
NAMES: Final = {score.label: name for name, score in SCORES.items()}


def caught(results: Sequence[Result], /) -> dict[str, list[float]]:
    """Score -> per cent of the unknown inputs that a guard catches, for each kind of network; the best score first."""
    shares: dict[str, list[float]] = {}
    for *_, guard in estimates_of(results, LABEL).values():
        for title, one in guard.items():
            if title.startswith("caught, "):
                shares.setdefault(NAMES[title.removeprefix("caught, ")], []).append(one.mean)
    return dict(sorted(shares.items(), key=lambda item: -fmean(item[1])))


def corrupted_aurocs(results: Sequence[Result], /) -> dict[int, list[float]]:
    """Severity -> AUROC against corrupted images by credal total uncertainty, for each network."""
    aurocs: dict[int, list[float]] = {}
    for number in numbers_of(results, Kind(CORRUPTED, {"variant": "credal", "metric": "AUROC"})):
        if number.ours:
            aurocs.setdefault(number.keys["severity"], []).append(number.ours.mean)
    return aurocs


def guard_advice(results: Sequence[Result], /) -> Advice | None:
    """The score whose guard catches most, or the one to rank by where it catches as much; and about corrupted images."""
    shares = caught(results)
    if not shares:
        return None
    best = _advised(results, shares)
    others = [name for name in shares if name != best]
    rest = "".join(
        f", {ends(shares[name], '.0f')} % by `{name}`" for name in dict.fromkeys((*others[:1], *others[-1:]))
    )
    because = (
        f"With 5 % false alarms such a guard caught {ends(shares[best], '.0f')} % of the unknown texts by `{best}`{rest}. "
        f"{_corrupted(results)}"
    )
    do = f"Do not copy a threshold from here: fit a guard on inputs of your own, with `{best}` as its score"
    links = (page(LABEL, "figures"), page(CORRUPTED, "figures"), "[guards for images](guard.md#decisions)")
    return Advice(do, because.strip(), links)


def _advised(results: Sequence[Result], shares: Mapping[str, Sequence[float]]) -> str:
    first, overall = next(iter(shares)), ranking(catalogue(results))
    usual = overall.best if overall and overall.best in shares else first
    return usual if fmean(shares[first]) - fmean(shares[usual]) < CLOSE else first


def _corrupted(results: Sequence[Result]) -> str:
    aurocs = corrupted_aurocs(results)
    if not aurocs:
        return ""
    first, last = min(aurocs), max(aurocs)
    verdict = "It will also notice" if min(aurocs[first]) >= RELIABLE else "Do not expect it to notice"
    return (
        f"{verdict} mildly corrupted images: AUROC {ends(aurocs[first], '.0f')} % at the mildest severity, "
        f"{ends(aurocs[last], '.0f')} % at the severest."
    )
