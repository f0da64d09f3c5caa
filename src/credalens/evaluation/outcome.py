"""What an evaluation says: typed, frozen, and the content of ``report.json``."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.breakdown import Breakdown
from credalens.evaluation.detection import Curves, Detection, ScoreQuality
from credalens.evaluation.guarded import Alarm, GuardOutcome
from credalens.evaluation.members_needed import MembersNeeded
from credalens.evaluation.metrics.selective import RejectionCurve, SetMetrics
from credalens.evaluation.metrics.threshold import Threshold
from credalens.evaluation.prediction_quality import Calibration, JudgedRows, PointChoice
from credalens.evaluation.results import ByMeasure, ByMethod, Result, plain_value
from credalens.evaluation.single_inputs import Sample
from credalens.evaluation.which_score import Recommendation
from credalens.guard import Guard

if TYPE_CHECKING:
    from credalens.evaluation.sentences import Summary

FORMAT: Final = "credalens-report-2"
ID_NAME: Final = "in-distribution"
"""Of the ID data where they have no other name."""


@dataclass(frozen=True)
class Settings(Result):
    """How the evaluation was made."""

    base: float
    logits: bool
    bins: int
    false_alarm_rate: float
    level: float
    replicates: int
    seed: int


@dataclass(frozen=True)
class DataSet(Result):
    """One data set: its name, the file it was read from, without its folder as a rule, and its number of inputs."""

    name: str
    file: str | None
    rows: int


@dataclass(frozen=True)
class IDData(DataSet):
    """The ID data set, which may have labels."""

    labelled: bool


@dataclass(frozen=True)
class DataSets(Result):
    """What was evaluated."""

    members: int
    classes: int
    class_names: list[str]
    id: IDData
    ood: tuple[DataSet, ...]


@dataclass(frozen=True, eq=False)
class Evaluation(Result):
    """What ``evaluate`` returns: how good credal and averaged predictions are; all shares are fractions, not percentages.

    :ivar recommended: the score to use for finding OOD inputs, and what to expect of it.
    :ivar rejection: the same for finding wrong predictions; None without labels.
    :ivar point: the point prediction to use; None without labels.
    :ivar scores: every score of the catalogue.
    :ivar ood: detection, by OOD data set; empty without any.
    :ivar calibration: accuracy, ECE, NLL and Brier score; None without labels.
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
        """What a notebook shows: the sentences and the table of all scores."""
        from credalens.report.page import to_notebook

        return to_notebook(self)
