"""Two results of one entry as one: runs that were measured in several goes, or parts that another preset measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final, TypeVar

from credalens_paper.experiments.cell_keys import DIGITS, CellKey, better_side
from credalens_paper.experiments.index import file_name
from credalens_paper.experiments.preparations import EVERY
from credalens_paper.experiments.presets import COUNTS, Preset
from credalens_paper.results.drawing import draw_severities, save_picture
from credalens_paper.results.records import (
    Addition,
    Cell,
    Difference,
    FigureResult,
    Improvement,
    Line,
    Panel,
    Result,
    Runs,
    TableResult,
    TrainedModels,
    status_of,
)
from credalens_paper.results.store import Store

IRRELEVANT: Final = {"name", "focus", "first_run", "substitutes", "left_out", "formats", "dpi", *COUNTS}
"""Settings of a preset that do not decide what the number of one run is; substitutes are compared part by part."""
PartOf = TypeVar("PartOf", Cell, Panel)


def combine_all(results: Iterable[Result], more: Iterable[Result], out: Path, /) -> list[Result]:
    """All results, each with what `more` has of its label; those that got something are written into `out`/<preset>."""
    results, added = list(results), [result for result in more if result.models]
    combined = [reduce(combine, (one for one in added if one.label == result.label), result) for result in results]
    changed = [whole for whole, result in zip(combined, results, strict=True) if whole is not result]
    if not changed:
        labels = ", ".join(sorted({result.label for result in added})) or "nothing that was measured"
        raise ValueError(f"nothing to add: the other folders hold {labels}, of which no result was asked for")
    stores = [_new_store(result, out) for result in changed]
    written = {result.label: _write(result, store) for result, store in zip(changed, stores, strict=True)}
    return [written.get(result.label, result) for result in combined]


def combine(result: Result, more: Result, /) -> Result:
    """The runs of both, which must be different runs of the same; where only one of them has a number, its number."""
    if result.label != more.label:
        raise ValueError(f"{result.label} and {more.label} are two entries; runs of one entry can be combined")
    if isinstance(result, TableResult) and isinstance(more, TableResult):
        return _combine_tables(result, more)
    if isinstance(result, FigureResult) and isinstance(more, FigureResult) and not _has_other_panels(more):
        return _combine_figures(result, more)
    raise ValueError(f"{result.label} shows more than means over runs, so two results of it cannot be combined")


def _combine_tables(result: TableResult, more: TableResult) -> TableResult:
    added: dict[CellKey | None, Cell] = {
        cell.keys: replace(cell, note=_note(result, more, cell.keys) or cell.note) for cell in more.cells
    }
    _check_alike(result, more, {cell.keys: cell for cell in result.cells}, added)
    cells = tuple(_add_cell(cell, added.pop(cell.keys, None)) for cell in result.cells) + tuple(added.values())
    gains = {entry.keys: entry for entry in more.improvements}
    improvements = tuple(_add_gains(entry, gains.pop(entry.keys, None)) for entry in result.improvements)
    improvements += tuple(gains.values())
    return replace(result, cells=cells, improvements=improvements, **_closing(result, more, cells))


def _combine_figures(result: FigureResult, more: FigureResult) -> FigureResult:
    added = {panel.keys: panel for panel in more.panels}
    _check_alike(result, more, {panel.keys: panel for panel in result.panels}, added)
    for key, panel in added.items():
        if note := _note(result, more, key):
            added[key] = replace(panel, note=note)
    panels = tuple(_add_panel(panel, added.pop(panel.keys, None)) for panel in result.panels) + tuple(added.values())
    return replace(result, panels=panels, **_closing(result, more, panels))


def _check_alike(
    result: Result, more: Result, parts: Mapping[CellKey | None, PartOf], added: Mapping[CellKey | None, PartOf]
) -> None:
    """Refuse to pool runs of other networks, or on other images."""
    ours, theirs = result.provenance.preset, more.provenance.preset
    same = all(getattr(ours, f.name) == getattr(theirs, f.name) for f in fields(Preset) if f.name not in IRRELEVANT)
    for key, part in parts.items():
        other = added.get(key)
        if other is None or part.reason is not None or other.reason is not None:
            continue
        one, two = (dict(side.substitutes or {}) for side in (part, other))
        if not same or one != two:
            place = "" if key is None else f" ({', '.join(str(v) for v in key.as_dict().values() if v is not None)})"
            ways = (
                f"with {one} and with {two} in place of the paper's"
                if same
                else f"by presets {ours.name}, {theirs.name}"
            )
            raise ValueError(
                f"{result.label}: a part{place} is measured in both in other ways, {ways}. Means over different networks or "
                "images say nothing: measure it in the same way, or leave it out with --only"
            )


def _closing(result: TableResult | FigureResult, more: Result, parts: tuple[Any, ...]) -> dict[str, Any]:
    made = more.provenance
    return {
        "models": _all_models(result.label, result.models, more.models),
        "status": status_of(parts),
        "added": (*(result.added or ()), Addition(made.date, made.commit, made.preset.name)),
    }


def _all_models(
    label: str, models: Sequence[TrainedModels], more: Sequence[TrainedModels]
) -> tuple[TrainedModels, ...]:
    """Both lists, so that each keeps its provenance; an error where a run is in both."""
    known = {(_kind(kind), seeds) for kind in models for seeds in kind.seeds}
    for kind in more:
        twice = [seeds for seeds in kind.seeds if (_kind(kind), seeds) in known]
        if twice:
            names = " ".join(map(str, _kind(kind)[:-1]))
            raise ValueError(
                f"{label}: the run of {names}, N = {kind.N}, with the seeds {list(twice[0])} is in both results and would "
                "count twice; measure later runs, with --first-run"
            )
    return (*models, *more)


def _kind(models: TrainedModels) -> tuple[str, str, str, int]:
    return models.data, models.backbone, models.method, models.N


def _add_cell(cell: Cell, more: Cell | None) -> Cell:
    return _only_measured(cell, more) or replace(cell, ours=_add_runs(cell.ours, more.ours if more else None))


def _add_panel(panel: Panel, more: Panel | None) -> Panel:
    if (only := _only_measured(panel, more)) is not None:
        return only
    series = _add_lines(panel.series or (), (more.series if more else None) or ())
    drawn = {line.name for line in series}
    missing = {name: reason for name, reason in (panel.missing or {}).items() if name not in drawn}
    return replace(panel, series=series, missing=missing)


def _only_measured(part: PartOf, more: PartOf | None) -> PartOf | None:
    """The part that has numbers, None where both have. Runs that are not added are not listed: n says how many there are."""
    if more is None or more.reason is not None:
        return part
    return more if part.reason is not None else None


def _add_runs(runs: Runs | None, more: Runs | None) -> Runs | None:
    if runs is None or more is None:
        return runs or more
    mean, std, n = pooled((runs.mean, runs.std, runs.n), (more.mean, more.std, more.n))
    return Runs(mean, std, n, (*runs.runs, *more.runs))


def _add_gains(entry: Improvement, more: Improvement | None) -> Improvement:
    if more is None or more.ours is None or entry.ours is None:
        return entry if more is None else replace(entry, ours=entry.ours or more.ours)
    ours, theirs = entry.ours, more.ours
    mean, std, n = pooled((ours.mean, ours.std, ours.n), (theirs.mean, theirs.std, theirs.n))
    mean = round(mean, DIGITS)
    return replace(entry, ours=Difference(mean, std, n, ours.wins + theirs.wins, better_side(entry.keys.metric, mean)))


def _add_lines(lines: Sequence[Line], more: Sequence[Line]) -> tuple[Line, ...]:
    """Lines by their names, points by their severities."""
    added = {line.name: line for line in more}
    new = tuple(line for name, line in added.items() if name not in {line.name for line in lines})
    return (*(_add_points(line, added[line.name]) if line.name in added else line for line in lines), *new)


def _add_points(line: Line, more: Line) -> Line:
    if line.x != more.x:
        raise ValueError(f"the line {line.name!r} has the severities {line.x} in one result and {more.x} in the other")
    points = zip(
        zip(line.mean, line.std, line.n, strict=True), zip(more.mean, more.std, more.n, strict=True), strict=True
    )
    means, stds, counts = zip(*(pooled(*pair) for pair in points), strict=True)
    return replace(line, mean=means, std=stds, n=counts)


Moments = tuple[float, float | None, int]


def pooled(first: Moments, second: Moments, /) -> Moments:
    r"""Mean, standard deviation (of a sample, None for one run) and number of two groups of runs together.

    .. math:: (n - 1) s^2 = (n_1 - 1) s_1^2 + (n_2 - 1) s_2^2 + \frac{n_1 n_2}{n} (m_1 - m_2)^2

    >>> pooled((1.0, None, 1), (3.0, None, 1))
    (2.0, 1.4142135623730951, 2)
    """
    (m1, s1, n1), (m2, s2, n2) = first, second
    n = n1 + n2
    squares = (n1 - 1) * (s1 or 0.0) ** 2 + (n2 - 1) * (s2 or 0.0) ** 2 + n1 * n2 / n * (m1 - m2) ** 2
    return (n1 * m1 + n2 * m2) / n, math.sqrt(squares / (n - 1)), n


def _note(result: Result, more: Result, key: CellKey | None) -> str | None:
    """How a part was measured that stands among those of another preset; None where it is the same one."""
    preset = more.provenance.preset
    if preset.name == result.provenance.preset.name:
        return None
    images = f"; every {EVERY}th image of each corrupted set" if _has_few(preset, key) else ""
    share = f" against all clean ones, so that one input in {EVERY + 1} is corrupted" if key and key.measure else ""
    return f"preset {preset.name}{images}{share if images else ''}"


def _has_few(preset: Preset, key: CellKey | None) -> bool:
    return bool(preset.few_corrupted) and key is not None and str(key.ood_set).endswith("-c")


def _has_other_panels(result: FigureResult) -> bool:
    return any(panel.series is None and panel.reason is None for panel in result.panels)


def _new_store(result: Result, out: Path) -> Store:
    store = Store(out / result.provenance.preset.name)
    path = store.folder / "results" / f"{file_name(result.label)}.json"
    if path.exists():
        raise FileExistsError(f"{path} is there already and may be one of the results to combine; name another --out")
    return store


def _write(result: Result, store: Store) -> Result:
    if isinstance(result, FigureResult):
        picture = draw_severities(result.panels)
        result = replace(result, files=save_picture(picture, store, result.label, result.provenance.preset))
    store.save_result(result)
    return result
