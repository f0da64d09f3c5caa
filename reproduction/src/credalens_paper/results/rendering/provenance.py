"""Where a result comes from and what it lacks, in a few lines of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from credalens_paper.experiments.exactness import OWN
from credalens_paper.experiments.numbers import figure_labels, table_labels
from credalens_paper.results.rendering.markdown import anchor, markdown_table
from credalens_paper.results.rendering.names import shown
from credalens_paper.results.store import file_name

__all__ = ["absent_line", "machine_line", "machine_table", "provenance_lines", "unmeasured", "unmeasured_lines"]

SIZES: Final = {"DE": ("members", "many_members", "runs"), "BNN": ("bnn_runs",), "EDD": ("edd_runs",)}
"""Numbers of a preset that the command line can change, by the beginning of the methods they are about."""

Result = Mapping[str, Any]


def provenance_lines(result: Result, /) -> str:
    """Preset, file and command, substitutes and models of a result."""
    substitutes, threads = _substitutes(result), result.get("cpu_threads")
    lines = [_setting(result), _source(result)]
    lines += [f"In place of the paper's: {substitutes}."] if substitutes else []
    lines += [f"Times on the CPU are for {_count(threads, 'thread')}."] if threads else []
    lines += _models(result)
    return "\n".join(f"- {line}" for line in lines)


def machine_line(made: Mapping[str, Any], /) -> str:
    """Hardware, versions and commit."""
    machine, packages, commit = _machine(made)
    return f"- Evaluated on {machine}; {packages}; commit {commit}."


def machine_table(results: Sequence[Result], /) -> str:
    """Hardware, versions and commits of several results, each once, with the results they belong to."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for result in results:
        link = f"[`{result['label']}`]({anchor(result['label'])})"
        found.setdefault(_machine(result["provenance"]), []).append(link)
    rows = [[machine, packages, commit, ", ".join(links)] for (machine, packages, commit), links in found.items()]
    return markdown_table(["Evaluated on", "With", "Commit", "Results"], rows)


def _machine(made: Mapping[str, Any]) -> tuple[str, str, str]:
    hardware, engine = made["hardware"], made.get("engine") or {}
    device = f", {engine['device']}" if engine.get("device") not in (None, "cpu") else ""
    packages = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    return f"{hardware['cpu']} ({hardware['cores']} cores{device})", packages, str(made["commit"])


def _setting(result: Result) -> str:
    made = result["provenance"]
    preset = made["preset"]
    corrupted = f"{len(preset['corruptions'])} corruptions x {len(preset['severities'])} severities"
    return f"Preset {preset['name']}, schedule {preset['schedule']}, {corrupted}; measured {made['date']}."


def _source(result: Result) -> str:
    """The result file and the command that makes it, with its sizes, since presets may change."""
    preset = result["provenance"]["preset"]
    name, label = preset["name"], file_name(result["label"])
    options: list[str] = []
    if result.get("models"):
        options += ["" if name == "smoke" else "--data-folder DATA", *_sizes(result)]
        options += [f"--only {one}" for one in preset.get("focus", ())]
    options += ["--paper-solver"] if result.get("solvers") else []
    command = " ".join(filter(None, (f"credalens reproduce {label} --preset {name}", *options)))
    return f"File [{name}/{label}.json]({name}/{label}.json), made by `{command}`."


def _sizes(result: Result) -> list[str]:
    """The numbers of networks and runs, those that the methods of this result depend on."""
    methods, preset = [kind["method"] for kind in result.get("models", [])], result["provenance"]["preset"]
    sizes = [size for start, own in SIZES.items() if any(m.startswith(start) for m in methods) for size in own]
    return [f"--{size.replace('_', '-')} {preset[size]}" for size in sizes]


def _models(result: Result) -> list[str]:
    """One line for each kind of network; ensembles of several sizes from the same networks share it."""
    sizes: dict[tuple[str, int, str], list[int]] = {}
    for kind in result.get("models", []):
        name = f"{shown(kind['backbone'])} {kind['method']} on {shown(kind['data'])}"
        sizes.setdefault((name, kind["runs"], _effort(kind)), []).append(kind["N"])
    lines = []
    for (name, runs, effort), N in sizes.items():
        size = "" if " EDD" in name else f", N = {', '.join(map(str, N))}"
        lines.append(f"{name}{size}: {_count(runs, 'run')}{' each' if len(N) > 1 else ''}{effort}.")
    return lines


def _effort(kind: Mapping[str, Any]) -> str:
    source, schedule = kind["provenance"] or {}, kind["schedule"] or {}
    where = f" on {source['device']}" if "device" in source else ""
    epochs = f" of {_count(schedule['epochs'], 'epoch')}" if "epochs" in schedule else ""
    lost = f" ({kind['diverged']} more diverged)" if kind["diverged"] else ""
    return f"{lost} from {_count(kind['trained'], 'network')}{epochs}, {kind['seconds']:,.0f} s of training{where}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _substitutes(result: Result) -> str:
    pairs: dict[str, None] = {}
    for part in _parts(result):
        for key, value in part.get("measured", {}).items() if "reason" not in part else ():
            name = "" if isinstance(value, str) else f"{key} = "
            pairs[f"{name}{shown(value)} for {name}{shown(part['keys'][key])}"] = None
    return ", ".join(pairs)


def unmeasured_lines(result: Result, /) -> str:
    """What was not measured, and why."""
    missing: dict[str, list[str]] = {}
    for place, reason in unmeasured(result):
        missing.setdefault(reason, []).append(place)
    word = "cell" if result["kind"] == "table" else "part"
    return "\n".join(f"- Not measured ({_few(places, word)}): {reason}." for reason, places in missing.items())


def unmeasured(result: Result, /) -> Iterator[tuple[str, str]]:
    """Every place of a result that has no number, or not of all runs, with the reason."""
    for part in _parts(result):
        place = part["title"] if "title" in part else _place(part["keys"])
        if "reason" in part:
            yield place, part["reason"]
        else:
            yield from ((f"{place}: {name}", reason) for name, reason in part.get("missing", {}).items())


def _parts(result: Result) -> Iterator[Result]:
    """The cells of a table, the parts of an entry of our own or the panels of a figure."""
    for kind in ("cells", "parts", "panels"):
        yield from result.get(kind, ())


def absent_line(results: Sequence[Result], /) -> str:
    """The labels that have no result at all."""
    found = {result["label"] for result in results}
    absent = [f"`{label}`" for label in (*table_labels(), *figure_labels(), *OWN) if label not in found]
    return f"Without a result file: {', '.join(absent)}." if absent else ""


def _place(keys: Mapping[str, Any]) -> str:
    named = [shown(keys[name]) for name in ("backbone", "method", "id_set") if name in keys]
    sizes = [f"{name} = {keys[name]}" for name in ("N", "C") if name in keys]
    return " ".join((*named, *sizes)) or shown(keys["metric"])


def _few(places: list[str], word: str) -> str:
    distinct = list(dict.fromkeys(places))
    return f"{_count(len(places), word)}: {'; '.join(distinct[:4])}{'; ...' if len(distinct) > 4 else ''}"
