"""Thresholds: which score a guard should have, what it catches then, and whether to expect that it catches corrupted inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

from credalens.checks.options import count_text
from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.findings.advice.ranking import catalogue, ranking
from credalens_paper.findings.advice.sentence import Advice, Network, ends, listed, page, section
from credalens_paper.findings.lookup import Kind, numbers_of
from credalens_paper.results.records import Result

TITLE: Final = "What guards keep"
LABEL: Final = "GuardPromises"
CORRUPTED: Final = "OODTUVggRes"
CLOSE: Final = 0.5
"""Points by which a score must be better than the one to rank by, so that another is advised for guards."""
RELIABLE: Final = 80.0
"""AUROC in per cent from which on a score tells two sets apart."""
BY_SCORE: Final = ("turned_away", "halved_accepted", "halved_turned_away")
Shares = dict[str, dict[Network, list[float]]]
"""Score, or side where there is none -> by network its numbers, one for each set."""


def guard_shares(results: Sequence[Result], metric: str, /) -> Shares:
    """What guards by every score do to every network's inputs; the score with the highest mean first."""
    shares: Shares = {}
    for number in numbers_of(results, Kind(LABEL, {"metric": metric})):
        if number.ours:
            name = str(number.keys.get("measure") or number.keys["variant"])
            network = Network.of(CellKey(**number.keys))
            shares.setdefault(name, {}).setdefault(network, []).append(number.ours.mean)
    return dict(sorted(shares.items(), key=lambda item: -_mean(item[1])))


def _mean(shares: Mapping[Network, Sequence[float]]) -> float:
    """Over the networks, whatever the number of their sets."""
    return fmean(fmean(values) for values in shares.values())


def all_shares(shares: Shares, /) -> list[float]:
    """The numbers of all scores, networks and sets."""
    return [value for networks in shares.values() for values in networks.values() for value in values]


def corrupted_aurocs(results: Sequence[Result], /) -> dict[int, list[float]]:
    """Severity -> AUROC against corrupted images by credal total uncertainty, for each network."""
    aurocs: dict[int, list[float]] = {}
    for number in numbers_of(results, Kind(CORRUPTED, {"variant": "credal", "metric": "AUROC"})):
        if number.ours:
            aurocs.setdefault(number.keys["severity"], []).append(number.ours.mean)
    return aurocs


def guard_advice(results: Sequence[Result], /) -> Advice | None:
    """The score whose guard catches most, the one that accepts most if errors are promised; and about corrupted images."""
    turned, accepted, halved = (guard_shares(results, metric) for metric in BY_SCORE)
    if not all((turned, accepted, halved)):
        return None
    best, sure = (_advised(results, shares) for shares in (turned, accepted))
    do = f"Do not copy a threshold from here: fit a guard on inputs of your own, with `{best}` as its score"
    do += "" if best == sure else f", or with `{sure}` if it is to promise few errors and few unknown inputs will come"
    because = f"{_alarms(results, turned, best)} {_errors(accepted, halved, sure, best)} {_corrupted(results)}"
    links = (section(TITLE), page(LABEL), page(CORRUPTED, "figures"), "[decisions](guard.md#decisions)")
    return Advice(do, because.strip(), links)


def _advised(results: Sequence[Result], shares: Shares) -> str:
    first, overall = next(iter(shares)), ranking(catalogue(results))
    usual = overall.best if overall and overall.best in shares else first
    return usual if _mean(shares[first]) - _mean(shares[usual]) < CLOSE else first


def _alarms(results: Sequence[Result], turned: Shares, best: str) -> str:
    """How many false alarms there were, and what was turned away by the advised score, the next best and the worst ones."""
    alarms = guard_shares(results, "false_alarms")
    networks = count_text(len(turned[best]), "kind of network", "kinds of network")
    others = [name for name in turned if name != best]
    worst = [name for name in others[1:] if _average(turned[name]) == _average(turned[others[-1]])]
    beside = [names for names in (others[:1], worst) if names]
    return (
        f"Guards that promise 5 % false alarms had {ends(all_shares(alarms), '.1f')} % ({networks}, "
        f"{count_text(len(alarms), 'score')}) and turned away {_average(turned[best])} of the unknown inputs by `{best}` "
        f"({ends(all_shares({best: turned[best]}), '.0f')} % by network and data)"
        f"{''.join(f', {_average(turned[names[0]])} by {_quoted(names)}' for names in beside)}."
    )


def _errors(accepted: Shares, turned: Shares, sure: str, best: str) -> str:
    """What is accepted and turned away where half of the error rate is promised."""
    shares = [
        f"{_average(accepted[name])} of the known and turned away {_average(turned[name])} of the unknown inputs by `{name}`"
        for name in dict.fromkeys((sure, best))
    ]
    return f"Guards that promise half of the error rate accepted {', '.join(shares)}."


def _quoted(names: Sequence[str]) -> str:
    return listed(f"`{name}`" for name in names)


def _average(shares: Mapping[Network, Sequence[float]]) -> str:
    return f"{_mean(shares):.0f} %"


def _corrupted(results: Sequence[Result]) -> str:
    aurocs = corrupted_aurocs(results)
    if not aurocs:
        return ""
    first, last = min(aurocs), max(aurocs)
    verdict = "They will also notice" if min(aurocs[first]) >= RELIABLE else "Do not expect one to notice"
    return (
        f"{verdict} mildly corrupted images: AUROC {ends(aurocs[first], '.0f')} % at the mildest severity, "
        f"{ends(aurocs[last], '.0f')} % at the severest."
    )
