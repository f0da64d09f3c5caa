"""The tables of an evaluation, once, as plain cells: for the terminal and for the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from credalens.core.scores import SCORES
from credalens.evaluation.breakdown import Breakdown, Group
from credalens.evaluation.detection import Detector
from credalens.evaluation.guarded import Alarm, GuardOutcome
from credalens.evaluation.members_needed import MembersNeeded
from credalens.evaluation.metrics.ood import OODMetrics
from credalens.evaluation.metrics.selective import RejectionCurve, SelectiveMetrics, SetMetrics
from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.prediction_quality import Calibration
from credalens.evaluation.results import TOO_FEW, ByMeasure, ByMethod, Interval
from credalens.evaluation.sentences import verdict
from credalens.evaluation.single_inputs import MemberView
from credalens.evaluation.words import METHOD_NAMES, RULE_NAMES, SHORT, SIGNS, number, percent, points, unit

METRICS: Final = {"auroc": "AUROC", "auprc": "AUPRC", "fpr95": "FPR95"}


@dataclass(frozen=True)
class Column:
    """A heading, and the word of the glossary that explains it."""

    title: str
    word: str | None = None
    text: bool = False


@dataclass(frozen=True)
class Cell:
    """What is shown, what it is sorted by, a remark such as an interval, and whether it is the better of its group."""

    text: str
    value: float | str | None = None
    note: str = ""
    best: bool = False
    tone: str | None = None
    """ "better", "worse" or "undecided", where the cell says so."""
    live: str = ""
    """What the slider of the page knows this cell by."""
    score: str = ""
    """The score of the catalogue that the row of this cell is about."""

    @property
    def key(self) -> str:
        """What the page sorts by; empty cells come last."""
        return "" if self.value is None else self.value if isinstance(self.value, str) else repr(float(self.value))


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; the rows of one ``group`` belong together. ``best`` says what the best cells are."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    group: int = 1
    best: str = ""

    def caption(self, mark: str = "bold") -> str:
        """The title, and what cells with this mark are."""
        return f"{self.title}; {mark}: {self.best}" if self.best else self.title


def detection_table(evaluation: Evaluation, /) -> Table:
    """Credal against averaging side by side, for each OOD data set by EU and by TU."""
    pairs = [Column(f"{title} {method}", title) for title in METRICS.values() for method in METHOD_NAMES.values()]
    names = [Column("OOD data", "out of distribution (OOD)", text=True), Column("Score", text=True)]
    columns = (*names, *pairs[:2], Column("Gain in AUROC", "interval (95 %)"), *pairs[2:])
    rows = []
    for name, measure, detector in _detectors(evaluation):
        auroc, auprc, fpr95 = (_both(detector, metric) for metric in METRICS)
        rows.append((_text(name), _text(SHORT[measure]), *auroc, _gain(detector), *auprc, *fpr95))
    return Table("Finding OOD inputs (%)", columns, tuple(rows), group=2)


def narrow_detection_table(evaluation: Evaluation, /) -> Table:
    """The same, one row for each method, for a terminal of 80 columns."""
    level = f"{100 * evaluation.settings.level:g} %"
    titles = ("OOD data", "Score", *METRICS.values(), f"Gain in AUROC ({level})")
    rows, last = [], None
    for name, measure, detector in _detectors(evaluation):
        both = [_both(detector, metric) for metric in METRICS]
        for place, method in enumerate(METHOD_NAMES.values()):
            gain = Cell("") if place else _gain(detector)
            plain = [replace(cells[place], note="") for cells in both]
            rows.append((_text("" if name == last else name), _text(f"{SHORT[measure]} {method}"), *plain, gain))
            last = name
    columns = tuple(Column(title, text=place < 2) for place, title in enumerate(titles))
    return Table("Finding OOD inputs (%)", columns, tuple(rows), group=4)


def _detectors(evaluation: Evaluation) -> Iterator[tuple[str, str, Detector]]:
    for detection in evaluation.ood:
        for measure, detector in detection.detectors():
            yield detection.name, measure, detector


def _both(detector: Detector, metric: str) -> list[Cell]:
    """The metric of credal and classical, the better one marked."""
    cells = []
    for _, metrics in detector.items():
        value: float = getattr(metrics, metric)
        cells.append(Cell(f"{100 * value:.2f}", value, _interval(getattr(metrics, f"{metric}_interval"))))
    return mark_best(cells, lower=metric == "fpr95")


def _interval(interval: Interval) -> str:
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}"


def _gain(detector: Detector) -> Cell:
    gain = detector.difference.auroc
    said = verdict(gain)
    span = TOO_FEW if gain.method == TOO_FEW else f"{points(gain.low)} to {points(gain.high)}"
    return Cell(points(gain.difference), gain.difference, f"{span} {SIGNS[said]}", tone=said)


def mark_best(cells: list[Cell], /, *, lower: bool = False) -> list[Cell]:
    """Mark the cells of highest (or lowest) value, and those that show the same; none where all do."""
    numbers = [cell for cell in cells if isinstance(cell.value, float | int)]
    if len({cell.text for cell in numbers}) < 2:
        return cells
    goal = (min if lower else max)(numbers, key=lambda cell: cell.value)  # type: ignore[arg-type,return-value]
    return [replace(cell, best=cell.text == goal.text) for cell in cells]


def _text(text: str) -> Cell:
    return Cell(text, text)


def _rows(names: list[str], columns: list[list[Cell]]) -> tuple[tuple[Cell, ...], ...]:
    return tuple((_text(name), *cells) for name, cells in zip(names, zip(*columns, strict=True), strict=True))


def _cell(value: float, show: Callable[[float], str]) -> Cell:
    """A number; where there is none (NaN) it is sorted last."""
    return Cell(show(value), value if math.isfinite(value) else None)


def _percents(value: float) -> str:
    return percent(value, 2).removesuffix("%").strip()


def _four_digits(value: float) -> str:
    return number(value, 4)


def calibration_table(calibration: Calibration, id_name: str, /) -> Table:
    """Accuracy, ECE, NLL and Brier score of both point predictions."""
    both = (calibration.intersection, calibration.averaged)
    columns = (
        Column("Point prediction", "intersection probability", text=True),
        Column("Accuracy (%)", "accuracy"),
        Column("ECE (%)", "ECE"),
        Column("NLL", "NLL"),
        Column("Brier", "Brier score"),
    )
    cells = [
        mark_best([_cell(point.accuracy, _percents) for point in both]),
        mark_best([_cell(point.ece, _percents) for point in both], lower=True),
        mark_best([_cell(point.nll, _four_digits) for point in both], lower=True),
        mark_best([_cell(point.brier, _four_digits) for point in both], lower=True),
    ]
    return Table(
        f"Predictions on {id_name} data", columns, _rows(["intersection (credal)", "averaged"], cells), group=2
    )


def sets_table(evaluation: Evaluation, sets: dict[str, SetMetrics], /) -> Table:
    """Set-valued predictions, rule by rule, with their mean size on every data set."""
    shares = {"coverage": "Coverage", "determinacy": "Single class", "single_accuracy": "Accuracy if single"}
    columns = [Column("Rule", text=True), *(Column(f"{title} (%)", title.lower()) for title in shares.values())]
    columns += [Column("u65", "u65"), Column("u80", "u80"), Column("Set size, ID", "set size")]
    columns += [Column(f"Set size, {detection.name}", "set size") for detection in evaluation.ood]
    cells = [[_cell(getattr(metrics, name), _percents) for metrics in sets.values()] for name in shares]
    cells.append(mark_best([_cell(metrics.u65, number) for metrics in sets.values()]))
    cells.append(mark_best([_cell(metrics.u80, number) for metrics in sets.values()]))
    for sizes in (evaluation.mean_set_size, *(detection.mean_set_size for detection in evaluation.ood)):
        cells.append([Cell(number(sizes[rule], 2), sizes[rule]) for rule in sets])
    return Table("Predicting a set of classes", tuple(columns), _rows([RULE_NAMES[rule] for rule in sets], cells))


def selective_table(selective: ByMeasure[ByMethod[RejectionCurve]], /) -> Table:
    """Area under the accuracy-rejection curve of every uncertainty."""
    columns = (
        Column("Turned away by", text=True),
        Column("credal (%)", "mean accuracy on the inputs kept"),
        Column("averaging (%)", "mean accuracy on the inputs kept"),
    )
    rows = []
    for measure, curves in selective.items():
        cells = mark_best([_cell(curve.area, _percents) for _, curve in curves.items()])
        rows.append((_text(f"{measure} uncertainty ({SHORT[measure]})"), *cells))
    return Table("Mean accuracy on the inputs kept", columns, tuple(rows))


def threshold_table(evaluation: Evaluation, rate: float, /) -> Table:
    """The thresholds for one false-alarm rate and the share of each OOD data set that they catch."""
    alarms = [alarm for alarm in evaluation.thresholds if alarm.threshold.false_alarm_rate == rate]
    columns = (
        Column("Score", text=True),
        Column("Threshold", "threshold"),
        Column("ID flagged (%)", "false-alarm rate"),
        *(Column(f"{one.name} caught (%)") for one in evaluation.ood),
    )
    rows = tuple(_alarm_row(alarm, evaluation) for alarm in alarms)
    return Table("Thresholds of all scores", columns, rows, best="recommended")


def _alarm_row(alarm: Alarm, evaluation: Evaluation) -> tuple[Cell, ...]:
    score, threshold = SCORES[alarm.score], alarm.threshold
    cells = [Cell(_with_unit(alarm, evaluation.settings.base), threshold.value), _share(threshold.achieved_rate)]
    cells += [_share(share) for share in alarm.caught.values()]
    named = Cell(score.label, score.label, best=score.name == evaluation.recommended.score, score=score.name)
    return named, *(replace(cell, live=f"{score.name} {place}") for place, cell in enumerate(cells))


def outcome_table(evaluation: Evaluation, alarm: Alarm, /) -> Table:
    """What the alarm would have done with every data set: accepted or flagged."""
    titles = ("Data", "Kind", "Inputs", "Accepted", "Flagged", "Flagged (%)")
    columns = tuple(Column(title, text=place < 2) for place, title in enumerate(titles))
    data = evaluation.data
    flagged = [(data.id, alarm.threshold.achieved_rate), *((one, alarm.caught[one.name]) for one in data.ood)]
    rows = []
    for place, (one, share) in enumerate(flagged):
        count = round(share * one.rows)
        cells = [Cell(f"{one.rows - count:,}", one.rows - count), Cell(f"{count:,}", count), _share(share)]
        live = [replace(cell, live=f"outcome {place} {k}") for k, cell in enumerate(cells)]
        kind = _text("OOD" if place else "ID")
        rows.append((_text(one.name), kind, Cell(f"{one.rows:,}", one.rows), *live))
    return Table("What it would have done", columns, tuple(rows))


def guard_table(evaluation: Evaluation, /) -> Table:
    """What would have happened with a guard at each false-alarm rate: accepted, handed over, errors among the accepted."""
    ood = [Column(f"{one.name} accepted (%)") for one in evaluation.ood]
    errors = [Column("Errors among them (%)")] if evaluation.data.id.labelled else []
    columns = (
        Column("False alarms (%)", "false-alarm rate"),
        Column("ID accepted (%)"),
        Column("ID handed over"),
        *errors,
        *ood,
    )
    return Table("What would have happened", columns, tuple(map(_guard_row, evaluation.outcomes)))


def _guard_row(outcome: GuardOutcome) -> tuple[Cell, ...]:
    own, *ood = outcome.data
    wrong = [] if own.errors is None else [_cell(own.errors / own.accepted if own.accepted else math.nan, _percents)]
    handed_over = Cell(f"{own.abstained:,}", own.abstained)
    shares = [_share(one.accepted / one.rows) for one in (own, *ood)]
    return (
        Cell(f"{100 * outcome.false_alarm_rate:g}", outcome.false_alarm_rate),
        shares[0],
        handed_over,
        *wrong,
        *shares[1:],
    )


def _with_unit(alarm: Alarm, base: float) -> str:
    in_unit = f" {unit(base)}" if SCORES[alarm.score].unit == "information" else ""
    return f"{number(alarm.threshold.value)}{in_unit}"


def scores_table(evaluation: Evaluation, /, *, intervals: bool = False) -> Table:
    """Every score of the catalogue in order of its mean rank, the recommended one marked, with intervals if there is room."""
    names = [detection.name for detection in evaluation.ood]
    qualities = {quality.name: quality for quality in evaluation.scores}
    order = [ranked.name for ranked in evaluation.recommended.ranking] or list(qualities)
    rejections = _rejection_cells([qualities[score].selective for score in order], all_areas=intervals)
    columns = (
        Column("Score", text=True),
        Column("Rank"),
        *(Column(name, "AUROC") for name in names),
        *(Column(f"{name} (%)", name) for name in rejections),
    )
    ranks = {ranked.name: ranked.mean_rank for ranked in evaluation.recommended.ranking}
    aurocs = {
        name: mark_best([_auroc_cell(qualities[score].ood[name], intervals) for score in order]) for name in names
    }
    rows = tuple(
        (
            Cell(
                label := qualities[score].label,
                label,
                note="" if intervals else score,
                best=score == evaluation.recommended.score,
                score=score,
            ),
            Cell(f"{ranks[score]:.1f}", ranks[score]) if score in ranks else Cell("–"),
            *(aurocs[name][place] for name in names),
            *(cells[place] for cells in rejections.values()),
        )
        for place, score in enumerate(order)
    )
    return Table("All scores by mean rank, AUROC on each OOD data set (%)", columns, rows, best="recommended, best")


def _rejection_cells(metrics: list[SelectiveMetrics | None], *, all_areas: bool) -> dict[str, list[Cell]]:
    """How well each score finds wrong predictions: the AUGRC, with the others if there is room; empty without labels."""
    areas = {"AURC": "aurc", "E-AURC": "e_aurc", "AUGRC": "augrc"} if all_areas else {"AUGRC": "augrc"}
    if None in metrics:
        return {}
    values = {name: [getattr(x, field) for x in metrics] for name, field in areas.items()}
    return {name: mark_best([Cell(f"{100 * x:.3f}", x) for x in column], lower=True) for name, column in values.items()}


def _auroc_cell(metrics: OODMetrics, interval: bool) -> Cell:
    span = metrics.auroc_interval
    return Cell(f"{100 * metrics.auroc:.1f}", metrics.auroc, _interval(span) if interval and span else "")


def _share(value: float) -> Cell:
    return Cell(f"{100 * value:.1f}", value)


def members_table(needed: MembersNeeded, /) -> Table:
    """AUROC of credal EU for each OOD data set, and accuracy, against the number of members."""
    trends = {}
    if needed.auroc:
        trends = {f"AUROC EU, {name} (%)": trend for name, trend in needed.auroc.epistemic.credal.items()}
    if needed.accuracy:
        trends["Accuracy (%)"] = needed.accuracy.credal
    cells = [
        [
            Cell(_percents(mean), mean, f"± {100 * std:.2f}" if count > 1 else "")
            for mean, std, count in zip(trend.mean, trend.std, needed.subsets, strict=True)
        ]
        for trend in trends.values()
    ]
    rows = tuple(
        (Cell(str(size), size), *row) for size, row in zip(needed.sizes, zip(*cells, strict=True), strict=True)
    )
    return Table("Credal prediction with fewer members", (Column("Members", "member"), *map(Column, trends)), rows)


def input_table(view: MemberView, names: list[str], /) -> Table:
    """The interval and both point predictions of each class of one input."""
    classes = [names[k] for k in view.classes] + ([f"{view.others} others"] if view.others else [])
    columns = tuple(
        Column(t, text=not n) for n, t in enumerate(("Class", "Lower", "Upper", "Averaged", "Intersection"))
    )
    parts = (view.lower, view.upper, view.mean, view.probability)
    rows = [
        (_text(name), *(Cell(number(v, 3)) for v in of_class)) for name, *of_class in zip(classes, *parts, strict=True)
    ]
    return Table("Probabilities", columns, tuple(rows))


MOST_GROUPS = 40


def groups_table(evaluation: Evaluation, breakdown: Breakdown, rate: int, /) -> Table:
    """The worst groups of a column at the false-alarm rate of this place."""
    groups, labelled = breakdown.groups, breakdown.groups[0].accuracy is not None
    shown = groups[:MOST_GROUPS]
    more = f"; the worst {len(shown)} of {len(groups)}, all are in report.json" if len(groups) > len(shown) else ""
    titles = [
        "Inputs",
        *(["Accuracy (%)", "Confidence (%)", "Confidence minus accuracy"] if labelled else []),
        "False alarms (%)",
    ]
    columns = (Column(breakdown.column, text=True), *map(Column, titles))
    rows = tuple(
        (
            _text(group.name),
            Cell(f"{group.rows:,}", group.rows),
            *_group_quality(group),
            replace(_share(group.flagged[rate]), live=f"group {breakdown.column} {place}"),
        )
        for place, group in enumerate(shown)
    )
    return Table(f"By {breakdown.column}{more}", columns, rows)


def _group_quality(group: Group) -> tuple[Cell, ...]:
    accuracy, sure = group.accuracy, group.confidence
    if accuracy is None or sure is None:
        return ()
    span = f"{100 * accuracy.low:.1f} to {100 * accuracy.high:.1f}"
    gap = sure - accuracy.value
    return Cell(f"{100 * accuracy.value:.1f}", accuracy.value, span), _share(sure), Cell(points(gap), gap)
