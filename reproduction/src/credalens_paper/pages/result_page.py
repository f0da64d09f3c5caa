"""A result as Markdown: our numbers beside the paper's, wins and losses alike, what it lacks, and where all comes from.

The command line prints with `render_result` and the pages are written by it, so that no number is typed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from credalens.checks.options import count_text
from credalens_paper.experiments.cell_keys import EVERY, CellKey, display_name
from credalens_paper.experiments.index import file_name
from credalens_paper.origin import Hardware
from credalens_paper.pages.markdown import (
    DIGITS,
    NONE,
    difference_text,
    joined,
    markdown_table,
    number_text,
    paper_difference_text,
)
from credalens_paper.results.records import (
    RUNS,
    Cell,
    ExactnessPart,
    ExactnessResult,
    FigureResult,
    Improvement,
    Panel,
    Part,
    Provenance,
    Result,
    TableResult,
    TrainedModels,
    declared_label,
)

PREDICTED: Final = ("ACC", "ECE", "NLL")
NOT_MEASURED: Final = "not measured"
Entry = TypeVar("Entry", Cell, Improvement)
SOLVER: Final = (
    "Lower entropy by SciPy's SLSQP, started at the intersection probability, against the exact minimum: the share of\n"
    "values that are off by more than so many bits, on random inputs of each set."
)
EFFECT: Final = (
    "OOD detection by EU from either, on the same inputs. The interval is DeLong's for the paired difference, from the\n"
    "lowest end of any run to the highest; upper entropy is a concave maximum, which the solver finds."
)
REDUCTION: Final = (
    "EU from the J classes that PIA keeps, on all inputs. The printed algorithm bounds the wrong group of classes and\n"
    "gives sets that hold no distribution; its AUROC can only be taken on the inputs that are left, the ones\n"
    "of wide sets, where the sound form stands beside it."
)


def render_result(result: Result, /, *, root: str = "", level: int = 1, picture: str = "") -> str:
    """Heading, numbers, what was not measured, and where all comes from.

    `root` leads from the page to the folder of presets; `level` is that of the heading; `picture` is a file beside the page.
    """
    if isinstance(result, FigureResult):
        content = _figure_parts(result, root)
    else:
        content = _table_parts(result) if isinstance(result, TableResult) else _exactness_parts(result)
    heading = f"{'#' * level} {result.label}"
    back = f"[All results, and what the abbreviations mean]({root}README.md)." if root else ""
    shown = f"![{result.label}]({picture})" if picture else ""
    machine, packages, commit = machine_of(result.provenance)
    source = f"{provenance_lines(result, root)}\n- Put together on {machine}; {packages}; commit {commit}."
    made = "**How it was made**"
    return joined(heading, result.description, back, shown, *content, unmeasured_lines(result), made, source)


def _table_parts(result: TableResult) -> list[str]:
    """Comparisons, other numbers, and the paper's solver, each where there are any."""
    solvers = [
        [
            ", ".join(display_name(value) for value in entry.keys.values()),
            str(entry.errors.samples),
            f"{entry.effect.exact_eu_auroc:.2f}",
            f"{entry.effect.slsqp_eu_auroc:.2f}",
            f"{100 * entry.errors.wrong[0]:.1f} %",
            f"{entry.errors.largest_error:.3f}",
            f"{entry.errors.ms_per_input:.2f}",
        ]
        for entry in result.solvers
        if entry.errors and entry.effect
    ]
    about = ("SLSQP on a subsample", "Inputs", "AUROC by EU, exact", "by SLSQP")
    head = [*about, "Wrong by > 0.001 bit", "Worst (bit)", "ms"]
    return [_compared(result), _alone(result), markdown_table(head, solvers)]


def _compared(result: TableResult) -> str:
    """Classical beside credal, ours and the paper's, with sign and size of the improvement in both; what was measured first."""
    cells = {cell.keys: cell for cell in result.cells}
    improvements = [entry for entry in result.improvements if entry.ours or entry.paper]
    names = _row_names(result, improvements)
    rows = []
    for entry in sorted(_ordered(improvements, result.layout), key=lambda entry: entry.ours is None):
        metric, credal, classical = entry.keys.metric, cells[entry.keys], cells[entry.keys.baseline]
        rows.append([
            *(_row_value(entry.keys, name) for name in names),
            number_text(classical.ours, metric),
            number_text(credal.ours, metric),
            difference_text(entry.ours, metric) if entry.ours else NOT_MEASURED,
            number_text(classical.paper, metric),
            number_text(credal.paper, metric),
            paper_difference_text(entry.paper, metric),
        ])  # fmt: skip
    head = ["Classical", "Credal", "Difference", "Paper: classical", "Paper: credal", "Paper: difference"]
    return _table([*map(display_name, names), *head], rows)


