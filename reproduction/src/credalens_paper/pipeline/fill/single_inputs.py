"""The figures that show single inputs: which ones they choose, and what the members say about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.plots import merge_to_three
from credalens_paper.experiments import figures as declared
from credalens_paper.experiments.ensembles import EvaluationSet, evaluation_sets
from credalens_paper.pipeline.fill.result_facts import substitutes
from credalens_paper.pipeline.plan import Plan, Workbench
from credalens_paper.pipeline.runs import Run, assess, members_of
from credalens_paper.results import drawing
from credalens_paper.results.records import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[Any]
Measured = tuple[list[Plan], list[Panel], "Figure | None"]
VISIBLE: Final = 0.1
"""A probability that shows in a triangle."""


def simplex_panels(work: Workbench, figure: declared.SimplexFigure, /) -> Measured:
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
            substitutes=substitutes(work, model),
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
    visible, visible_ood = (_visible(work, run, images, pair) for images in (run.inside, outside))
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


def _visible(work: Workbench, run: Run, images: EvaluationSet, pair: tuple[int, int]) -> Array:
    """Inputs for which some member gives each of the two classes a share that can be seen."""
    return np.asarray((members_of(work.job, run, images)[..., list(pair)].max(axis=0) >= VISIBLE).all(axis=-1))


def _median(scores: Array, wanted: Array, otherwise: Array) -> int:
    """The input of median score among the wanted ones, or among others where there are none."""
    among = next((np.flatnonzero(mask) for mask in (wanted, otherwise) if mask.any()), np.arange(len(scores)))
    return int(among[np.argsort(scores[among], kind="stable")[len(among) // 2]])


def bars_panels(work: Workbench, figure: declared.BarsFigure, /) -> Measured:
    """The figure of bars and its members, or the reason why there is none."""
    plan = work.plan(figure.model, sets=evaluation_sets(f"{figure.model.id_set}-c", work.job.preset), most=1)
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
