"""From a figure's declaration to its picture and its numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.plots.saving import save_figure
from credalens_paper.experiments import figures as declared
from credalens_paper.experiments.cells import CellKey, EvaluationSet, evaluation_sets
from credalens_paper.experiments.numbers import describe
from credalens_paper.pipeline.evaluate import Evaluation
from credalens_paper.pipeline.figure_inputs import bars_panels, simplex_panels
from credalens_paper.pipeline.tables import ALL, about_cell, at_hand, statistics
from credalens_paper.pipeline.work import Need, Workbench
from credalens_paper.results import drawing as drawing
from credalens_paper.results.rendering.names import shown

__all__ = ["figure_result"]

Array = NDArray[Any]
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
Made = tuple[Any, list[dict[str, Any]]]


def figure_result(work: Workbench, figure: declared.Figure, /) -> dict[str, Any]:
    """Make what a figure shows, draw it into the store, and give its numbers; a reason where nothing can be shown."""
    drawn, panels = _make(work, figure)
    files = []
    if drawn is not None:
        for form in work.preset.formats:
            path = work.models.store.figure(figure.label, form)
            files.append(save_figure(drawn, path, dpi=work.preset.dpi).name)
    return {
        "label": figure.label,
        "kind": "figure",
        "description": describe(figure.label),
        "files": files,
        "panels": panels,
    }


def _make(work: Workbench, figure: declared.Figure) -> Made:
    match figure:
        case declared.SeverityFigure():
            return _severities(work, figure)
        case declared.DensityFigure():
            return _densities(work, figure)
        case declared.PiaFigure():
            return _pia(work, figure)
        case declared.SimplexFigure():
            return simplex_panels(work, figure)
        case declared.BarsFigure():
            return bars_panels(work, figure)
        case declared.ConceptFigure():
            panels = [{"title": title, "members": [list(m) for m in figure.members]} for title, _ in figure.panels]
            return drawing.draw_concept(figure.members, figure.classes, figure.panels), panels


def _drawn(panels: list[dict[str, Any]], draw: Any, *options: Any) -> Any:
    """The figure, unless none of its panels could be measured."""
    return draw(panels, *options) if any("reason" not in panel for panel in panels) else None


def _severities(work: Workbench, figure: declared.SeverityFigure) -> Made:
    """All numbers are made before the first line is drawn, so that a run can be stopped after a stage."""
    plans = [[(name, *_plan(work, cell, many=figure.many)) for name, cell in panel.series] for panel in figure.panels]
    work.make(need for lines in plans for _, needs, _ in lines for level in needs for need in level)
    panels = [_severity_panel(work, panel, lines) for panel, lines in zip(figure.panels, plans, strict=True)]
    return _drawn(panels, drawing.draw_severities, figure.columns), panels


def _about(work: Workbench, title: str, cell: CellKey) -> dict[str, Any]:
    """A panel's title with the backbone that was measured, and what the preset puts in the place of the paper's."""
    own = work.preset.substitute("backbone", cell.backbone)
    return {"title": title.replace(shown(cell.backbone), shown(own)), **about_cell(work, cell)}


def _plan(work: Workbench, cell: CellKey, *, many: bool) -> tuple[list[list[Need]], dict[str, str]]:
    """The numbers that a line needs at each severity, of the runs at hand, and what is in the way of the others."""
    reason = work.excluded(cell, many=many)
    if reason is not None:
        return [], {ALL: reason}
    found, missing = at_hand(work, work.needs(cell, many=many))
    levels = [evaluation_sets(str(cell.ood_set), work.preset, severity=level) for level in work.preset.severities]
    return [[Need(need.evaluation, sets, need.name) for need in found] for sets in levels] if found else [], missing


def _severity_panel(
    work: Workbench, panel: declared.Panel, lines: list[tuple[str, list[list[Need]], dict[str, str]]]
) -> dict[str, Any]:
    about = {**_about(work, panel.title, panel.series[0][1]), "metric": panel.metric}
    series: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    own = {name for name, cell in panel.series if cell.method == panel.series[0][1].method}
    for name, needs, lacking in lines:
        missing |= {name if runs == ALL else f"{name}, {runs}": reason for runs, reason in lacking.items()}
        if needs and any(work.whole(need.evaluation.ensemble) for need in needs[0]):
            series.append({"name": name, **_line(work, needs)})
        elif needs:
            missing[name] = f"all {len(needs[0])} runs diverged"
    if not own & {line["name"] for line in series}:  # the line of another method alone is no panel of this one
        return {**about, "reason": next(iter(missing.values()))}
    return {**about, "series": series, "missing": missing}


def _line(work: Workbench, needs: list[list[Need]]) -> dict[str, Any]:
    points = []
    for level in needs:
        values = [value for need in level if (value := work.value(need)) is not None]
        points.append(statistics(values))
    line = {part: [point[part] for point in points] for part in ("mean", "std", "n")}
    return {"x": list(work.preset.severities), **line}


def _densities(work: Workbench, figure: declared.DensityFigure) -> Made:
    sets = tuple(one for name in figure.ood_sets for one in evaluation_sets(name, work.preset))
    plans = work.ready([(model, sets) for model in figure.models])
    panels = [
        panel
        for model, (runs, reason) in zip(figure.models, plans, strict=True)
        for panel in _density_panels(work, model, runs, sets, reason)
    ]
    told = [{key: value for key, value in panel.items() if key not in ("inside", "outside")} for panel in panels]
    return _drawn(panels, drawing.draw_densities, 2), told


def _density_panels(
    work: Workbench, model: CellKey, runs: list[Evaluation], sets: tuple[EvaluationSet, ...], reason: str | None
) -> list[dict[str, Any]]:
    kinds = [(variant, measure) for measure in ("EU", "TU") for variant in ("classical", "credal")]
    abouts = [_about(work, f"{shown(model.backbone)}, {variant} {measure}", model) for variant, measure in kinds]
    if reason is not None:
        return [{**about, "reason": reason} for about in abouts]
    scores = _pooled_scores(work, runs, (runs[0].inside, *sets))
    return [
        {
            **about,
            **_density(measure, {name: found[f"{variant}.{measure}"] for name, found in scores.items()}, len(runs)),
        }
        for about, (variant, measure) in zip(abouts, kinds, strict=True)
    ]


def _density(measure: str, scores: dict[str, Array], n: int) -> dict[str, Any]:
    id_name, *others = scores
    return {
        "measure": measure,
        "n": n,
        "id_name": id_name,
        "inside": scores[id_name],
        "outside": {name: scores[name] for name in others},
        "quantiles": {name: _quantiles(values) for name, values in scores.items()},
    }


def _pooled_scores(
    work: Workbench, runs: list[Evaluation], sets: tuple[EvaluationSet, ...]
) -> dict[str, dict[str, Array]]:
    """Set -> score -> values of all runs one after another."""
    pooled = {}
    for one in sets:
        found = [work.evaluator.assess(run, one).scores for run in runs]
        pooled[shown(one.name)] = {name: np.concatenate([scores[name] for scores in found]) for name in found[0]}
    return pooled


def _quantiles(values: Array) -> dict[str, float]:
    return {f"{share:g}": float(value) for share, value in zip(QUANTILES, np.quantile(values, QUANTILES), strict=True)}


def _pia(work: Workbench, figure: declared.PiaFigure) -> Made:
    sets = tuple(one for name in figure.ood_sets for one in evaluation_sets(name, work.preset))
    cells = [replace(figure.model, J=kept) for kept in figure.kept]
    plans = work.ready([(cell, sets) for cell in cells])
    reason = next((reason for _, reason in plans if reason is not None), None)
    if reason is not None:
        return None, [{"title": "PIA", "reason": reason}]
    scores = {str(runs[0].J): _pooled_scores(work, runs, (runs[0].inside, *sets)) for runs, _ in plans}
    n = min(len(runs) for runs, _ in plans)
    panels = [{**_pia_panel(measure, scores), "n": n} for measure in ("EU", "TU")]
    told = [{key: value for key, value in panel.items() if key != "scores"} for panel in panels]
    return drawing.draw_pia(panels), told


def _pia_panel(measure: str, scores: dict[str, dict[str, dict[str, Array]]]) -> dict[str, Any]:
    by_kept = {J: {name: found[f"credal.{measure}"] for name, found in row.items()} for J, row in scores.items()}
    quantiles = {J: {name: _quantiles(values) for name, values in row.items()} for J, row in by_kept.items()}
    return {"title": f"Credal {measure}", "measure": measure, "scores": by_kept, "quantiles": quantiles}
