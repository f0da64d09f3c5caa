"""The tables of an evaluation, once, as plain cells: for the terminal, the page, a notebook and a comparison of models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from credalens.core.scores import SCORES
from credalens.evaluation.detection import Detector
from credalens.evaluation.evaluate import Evaluation
from credalens.evaluation.labelled import RejectionCurve, SetMetrics
from credalens.evaluation.members_needed import MembersNeeded, Trend
from credalens.evaluation.prediction_quality import Calibration
from credalens.evaluation.results import METHODS, ByMeasure, ByMethod, Comparison
from credalens.evaluation.single_inputs import MemberView
from credalens.evaluation.thresholds import Alarm, Breakdown
from credalens.evaluation.words import RULE_NAMES, SHORT, SIGNS, gain_text, interval_text, number, percent, points, unit

METRICS: Final = {"auroc": "AUROC", "auprc": "AUPRC", "fpr95": "FPR95"}
MOST_GROUPS = 40


@dataclass(frozen=True)
class Column:
    """A heading, and the word of the glossary that explains it."""

    title: str
    word: str | None = None
    text: bool = False


@dataclass(frozen=True)
class Cell:
    """A text, the value by which it is sorted, a note such as an interval, and whether it is the better of its group."""

    text: str
    value: float | str | None = None
    note: str = ""
    best: bool = False
    tone: str | None = None
    """ "better", "worse" or "undecided", where the cell says so."""
    live: str = ""
    """The key under which the slider of the page writes this cell anew."""
    score: str = ""
    """The score of the catalogue that the row of this cell is about."""

    @property
    def key(self) -> str:
        """The key of the page's sorting; empty cells come last."""
        return "" if self.value is None else self.value if isinstance(self.value, str) else repr(float(self.value))


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; the rows of one ``group`` belong together. ``best`` says what the best cells are."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    group: int = 1
    best: str = ""

    @classmethod
    def of(cls, title: str, *columns: tuple[Column, Sequence[Cell]], group: int = 1, best: str = "") -> Table:
        """Make a table of its columns, each with its cells from top to bottom."""
        headings, cells = zip(*columns, strict=True)
        return cls(title, headings, tuple(zip(*cells, strict=True)), group, best)

    def live(self, name: str, first: int) -> Table:
        """With keys for the cells from the column at place ``first`` on, which follow the slider."""
        keyed = [
            (*row[:first], *(replace(cell, live=f"{name} {n} {k}") for k, cell in enumerate(row[first:])))
            for n, row in enumerate(self.rows)
        ]
        return replace(self, rows=tuple(keyed))

    def caption(self, mark: str = "bold") -> str:
        """The title, and what cells with this mark are."""
        return f"{self.title}; {mark}: {self.best}" if self.best else self.title


Filled = tuple[Column, list[Cell]]
"""A column with its cells."""


def names(title: str, texts: Iterable[str], word: str | None = None, /) -> Filled:
    """A column of names."""
    return Column(title, word, text=True), [Cell(text, text) for text in texts]


def numbers(
    title: str, values: Iterable[float], write: Callable[[float], str], word: str | None = None, /,
    *, best: Callable[..., float] | None = None, notes: Iterable[str] = (),
) -> Filled:  # fmt: skip
    """A column of numbers, each with its note; the ``best``, min or max, is marked, and missing ones (NaN) are sorted last."""
    cells = [Cell(write(value), value if math.isfinite(value) else None) for value in values]
    cells = [replace(cell, note=note) for cell, note in zip(cells, notes, strict=True)] if notes else cells
    return Column(title, word), cells if best is None else mark_best(cells, best)


def mark_best(cells: list[Cell], best: Callable[..., float] = max, /) -> list[Cell]:
    """Mark the cells of highest (or lowest) value, and those that show the same; none where all do."""
    texts = {cell.value: cell.text for cell in cells if isinstance(cell.value, float | int)}
    if len(set(texts.values())) < 2:
        return cells
    return [replace(cell, best=cell.text == texts[best(texts)]) for cell in cells]


def percents(digits: int, /) -> Callable[[float], str]:
    """Writes shares in percent with so many digits, without the sign."""
    return lambda share: percent(share, digits).removesuffix("%").strip()


