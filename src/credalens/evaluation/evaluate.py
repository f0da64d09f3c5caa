"""``evaluate``: from member predictions to one result, which tables, report and ``report.json`` read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from credalens import __version__
from credalens.checks.labels import read_labels
from credalens.checks.options import check_base, check_bins, check_count, check_fraction, escaped, escaped_names
from credalens.core.scores import highest_possible
from credalens.evaluation.breakdown import TRUE_CLASS, RowOutcomes, break_down, read_columns
from credalens.evaluation.data_sets import ScoredSet, open_sources, score_names, score_source
from credalens.evaluation.detection import detect, detection_curves, score_qualities, scores_of_mistakes
from credalens.evaluation.guarded import alarms, guard_of, guard_outcomes
from credalens.evaluation.images import check_images
from credalens.evaluation.members_needed import members_needed
from credalens.evaluation.outcome import ID_NAME, DataSet, DataSets, Evaluation, IDData, Settings
from credalens.evaluation.prediction_quality import JudgedRows, PredictionQuality, prediction_quality
from credalens.evaluation.single_inputs import worst_samples
from credalens.evaluation.statistics.bootstrap import Resampling
from credalens.evaluation.which_score import Recommendation, recommend
from credalens.storage.source import Progress, Source

NOTHING: Mapping[str, Any] = MappingProxyType({})


def evaluate(
    members: Any,
    ood: Mapping[str, Any] = NOTHING,
    *,
    labels: Any = None,
    logits: bool = False,
    base: float = 2,
    bins: int = 15,
    false_alarm_rate: float = 0.05,
    level: float = 0.95,
    replicates: int = 300,
    seed: int = 0,
    id_name: str = ID_NAME,
    class_names: Sequence[str] | None = None,
    groups: Mapping[str, Any] | None = None,
    images: Any = None,
    full_paths: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Compare credal with averaged prediction on ID data and on OOD data sets, name -> member predictions.

    Predictions are arrays (members, rows, classes) or files from ``open_predictions``, which are read by rows.
    Accuracy, calibration, sets and selective prediction need ``labels``, the true classes of the ID rows; detection
    needs OOD data, and is left out where ``ood`` is empty. ``groups``, column -> one value for each ID row, asks for the
    same numbers by site, device, month or anything else. ``images``, data set -> one image for each row, or those of the ID
    rows alone, are shown in the report. Of a file the result keeps the name, and its folder only with ``full_paths``; control
    characters in names are written out as in JSON.

    >>> rng = np.random.default_rng(0)
    >>> sharp, flat = rng.dirichlet([60, 2, 2], size=(5, 40)), rng.dirichlet([1, 1, 1], size=(5, 40))
    >>> evaluation = evaluate(sharp, labels=np.zeros(40, int), ood={"noise": flat})
    >>> evaluation.ood[0].epistemic.credal.auroc > 0.9, evaluation.calibration.intersection.accuracy
    (True, 1.0)
    """
    if labels is None and isinstance(ood, Mapping) and not ood:
        raise ValueError(
            "nothing to evaluate: give labels of the ID data, for accuracy and calibration (--labels FILE), OOD data sets, "
            "for detection (--ood NAME=FILE), or both."
        )
    id_source, ood_sources = open_sources(id_name, members, ood, logits=logits)
    truth = None if labels is None else read_labels(labels, "labels", np.broadcast_to(0, id_source.shape[1:]))
    settings = Settings(
        base=check_base(base),
        logits=logits,
        bins=check_bins(bins),
        false_alarm_rate=check_fraction(false_alarm_rate, "false_alarm_rate"),
        level=check_fraction(level, "level"),
        replicates=check_count(replicates, "replicates"),
        seed=seed,
    )
    resampling = Resampling(settings.level, settings.replicates, seed)
    data = _data_sets(id_source, ood_sources, class_names, labelled=truth is not None, full_paths=full_paths)
    columns = read_columns(groups, id_source.rows)
    all_images = check_images(images, data)
    report = progress or (lambda what, done, of: None)

    id_set, *ood_sets = _score_all([id_source, *ood_sources], truth is not None, base, threads, report)
    step = _counter("intervals", len(ood_sets) * replicates, report)
    quality = None if truth is None else prediction_quality(id_set, truth, bins=bins, resampling=resampling)
    choices = _choices(id_set, ood_sets, quality, settings)
    thresholds = alarms(id_set, ood_sets, settings.false_alarm_rate, settings.base)
    samples = worst_samples(id_set, ood_sets, truth)
    if truth is not None:
        columns = {TRUE_CLASS: np.array(data.class_names, object)[truth], **columns}
    score, rate = choices.detection.score, settings.false_alarm_rate
    correct = choices.judged.correct if choices.judged else None
    return Evaluation(
        version=__version__,
        settings=settings,
        data=data,
        recommended=choices.detection,
        rejection=choices.rejection,
        point=quality.point if quality else None,
        scores=score_qualities(id_set, ood_sets, correct, level=settings.level),
        ood=tuple(detect(id_set, ood_set, resampling, step=step) for ood_set in ood_sets),
        calibration=quality.calibration if quality else None,
        selective=quality.selective if quality else None,
        sets=quality.sets if quality else None,
        mean_set_size=id_set.mean_set_size(),
        thresholds=thresholds,
        guard=guard_of(
            id_set,
            score=score,
            rate=rate,
            base=settings.base,
            point=quality.point.prediction if quality else "intersection",
        ),
        outcomes=guard_outcomes(
            id_set, ood_sets, correct, score=score, base=settings.base, rate=rate, seed=settings.seed
        ),
        curves=detection_curves(id_set, ood_sets, choices.detection.score),
        members_needed=members_needed(
            id_source, ood_sources, truth, threads=threads, report=lambda done, of: report("members", done, of)
        ),
        groups=break_down(
            columns,
            RowOutcomes(choices.judged, id_set.scores[choices.detection.score]),
            [alarm for alarm in thresholds if alarm.score == choices.detection.score],
            settings.false_alarm_rate,
            level=settings.level,
        ),
        samples=samples,
        values={scored.name: scored.scores for scored in (id_set, *ood_sets)},
        judged=choices.judged,
        pictures={(one.set, one.row): all_images[one.set][one.row] for one in samples if one.set in all_images},
    )


