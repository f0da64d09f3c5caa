"""From an entry with intervals over inputs to its numbers and its picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.core.scores import SCORES
from credalens_paper.data.load import load_human_counts
from credalens_paper.experiments.cell_keys import CellKey, display_name
from credalens_paper.experiments.ensembles import EvaluationSet
from credalens_paper.experiments.own_entries import SIDES, EstimatesEntry
from credalens_paper.measures.assessment import Extras
from credalens_paper.measures.estimates import Estimate, auroc_estimates, correlation_estimates, share_estimate
from credalens_paper.measures.guarding import Halves
from credalens_paper.pipeline.plan import Measured, Plan, Workbench
from credalens_paper.pipeline.runs import Run, assess, intervals_of
from credalens_paper.results.drawing import draw_estimates
from credalens_paper.results.records import Panel

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