def number_4(value: float, /) -> str:
    """A number with four digits."""
    return number(value, 4)


def gain_cell(gain: Comparison, /) -> Cell:
    """A difference in percentage points with its interval and its sign."""
    note = f"{gain_text(gain)} {SIGNS[gain.verdict]}"
    return Cell(points(gain.difference), gain.difference, note, tone=gain.verdict)


def detection_table(evaluation: Evaluation, /, *, narrow: bool = False) -> Table:
    """Credal and averaged prediction, for each OOD data set by EU and by TU; ``narrow`` gives each method a row of its own."""
    rows, last = [], ""
    for one in evaluation.ood:
        for measure, detector in one.detectors():
            auroc, auprc, fpr95 = (_both(detector, metric) for metric in METRICS)
            gain, short = gain_cell(detector.difference.auroc), SHORT[measure]
            if not narrow:
                rows.append((Cell(one.name, one.name), Cell(short, short), *auroc, gain, *auprc, *fpr95))
                continue
            for k, method in enumerate(METHODS):
                cells = [replace(both[k], note="") for both in (auroc, auprc, fpr95)]
                head = (Cell("" if one.name == last else one.name), Cell(f"{short} {method}"))
                rows.append((*head, *cells, Cell("") if k else gain))
                last = one.name
    columns = [Column("OOD data", "out of distribution (OOD)", text=True), Column("Score", text=True)]
    if narrow:
        columns += [*map(Column, METRICS.values()), Column(f"Gain in AUROC ({100 * evaluation.settings.level:g} %)")]
    else:
        pairs = [Column(f"{title} {method}", title) for title in METRICS.values() for method in METHODS]
        columns += [*pairs[:2], Column("Gain in AUROC", "interval (95 %)"), *pairs[2:]]
    return Table("Finding OOD inputs (%)", tuple(columns), tuple(rows), group=4 if narrow else 2)


def _both(detector: Detector, metric: str) -> list[Cell]:
    """The metric of both methods with its interval, the better one marked."""
    values = [(getattr(one, metric), getattr(one, f"{metric}_interval")) for _, one in detector.items()]
    cells = [Cell(f"{100 * value:.2f}", value, interval_text(interval)) for value, interval in values]
    return mark_best(cells, min if metric == "fpr95" else max)


def calibration_table(calibration: Calibration, id_name: str, /) -> Table:
    """Accuracy, ECE, NLL and Brier score of both point predictions."""
    both = [point for _, point in calibration.items()]
    return Table.of(
        f"Predictions on {id_name} data",
        names("Point prediction", ("intersection (credal)", "averaged"), "intersection probability"),
        numbers("Accuracy (%)", [point.accuracy for point in both], percents(2), "accuracy", best=max),
        numbers("ECE (%)", [point.ece for point in both], percents(2), "ECE", best=min),
        numbers("NLL", [point.nll for point in both], number_4, "NLL", best=min),
        numbers("Brier", [point.brier for point in both], number_4, "Brier score", best=min),
        group=2,
    )


def sets_table(evaluation: Evaluation, sets: dict[str, SetMetrics], /) -> Table:
    """Set-valued predictions, rule by rule, with their mean size on every data set."""
    metrics, two_digits = list(sets.values()), "{:.2f}".format
    sizes = {"ID": evaluation.mean_set_size} | {one.name: one.mean_set_size for one in evaluation.ood}
    return Table.of(
        "Predicting a set of classes",
        names("Rule", [RULE_NAMES[rule] for rule in sets]),
        numbers("Coverage (%)", [one.coverage for one in metrics], percents(2), "coverage"),
        numbers("Single class (%)", [one.determinacy for one in metrics], percents(2), "single class"),
        numbers("Accuracy if single (%)", [one.single_accuracy for one in metrics], percents(2), "accuracy if single"),
        numbers("u65", [one.u65 for one in metrics], number, "u65", best=max),
        numbers("u80", [one.u80 for one in metrics], number, "u80", best=max),
        *(numbers(f"Set size, {of}", [by[rule] for rule in sets], two_digits, "set size") for of, by in sizes.items()),
    )


