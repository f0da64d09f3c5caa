"""Two results of one entry as one: runs that were measured in several goes, or parts that another preset measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final, TypeVar

from credalens_paper.experiments.cell_keys import DIGITS, EVERY, CellKey, better_side
from credalens_paper.experiments.index import file_name
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
    stores = [Store(out / result.provenance.preset.name) for result in changed]
    for result, store in zip(changed, stores, strict=True):
        if (path := store.folder / "results" / f"{file_name(result.label)}.json").exists():
            raise FileExistsError(
                f"{path} is there already and may be one of the results to combine; name another --out"
            )
    written = {}
    for result, store in zip(changed, stores, strict=True):
        if isinstance(result, FigureResult):
            picture = draw_severities(result.panels)
            result = replace(result, files=save_picture(picture, store, result.label, result.provenance.preset))
        store.save_result(result)
        written[result.label] = result
    return [written.get(result.label, result) for result in combined]


def combine(result: Result, more: Result, /) -> Result:
    """The runs of both, which must be different runs of the same; where only one of them has a number, its number."""
    if result.label != more.label:
        raise ValueError(f"{result.label} and {more.label} are two entries; runs of one entry can be combined")
    if isinstance(result, TableResult) and isinstance(more, TableResult):
        cells = _combined(result, more, result.cells, more.cells, _add_cell)
        gains = {entry.keys: entry for entry in more.improvements}
        improvements = tuple(_add_gains(entry, gains.pop(entry.keys, None)) for entry in result.improvements)
        improvements += tuple(gains.values())
        return replace(result, cells=cells, improvements=improvements, **_closing(result, more, cells))
    lines = isinstance(more, FigureResult) and all(panel.series is not None or panel.reason for panel in more.panels)
    if isinstance(result, FigureResult) and isinstance(more, FigureResult) and lines:
        panels = _combined(result, more, result.panels, more.panels, _add_panel)
        return replace(result, panels=panels, **_closing(result, more, panels))
    raise ValueError(f"{result.label} shows more than means over runs, so two results of it cannot be combined")


def _combined(
    result: Result,
    more: Result,
    parts: tuple[PartOf, ...],
    others: tuple[PartOf, ...],
    add: Callable[[PartOf, PartOf], PartOf],
) -> tuple[PartOf, ...]:
    """The parts of both, by their keys; those of another preset with a note. Runs of other networks or images are refused.

    Runs that are not added are not listed: n says how many there are.
    """
    ours, theirs = result.provenance.preset, more.provenance.preset
    same = all(getattr(ours, f.name) == getattr(theirs, f.name) for f in fields(Preset) if f.name not in IRRELEVANT)
    added = {part.keys: replace(part, note=_note(ours, theirs, part.keys) or part.note) for part in others}
    whole: list[PartOf] = []
    for part in parts:
        other = added.pop(part.keys, None)
        if other is None or other.reason is not None or part.reason is not None:
            whole.append(part if other is None or other.reason is not None else other)
            continue
        one, two = (dict(side.substitutes or {}) for side in (part, other))
        if not same or one != two:
            values = [str(value) for value in (part.keys.as_dict().values() if part.keys else ()) if value is not None]
            place = f" ({', '.join(values)})" if values else ""
            ways = f"by presets {ours.name}, {theirs.name}"
            if same:
                ways = f"with {one} and with {two} in place of the paper's"
            raise ValueError(
                f"{result.label}: a part{place} is measured in both in other ways, {ways}. Means over different networks or "
                "images say nothing: measure it in the same way, or leave it out with --only"
            )
        whole.append(add(part, other))
    return tuple(whole) + tuple(added.values())


def _closing(result: TableResult | FigureResult, more: Result, parts: tuple[Any, ...]) -> dict[str, Any]:
    """The networks of both, so that each keeps its provenance; an error where a run is in both."""
    known = {
        (models.data, models.backbone, models.method, models.N, s) for models in result.models for s in models.seeds
    }
    for models in more.models:
        kind = (models.data, models.backbone, models.method)
        twice = [seeds for seeds in models.seeds if (*kind, models.N, seeds) in known]
        if twice:
            raise ValueError(
                f"{result.label}: the run of {' '.join(kind)}, N = {models.N}, with the seeds {list(twice[0])} is in both "
                "results and would count twice; measure later runs, with --first-run"
            )
    made = more.provenance
    return {
        "models": (*result.models, *more.models),
        "status": status_of(parts),
        "added": (*(result.added or ()), Addition(made.date, made.commit, made.preset.name)),
    }


def _add_cell(cell: Cell, more: Cell) -> Cell:
    if cell.ours is None or more.ours is None:
        return replace(cell, ours=cell.ours or more.ours)
    return replace(cell, ours=Runs(*_pooled(cell.ours, more.ours), (*cell.ours.runs, *more.ours.runs)))


def _add_panel(panel: Panel, more: Panel) -> Panel:
    """Lines by their names, points by their severities."""
    lines = {line.name: line for line in panel.series or ()}
    for line in more.series or ():
        lines[line.name] = _add_points(lines[line.name], line) if line.name in lines else line
    missing = {name: reason for name, reason in (panel.missing or {}).items() if name not in lines}
    return replace(panel, series=tuple(lines.values()), missing=missing)


def _add_points(line: Line, more: Line) -> Line:
    if line.x != more.x:
        raise ValueError(f"the line {line.name!r} has the severities {line.x} in one result and {more.x} in the other")
    sides = (zip(one.mean, one.std, one.n, strict=True) for one in (line, more))
    means, stds, counts = zip(*(pooled(*pair) for pair in zip(*sides, strict=True)), strict=True)
    return replace(line, mean=means, std=stds, n=counts)


def _add_gains(entry: Improvement, more: Improvement | None) -> Improvement:
    if more is None or more.ours is None or entry.ours is None:
        return entry if more is None else replace(entry, ours=entry.ours or more.ours)
    mean, std, n = _pooled(entry.ours, more.ours)
    mean, wins = round(mean, DIGITS), entry.ours.wins + more.ours.wins
    return replace(entry, ours=Difference(mean, std, n, wins, better_side(entry.keys.metric, mean)))


def _pooled(one: Runs | Difference, other: Runs | Difference) -> Moments:
    return pooled((one.mean, one.std, one.n), (other.mean, other.std, other.n))


Moments = tuple[float, float | None, int]


def pooled(first: Moments, second: Moments, /) -> Moments:
    r"""Mean, standard deviation (of a sample, None for one run) and number of two groups of runs together.

    .. math:: (n - 1) s^2 = (n_1 - 1) s_1^2 + (n_2 - 1) s_2^2 + \frac{n_1 n_2}{n} (m_1 - m_2)^2
    """
    (m1, s1, n1), (m2, s2, n2) = first, second
    n = n1 + n2
    squares = (n1 - 1) * (s1 or 0.0) ** 2 + (n2 - 1) * (s2 or 0.0) ** 2 + n1 * n2 / n * (m1 - m2) ** 2
    return (n1 * m1 + n2 * m2) / n, math.sqrt(squares / (n - 1)), n


def _note(ours: Preset, preset: Preset, key: CellKey | None) -> str | None:
    """How a part was measured that stands among those of another preset; None where it is the same one."""
    if preset.name == ours.name:
        return None
    if not preset.few_corrupted or key is None or not str(key.ood_set).endswith("-c"):
        return f"preset {preset.name}"
    share = f" against all clean ones, so that one input in {EVERY + 1} is corrupted" if key.measure else ""
    return f"preset {preset.name}; every {EVERY}th image of each corrupted set{share}"
