"""From the declaration of a figure, or of numbers with intervals over inputs, to its picture and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.core.scores import SCORES
from credalens.plots import merge_to_three
from credalens_paper.data.load import load_human_counts
from credalens_paper.experiments import paper_entries as declared
from credalens_paper.experiments.cell_keys import EVERY, CellKey, display_name
from credalens_paper.experiments.ensembles import EvaluationSet, evaluation_sets, ood_sets
from credalens_paper.experiments.index import DESCRIPTIONS, Drawn
from credalens_paper.experiments.own_entries import SIDES, EstimatesEntry
from credalens_paper.measures.assessment import Extras
from credalens_paper.measures.estimates import Estimate, auroc_estimates, correlation_estimates, share_estimate
from credalens_paper.measures.guarding import Halves
from credalens_paper.pipeline.fill.table import statistics
from credalens_paper.pipeline.plan import ALL, Measured, Plan, Workbench
from credalens_paper.pipeline.runs import Run, assess, intervals_of, members_of
from credalens_paper.results import drawing
from credalens_paper.results.drawing import draw_estimates
from credalens_paper.results.records import FigureResult, Line, Panel

Array = NDArray[Any]
Scores = Mapping[str, Array]
Parts = dict[str, Sequence[Estimate]]  # what a panel shows, by its metric
KINDS: Final = {"TU": "total", "EU": "epistemic", "AU": "aleatoric"}
GUARDED: Final = ("total", "mean_total", "epistemic", "mean_epistemic")
"""Scores of the guards that stand beside the AUROCs here; `GuardPromises` has more."""
RESAMPLES: Final = 50
"""For each repeat of the preset, 1000 in all but the smallest; a guard has as many random halves as there are repeats."""
SIBLINGS: Final = (*KINDS.values(), "least_confidence")
"""Scores of the credal set; "mean_" stands before the name of the one of averaging that each takes the place of."""
LESS: Final = "credal less averaged"


def estimate_panels(work: Workbench, entry: EstimatesEntry, /) -> Measured:
    """Make the predictions, measure every model that has them, and draw what was measured."""
    plans = [work.plan(model) for model in entry.models]
    work.make(plans)
    measure = {"detection": _detection, "disagreement": _disagreement}[entry.of]
    pairs = zip(entry.models, plans, strict=True)
    panels = [panel for model, plan in pairs for panel in _panels(work, measure, model, plan)]
    drawn = [panel for panel in panels if panel.estimates]
    return plans, panels, draw_estimates(drawn) if drawn else None


def _panels(work: Workbench, measure: Any, model: CellKey, plan: Plan) -> list[Panel]:
    """A panel for each metric of a model, or one with the reason why there is none."""
    backbone = display_name(work.job.preset.substitute("backbone", model.backbone))
    panel = Panel(title=f"{backbone} {model.method}", keys=model, substitutes=work.substitutes(model))
    runs = work.whole_runs(plan)
    if not runs:
        return [replace(panel, reason=plan.reason)]
    try:
        parts: Parts = measure(work, runs, plan)
    except FileNotFoundError as error:
        return [replace(panel, reason=str(error))]
    panel = replace(panel, n=len(runs), missing=plan.missing or None)
    return [replace(panel, metric=metric, estimates=tuple(estimates)) for metric, estimates in parts.items()]


def _detection(work: Workbench, runs: Sequence[Run], plan: Plan) -> Parts:
    names = {SCORES[name].label: name for name in SIDES}
    pairs = {f"{a} less {b}": (a, b) for a, b in ((SCORES[x].label, SCORES[f"mean_{x}"].label) for x in SIBLINGS)}
    inside, outside = ([_scores(work, run, images, names) for run in runs] for images in (runs[0].inside, plan.sets[0]))
    aurocs, gains = auroc_estimates(inside, outside, pairs)
    guards = [one for score in GUARDED for one in _alarm_shares(work, inside, outside, SCORES[score].label)]
    return {"AUROC (%)": aurocs, f"AUROC, {LESS}": gains, "Guard (%)": guards}


def _scores(work: Workbench, run: Run, images: EvaluationSet, names: Mapping[str, str]) -> dict[str, Array]:
    """Scores of the catalogue, each under the name that it is shown by."""
    scores = assess(work.job, run, images, extras=Extras(frozenset(names.values()))).scores
    return {shown: scores[f"{SIDES[name]}.{name}"] for shown, name in names.items()}


def _alarm_shares(work: Workbench, inside: Sequence[Scores], outside: Sequence[Scores], name: str) -> list[Estimate]:
    """Guards that promise 5 % false alarms, learnt from random halves of the test inputs: alarms in the others, and outside."""
    count, halves, caught = len(inside[0][name]), Halves(0, work.job.preset.repeats), []
    asked, false = np.zeros(count), np.zeros(count)
    for known, unknown in zip(inside, outside, strict=True):
        for learnt, threshold in halves.fitted(known[name]):
            asked[~learnt] += 1
            false[~learnt] += known[name][~learnt] > threshold
            caught.append(unknown[name] > threshold)
    false_alarms = share_estimate(f"false alarms, {name}", [false[asked > 0] / asked[asked > 0]])
    return [false_alarms, share_estimate(f"caught, {name}", caught)]


def _disagreement(work: Workbench, runs: Sequence[Run], plan: Plan) -> Parts:
    counts = load_human_counts(runs[0].id_set, work.job.data_folder)[: work.job.preset.test_images]
    people = counts / counts.sum(axis=-1, keepdims=True)
    entropy = -(people * np.log2(np.where(people > 0, people, 1))).sum(axis=-1)
    names = {f"credal {kind}": score for kind, score in KINDS.items()}
    names |= {f"averaged {kind}": f"mean_{score}" for kind, score in KINDS.items()}
    pairs = {f"{kind}, {LESS}": (f"credal {kind}", f"averaged {kind}") for kind in KINDS}
    pairs["credal AU less credal EU"] = ("credal AU", "credal EU")
    scores = [_scores(work, run, run.inside, names) for run in runs]
    correlations, gains = correlation_estimates(scores, entropy, pairs, resamples=RESAMPLES * work.job.preset.repeats)
    held = _held(work, runs, people, counts)
    return {"Rank correlation": correlations, "Rank correlation, difference": gains, "Held (%)": held}


def _held(work: Workbench, runs: Sequence[Run], people: Array, counts: Array) -> list[Estimate]:
    """How often the intervals hold what people say: of all classes at once, and of each; exactly, and up to half an answer."""
    margins = {"": 0.0, ", up to half an answer": 0.5 / counts.sum(axis=-1, keepdims=True)}
    bounds = [intervals_of(work.job, run, run.inside) for run in runs]
    estimates = []
    for words, margin in margins.items():
        held = [(people >= lower - margin) & (people <= upper + margin) for lower, upper in bounds]
        estimates.append(share_estimate(f"all classes{words}", [inside.all(axis=-1) for inside in held]))
        estimates.append(share_estimate(f"a class{words}", [inside.mean(axis=-1) for inside in held]))
    return estimates


VISIBLE: Final = 0.1  # A probability that shows in a triangle


def _simplex(work: Workbench, figure: declared.ModelFigure) -> Measured:
    """The figure of triangles and its members, or the reason why there is none."""
    outside = evaluation_sets("svhn", work.job.preset)
    plans = [work.plan(model, sets=outside, many=figure.many, most=1) for model in figure.models]
    work.make(plans)
    for plan in plans:
        if not work.whole_runs(plan):
            return plans, [Panel(title=figure.label, reason=plan.reason)], None
    runs = [plan.available[0] for plan in plans]
    pair, cases = _cases(work, runs[0], outside[0])
    names = work.job.images.class_names(runs[0].id_set)
    panels = [
        Panel(
            title=f"{case}, N = {run.ensemble.N}",
            keys=model,
            substitutes=work.substitutes(model),
            set=images.key,
            index=index,
            members=_rows(merge_to_three(members_of(work.job, run, images)[:, index], classes=pair)),
        )
        for model, run in zip(figure.models, runs, strict=True)
        for case, (images, index) in cases.items()
    ]
    labels = (*(names[label] for label in pair), "others")
    return plans, panels, drawing.draw_simplex(panels, labels, len(cases))


def _rows(members: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, np.asarray(members, np.float64).tolist()))


def _cases(
    work: Workbench, run: Run, outside: EvaluationSet
) -> tuple[tuple[int, int], dict[str, tuple[EvaluationSet, int]]]:
    """The two classes that are confused most, and an input of each kind: right and wrong ones of these classes, OOD.

    Of each kind the input of median EU is taken, among those of which the members can see either class.
    """
    labels = np.asarray(work.job.images.labels(run.id_set))
    inside, beyond = assess(work.job, run, run.inside), assess(work.job, run, outside)
    predicted = inside.points["credal"].argmax(axis=-1)
    pair = _confused(labels, predicted)
    of_pair, right = np.isin(labels, pair), predicted == labels
    shares = (members_of(work.job, run, images)[..., list(pair)].max(axis=0) for images in (run.inside, outside))
    visible, visible_ood = (np.asarray((share >= VISIBLE).all(axis=-1)) for share in shares)
    return pair, {
        "Right": (run.inside, _median(inside.scores["credal.EU"], of_pair & right & visible, of_pair & right)),
        "Wrong": (run.inside, _median(inside.scores["credal.EU"], of_pair & ~right & visible, ~right)),
        "OOD": (outside, _median(beyond.scores["credal.EU"], visible_ood, np.ones_like(visible_ood))),
    }


def _confused(labels: Array, predicted: Array) -> tuple[int, int]:
    """The two classes most often taken for each other; the first two where nothing is."""
    classes = int(max(labels.max(), predicted.max())) + 1
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (labels, predicted), 1)
    first, second = np.triu_indices(classes, 1)
    worst = int((counts + counts.T)[first, second].argmax())
    return int(first[worst]), int(second[worst])


def _median(scores: Array, wanted: Array, otherwise: Array) -> int:
    """The input of median score among the wanted ones, or among others where there are none."""
    among = next((np.flatnonzero(mask) for mask in (wanted, otherwise) if mask.any()), np.arange(len(scores)))
    return int(among[np.argsort(scores[among], kind="stable")[len(among) // 2]])


def _bars(work: Workbench, figure: declared.ModelFigure) -> Measured:
    """The figure of bars and its members, or the reason why there is none."""
    [model] = figure.models
    plan = work.plan(model, sets=evaluation_sets(f"{model.id_set}-c", work.job.preset), most=1)
    work.make([plan])
    if not work.whole_runs(plan):
        return [plan], [Panel(title=figure.label, reason=plan.reason)], None
    run = plan.available[0]
    labels = np.asarray(work.job.images.labels(run.id_set))
    corrupted, row = _most_telling(work, run, plan.sets, labels)
    index = range(len(labels))[corrupted.rows][row]
    corruption = f"{corrupted.corruption.replace('_', ' ')}, severity {corrupted.severity}"
    panels = [
        Panel(
            title=title,
            set=images.key,
            index=index,
            true_class=int(labels[index]),
            class_names=work.job.images.class_names(run.id_set),
            members=_rows(members_of(work.job, run, images)[:, at]),
        )
        for title, images, at in (("Test image", run.inside, index), (corruption, corrupted, row))
    ]
    return [plan], panels, drawing.draw_bars(panels)


def _most_telling(
    work: Workbench, run: Run, sets: tuple[EvaluationSet, ...], labels: Array
) -> tuple[EvaluationSet, int]:
    """The corrupted image whose true class gains most by the intersection probability, if it can one that it rescues.

    Rescued: the intersection probability is right, the averaged one wrong, and both were right before.
    """
    before = [point.argmax(axis=-1) == labels for point in assess(work.job, run, run.inside).points.values()]
    candidates: list[tuple[bool, float, EvaluationSet, int]] = []
    for images in sets:
        points, true = assess(work.job, run, images).points, labels[images.rows]
        place = np.arange(len(true))
        gain = points["credal"][place, true] - points["classical"][place, true]
        rescued = (points["credal"].argmax(-1) == true) & (points["classical"].argmax(-1) != true)
        rescued &= (before[0] & before[1])[images.rows]
        index = int((gain + 2 * rescued).argmax())
        candidates.append((bool(rescued[index]), float(gain[index]), images, index))
    *_, images, index = max(candidates, key=lambda candidate: candidate[:2])
    return images, index


QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


def figure_result(work: Workbench, figure: Drawn, /) -> FigureResult:
    """Make what a figure shows, draw it into the store, and give its numbers; a reason where nothing can be shown."""
    kind = figure.shows if isinstance(figure, declared.ModelFigure) else type(figure)
    plans, panels, picture = MEASURES[kind](work, figure)
    store, preset, panels = work.job.store, work.job.preset, tuple(panels)
    files = () if picture is None else drawing.save_picture(picture, store, figure.label, preset)
    return FigureResult(
        label=figure.label,
        kind="figure",
        description=DESCRIPTIONS[figure.label],
        files=files,
        panels=panels,
        **work.closing(plans, panels),
    )


def _concept(work: Workbench, figure: declared.ConceptFigure) -> Measured:
    panels = [Panel(title=title, members=declared.WEATHER) for title, _ in figure.panels]
    return (), panels, drawing.draw_concept(declared.WEATHER, figure.panels)


def _severities(work: Workbench, figure: declared.SeverityFigure) -> Measured:
    """All numbers are made before the first line is drawn, so that a run can be stopped after a stage."""
    plans = [{name: work.plan(cell, many=figure.many) for name, cell in panel.series} for panel in figure.panels]
    every = [plan for lines in plans for plan in lines.values()]
    work.make(every)
    panels = [_severity_panel(work, panel, lines) for panel, lines in zip(figure.panels, plans, strict=True)]
    drawn = any(panel.series for panel in panels)
    return every, panels, drawing.draw_severities(panels) if drawn else None


def _severity_panel(work: Workbench, panel: declared.Panel, plans: Mapping[str, Plan]) -> Panel:
    """A line for each cell that has numbers, and the reasons for the others.

    Where some of the corrupted images are enough the title says at which size, and how many of the inputs are corrupted.
    """
    preset, first, size = work.job.preset, panel.series[0][1], ""
    if preset.few_corrupted:
        share = f", 1 in {EVERY + 1}" if panel.metric.startswith("AUPRC") else ""
        size = f" ({preset.pixels(str(first.backbone))} px{share})"
    lines: dict[str, Line] = {}
    missing: dict[str, str] = {}
    for name, cell in panel.series:
        plan = plans[name]
        missing |= {name if runs == ALL else f"{name}, {runs}": reason for runs, reason in plan.missing.items()}
        if work.whole_runs(plan):
            levels = [evaluation_sets(str(cell.ood_set), preset, severity=severity) for severity in preset.severities]
            points = [statistics(list(work.values(plan, sets).values())) for sets in levels]
            means, stds, counts = zip(*((point.mean, point.std, point.n) for point in points), strict=True)
            lines[name] = Line(name, preset.severities, means, stds, counts)
        elif plan.available:
            missing[name] = plan.reason
    titled = replace(_titled(work, f"{panel.title}{size}", first), metric=panel.metric)
    if not lines:
        return replace(titled, reason=next(iter(missing.values())))
    return replace(titled, series=tuple(lines.values()), missing=missing)


def _titled(work: Workbench, title: str, cell: CellKey) -> Panel:
    """A panel under the name of the backbone that was measured."""
    backbone = work.job.preset.substitute("backbone", cell.backbone)
    title = title.replace(display_name(cell.backbone), display_name(backbone))
    return Panel(title=title, keys=cell, substitutes=work.substitutes(cell))


def _densities(work: Workbench, figure: declared.ModelFigure) -> Measured:
    plans = [work.plan(model, sets=ood_sets(work.job.preset)) for model in figure.models]
    work.make(plans)
    panels = [panel for model, plan in zip(figure.models, plans, strict=True) for panel in _density(work, model, plan)]
    drawn = [(panel, scores) for panel, scores in panels if scores]
    return plans, [panel for panel, _ in panels], drawing.draw_densities(drawn) if drawn else None


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


def _pia(work: Workbench, figure: declared.ModelFigure) -> Measured:
    plans = [work.plan(model, sets=ood_sets(work.job.preset)) for model in figure.models]
    work.make(plans)
    runs = [work.whole_runs(plan) for plan in plans]
    for plan, whole in zip(plans, runs, strict=True):
        if not whole:
            return plans, [Panel(title="PIA", reason=plan.reason)], None
    scores = {str(whole[0].J): _pooled_scores(work, whole, plan.sets) for plan, whole in zip(plans, runs, strict=True)}
    panels: list[tuple[Panel, dict[str, Scores]]] = []
    for measure in ("EU", "TU"):
        chosen = {J: {name: of[f"credal.{measure}"] for name, of in sets.items()} for J, sets in scores.items()}
        quantiles = {J: {name: _quantiles(values) for name, values in sets.items()} for J, sets in chosen.items()}
        panel = Panel(title=f"Credal {measure}", measure=measure, n=min(map(len, runs)), quantiles=quantiles)
        panels.append((panel, dict(chosen)))
    return plans, [panel for panel, _ in panels], drawing.draw_pia(panels)


MEASURES: Final[Mapping[str | type[Any], Callable[[Workbench, Any], Measured]]] = {
    declared.SeverityFigure: _severities,
    "densities": _densities,
    "pia": _pia,
    "simplex": _simplex,
    "bars": _bars,
    declared.ConceptFigure: _concept,
    EstimatesEntry: estimate_panels,
}
"""By the kind of a declaration, or what it shows of models, what makes its panels, its picture and the plans they come from."""
