"""What a reader must know before believing the numbers: too few inputs, one member, no labels, a score that is upside down."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["NO_LABELS", "ONE_MEMBER", "about", "remarks"]

FEW: Final = 30
"""Below this many inputs the normal law behind DeLong's intervals is a guess."""
ONE_MEMBER: Final = (
    "There is a single member, and one member cannot disagree: epistemic uncertainty is zero everywhere. Train a few "
    "more with other seeds."
)
NO_LABELS: Final = "No labels were given, so that accuracy and calibration are unknown. Pass them with --labels."


def remarks(result: dict[str, Any], /) -> list[str]:
    """All that hold for this result, the ones about a data set with its name in front."""
    data = result["data"]
    found = [f"{one['name']}: {text[0].lower()}{text[1:]}" for one in result["ood"] if (text := about(one, data))]
    if data["members"] == 1:
        found.append(ONE_MEMBER)
    if result["calibration"] is None:
        found.append(NO_LABELS)
    return found


def about(found: dict[str, Any], data: dict[str, Any], /) -> str:
    """What to know about one OOD data set; nothing where there is nothing."""
    rows = {one["name"]: one["rows"] for one in data["ood"]}[found["name"]]
    return " ".join(filter(None, (_below_chance(found["epistemic"]["credal"]["auroc_interval"]), _few(rows))))


def _below_chance(interval: dict[str, Any]) -> str:
    if interval["high"] >= 0.5:
        return ""
    return "Worse than chance: the members are surer of these inputs than of those they were trained for."


def _few(rows: int) -> str:
    if rows >= FEW:
        return ""
    return f"With only {rows} inputs the intervals and the verdict may well be wrong."
