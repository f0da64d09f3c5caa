"""From a figure's declaration to its picture and its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens_paper.experiments import figures as declared
from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.ensembles import EvaluationSet, evaluation_sets
from credalens_paper.experiments.paper_numbers import PAPER_FIGURES
from credalens_paper.experiments.preparations import EVERY
from credalens_paper.experiments.tables import OOD
from credalens_paper.pipeline.fill.result_facts import closing, substitutes
from credalens_paper.pipeline.fill.single_inputs import bars_panels, simplex_panels
from credalens_paper.pipeline.fill.table import statistics
from credalens_paper.pipeline.plan import ALL, Plan, Workbench
from credalens_paper.pipeline.runs import Run, assess
from credalens_paper.results import drawing
from credalens_paper.results.records import FigureResult, Line, Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scores = Mapping[str, NDArray[Any]]
QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Measured:
    """What a figure shows, the plans it comes from, and its picture; None where nothing can be shown."""

    plans: Sequence[Plan]
    panels: Sequence[Panel]
    picture: Figure | None


def figure_result(work: Workbench, figure: declared.Figure, /) -> FigureResult:
    """Make what a figure shows, draw it into the store, and give its numbers; a reason where nothing can be shown."""
    measured = _measure(work, figure)
    files: tuple[str, ...] = ()
    if measured.picture is not None:
        files = drawing.save_picture(measured.picture, work.job.store, figure.label, work.job.preset)
    panels = tuple(measured.panels)
    return FigureResult(
        label=figure.label,
        kind="figure",
        description=PAPER_FIGURES[figure.label],
        files=files,
        panels=panels,
        **closing(work, measured.plans, panels),
    )


def _measure(work: Workbench, figure: declared.Figure) -> Measured:
    match figure:
        case declared.SeverityFigure():
            return _severities(work, figure)
        case declared.DensityFigure():
            return _densities(work, figure)
        case declared.PiaFigure():
            return _pia(work, figure)
        case declared.SimplexFigure():
            return Measured(*simplex_panels(work, figure))
        case declared.BarsFigure():
            return Measured(*bars_panels(work, figure))
        case declared.ConceptFigure():
            panels = [Panel(title=title, members=declared.WEATHER) for title, _ in figure.panels]
            return Measured((), panels, drawing.draw_concept(declared.WEATHER, figure.panels))


def _titled(work: Workbench, title: str, cell: CellKey) -> Panel:
    """A panel under the name of the backbone that was measured."""
    backbone = work.job.preset.substitute("backbone", cell.backbone)
    title = title.replace(display_name(cell.backbone), display_name(backbone))
    return Panel(title=title, keys=cell, substitutes=substitutes(work, cell))


def _severities(work: Workbench, figure: declared.SeverityFigure) -> Measured:
    """All numbers are made before the first line is drawn, so that a run can be stopped after a stage."""
    plans = [{name: work.plan(cell, many=figure.many) for name, cell in panel.series} for panel in figure.panels]
    every = [plan for lines in plans for plan in lines.values()]
    work.make(every)
    panels = [_severity_panel(work, panel, lines) for panel, lines in zip(figure.panels, plans, strict=True)]
    drawn = any(panel.series for panel in panels)
    return Measured(every, panels, drawing.draw_severities(panels) if drawn else None)


def _severity_panel(work: Workbench, panel: declared.Panel, plans: Mapping[str, Plan]) -> Panel:
    first = panel.series[0][1]
    titled = replace(_titled(work, f"{panel.title}{_size(work, panel)}", first), metric=panel.metric)
    lines = {name: _line(work, name, cell, plans[name]) for name, cell in panel.series if work.whole_runs(plans[name])}
    missing: dict[str, str] = {}
    for name, plan in plans.items():
        missing |= {name if runs == ALL else f"{name}, {runs}": reason for runs, reason in plan.missing.items()}
        if plan.available and name not in lines:
            missing[name] = plan.reason
    if not lines:
        return replace(titled, reason=next(iter(missing.values())))
    return replace(titled, series=tuple(lines.values()), missing=missing)


def _size(work: Workbench, panel: declared.Panel) -> str:
    """Where some of the corrupted images are enough: at which size, and how many of the inputs are corrupted."""
    preset, backbone = work.job.preset, str(panel.series[0][1].backbone)
    share = f", 1 in {EVERY + 1}" if panel.metric.startswith("AUPRC") else ""
    return f" ({preset.pixels(backbone)} px{share})" if preset.few_corrupted else ""


def _line(work: Workbench, name: str, cell: CellKey, plan: Plan) -> Line:
    preset = work.job.preset
    levels = [evaluation_sets(str(cell.ood_set), preset, severity=severity) for severity in preset.severities]
    points = [statistics(list(work.values(plan, sets).values())) for sets in levels]
    means, stds, counts = zip(*((point.mean, point.std, point.n) for point in points), strict=True)
    return Line(name, preset.severities, means, stds, counts)


def _densities(work: Workbench, figure: declared.DensityFigure) -> Measured:
    plans = [work.plan(model, sets=_ood_sets(work)) for model in figure.models]
    work.make(plans)
    panels = [panel for model, plan in zip(figure.models, plans, strict=True) for panel in _density(work, model, plan)]
    drawn = [(panel, scores) for panel, scores in panels if scores]
    picture = drawing.draw_densities(drawn) if drawn else None
    return Measured(plans, [panel for panel, _ in panels], picture)


def _ood_sets(work: Workbench) -> tuple[EvaluationSet, ...]:
    return tuple(images for name in OOD for images in evaluation_sets(name, work.job.preset))


def _density(work: Workbench, model: CellKey, plan: Plan) -> list[tuple[Panel, Scores]]:
    """A panel with its scores for each measure, classical and credal; without scores where nothing was measured."""
    runs = work.whole_runs(plan)
    scores = _pooled_scores(work, runs, plan.sets)
    panels: list[tuple[Panel, Scores]] = []
    for variant, measure in ((variant, measure) for measure in ("EU", "TU") for variant in ("classical", "credal")):
        panel = _titled(work, f"{display_name(model.backbone)}, {variant} {measure}", model)
        if not runs:
            panels.append((replace(panel, reason=plan.reason), {}))
            continue
        chosen = {name: values[f"{variant}.{measure}"] for name, values in scores.items()}
        quantiles = {name: _quantiles(values) for name, values in chosen.items()}
        panel = replace(panel, measure=measure, n=len(runs), id_name=next(iter(chosen)), quantiles=quantiles)
        panels.append((replace(panel, missing=plan.missing or None), chosen))
    return panels


def _pooled_scores(work: Workbench, runs: Sequence[Run], sets: tuple[EvaluationSet, ...]) -> dict[str, Scores]:
    """Set, the one inside the distribution first -> score -> values of all runs one after another."""
    pooled: dict[str, Scores] = {}
    for images in (runs[0].inside, *sets) if runs else ():
        scores = [assess(work.job, run, images).scores for run in runs]
        pooled[display_name(images.name)] = {name: np.concatenate([one[name] for one in scores]) for name in scores[0]}
    return pooled


def _quantiles(values: NDArray[Any]) -> dict[str, float]:
    return {f"{share:g}": float(value) for share, value in zip(QUANTILES, np.quantile(values, QUANTILES), strict=True)}


def _pia(work: Workbench, figure: declared.PiaFigure) -> Measured:
    plans = [work.plan(replace(figure.model, J=J), sets=_ood_sets(work)) for J in figure.kept]
    work.make(plans)
    runs = [work.whole_runs(plan) for plan in plans]
    for plan, whole in zip(plans, runs, strict=True):
        if not whole:
            return Measured(plans, [Panel(title="PIA", reason=plan.reason)], None)
    scores = {str(whole[0].J): _pooled_scores(work, whole, plan.sets) for plan, whole in zip(plans, runs, strict=True)}
    panels = [_pia_panel(measure, min(map(len, runs)), scores) for measure in ("EU", "TU")]
    return Measured(plans, [panel for panel, _ in panels], drawing.draw_pia(panels))


def _pia_panel(measure: str, n: int, scores: Mapping[str, Mapping[str, Scores]]) -> tuple[Panel, dict[str, Scores]]:
    chosen = {J: {name: values[f"credal.{measure}"] for name, values in row.items()} for J, row in scores.items()}
    quantiles = {J: {name: _quantiles(values) for name, values in row.items()} for J, row in chosen.items()}
    return Panel(title=f"Credal {measure}", measure=measure, n=n, quantiles=quantiles), dict(chosen)