def _alone(result: TableResult) -> str:
    """Cells that are compared with nothing but the paper's: distilled networks, costs, other measures."""
    compared = {key for entry in result.improvements for key in (entry.keys, entry.keys.baseline)}
    cells = [cell for cell in result.cells if cell.keys not in compared and (cell.ours or cell.paper)]
    names = _row_names(result, cells)
    rows = []
    for cell in _ordered(cells, result.layout):
        keys, paper = [_row_value(cell.keys, name) for name in names], number_text(cell.paper, cell.keys.metric)
        ours = [number_text(cell.ours, cell.keys.metric), str(cell.ours.n)] if cell.ours else [NOT_MEASURED, NONE]
        rows.append([*keys, *ours, paper])
    return _table([*map(display_name, names), "Ours", "n", "Paper"], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table without the columns in which nothing stands."""
    shown = [place for place in range(len(head)) if any(row[place] != NONE for row in rows)]
    return markdown_table([head[place] for place in shown], [[row[place] for place in shown] for row in rows])


def _row_names(result: TableResult, entries: Sequence[Cell | Improvement]) -> list[str]:
    """The keys that tell the rows apart, in the order of the table's layout; the metric always.

    The measure too where the result has several, even if these rows have one: another table shows the others.
    """
    varying = [name for name in result.layout if len({entry.keys.get(name) for entry in entries}) > 1]
    measures = {cell.keys.measure for cell in result.cells}
    shown = {*varying, "metric", *(["measure"] if len(measures) > 1 else [])}
    return [name for name in dict.fromkeys((*result.layout, "metric")) if name in shown]


def _row_value(keys: CellKey, name: str) -> str:
    value = keys.get(name)
    if value is None and name == "ood_set" and keys.metric in PREDICTED:
        return "clean"
    return NONE if value is None else display_name(value)


def _ordered(entries: Sequence[Entry], layout: Sequence[str]) -> list[Entry]:
    """By the keys of the layout, the values of each in the order in which they first appear."""
    ranks: dict[str, dict[Any, int]] = {name: {} for name in layout}
    for entry in entries:
        for name in layout:
            ranks[name].setdefault(entry.keys.get(name), len(ranks[name]))
    return sorted(entries, key=lambda entry: [ranks[name][entry.keys.get(name)] for name in layout])


def _figure_parts(result: FigureResult, root: str) -> list[str]:
    """The link to the picture (the SVG where there is one, which is sharp at any size), and what it draws as tables.

    A row for each line, a column for each severity; a row for each set of a density of the inputs of all n runs, for each J
    where there are several; a row for each number with an interval over inputs.
    """
    lines: list[list[str]] = []
    quantiles: list[list[str]] = []
    estimates: list[list[str]] = []
    severities: list[str] = []
    shares: list[str] = []
    for panel in result.panels:
        metric, n = panel.metric or "", str(panel.n or NONE)
        for line in panel.series or ():
            severities = severities or [f"severity {x}" for x in line.x]
            means = [f"{mean:.{DIGITS.get(metric.split()[0], 3)}f}" for mean in line.mean]
            lines.append([panel.title, metric, line.name, *means, str(min(line.n))])
        densities: Mapping[str, Any] = panel.quantiles or {}  # by J, then by set; panels without PIA have sets only
        nested = any(isinstance(value, Mapping) for sets in densities.values() for value in sets.values())
        for kept, sets in (densities if nested or not densities else {"": densities}).items():
            where = f"{panel.title}, J = {kept}" if kept else panel.title
            for name, values in sets.items():
                shares = list(values)
                quantiles.append([where, name, *(f"{value:.3f}" for value in values.values()), n])
        digits = 3 if metric.startswith("Rank") else 2
        for one in panel.estimates or ():
            interval = f"{one.low:.{digits}f} to {one.high:.{digits}f}"
            estimates.append([panel.title, metric, one.name, f"{one.mean:.{digits}f}", interval, n])
    names = sorted(result.files, key=lambda name: not name.endswith(".svg"))
    return [
        f"![{result.label}]({root}{result.provenance.preset.name}/figures/{names[0]})" if names else "",
        markdown_table(["Panel", "Metric", "Line", *severities, "n"], lines),
        markdown_table(["Panel", "Set", *(f"{float(share):.0%} below" for share in shares), "n"], quantiles),
        markdown_table(["Panel", "Metric", "Of", "Mean", "95 % interval over inputs", "n"], estimates),
    ]


def _exactness_parts(result: ExactnessResult) -> list[str]:
    """The local solver's errors, its effect, and both forms of PIA, each after what it shows; none of what was not measured."""
    errors: list[list[str]] = []
    effects: list[list[str]] = []
    reductions: list[list[str]] = []
    for part in result.parts:
        keys = {**part.keys.as_dict(), **part.substitutes}
        model = f"{display_name(keys['backbone'])} {keys['method']}, N = {keys['N']}, {display_name(keys['id_set'])}"
        solver, runs = part.solver or (), [run.J for run in part.reduction or ()]
        for name in solver[0].sets if solver else ():
            found = [run.sets[name] for run in solver]
            errors.append([
                model,
                display_name(name),
                *(f"{100 * share:.1f} %" for share in np.mean([one.wrong for one in found], axis=0)),
                f"{np.mean([one.mean_error for one in found]):.4f}",
                f"{max(one.largest_error for one in found):.3f}",
                f"{len(found)} x {found[0].samples:,}",
                f"{np.mean([one.ms_per_input for one in found]):.1f}",
            ])  # fmt: skip
        for name in solver[0].pairs if solver else ():
            pairs = [run.pairs[name] for run in solver]
            effects.append([
                model,
                display_name(name),
                *(_mean([getattr(one, field) for one in pairs]) for field in ("exact_eu_auroc", "slsqp_eu_auroc")),
                _mean([one.difference for one in pairs], sign="+"),
                f"{min(one.low for one in pairs):+.2f} to {max(one.high for one in pairs):+.2f}",
                f"{sum(one.low > 0 for one in pairs)} of {len(pairs)} runs",
            ])  # fmt: skip
        for name in dict.fromkeys(name for by_set in runs[0].values() for name in by_set) if runs else ():
            for J in runs[0]:
                reduced = [run[J][name] for run in runs]
                empty = (np.mean([getattr(one, side) for one in reduced]) for side in ("inside_empty", "outside_empty"))
                whole, left = ("exact_auroc", "sound_auroc"), ("left_sound_auroc", "left_printed_auroc")
                reductions.append([
                    model,
                    display_name(name),
                    J,
                    *(_mean([getattr(one, field) for one in reduced]) for field in whole),
                    *(f"{100 * share:.1f} %" for share in empty),
                    *(_mean([getattr(one, field) for one in reduced]) for field in left),
                    str(len(reduced)),
                ])  # fmt: skip
    sizes = [f"> {size:g} bit" for size in result.wrong_sizes]
    tables = {
        SOLVER: (["Model", "Set", *sizes, "Mean error", "Worst", "Runs x inputs", "ms an input"], errors),
        EFFECT: (
            ["Model", "OOD set", "AUROC, exact", "AUROC, SLSQP", "Difference", "95 % interval", "Surely better in"],
            effects,
        ),
        REDUCTION: (
            ["Model", "OOD set", "J", "AUROC, no PIA", "Sound PIA", "Printed: empty, ID", "empty, OOD", "Left: sound",
             "Left: printed", "n"],
            reductions,
        ),
    }  # fmt: skip
    return [part for text, (head, rows) in tables.items() if rows for part in (text, markdown_table(head, rows))]


def _mean(values: Sequence[float | None], *, sign: str = "") -> str:
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return NONE
    spread = f" ± {np.std(numbers, ddof=1):.2f}" if len(numbers) > 1 else ""
    return f"{np.mean(numbers):{sign}.2f}{spread}"


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
    lacking = [
        (_where(part), name, why)
        for part in result.parts
        if part.reason is None
        for name, why in (part.missing or {}).items()  # the part, the line or the number of runs ("5 of 6 runs")
    ]
    absent += [(f"{place}: {name}", why) for place, name, why in lacking if not name.endswith(RUNS)]
    runs = [(f"{place}: {name}", why) for place, name, why in lacking if name.endswith(RUNS)]
    notes = [(_where(part), part.note) for part in result.parts if not isinstance(part, ExactnessPart) and part.note]
    word = "cell" if result.kind == "table" else "part"
    lines = [f"- Not measured ({names}): {why}." for why, names in _by_reason(absent, word)]
    lines += [f"- Runs that were not measured ({names}): {why}." for why, names in _by_reason(runs, word)]
    return "\n".join([*lines, *(f"- {names}: {note}." for note, names in _by_reason(notes, word))])


def _by_reason(places: Iterable[tuple[str, str]], word: str) -> Iterator[tuple[str, str]]:
    """Every reason with the number of its places and the first of them."""
    reasons: dict[str, list[str]] = {}
    for place, reason in places:
        reasons.setdefault(reason, []).append(place)
    for reason, names in reasons.items():
        distinct = list(dict.fromkeys(names))
        yield reason, f"{count_text(len(names), word)}: {'; '.join(distinct[:4])}{'; ...' if len(distinct) > 4 else ''}"


def _where(part: Part) -> str:
    """The title of a panel; backbone, method, data and sizes of a cell."""
    if isinstance(part, Panel):
        return part.title
    names = [
        display_name(name) for name in (part.keys.backbone, part.keys.method, part.keys.id_set) if name is not None
    ]
    sizes = [f"{name} = {part.keys.get(name)}" for name in ("N", "C") if part.keys.get(name) is not None]
    return " ".join((*names, *sizes)) or display_name(part.keys.metric)
