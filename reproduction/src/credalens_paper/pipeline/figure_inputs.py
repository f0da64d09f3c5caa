"""The figures that show single inputs: which ones they choose, and what the members say about them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.plots import merge_to_three
from credalens_paper.experiments import figures as declared
from credalens_paper.experiments.cells import EvaluationSet, evaluation_sets
from credalens_paper.pipeline.evaluate import Evaluation
from credalens_paper.pipeline.tables import about_cell
from credalens_paper.pipeline.work import Workbench
from credalens_paper.results import drawing as drawing

__all__ = ["bars_panels", "simplex_panels"]

Array = NDArray[Any]
Made = tuple[Any, list[dict[str, Any]]]
VISIBLE: Final = 0.1
"""A probability that shows in a triangle."""


def simplex_panels(work: Workbench, figure: declared.SimplexFigure, /) -> Made:
    """The figure of triangles and its members, or the reason why there is none."""
    (outside,) = evaluation_sets("svhn", work.preset)
    plans = work.ready([(model, (outside,)) for model in figure.models], many=figure.many, most=1)
    reason = next((reason for _, reason in plans if reason is not None), None)
    if reason is not None:
        return None, [{"title": figure.label, "reason": reason}]
    runs = [ready[0] for ready, _ in plans]
    pair, cases = _cases(work, runs[0], outside)
    every = work.images.class_names(runs[0].id_set)
    names = (*(every[label] for label in pair), "others")
    panels = []
    for model, run in zip(figure.models, runs, strict=True):
        for case, (one, index) in cases.items():
            members = merge_to_three(work.evaluator.members(run, one)[:, index], classes=pair)
            about = {"title": f"{case}, N = {run.ensemble.N}", **about_cell(work, model)}
            panels.append({**about, "set": one.key, "index": index, "members": members.tolist()})
    # Sizes that a preset makes equal would share a title: only the first is drawn then.
    samples: dict[str, Any] = {}
    for panel in panels:
        samples.setdefault(str(panel["title"]), panel["members"])
    return drawing.draw_simplex(samples, names, len(cases)), panels


def _cases(
    work: Workbench, run: Evaluation, outside: EvaluationSet
) -> tuple[tuple[int, int], dict[str, tuple[EvaluationSet, int]]]:
    """The two classes that are confused most, and an input of each kind: right and wrong ones of these classes, OOD.

    Of each kind the input of median EU is taken, among those of which the members can see either class.
    """
    labels = np.asarray(work.images.labels(run.id_set))
    inside, beyond = work.evaluator.assess(run, run.inside), work.evaluator.assess(run, outside)
    predicted = inside.points["credal"].argmax(axis=-1)
    pair = _confused(labels, predicted)
    own, right = np.isin(labels, pair), predicted == labels
    doubted, strange = (_visible(work, run, one, pair) for one in (run.inside, outside))
    return pair, {
        "Right": (run.inside, _median(inside.scores["credal.EU"], own & right & doubted, own & right)),
        "Wrong": (run.inside, _median(inside.scores["credal.EU"], own & ~right & doubted, ~right)),
        "OOD": (outside, _median(beyond.scores["credal.EU"], strange, np.ones_like(strange))),
    }


def _confused(labels: Array, predicted: Array) -> tuple[int, int]:
    """The two classes most often taken for each other; the first two where nothing is."""
    classes = int(max(labels.max(), predicted.max())) + 1
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (labels, predicted), 1)
    first, second = np.triu_indices(classes, 1)
    worst = int((counts + counts.T)[first, second].argmax())
    return int(first[worst]), int(second[worst])


def _visible(work: Workbench, run: Evaluation, one: EvaluationSet, pair: tuple[int, int]) -> Array:
    """Inputs for which some member gives each of the two classes a share that can be seen."""
    return np.asarray((work.evaluator.members(run, one)[..., list(pair)].max(axis=0) >= VISIBLE).all(axis=-1))


def _median(scores: Array, wanted: Array, otherwise: Array) -> int:
    """The input of median score among the wanted ones, or among others where there are none."""
    among = next((np.flatnonzero(found) for found in (wanted, otherwise) if found.any()), np.arange(len(scores)))
    return int(among[np.argsort(scores[among], kind="stable")[len(among) // 2]])


def bars_panels(work: Workbench, figure: declared.BarsFigure, /) -> Made:
    """The figure of bars and its members, or the reason why there is none."""
    sets = evaluation_sets(f"{figure.model.id_set}-c", work.preset)
    ((runs, reason),) = work.ready([(figure.model, sets)], most=1)
    if reason is not None:
        return None, [{"title": figure.label, "reason": reason}]
    run = runs[0]
    labels = np.asarray(work.images.labels(run.id_set))
    one, index = _telling(work, run, sets, labels)
    names = work.images.class_names(run.id_set)
    panels = [
        {
            "title": title,
            "set": which.key,
            "index": index,
            "true_class": int(labels[index]),
            "class_names": list(names),
            "members": np.asarray(work.evaluator.members(run, which)[:, index], np.float64).tolist(),
        }
        for title, which in (
            ("Test image", run.inside),
            (f"{one.corruption.replace('_', ' ')}, severity {one.severity}", one),
        )
    ]
    return drawing.draw_bars(panels), panels


def _telling(
    work: Workbench, run: Evaluation, sets: tuple[EvaluationSet, ...], labels: Array
) -> tuple[EvaluationSet, int]:
    """The corrupted image whose true class gains most by the intersection probability, if it can one that it rescues.

    Rescued: the intersection probability is right, the averaged one wrong, and both were right before.
    """
    place = np.arange(len(labels))
    before = [point.argmax(axis=-1) == labels for point in work.evaluator.assess(run, run.inside).points.values()]
    best: tuple[bool, float, EvaluationSet, int] | None = None
    for one in sets:
        points = work.evaluator.assess(run, one).points
        gain = points["credal"][place, labels] - points["classical"][place, labels]
        rescued = (points["credal"].argmax(-1) == labels) & (points["classical"].argmax(-1) != labels)
        rescued &= before[0] & before[1]
        index = int((gain + 2 * rescued).argmax())
        found = (bool(rescued[index]), float(gain[index]), one, index)
        best = found if best is None or found[:2] > best[:2] else best
    if best is None:
        raise ValueError("a picture of a corrupted image needs at least one corruption")
    return best[2], best[3]
