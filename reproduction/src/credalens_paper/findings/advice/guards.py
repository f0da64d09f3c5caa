"""Thresholds: what guards keep of their promises, by which score, and whether to expect that they catch corrupted inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from credalens.checks.counted import count_text
from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.findings.advice.ranking import catalogue, ranking
from credalens_paper.findings.advice.sentence import Advice, Network, ends, page, section
from credalens_paper.findings.lookup import Kind, numbers_of
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import NONE, joined, markdown_table

TITLE: Final = "What guards keep"
LABEL: Final = "GuardPromises"
CORRUPTED: Final = "OODTUVggRes"
CLOSE: Final = 0.5
"""Points by which a score must be better than the one to rank by, so that another is advised for guards."""
RELIABLE: Final = 80.0
"""AUROC in per cent from which on a score tells two sets apart."""
COLUMNS: Final = ("total", "mean_total", "least_confidence", "mean_least_confidence")
NOTE: Final = (
    "Fitted on random halves of the test inputs, five members each, and judged on the others; in per cent, but for the size\n"
    f"of sets. Four numbers are by {' / '.join(f'`{name}`' for name in COLUMNS)}.\n"
    f"All numbers: {page(LABEL)}.\n\n"
    "- Guards that promise at most 5 % false alarms: those that they had, by six scores, and the share of the unknown inputs\n"
    "  that they turned away, mean over the sets.\n"
    "- Guards that promise, with 95 % confidence, to halve the error rate of the intersection probability: the share of the\n"
    "  known inputs that they accepted, of the unknown ones that they turned away, and the errors left among what they\n"
    "  accepted, in per cent of the error rate without a guard, by six scores; at most 50 is promised.\n"
    "- Sets that promise to hold the true class of 95 % of the inputs: how many do, and how many classes they hold, by the\n"
    "  average / by the intersection probability. Sets of one class suffice where the network is right more often than that."
)
Shares = dict[str, dict[CellKey, float]]
"""Score -> numbers by what they are of."""


def guard_shares(results: Sequence[Result], metric: str, /) -> Shares:
    """What guards by every score do to every network's inputs; the score with the highest mean first."""
    shares: Shares = {}
    for number in numbers_of(results, Kind(LABEL, {"metric": metric})):
        if number.ours:
            keys = CellKey(**{**number.keys, "variant": None, "measure": None})
            shares.setdefault(str(number.keys.get("measure") or number.keys["variant"]), {})[keys] = number.ours.mean
    return dict(sorted(shares.items(), key=lambda item: -_mean(item[1])))


def _all(shares: Shares) -> list[float]:
    return [value for numbers in shares.values() for value in numbers.values()]


def _mean(shares: Mapping[Any, float]) -> float:
    return fmean(shares.values())


def corrupted_aurocs(results: Sequence[Result], /) -> dict[int, list[float]]:
    """Severity -> AUROC against corrupted images by credal total uncertainty, for each network."""
    aurocs: dict[int, list[float]] = {}
    for number in numbers_of(results, Kind(CORRUPTED, {"variant": "credal", "metric": "AUROC"})):
        if number.ours:
            aurocs.setdefault(number.keys["severity"], []).append(number.ours.mean)
    return aurocs


def guard_advice(results: Sequence[Result], /) -> Advice | None:
    """The score whose guard catches most, the one that accepts most if errors are promised; and about corrupted images."""
    turned, accepted = (guard_shares(results, metric) for metric in ("turned_away", "halved_accepted"))
    if not turned or not accepted:
        return None
    best, sure = (_advised(results, shares) for shares in (turned, accepted))
    do = f"Do not copy a threshold from here: fit a guard on inputs of your own, with `{best}` as its score"
    do += "" if best == sure else f", or with `{sure}` if it is to promise few errors and no unknown inputs will come"
    because = f"{_alarms(results, turned, best)} {_errors(results, accepted, sure, best)} {_corrupted(results)}"
    links = (section(TITLE), page(LABEL), page(CORRUPTED, "figures"), "[decisions](guard.md#decisions)")
    return Advice(do, because.strip(), links)


