"""Where a result comes from and what it lacks, in a few lines of Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from credalens.paper.rendering_names import shown

__all__ = ["provenance_lines", "unmeasured_lines"]

Result = Mapping[str, Any]


def provenance_lines(result: Result, /) -> str:
    """Preset, runs, schedule, substitutes, hardware, versions and commit of a result."""
    made = result["provenance"]
    lines = [_setting(result), *_models(result), _machine(made)]
    substitutes = _substitutes(result)
    if substitutes:
        lines.insert(1, f"In place of the paper's: {substitutes}.")
    return "\n".join(f"- {line}" for line in lines)


def _setting(result: Result) -> str:
    made = result["provenance"]
    preset = made["preset"]
    corrupted = f"{len(preset['corruptions'])} corruptions x {len(preset['severities'])} severities"
    return f"Preset {preset['name']}, schedule {preset['schedule']}, {corrupted}; measured {made['date']}."


def _models(result: Result) -> list[str]:
    lines = []
    for kind in result.get("models", []):
        source = kind["provenance"] or {}
        where = f" on {source['device']}" if "device" in source else ""
        size = "" if kind["method"].startswith("EDD") else f", N = {kind['N']}"
        lost = f" ({kind['diverged']} more diverged)" if kind["diverged"] else ""
        name = f"{shown(kind['backbone'])} {kind['method']}{size}, trained on {shown(kind['data'])}"
        effort = f"{_count(kind['trained'], 'network')}, {kind['seconds']:,.1f} s of training{where}"
        lines.append(f"{name}: {_count(kind['runs'], 'run')}{lost} from {effort}.")
    return lines


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _machine(made: Mapping[str, Any]) -> str:
    hardware, engine = made["hardware"], made.get("engine") or {}
    device = f", {engine['device']}" if engine.get("device") not in (None, "cpu") else ""
    packages = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    return f"Evaluated on {hardware['cpu']} ({hardware['cores']} cores{device}); {packages}; commit {made['commit']}."


def _substitutes(result: Result) -> str:
    pairs: dict[str, None] = {}
    for cell in result.get("cells", []):
        for key, value in cell["measured"].items():
            name = "" if isinstance(value, str) else f"{key} = "
            pairs[f"{name}{shown(value)} for {name}{shown(cell['keys'][key])}"] = None
    return ", ".join(pairs)


def unmeasured_lines(result: Result, /) -> str:
    """What was not measured, and why."""
    missing: dict[str, list[str]] = {}
    for cell in result.get("cells", []):
        if "reason" in cell:
            missing.setdefault(cell["reason"], []).append(_place(cell["keys"]))
    for panel in result.get("panels", []):
        if "reason" in panel:
            missing.setdefault(panel["reason"], []).append(panel["title"])
        for name, reason in panel.get("missing", {}).items():
            missing.setdefault(reason, []).append(f"{panel['title']}: {name}")
    word = "cell" if result["kind"] == "table" else "part"
    return "\n".join(f"- Not measured ({_few(places, word)}): {reason}." for reason, places in missing.items())


def _place(keys: Mapping[str, Any]) -> str:
    wanted = ("backbone", "method", "id_set", "N", "C", "metric")
    return " ".join(shown(keys[name]) for name in wanted if name in keys and name != "metric") or shown(keys["metric"])


def _few(places: list[str], word: str) -> str:
    distinct = list(dict.fromkeys(places))
    return f"{_count(len(places), word)}: {'; '.join(distinct[:4])}{'; ...' if len(distinct) > 4 else ''}"
