"""What guards, and sets of classes, keep of their promises: two tables with a row for each kind of network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

from scipy.stats import spearmanr

from credalens_paper.experiments.cell_keys import SET_METRICS
from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.tables import BOTH, C10
from credalens_paper.findings.advice.guards import BY_SCORE, LABEL, Shares, all_shares, guard_shares
from credalens_paper.findings.advice.sentence import WORDS, Network, ends, listed, page
from credalens_paper.findings.beyond import NOISY
from credalens_paper.findings.lookup import Kind, numbers_of
from credalens_paper.measures.guarding import standard_error
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import NONE, joined, markdown_table

METRICS: Final = ("false_alarms", *BY_SCORE, "halved_left", *SET_METRICS)
COLUMNS: Final = ("total", "mean_total", "least_confidence", "mean_least_confidence")
INPUTS: Final = 10_000
"""Of the test sets of images."""
TESTED_ON: Final = {WORDS[NOISY]: display_name(C10)}
"""Training data that are tested on the images of others."""
FEWEST: Final = 3
"""Networks for the same test images that are put in an order."""
STRONG: Final = 0.8
"""A rank correlation from which on one thing goes with another."""
GUARDS: Final = (
    "Network",
    "False alarms",
    "Turned away",
    "Error rate halved: accepted",
    "Turned away then",
    "Error rate left",
)
SETS: Final = ("Network", "Sets with the true class", "Classes in a set")


def guards_table(results: Sequence[Result], /) -> str:
    """The networks of which everything is measured, and how to read their numbers."""
    found = {metric: guard_shares(results, metric) for metric in METRICS}
    whole = [one for one in _networks(found[METRICS[0]]) if all(one in _networks(shares) for shares in found.values())]
    if not whole:
        return ""
    numbers = {" on ".join(one): {name: _of(shares, one) for name, shares in found.items()} for one in whole}
    count = next(result.provenance.preset.repeats for result in results if result.label == LABEL)
    return joined(
        markdown_table(GUARDS, [[name, *_guards_row(of)] for name, of in numbers.items()]),
        _about_guards(results, count),
        markdown_table(SETS, [[name, *_sets_row(of)] for name, of in numbers.items()]),
        _about_sets(count),
    )


def _networks(shares: Shares) -> list[Network]:
    return list(dict.fromkeys(network for networks in shares.values() for network in networks))


def _of(shares: Shares, network: Network) -> dict[str, float]:
    """Of one network the mean over the sets by each score."""
    return {name: fmean(networks[network]) for name, networks in shares.items() if network in networks}


def _guards_row(numbers: Mapping[str, Mapping[str, float]]) -> list[str]:
    return [
        ends(list(numbers["false_alarms"].values()), ".1f"),
        *(_side_by_side(numbers[metric], COLUMNS, ".0f") for metric in BY_SCORE),
        ends(list(numbers["halved_left"].values()), ".0f"),
    ]


def _sets_row(numbers: Mapping[str, Mapping[str, float]]) -> list[str]:
    return [
        _side_by_side(numbers["coverage"], BOTH, ".1f"),
        _side_by_side(numbers["classes_in_set"], BOTH, ".2f"),
    ]


def _side_by_side(scores: Mapping[str, float], names: Sequence[str], form: str) -> str:
    return " / ".join(f"{scores[name]:{form}}" if name in scores else NONE for name in names)


def _about_guards(results: Sequence[Result], halves: int) -> str:
    runs = [number.ours.n for number in numbers_of(results, Kind(LABEL, {"metric": METRICS[0]})) if number.ours]
    broken = all_shares(guard_shares(results, "halved_broken"))
    above = f"{fmean(broken):.0f} % of the halves had more ({ends(broken, '.0f')} % by network and score)"
    return f"""\
Guards, in per cent: fitted on random halves of the test inputs, {halves} for each ensemble, and judged on the others; five
members each, {ends(runs, "d")} ensembles of a kind. Four numbers are by
{" / ".join(f"`{name}`" for name in COLUMNS)}; ranges are over these, `epistemic` and
`mean_epistemic`. All numbers: {page(LABEL)}.

- Promised are at most 5 % false alarms, on average over all halves that could be drawn: those that there were
  ({_spread(halves)}), and the share of the unknown inputs that were turned away, mean over the sets.{_by_accuracy(results)}
- Promised is, with 95 % confidence, half of the error rate of the intersection probability: the share of the known inputs
  that were accepted, of the unknown ones that were turned away, and the error rate of what was accepted, in per cent of
  the rate without a guard. At most 50 is promised; {above},
  and of a sound guard up to about 12 % may, since the half that judges is a sample too."""


def _about_sets(halves: int) -> str:
    return f"""\
Sets that promise to hold the true class of 95 % of the inputs, fitted and judged on the same halves: how many per cent do
({_spread(halves)}), and how many classes they hold, by the average / by the intersection probability. A set
that would be empty holds the likeliest class, so that a network which is right more often than that has sets of one class,
and more of them hold the true one."""


def _spread(halves: int) -> str:
    return f"standard error {standard_error(halves, INPUTS):.1f} points for {INPUTS:,} images"


def _by_accuracy(results: Sequence[Result]) -> str:
    """Whether networks that are right more often turn away more, where there are some for the same test images."""
    right, turned = (guard_shares(results, metric).get(COLUMNS[0], {}) for metric in ("accepted_ACC", "turned_away"))
    alike: dict[str, list[tuple[float, float]]] = {}
    for network in right.keys() & turned.keys():
        data = TESTED_ON.get(network.data, network.data)
        alike.setdefault(data, []).append((fmean(right[network]), fmean(turned[network])))
    orders = {data: _rank_correlation(pairs) for data, pairs in sorted(alike.items()) if len(pairs) >= FEWEST}
    if not orders:
        return ""
    verb = "turn" if min(orders.values()) >= STRONG else "need not turn"
    numbers = listed(f"{order:.2f} over {len(alike[data])} networks for {data}" for data, order in orders.items())
    return f"""
  More accurate networks {verb} away more: the rank correlation of how often they are right about what they accept
  with what they turn away, by `{COLUMNS[0]}`, is {numbers}."""


def _rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's; 0 where all are equal in one of the two."""
    one, other = zip(*pairs, strict=True)
    return float(spearmanr(one, other).statistic) if min(len(set(one)), len(set(other))) > 1 else 0.0
