"""When credal sets are not worth it: what they add to the total uncertainty that averaging gives."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import Final

from credalens_paper.findings.advice.epistemic import losing, tallies, total_of
from credalens_paper.findings.advice.sentence import Advice, networks_text, section
from credalens_paper.results.records import Result

NEVER: Final = "Do without credal sets if you have one model, or need only the classes of clean inputs"
SMALL: Final = 0.5
"""Points of AUROC below which a gain is small."""


def limits_advice(results: Sequence[Result], /) -> Advice | None:
    """Whether averaging would do as well for ranking, and for which networks it does better."""
    by_network = tallies(results, "TU")
    every, lost = total_of(by_network), losing(by_network)
    if not every:
        return None
    gain = median(every.differences)
    small = ", or can forgo a small gain" if gain < SMALL else ""
    worse = f"; averaging wins for {networks_text(lost)}" if lost else ""
    because = (
        f"`total` beats its averaged counterpart `mean_total` in {every.share}, by {gain:+.2f} points of AUROC in the "
        f"median, {fmean(every.differences):+.2f} in the mean{worse}. Averaging gives no intervals and no sets of classes."
    )
    links = (section("Wins and losses"), "[when not to use credal sets](scores.md#when-not-to-use-credal-sets)")
    return Advice(f"{NEVER}{small}", because, links)