def selective_table(selective: ByMeasure[ByMethod[RejectionCurve]], /) -> Table:
    """Area under the accuracy-rejection curve of every uncertainty."""
    areas = [[curve.area for _, curve in curves.items()] for _, curves in selective.items()]
    rows = [mark_best([Cell(percents(2)(area), area) for area in of_measure]) for of_measure in areas]
    word = "mean accuracy on the inputs kept"
    return Table.of(
        word.capitalize(),
        names("Turned away by", [f"{measure} uncertainty ({SHORT[measure]})" for measure, _ in selective.items()]),
        *((Column(f"{method} (%)", word), [row[k] for row in rows]) for k, method in enumerate(METHODS)),
    )


def _scores_column(evaluation: Evaluation, order: Sequence[str], *, named: bool = False) -> Filled:
    """Scores by their labels, the recommended one marked, with their names in code if they are ``named``."""
    best, labels = evaluation.recommended.score, [SCORES[name].label for name in order]
    return Column("Score", text=True), [
        Cell(label, label, name if named else "", name == best, score=name)
        for name, label in zip(order, labels, strict=True)
    ]


def threshold_table(evaluation: Evaluation, rate: float, /) -> Table:
    """The thresholds for one false-alarm rate and the share of each OOD data set that they catch."""
    alarms = [alarm for alarm in evaluation.thresholds if alarm.threshold.false_alarm_rate == rate]
    in_unit = f" {unit(evaluation.settings.base)}"
    limits = [(alarm.threshold.value, SCORES[alarm.score].unit == "information") for alarm in alarms]
    caught = {one.name: [alarm.caught[one.name] for alarm in alarms] for one in evaluation.ood}
    return Table.of(
        "Thresholds of all scores",
        _scores_column(evaluation, [alarm.score for alarm in alarms]),
        (Column("Threshold", "threshold"), [Cell(f"{number(x)}{in_unit if bits else ''}", x) for x, bits in limits]),
        numbers("ID flagged (%)", [one.threshold.achieved_rate for one in alarms], percents(1), "false-alarm rate"),
        *(numbers(f"{name} caught (%)", shares, percents(1)) for name, shares in caught.items()),
        best="recommended",
    ).live("threshold", 1)


def outcome_table(evaluation: Evaluation, alarm: Alarm, /) -> Table:
    """Inputs of every data set that the alarm would have accepted and flagged."""
    data = (evaluation.data.id, *evaluation.data.ood)
    shares = [alarm.threshold.achieved_rate, *(alarm.caught[one.name] for one in data[1:])]
    flagged = [round(share * one.rows) for share, one in zip(shares, data, strict=True)]
    return Table.of(
        "What it would have done",
        names("Data", [one.name for one in data]),
        names("Kind", ["ID", *("OOD" for _ in data[1:])]),
        numbers("Inputs", [one.rows for one in data], "{:,}".format),
        numbers("Accepted", [one.rows - count for one, count in zip(data, flagged, strict=True)], "{:,}".format),
        numbers("Flagged", flagged, "{:,}".format),
        numbers("Flagged (%)", shares, percents(1)),
    ).live("outcome", 3)


def guard_table(evaluation: Evaluation, /) -> Table:
    """Decisions of a guard at each false-alarm rate: accepted, handed over, errors among the accepted."""
    rates = [outcome.false_alarm_rate for outcome in evaluation.outcomes]
    id_data, *ood_data = zip(*(outcome.data for outcome in evaluation.outcomes), strict=True)
    errors = [(one.errors or 0) / one.accepted if one.accepted else math.nan for one in id_data]
    return Table.of(
        "What would have happened",
        numbers("False alarms (%)", rates, lambda rate: f"{100 * rate:g}", "false-alarm rate"),
        numbers("ID accepted (%)", [one.accepted / one.rows for one in id_data], percents(1)),
        numbers("ID handed over", [one.abstained for one in id_data], "{:,}".format),
        *([numbers("Errors among them (%)", errors, percents(2))] if evaluation.data.id.labelled else []),
        *(
            numbers(f"{of_set[0].name} accepted (%)", [one.accepted / one.rows for one in of_set], percents(1))
            for of_set in ood_data
        ),
    )


