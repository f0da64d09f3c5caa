"""The picture that opens the report: a bar for each data set, of what is accepted, handed over, caught and missed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from credalens.evaluation.evaluate import Evaluation
from credalens.evaluation.thresholds import Alarm
from credalens.evaluation.words import percent

LEGEND: Final = {
    "right": "accepted and right",
    "accepted": "accepted",
    "bad": "accepted and wrong, or OOD and missed",
    "flagged": "handed over, or OOD and caught",
}
"""The kind of a part of a bar -> what it stands for."""


@dataclass(frozen=True)
class Part:
    """A part of a bar: its kind, a key of ``LEGEND``, its name, and the share of the inputs where it begins and that it has."""

    kind: str
    name: str
    start: float
    share: float


@dataclass(frozen=True)
class Bar:
    """What an alarm does with the inputs of a data set."""

    data: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The parts in words."""
        return ", ".join(f"{part.name} {percent(part.share)}" for part in self.parts)


def outcome_bars(evaluation: Evaluation, alarm: Alarm, /) -> list[Bar]:
    """The bar of every data set, the ID data first; errors among the accepted only with labels."""
    id_name, judged = evaluation.data.id.name, evaluation.judged
    flagged = alarm.threshold.flags(evaluation.values[id_name][alarm.score])
    bars = [_bar(id_name, ("accepted", "accepted", 1 - flagged.mean()), ("flagged", "handed over", flagged.mean()))]
    if judged is not None:
        right, wrong = (~flagged & judged.correct).mean(), (~flagged & ~judged.correct).mean()
        parts = ("right", "accepted and right", right), ("bad", "accepted and wrong", wrong)
        bars = [_bar(id_name, *parts, ("flagged", "handed over", flagged.mean()))]
    for one in evaluation.ood:
        caught = alarm.caught[one.name]
        bars.append(_bar(one.name, ("bad", "missed", 1 - caught), ("flagged", "caught", caught)))
    return bars


def _bar(data: str, *parts: tuple[str, str, Any]) -> Bar:
    placed, start = [], 0.0
    for kind, name, share in parts:
        placed.append(Part(kind, name, start, float(share)))
        start += float(share)
    return Bar(data, tuple(placed))


def live_bars(bars: list[Bar], /) -> dict[str, Any]:
    """Key of a part -> where it begins and how wide it is, in percent; and key of a bar -> its words."""
    places = {
        f"bar-{row}-{k}": [round(100 * part.start, 3), round(100 * part.share, 3)]
        for row, bar in enumerate(bars)
        for k, part in enumerate(bar.parts)
    }
    return {"bars": places, "texts": {f"bar-{row}": bar.text for row, bar in enumerate(bars)}}


def legend_of(bars: list[Bar], /) -> dict[str, str]:
    """The kinds that there are, and what they stand for."""
    kinds = {part.kind for bar in bars for part in bar.parts}
    return {kind: text for kind, text in LEGEND.items() if kind in kinds}