def _advised(results: Sequence[Result], shares: Shares) -> str:
    first, overall = next(iter(shares)), ranking(catalogue(results))
    usual = overall.best if overall and overall.best in shares else first
    return usual if _mean(shares[first]) - _mean(shares[usual]) < CLOSE else first


def _alarms(results: Sequence[Result], turned: Shares, best: str) -> str:
    """How many false alarms there were, and what was turned away by the advised score, the next best and the worst."""
    alarms = guard_shares(results, "false_alarms")
    rates = _all(alarms)
    networks = count_text(len(next(iter(alarms.values()))), "kind of network", "kinds of network")
    others = [name for name in turned if name != best]
    beside = dict.fromkeys((*others[:1], *others[-1:]))
    return (
        f"Guards that promise 5 % false alarms had {ends(rates, '.1f')} % ({networks}, {count_text(len(alarms), 'score')}) and "
        f"turned away {_average(turned[best])} of the unknown inputs by `{best}` ({ends(list(turned[best].values()), '.0f')} % "
        f"by network and data){''.join(f', {_average(turned[name])} by `{name}`' for name in beside)}."
    )


def _errors(results: Sequence[Result], accepted: Shares, sure: str, best: str) -> str:
    """What is accepted and turned away where half of the errors are promised, and how many errors were left."""
    left, broken = (_all(guard_shares(results, metric)) for metric in ("halved_left", "halved_broken"))
    turned = guard_shares(results, "halved_turned_away")
    shares = [
        f"{_average(accepted[name])} of the known and turned away {_average(turned[name])} of the unknown inputs by `{name}`"
        for name in dict.fromkeys((sure, best))
    ]
    return (
        f"Guards that promise half of the errors accepted {', '.join(shares)}; they left {ends(left, '.0f')} % of the error "
        f"rate, more than promised in {fmean(broken):.0f} % of the halves, which are samples."
    )


def _average(shares: Mapping[Any, float]) -> str:
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


def guards_table(results: Sequence[Result], /) -> str:
    """A row for each kind of network."""
    by_score = ("turned_away", "halved_accepted", "halved_turned_away")
    metrics = ("false_alarms", *by_score, "halved_left", "coverage", "classes_in_set")
    found = {metric: _by_network(guard_shares(results, metric)) for metric in metrics}
    rows = [
        [
            " on ".join(network),
            ends(list(found["false_alarms"][network].values()), ".1f"),
            *(_side_by_side(found[metric].get(network, {}), COLUMNS, ".0f") for metric in by_score),
            ends(list(found["halved_left"][network].values()), ".0f"),
            _side_by_side(found["coverage"][network], ("classical", "credal"), ".1f"),
            _side_by_side(found["classes_in_set"][network], ("classical", "credal"), ".2f"),
        ]
        for network in found["false_alarms"]
    ]
    head = [
        "Network",
        "False alarms",
        "Turned away",
        "Errors halved: accepted",
        "Turned away",
        "Errors left",
        "Sets that hold it",
        "Classes in a set",
    ]
    return joined(markdown_table(head, rows), NOTE) if rows else ""


def _by_network(shares: Shares) -> dict[Network, dict[str, float]]:
    """Network -> for each score the mean over the sets."""
    values: dict[Network, dict[str, list[float]]] = {}
    for score, numbers in shares.items():
        for keys, value in numbers.items():
            values.setdefault(Network.of(keys), {}).setdefault(score, []).append(value)
    return {network: {score: fmean(some) for score, some in scores.items()} for network, scores in values.items()}


def _side_by_side(scores: Mapping[str, float], names: Sequence[str], form: str) -> str:
    return " / ".join(f"{scores[name]:{form}}" if name in scores else NONE for name in names)