def scores_table(evaluation: Evaluation, /, *, intervals: bool = False) -> Table:
    """Every score of the catalogue in order of its mean rank, the recommended one marked, with intervals if there is room."""
    ranks = {ranked.name: ranked.mean_rank for ranked in evaluation.recommended.ranking}
    by_name = {quality.name: quality for quality in evaluation.scores}
    qualities = [by_name[name] for name in ranks or by_name]

    def aurocs(name: str) -> Filled:
        metrics = [quality.ood[name] for quality in qualities]
        spans = [interval_text(one.auroc_interval) if intervals and one.auroc_interval else "" for one in metrics]
        return numbers(name, [one.auroc for one in metrics], percents(1), "AUROC", best=max, notes=spans)

    selective = [quality.selective for quality in qualities if quality.selective]
    areas = {"AURC": "aurc", "E-AURC": "e_aurc", "AUGRC": "augrc"} if intervals else {"AUGRC": "augrc"}
    values = {title: [getattr(one, area) for one in selective] for title, area in areas.items() if selective}
    return Table.of(
        "All scores by mean rank, AUROC on each OOD data set (%)",
        _scores_column(evaluation, [quality.name for quality in qualities], named=not intervals),
        numbers("Rank", [ranks.get(one.name, math.nan) for one in qualities], lambda rank: number(rank, 1)),
        *(aurocs(one.name) for one in evaluation.ood),
        *(numbers(f"{title} (%)", x, percents(3), title, best=min) for title, x in values.items()),
        best="recommended, best",
    )


def members_table(needed: MembersNeeded, /) -> Table:
    """AUROC of credal EU for each OOD data set, and accuracy, against the number of members."""
    aurocs = needed.auroc.epistemic.credal if needed.auroc else {}
    trends = {f"AUROC EU, {name} (%)": trend for name, trend in aurocs.items()}
    trends |= {"Accuracy (%)": needed.accuracy.credal} if needed.accuracy else {}

    def deviations(trend: Trend) -> list[str]:
        return [f"± {100 * s:.2f}" if n > 1 else "" for s, n in zip(trend.std, needed.subsets, strict=True)]

    return Table.of(
        "Credal prediction with fewer members",
        numbers("Members", needed.sizes, str, "member"),
        *(numbers(title, trend.mean, percents(2), notes=deviations(trend)) for title, trend in trends.items()),
    )


def input_table(view: MemberView, class_names: list[str], /) -> Table:
    """The interval and both point predictions of each class of one input."""
    parts = {"Lower": view.lower, "Upper": view.upper, "Averaged": view.mean, "Intersection": view.probability}
    columns = ((Column(title), [Cell(number(value)) for value in values]) for title, values in parts.items())
    return Table.of("Probabilities", names("Class", view.entry_names(class_names)), *columns)


def groups_table(breakdown: Breakdown, rate: int, /) -> Table:
    """The worst groups of a column at the false-alarm rate of this place."""
    groups, count = breakdown.groups[:MOST_GROUPS], len(breakdown.groups)
    more = f"; the worst {MOST_GROUPS} of {count}, all are in report.json" if count > MOST_GROUPS else ""
    labelled = [(one.accuracy, one.confidence) for one in groups if one.accuracy and one.confidence is not None]
    accuracies, spans = [accuracy.value for accuracy, _ in labelled], [interval_text(span) for span, _ in labelled]
    quality = [
        numbers("Accuracy (%)", accuracies, percents(1), notes=spans),
        numbers("Confidence (%)", [sure for _, sure in labelled], percents(1)),
        numbers("Confidence minus accuracy", [sure - accuracy.value for accuracy, sure in labelled], points),
    ]
    table = Table.of(
        f"By {breakdown.column}{more}",
        names(breakdown.column, [group.name for group in groups]),
        numbers("Inputs", [group.rows for group in groups], "{:,}".format),
        *(quality if labelled else []),
        numbers("False alarms (%)", [group.flagged[rate] for group in groups], percents(1)),
    )
    return table.live(f"group {breakdown.column}", len(table.columns) - 1)
