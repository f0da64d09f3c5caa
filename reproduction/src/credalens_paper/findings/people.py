"""Whether uncertainty knows what people disagree about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from credalens_paper.findings.lookup import estimates_of
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import itemised

LABEL: Final = "HumanDisagreement"
GAP: Final = "credal AU less credal EU"
NEAR: Final = 0.02
"""Rank correlations that differ by no more than this are as good as equal."""


def people_sentence(results: Sequence[Result], /) -> str:
    """Rank correlations of all uncertainties with people's entropy, whether AU is nearer to it than EU, and what is held."""
    parts, near = [], []
    for title, (ranks, gains, held) in estimates_of(results, LABEL).items():
        means = [one.mean for one in ranks.values()]
        gap, share = gains[GAP], held["all classes"]
        near.append(max(abs(gap.low), abs(gap.high)) <= NEAR)
        parts.append(
            f"{title}: {min(means):.3f} to {max(means):.3f}, credal AU less EU {gap.mean:+.3f} ({gap.low:+.3f} to "
            f"{gap.high:+.3f}); people's shares of all ten classes inside the intervals for {share.mean:.1f} % of the images"
        )
    if not parts:
        return ""
    return itemised(
        f"What people disagree about (CIFAR-10H, clean test images): in {sum(near)} of {len(near)} kinds of network AU "
        f"knows no more of it than EU does, within {NEAR}. Rank correlation of AU, EU and TU, credal and averaged, with the "
        "entropy of people's labels:",
        parts,
    )