class _Choices(NamedTuple):
    """What to use for detection and, with labels, for rejection; the predictions of the recommended kind."""

    detection: Recommendation
    rejection: Recommendation | None
    judged: JudgedRows | None


def _choices(
    id_set: ScoredSet, ood_sets: list[ScoredSet], quality: PredictionQuality | None, settings: Settings
) -> _Choices:
    members, _, classes = id_set.source.shape
    choose = partial(
        recommend,
        highest={
            name: highest_possible(name, classes=classes, members=members, base=settings.base) for name in id_set.scores
        },
        false_alarm_rate=settings.false_alarm_rate,
        level=settings.level,
        seed=settings.seed,
    )
    detection = choose(id_set.scores, {one.name: one.scores for one in ood_sets})
    if quality is None:
        return _Choices(detection, None, None)
    method = "credal" if quality.point.prediction == "intersection" else "classical"
    judged = quality.judged.of(method)
    return _Choices(detection, choose(*scores_of_mistakes(id_set, judged.correct)), judged)


def _score_all(
    sources: list[Source], labelled: bool, base: float, threads: int | None, report: Progress
) -> list[ScoredSet]:
    """Score the first source, which is ID and may have labels, and the others."""
    names = score_names(sources[0].shape[2])
    count = _counter("scoring", sum(source.rows for source in sources), report)
    return [
        score_source(
            source,
            names=names,
            labelled=labelled and source is sources[0],
            in_distribution=source is sources[0],
            base=base,
            threads=threads,
            report=count,
        )
        for source in sources
    ]


def _counter(what: str, of: int, report: Progress) -> Callable[..., None]:
    """A function to call with how much more is done, one step by default; nothing is said where there is nothing to do."""
    done = 0
    if of:
        report(what, done, of)

    def step(more: int = 1) -> None:
        nonlocal done
        done += more
        report(what, done, of)

    return step


def _data_sets(
    id_source: Source,
    ood_sources: list[Source],
    class_names: Sequence[str] | None,
    *,
    labelled: bool,
    full_paths: bool,
) -> DataSets:
    members, rows, classes = id_source.shape

    def file_of(source: Source) -> str | None:
        return source.file and escaped(source.file if full_paths else PurePath(source.file).name)

    return DataSets(
        members,
        classes,
        _class_names(class_names, classes),
        IDData(id_source.name, file_of(id_source), rows, labelled),
        tuple(DataSet(source.name, file_of(source), source.rows) for source in ood_sources),
    )


def _class_names(names: Sequence[str] | None, classes: int) -> list[str]:
    if names is None:
        return [str(k) for k in range(classes)]
    if isinstance(names, str) or len(names) != classes:
        raise ValueError(f"class_names must be {classes} names, one for each class; got {len(names)}.")
    escaped_names(dict.fromkeys(names), "a class")  # equal names are allowed: ImageNet has two classes "crane"
    return [escaped(name) for name in names]
