"""Where a result comes from and what it lacks, in a few lines of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from credalens.checks.options import count_text
from credalens_paper.experiments.cell_keys import display_name
from credalens_paper.experiments.index import LABELS, file_name
from credalens_paper.experiments.preparations import EVERY
from credalens_paper.origin import Hardware
from credalens_paper.results.records import (
    RUNS,
    ExactnessPart,
    ExactnessResult,
    Panel,
    Part,
    Provenance,
    Result,
    TableResult,
    TrainedModels,
    declared_label,
)

SIZES: Final = {"DE": ("members", "many_members", "runs"), "BNN": ("bnn_runs",), "EDD": ("edd_runs",)}
"""Numbers of a preset that the command line can change, by the beginning of the methods they are about."""


def provenance_lines(result: Result, root: str, /) -> str:
    """Preset, file and command, substitutes and models of a result; `root` leads from the page to the folder of presets."""
    preset, substitutes = result.provenance.preset, substitutes_text(result)
    corrupted = f"{len(preset.corruptions)} corruptions x {len(preset.severities)} severities"
    corrupted += f", every {EVERY}th image of each" if preset.few_corrupted else ""
    measured = f"measured {result.provenance.date[:10]}"
    lines = [f"Preset {preset.name}, schedule {preset.schedule}, {corrupted}; {measured}.", _source(result, root)]
    lines += [f"In place of the paper's: {substitutes}."] if substitutes else []
    if isinstance(result, TableResult) and result.cpu_threads:
        lines.append(f"Times on the CPU are for {count_text(result.cpu_threads, 'thread')}.")
    return "\n".join(f"- {line}" for line in (*lines, *_models(result)))


def machine_of(provenance: Provenance, /) -> tuple[str, str, str]:
    """Hardware, versions and the beginning of the commit, each as text."""
    device = (provenance.engine or {}).get("device", "cpu")
    packages = ", ".join(f"{name} {version}" for name, version in provenance.versions.items())
    machine = _cores(provenance.hardware, "" if device == "cpu" else f", {device}")
    return machine, packages, str(provenance.commit)[:12]


def _cores(hardware: Hardware, beside: str = "") -> str:
    return f"{hardware.cpu} ({hardware.cores} cores{beside})"


def _source(result: Result, root: str) -> str:
    """The result file and the command that makes it, with its sizes, since presets may change; or what was added to it."""
    preset, label = result.provenance.preset, file_name(declared_label(result.label))
    file = f"File [{preset.name}/{label}.json]({root}{preset.name}/{label}.json)"
    if added := () if isinstance(result, ExactnessResult) else result.added or ():
        texts = (f"{one.date[:10]} (preset {one.preset}, commit {str(one.commit)[:7]})" for one in added)
        return f"{file}, to which runs were added by `--add-runs`: {', '.join(dict.fromkeys(texts))}."
    options: list[str] = []
    if methods := [kind.method for kind in result.models]:
        sizes = [size for start, names in SIZES.items() if any(m.startswith(start) for m in methods) for size in names]
        options += [] if preset.name == "smoke" else ["--data-folder DATA"]
        options += [f"--{size.replace('_', '-')} {getattr(preset, size)}" for size in sizes]
        options += [f"--first-run {preset.first_run}"] if preset.first_run else []
        options += [f"--only {name}" for name in preset.focus]
    options += ["--paper-solver"] if isinstance(result, TableResult) and result.solvers else []
    command = " ".join((f"credalens reproduce {label} --preset {preset.name}", *options))
    return f"{file}, made by `{command}`."


def _models(result: Result) -> list[str]:
    """One line for each kind of network; ensembles of several sizes from the same networks share it."""
    sizes: dict[tuple[str, int, str], list[int]] = {}
    for kind in result.models:
        name = f"{display_name(kind.backbone)} {kind.method} on {display_name(kind.data)}"
        sizes.setdefault((name, kind.runs, _effort(kind)), []).append(kind.N)
    lines = []
    for (name, runs, effort), N in sizes.items():
        size = "" if " EDD" in name else f", N = {', '.join(map(str, N))}"
        lines.append(f"{name}{size}: {count_text(runs, 'run')}{' each' if len(N) > 1 else ''}{effort}.")
    return lines


def _effort(kind: TrainedModels) -> str:
    source, schedule = kind.provenance or {}, kind.schedule or {}
    where = f" on {source['device']}" if "device" in source else ""
    epochs = f" of {count_text(schedule['epochs'], 'epoch')}" if "epochs" in schedule else ""
    lost = f" ({kind.diverged} more diverged)" if kind.diverged else ""
    commit = f", first at commit {source['commit'][:7]}" if source.get("commit") else ""
    machines = f"; evaluated on {' and '.join(map(_cores, kind.evaluated))}" if kind.evaluated else ""
    networks = f"{lost} from {count_text(kind.trained, 'network')}{epochs}"
    return f"{networks}, {kind.seconds:,.0f} s of training{where}{commit}{machines}"


def substitutes_text(result: Result, /) -> str:
    """What was measured in place of what the paper has; empty if nothing."""
    pairs: dict[str, None] = {}
    for part in result.parts:
        if part.reason is None and part.keys is not None:
            for key, value in (part.substitutes or {}).items():
                name = "" if isinstance(value, str) else f"{key} = "
                pairs[f"{name}{display_name(value)} for {name}{display_name(part.keys.get(key))}"] = None
    return ", ".join(pairs)


def unmeasured_lines(result: Result, /) -> str:
    """What was not measured, and why; and what was measured in another way than the rest."""
    absent = [(_where(part), part.reason) for part in result.parts if part.reason is not None]
    lacking = list(_missing(result))
    absent += [(f"{place}: {name}", why) for place, name, why in lacking if not name.endswith(RUNS)]
    runs = [(f"{place}: {name}", why) for place, name, why in lacking if name.endswith(RUNS)]
    notes = [(_where(part), part.note) for part in result.parts if not isinstance(part, ExactnessPart) and part.note]
    word = "cell" if result.kind == "table" else "part"
    lines = [f"- Not measured ({names}): {why}." for why, names in _by_reason(absent, word)]
    lines += [f"- Runs that were not measured ({names}): {why}." for why, names in _by_reason(runs, word)]
    return "\n".join([*lines, *(f"- {names}: {note}." for note, names in _by_reason(notes, word))])


def _missing(result: Result) -> Iterator[tuple[str, str, str]]:
    """What parts with numbers lack: the part, the line or the number of runs ("5 of 6 runs"), and the reason."""
    for part in result.parts:
        if part.reason is None:
            yield from ((_where(part), name, why) for name, why in (part.missing or {}).items())


def _by_reason(places: Iterable[tuple[str, str]], word: str) -> Iterator[tuple[str, str]]:
    """Every reason with the number of its places and the first of them."""
    reasons: dict[str, list[str]] = {}
    for place, reason in places:
        reasons.setdefault(reason, []).append(place)
    for reason, names in reasons.items():
        distinct = list(dict.fromkeys(names))
        yield reason, f"{count_text(len(names), word)}: {'; '.join(distinct[:4])}{'; ...' if len(distinct) > 4 else ''}"


def absent_line(results: Sequence[Result], /) -> str:
    """The labels that have no result at all."""
    present = {result.label for result in results}
    absent = [f"`{label}`" for label in LABELS if label not in present]
    return f"Without a result file: {', '.join(absent)}." if absent else ""


def _where(part: Part) -> str:
    """The title of a panel; backbone, method, data and sizes of a cell."""
    if isinstance(part, Panel):
        return part.title
    names = [
        display_name(name) for name in (part.keys.backbone, part.keys.method, part.keys.id_set) if name is not None
    ]
    sizes = [f"{name} = {part.keys.get(name)}" for name in ("N", "C") if part.keys.get(name) is not None]
    return " ".join((*names, *sizes)) or display_name(part.keys.metric)
