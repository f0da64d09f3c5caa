"""Where to set the alarm: thresholds for several false-alarm rates, and what each of them catches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from credalens.evaluation.metrics.threshold import Threshold, threshold_for_rate
from credalens.evaluation.results import Result
from credalens.evaluation.scored_set import ScoredSet

RATES: Final = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)


@dataclass(frozen=True)
class Alarm(Result):
    """A threshold for one uncertainty, and the share of each OOD data set above it."""

    score: str
    threshold: Threshold
    caught: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, including those of the threshold."""
        return {"score": self.score, **self.threshold.as_dict(), "caught": self.caught}


def alarms(id_set: ScoredSet, ood_sets: list[ScoredSet], rate: float, base: float, /) -> tuple[Alarm, ...]:
    """An alarm for ``rate`` and every usual rate, by every score."""
    return tuple(
        _alarm(id_set, ood_sets, wanted, name, base) for wanted in sorted({*RATES, rate}) for name in id_set.scores
    )


def _alarm(id_set: ScoredSet, ood_sets: list[ScoredSet], rate: float, name: str, base: float) -> Alarm:
    threshold = threshold_for_rate(id_set.scores[name], rate, name=name, base=base)
    flags = {ood_set.name: threshold.flags(ood_set.scores[name]) for ood_set in ood_sets}
    return Alarm(name, threshold, {of: float(flagged.mean()) for of, flagged in flags.items()})
