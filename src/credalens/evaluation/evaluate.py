"""``evaluate``: from member predictions to one typed result, which tables, report and ``report.json`` read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens import __version__
from credalens.checks.arrays import read_columns, read_labels
from credalens.checks.options import check_base, check_bins, check_count, check_fraction, escaped, escaped_names
from credalens.core.recalibration import Recalibration, check_recalibration, temperatures_of
from credalens.core.scores import DEFAULT, default_score, highest_possible
from credalens.evaluation.data_sets import check_images, open_sources, score_source
from credalens.evaluation.detection import Curves, Detection, ScoreQuality, detect, detection_curves, score_qualities
from credalens.evaluation.intervals import Resampling
from credalens.evaluation.labelled import RejectionCurve, SetMetrics
from credalens.evaluation.members_needed import MembersNeeded, members_needed
from credalens.evaluation.prediction_quality import Calibration, JudgedRows, PointChoice, prediction_quality
from credalens.evaluation.recalibrated import RecalibrationEffect, recalibration_effect
from credalens.evaluation.results import ByMeasure, ByMethod, Result, Settings, plain_value
from credalens.evaluation.single_inputs import Sample, worst_samples
from credalens.evaluation.thresholds import (
    TRUE_CLASS,
    Alarm,
    Breakdown,
    GuardOutcome,
    Threshold,
    alarms,
    break_down,
    guard_of,
    guard_outcomes,
)
from credalens.evaluation.which_score import Recommendation, recommend
from credalens.guard import Guard
from credalens.storage.source import Progress, Source

if TYPE_CHECKING:
    from credalens.evaluation.sentences import Summary

FORMAT: Final = "credalens-report-3"
ID_NAME: Final = "in-distribution"
"""Of the ID data where they have no other name."""
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class DataSet(Result):
    """One data set: its name, the file it was read from, without its folder as a rule, its inputs, and whether with labels."""

    name: str
    file: str | None
    rows: int
    labelled: bool


@dataclass(frozen=True)
class DataSets(Result):
    """The data that were evaluated."""

    members: int
    classes: int
    class_names: list[str]
    id: DataSet
    ood: tuple[DataSet, ...]

    def rows(self) -> dict[str, int]:
        """Name -> number of inputs of each data set, the ID data first."""
        return {one.name: one.rows for one in (self.id, *self.ood)}

    def files(self) -> str:
        """The files that were read, empty without any."""
        return "; ".join(f"{one.name}: {one.file}" for one in (self.id, *self.ood) if one.file)


@dataclass(frozen=True, eq=False)
class Evaluation(Result):
    """Result of ``evaluate``: how good credal and averaged predictions are; all shares are fractions, not percentages.

    :ivar recommended: the score to use for finding OOD inputs, and what to expect of it.
    :ivar rejection: the same for finding wrong predictions; None without labels.
    :ivar point: the point prediction to use; None without labels.
    :ivar scores: every score of the catalogue.
    :ivar ood: detection, by OOD data set; empty without any.
    :ivar calibration: accuracy, ECE, NLL and Brier score; None without labels.
    :ivar recalibration: what recalibrated members would change; None without labels, with few of them, and where members are
        recalibrated.
    :ivar selective: accuracy if uncertain inputs are turned away, by uncertainty; None without labels.
    :ivar sets: set-valued predictions, by decision rule; None without labels.
    :ivar mean_set_size: decision rule -> classes left possible on the ID data.
    :ivar thresholds: for every usual false-alarm rate and uncertainty.
    :ivar guard: decides with the recommended score at the wanted false-alarm rate; None with too few ID inputs. It is in
        ``guard.json``, not in ``report.json``.
    :ivar outcomes: what would have happened with such a guard, for every usual false-alarm rate.
    :ivar curves: ROC and PR curves and histograms, for drawing.
    :ivar members_needed: the metrics of fewer members; None with a single one.
    :ivar groups: the same by true class, and by each column of ``groups``.
    :ivar samples: the inputs worth looking at.
    :ivar values: data set -> score -> its value for every input; not in ``report.json``.
    :ivar judged: the recommended point prediction of every ID input beside its label; None without labels, and not in
        ``report.json``.
    :ivar pictures: data set and row -> the picture of a sample; not in ``report.json``.
    """

    version: str
    settings: Settings
    data: DataSets
    recommended: Recommendation
    rejection: Recommendation | None
    point: PointChoice | None
    scores: tuple[ScoreQuality, ...]
    ood: tuple[Detection, ...]
    calibration: Calibration | None
    recalibration: RecalibrationEffect | None
    selective: ByMeasure[ByMethod[RejectionCurve]] | None
    sets: dict[str, SetMetrics] | None
    mean_set_size: dict[str, float]
    thresholds: tuple[Alarm, ...]
    guard: Guard | None = field(repr=False)
    outcomes: tuple[GuardOutcome, ...]
    curves: Curves
    members_needed: MembersNeeded | None
    groups: tuple[Breakdown, ...]
    samples: tuple[Sample, ...]
    values: dict[str, dict[str, NDArray]] = field(repr=False)
    judged: JudgedRows | None = field(repr=False)
    pictures: dict[tuple[str, int], NDArray[np.uint8]] = field(repr=False)

    @cached_property
    def words(self) -> Summary:
        """The result in sentences."""
        from credalens.evaluation.sentences import summary

        return summary(self)

    @property
    def alarm(self) -> Alarm:
        """The threshold for the recommended score at the wanted false-alarm rate, and what it catches."""
        wanted = (self.recommended.score, self.settings.false_alarm_rate)
        return next(a for a in self.thresholds if (a.score, a.threshold.false_alarm_rate) == wanted)

    @property
    def threshold(self) -> Threshold:
        """The threshold of :attr:`alarm`, to keep and use again."""
        return self.alarm.threshold

    def as_dict(self) -> dict[str, Any]:
        """Everything that ``report.json`` holds, as plain values."""
        kept = [part.name for part in fields(self) if part.name not in ("guard", "values", "judged", "pictures")]
        plain = {name: plain_value(getattr(self, name)) for name in kept}
        return {"format": FORMAT, **plain, "words": self.words.as_dict()}

    def headline(self) -> dict[str, Any]:
        """As :meth:`as_dict`, without what only a picture needs."""
        return {name: part for name, part in self.as_dict().items() if name not in ("curves", "samples")}

    def to_json(self) -> str:
        """The text of ``report.json``."""
        return json.dumps(self.as_dict(), indent=1, ensure_ascii=False, allow_nan=False)

    def table(self) -> str:
        """The tables and sentences that ``credalens evaluate`` prints, as plain text of 100 columns."""
        from credalens.report.terminal import to_text

        return to_text(self)

    def report(self, folder: str | os.PathLike[str], /, **options: Any) -> Path:
        """Write the report into a folder; options as in :func:`credalens.report.write_report`, such as ``title``."""
        from credalens.report import write_report

        return write_report(self, folder, **options)

    def _repr_html_(self) -> str:
        """Show the sentences and the table of all scores in a notebook."""
        from credalens.report.page import to_notebook

        return to_notebook(self)


def evaluate(
    members: Any,
    ood: Mapping[str, Any] = NOTHING,
    *,
    labels: Any = None,
    logits: bool = False,
    recalibration: Recalibration | None = None,
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
    same numbers by site, device, month or anything else. Members are divided by the temperatures of ``recalibration``, if it is
    given, and else labels tell what it would change. ``images``, data set -> one image for each row, or those of the ID rows
    alone, are shown in the report. Of a file the result keeps the name, and its folder only with ``full_paths``; control
    characters in names are written out as in JSON.

    >>> rng = np.random.default_rng(0)
    >>> sharp, flat = rng.dirichlet([60, 2, 2], size=(5, 40)), rng.dirichlet([1, 1, 1], size=(5, 40))
    >>> evaluation = evaluate(sharp, labels=np.zeros(40, int), ood={"noise": flat})
    >>> evaluation.ood[0].epistemic.credal.auroc > 0.9, evaluation.calibration.credal.accuracy
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
        temperatures=temperatures_of(check_recalibration(recalibration)),
    )
    resampling = Resampling(settings.level, settings.replicates, seed)
    data = _data_sets(id_source, ood_sources, class_names, labelled=truth is not None, full_paths=full_paths)
    columns = read_columns(groups, id_source.rows)
    pictures = check_images(images, data.rows(), data.id.name)
    report = progress or (lambda what, done, of: None)

    step = _counter("scoring", sum(data.rows().values()), report)
    score = partial(score_source, base=base, recalibration=recalibration, threads=threads, report=step)
    id_set = score(id_source, labelled=truth is not None, in_distribution=True)
    ood_sets = [score(source, labelled=False, in_distribution=False) for source in ood_sources]
    step = _counter("intervals", len(ood_sets) * replicates, report)
    quality = prediction_quality(id_set, truth, bins=bins, resampling=resampling)
    judged, correct = quality.judged, quality.judged.correct if quality.judged else None
    highest = {
        name: highest_possible(name, classes=data.classes, members=data.members, base=settings.base)
        for name in id_set.scores
    }
    rate = settings.false_alarm_rate
    choose = partial(recommend, highest=highest, false_alarm_rate=rate, level=settings.level, seed=seed)
    usual = DEFAULT if ood_sets else default_score(data.classes)  # without any, nothing can be measured
    recommended = choose(id_set.scores, {one.name: one.scores for one in ood_sets}, usual=usual)
    rejection = None
    if correct is not None:  # wrong predictions are the data set to find, unless there are too few of either
        right, wrong = ({name: x[rows] for name, x in id_set.scores.items()} for rows in (correct, ~correct))
        rejection = choose(
            right,
            {"wrong predictions": wrong} if 2 <= correct.sum() <= len(correct) - 2 else {},
            usual=default_score(data.classes, errors=True),
        )
    effect = None
    if truth is not None and rejection is not None and recalibration is None:
        effect = recalibration_effect(
            id_set, ood_sets, truth, quality, score=recommended.score, rejection_score=rejection.score,
            settings=settings, resampling=resampling, threads=threads,
        )  # fmt: skip
    thresholds = alarms(id_set, ood_sets, settings)
    samples = worst_samples(id_set, ood_sets, truth)
    if truth is not None:
        columns = {TRUE_CLASS: np.array(data.class_names, object)[truth], **columns}
    alarms_of_score = [alarm for alarm in thresholds if alarm.score == recommended.score]
    id_scores = id_set.scores[recommended.score]
    return Evaluation(
        version=__version__,
        settings=settings,
        data=data,
        recommended=recommended,
        rejection=rejection,
        scores=score_qualities(id_set, ood_sets, correct, level=settings.level),
        ood=tuple(detect(id_set, ood_set, resampling, step=step) for ood_set in ood_sets),
        mean_set_size=id_set.mean_set_size(),
        thresholds=thresholds,
        guard=guard_of(id_set, settings, score=recommended.score, point=quality.point),
        outcomes=guard_outcomes(id_set, ood_sets, correct, settings, score=recommended.score),
        curves=detection_curves(id_set, ood_sets, recommended.score),
        members_needed=members_needed(
            id_source,
            ood_sources,
            truth,
            recalibration=recalibration,
            threads=threads,
            report=partial(report, "members"),
        ),
        recalibration=effect,
        groups=tuple(
            break_down(name, values, id_scores, judged, alarms_of_score, settings) for name, values in columns.items()
        ),
        samples=samples,
        values={scored.name: scored.scores for scored in (id_set, *ood_sets)},
        pictures={(one.set, one.row): pictures[one.set][one.row] for one in samples if one.set in pictures},
        **vars(quality),
    )


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
    id_source: Source, ood_sources: list[Source], class_names: Sequence[str] | None, *, labelled: bool, full_paths: bool
) -> DataSets:
    def data_set(source: Source, labelled: bool = False) -> DataSet:
        file = source.file and escaped(source.file if full_paths else PurePath(source.file).name)
        return DataSet(source.name, file, source.rows, labelled)

    members, _, classes = id_source.shape
    names = [str(k) for k in range(classes)] if class_names is None else class_names
    if isinstance(names, str) or len(names) != classes:
        raise ValueError(f"class_names must be {classes} names, one for each class; got {len(names)}.")
    escaped_names(dict.fromkeys(names), "a class")  # equal names are allowed: ImageNet has two classes "crane"
    names = [escaped(name) for name in names]
    return DataSets(members, classes, names, data_set(id_source, labelled), tuple(map(data_set, ood_sources)))
