"""Credal scores against their averaged counterparts, network by network: when credal epistemic uncertainty pays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from credalens_paper.findings.advice.ranking import catalogue
from credalens_paper.findings.advice.sentence import Advice, Network, listed, networks_text, section
from credalens_paper.findings.comparisons import cells
from credalens_paper.findings.tally import Tally
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import NONE, joined, markdown_table

Tallies = dict[Network, Tally]
TITLE: Final = "Epistemic uncertainty"
HEADS: Final = {
    "EU": "`epistemic` less `mean_epistemic`",
    "GH": "`hartley` less `mean_epistemic`",
    "TU": "`total` less `mean_total`",
}
NAMED: Final = 3
"""Exceptions up to which they are named."""
NOTE: Final = (
    "AUROC against unknown inputs, for every number of members and every set: in how many cells credal is better, and the\n"
    "least and the greatest difference in points. Mutual information is `mean_epistemic`. Networks of the same kind that were\n"
    "trained for several tables count together; sets that PIA has reduced and members made overconfident are left out."
)


def tallies(results: Sequence[Result], measure: str, /) -> Tallies:
    """Credal less averaged in AUROC against unknown inputs, by network."""
    differences: dict[Network, list[float]] = {}
    for entry in cells(results):
        if (entry.keys.measure, entry.keys.metric, entry.place) == (measure, "AUROC", "unknown"):
            differences.setdefault(Network.of(entry.keys), []).append(entry.ours.mean)
    return {network: Tally("AUROC", tuple(values)) for network, values in differences.items()}


def total_of(by_network: Tallies, /) -> Tally:
    """All networks together."""
    return Tally("AUROC", tuple(value for tally in by_network.values() for value in tally.differences))


def losing(by_network: Tallies, /) -> list[Network]:
    """The networks for which averaging is better."""
    return [network for network, tally in by_network.items() if tally.pick("", "averaging", "")]


def epistemic_advice(results: Sequence[Result], /) -> Advice | None:
    """Credal epistemic uncertainty or mutual information, the networks where that turns round, and what helps there."""
    by_network = tallies(results, "EU")
    every, lost = total_of(by_network), losing(by_network)
    if not every:
        return None
    do = every.pick(
        "use the credal one (`epistemic`), not mutual information (`mean_epistemic`)",
        "use mutual information (`mean_epistemic`), not the credal one (`epistemic`)",
        "measure both the credal one (`epistemic`) and mutual information (`mean_epistemic`) with `credalens evaluate`",
    )
    but = f", but loses for {len(lost)} of {len(by_network)} kinds of network: {networks_text(lost)}" if lost else ""
    because = (
        f"The credal one finds unknown inputs better in {every.share}{but}. {_hartley(results, lost)}{_ranks(results)}"
    )
    return Advice(
        f"If you need epistemic uncertainty itself, {do}",
        because.strip(),
        (section(TITLE), section("Every comparison that credal loses")),
    )


def _hartley(results: Sequence[Result], lost: Sequence[Network]) -> str:
    """What the generalized Hartley measure does where credal epistemic uncertainty is worse, or else everywhere."""
    by_network = tallies(results, "GH")
    there = total_of({network: by_network[network] for network in lost if network in by_network})
    found, where = (there, "There the") if there else (total_of(by_network), "The")
    if not found:
        return ""
    word = found.pick("beats", "loses to", "is no surer than")
    gaps = [network for network in lost if network not in by_network] if there else []
    share = f"{found.share}; not measured for {networks_text(gaps)}" if gaps else found.share
    return (
        f"{where} generalized Hartley measure (`hartley`, slow above 16 classes) {word} mutual information ({share}). "
    )


def _ranks(results: Sequence[Result]) -> str:
    """Whether total uncertainty ranks unknown inputs better than epistemic."""
    gains = {pair: cell["total"] - cell["epistemic"] for pair, cell in catalogue(results).items()}
    found = Tally("AUROC", tuple(gains.values()))
    if not found:
        return ""
    word = found.pick("Do not rank by `epistemic`", "Rank by `epistemic`", "To rank, measure both")
    lost = [pair.text for pair, gain in gains.items() if gain < 0]
    but = f" (not for {listed(lost)})" if 0 < len(lost) <= NAMED else ""
    return f"{word}: `total` ranks unknown inputs better in {found.share}{but}."


def epistemic_table(results: Sequence[Result], /) -> str:
    """For every network in how many cells credal is better than averaging, by each measure."""
    columns = {measure: tallies(results, measure) for measure in HEADS}
    networks = dict.fromkeys(network for column in columns.values() for network in column)
    rows = [[networks_text([one]), *(_cell(column.get(one)) for column in columns.values())] for one in networks]
    return joined(markdown_table(["Network", *HEADS.values()], rows), NOTE) if rows else ""


def _cell(tally: Tally | None) -> str:
    return tally.text if tally else NONE
