"""From a figure's declaration to its picture and its numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.paper import paper_figures as declared
from credalens.paper import paper_figures_draw as drawing
from credalens.paper.experiments import CellKey, EvaluationSet, evaluation_sets
from credalens.paper.numbers import describe
from credalens.paper.rendering_names import shown
from credalens.paper.reproduce_evaluate import Evaluation
from credalens.paper.reproduce_figures_inputs import bars_panels, simplex_panels
from credalens.paper.reproduce_tables import statistics
from credalens.paper.reproduce_work import Need, Workbench
from credalens.report.saving import save_figure

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
    work.make(need for lines in plans for _, _, needs in lines for level in needs for need in level)
    panels = [_severity_panel(work, panel, lines) for panel, lines in zip(figure.panels, plans, strict=True)]
    return _drawn(panels, drawing.draw_severities, figure.columns), panels


def _as_measured(work: Workbench, title: str) -> str:
    """A panel's title with the backbone that was measured, where the preset puts another in the place of the paper's."""
    for paper, own in work.preset.substitutes.get("backbone", {}).items():
        title = title.replace(shown(paper), f"{shown(own)} for {shown(paper)}")
    return title


def _plan(work: Workbench, cell: CellKey, *, many: bool) -> tuple[str | None, list[list[Need]]]:
    """What is in the way of a line, or the numbers it needs at each severity."""
    reason = work.excluded(cell, many=many)
    needs = [] if reason else _by_severity(work, cell, many=many)
    reason = reason or work.obstacle(need for level in needs for need in level)
    return reason, [] if reason else needs


def _severity_panel(
    work: Workbench, panel: declared.Panel, lines: list[tuple[str, str | None, list[list[Need]]]]
) -> dict[str, Any]:
    about: dict[str, Any] = {"title": _as_measured(work, panel.title), "metric": panel.metric}
    series, missing = [], {}
    for name, reason, needs in lines:
        if reason is None and not any(work.whole(need.evaluation.ensemble) for need in needs[0]):
            reason = f"all {len(needs[0])} runs diverged"
        if reason is None:
            series.append({"name": name, **_line(work, needs)})
        else:
            missing[name] = reason
    if not series:
        return {**about, "reason": next(iter(missing.values()))}
    return {**about, "series": series, "missing": missing}


def _by_severity(work: Workbench, cell: CellKey, *, many: bool) -> list[list[Need]]:
    return [
        [
            Need(need.evaluation, evaluation_sets(str(cell.ood_set), work.preset, severity=severity), need.name)
            for need in work.needs(cell, many=many)
        ]
        for severity in work.preset.severities
    ]


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
    return _drawn(panels, drawing.draw_densities, 4), told


def _density_panels(
    work: Workbench, model: CellKey, runs: list[Evaluation], sets: tuple[EvaluationSet, ...], reason: str | None
) -> list[dict[str, Any]]:
    kinds = [(variant, measure) for measure in ("EU", "TU") for variant in ("classical", "credal")]
    titles = [_as_measured(work, f"{shown(model.backbone)}, {variant} {measure}") for variant, measure in kinds]
    if reason is not None:
        return [{"title": title, "reason": reason} for title in titles]
    scores = _pooled_scores(work, runs, (runs[0].inside, *sets))
    return [
        _density_panel(
            title, measure, {name: found[f"{variant}.{measure}"] for name, found in scores.items()}, len(runs)
        )
        for title, (variant, measure) in zip(titles, kinds, strict=True)
    ]


def _density_panel(title: str, measure: str, scores: dict[str, Array], n: int) -> dict[str, Any]:
    id_name, *others = scores
    return {
        "title": title,
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
    panels = [_pia_panel(measure, scores) for measure in ("EU", "TU")]
    told = [{key: value for key, value in panel.items() if key != "scores"} for panel in panels]
    return drawing.draw_pia(panels), told


def _pia_panel(measure: str, scores: dict[str, dict[str, dict[str, Array]]]) -> dict[str, Any]:
    by_kept = {J: {name: found[f"credal.{measure}"] for name, found in row.items()} for J, row in scores.items()}
    quantiles = {J: {name: _quantiles(values) for name, values in row.items()} for J, row in by_kept.items()}
    return {"title": f"Credal {measure}", "measure": measure, "scores": by_kept, "quantiles": quantiles}
