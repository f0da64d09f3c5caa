"""The tables of an evaluation, once, as plain cells: for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from credalens.evaluation.words.verdicts import number, percent, points, unit, verdict

__all__ = [
    "Cell",
    "Column",
    "Table",
    "calibration_table",
    "detection_table",
    "members_table",
    "narrow_detection_table",
    "selective_table",
    "sets_table",
    "threshold_table",
]

SHORT: Final = {"epistemic": "EU", "total": "TU", "aleatoric": "AU"}
METHODS: Final = {"credal": "credal", "classical": "averaging"}
RULE_NAMES: Final = {
    "interval_dominance": "interval dominance",
    "maximality": "maximality",
    "e_admissibility": "E-admissibility",
}
SIGNS: Final = {"better": "▲", "worse": "▼", "undecided": "■"}
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


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; the rows of one ``group`` belong together."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    group: int = 1


def detection_table(result: dict[str, Any], /) -> Table:
    """Credal against averaging side by side, for each OOD data set by EU and by TU."""
    pairs = [Column(f"{title} {method}", title) for title in METRICS.values() for method in METHODS.values()]
    names = [Column("OOD data", "out of distribution (OOD)", text=True), Column("Score", text=True)]
    columns = (*names, *pairs[:2], Column("Gain in AUROC", "interval (95 %)"), *pairs[2:])
    rows = []
    for name, measure, part in _parts(result):
        auroc, auprc, fpr95 = (_both(part, metric) for metric in METRICS)
        rows.append((_text(name), _text(SHORT[measure]), *auroc, _gain(part), *auprc, *fpr95))
    return Table("Finding OOD inputs (%)", columns, tuple(rows), group=2)


def narrow_detection_table(result: dict[str, Any], /) -> Table:
    """The same, one row for each method, for a terminal of 80 columns."""
    level = f"{100 * result['settings']['level']:g} %"
    titles = ("OOD data", "Score", *METRICS.values(), f"Gain in AUROC ({level})")
    rows, last = [], None
    for name, measure, part in _parts(result):
        both = [_both(part, metric) for metric in METRICS]
        for place, method in enumerate(METHODS.values()):
            gain = Cell("") if place else _gain(part)
            plain = [replace(cells[place], note="") for cells in both]
            rows.append((_text("" if name == last else name), _text(f"{SHORT[measure]} {method}"), *plain, gain))
            last = name
    columns = tuple(Column(title, text=place < 2) for place, title in enumerate(titles))
    return Table("Finding OOD inputs (%)", columns, tuple(rows), group=4)


def _parts(result: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for found in result["ood"]:
        for measure in ("epistemic", "total"):
            yield found["name"], measure, found[measure]


def _both(part: dict[str, Any], name: str) -> list[Cell]:
    """The metric of credal and classical, the better one marked."""
    cells = [
        Cell(f"{100 * part[kind][name]:.2f}", part[kind][name], _interval(part[kind][f"{name}_interval"]))
        for kind in METHODS
    ]
    return mark_best(cells, lower=name == "fpr95")


def _interval(interval: dict[str, Any]) -> str:
    return f"{100 * interval['low']:.1f} to {100 * interval['high']:.1f}"


def _gain(part: dict[str, Any]) -> Cell:
    comparison = part["difference"]["auroc"]
    span = f"{points(comparison['low'])} to {points(comparison['high'])}"
    found = verdict(comparison)
    return Cell(points(comparison["difference"]), comparison["difference"], f"{span} {SIGNS[found]}", tone=found)


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


def _column(parts: list[dict[str, Any]], key: str, show: Callable[[Any], str], *, lower: bool = False) -> list[Cell]:
    return mark_best([Cell(show(part[key]), part[key]) for part in parts], lower=lower)


def _percents(value: float | None) -> str:
    return percent(value, 2).removesuffix("%").strip()


def calibration_table(result: dict[str, Any], /) -> Table:
    """Accuracy, ECE, NLL and Brier score of both point predictions."""
    parts = [result["calibration"][name] for name in ("intersection", "averaged")]
    columns = (
        Column("Point prediction", "intersection probability", text=True),
        Column("Accuracy (%)", "accuracy"),
        Column("ECE (%)", "ECE"),
        Column("NLL", "NLL"),
        Column("Brier", "Brier score"),
    )
    cells = [
        _column(parts, "accuracy", _percents),
        _column(parts, "ece", _percents, lower=True),
        *(_column(parts, key, lambda value: number(value, 4), lower=True) for key in ("nll", "brier")),
    ]
    title = f"Predictions on {result['data']['id']['name']} data"
    return Table(title, columns, _rows(["intersection (credal)", "averaged"], cells), group=2)


def sets_table(result: dict[str, Any], /) -> Table:
    """Set-valued predictions, rule by rule, with their mean size on every data set."""
    rules = list(result["sets"])
    parts = [result["sets"][rule] for rule in rules]
    shares = {"coverage": "Coverage", "determinacy": "Single class", "single_accuracy": "Accuracy if single"}
    columns = [Column("Rule", text=True), *(Column(f"{title} (%)", title.lower()) for title in shares.values())]
    columns += [Column("u65", "u65"), Column("u80", "u80"), Column("Set size, ID", "set size")]
    columns += [Column(f"Set size, {found['name']}", "set size") for found in result["ood"]]
    cells = [[Cell(_percents(part[key]), part[key]) for part in parts] for key in shares]
    cells += [_column(parts, key, number) for key in ("u65", "u80")]
    for sizes in (result["mean_set_size"], *(found["mean_set_size"] for found in result["ood"])):
        cells.append([Cell(number(sizes[rule], 2), sizes[rule]) for rule in rules])
    return Table("Predicting a set of classes", tuple(columns), _rows([RULE_NAMES[rule] for rule in rules], cells))


def selective_table(result: dict[str, Any], /) -> Table:
    """Area under the accuracy-rejection curve of every uncertainty."""
    columns = (
        Column("Turned away by", text=True),
        Column("credal (%)", "mean accuracy on the inputs kept"),
        Column("averaging (%)", "mean accuracy on the inputs kept"),
    )
    rows = []
    for measure, part in result["selective"].items():
        cells = [Cell(_percents(part[kind]["area"]), part[kind]["area"]) for kind in METHODS]
        rows.append((_text(f"{measure} uncertainty ({SHORT[measure]})"), *mark_best(cells)))
    return Table("Mean accuracy on the inputs kept", columns, tuple(rows))


def threshold_table(result: dict[str, Any], rate: float, /) -> Table:
    """The thresholds for one false-alarm rate and the share of each OOD data set that they catch."""
    chosen = [row for row in result["thresholds"] if row["false_alarm_rate"] == rate]
    names = [found["name"] for found in result["ood"]]
    columns = (
        Column("Score", text=True),
        Column("Method", text=True),
        Column(f"Threshold ({unit(result['settings']['base'])})", "threshold"),
        Column("ID flagged (%)", "false-alarm rate"),
        *(Column(f"{name} caught (%)") for name in names),
    )
    caught = {name: mark_best([_share(row["caught"][name]) for row in chosen]) for name in names}
    rows = [
        (
            _text(SHORT[row["measure"]]),
            _text(METHODS[row["kind"]]),
            Cell(number(row["value"]), row["value"]),
            _share(row["achieved_rate"]),
            *(caught[name][place] for name in names),
        )
        for place, row in enumerate(chosen)
    ]
    return Table(f"Alarm for at most {100 * rate:g} % of ID inputs", columns, tuple(rows))


def _share(value: float) -> Cell:
    return Cell(f"{100 * value:.1f}", value)


def members_table(result: dict[str, Any], /) -> Table:
    """AUROC of credal EU for each OOD data set, and accuracy, against the number of members."""
    found = result["members_needed"]
    names = [one["name"] for one in result["ood"]]
    curves = {f"AUROC EU, {name} (%)": found["auroc"]["epistemic"]["credal"][name] for name in names}
    if "accuracy" in found:
        curves |= {"Accuracy (%)": found["accuracy"]["credal"]}
    cells = [
        [
            Cell(_percents(mean), mean, f"± {100 * std:.2f}" if count > 1 else "")
            for mean, std, count in zip(curve["mean"], curve["std"], found["subsets"], strict=True)
        ]
        for curve in curves.values()
    ]
    rows = tuple(
        (Cell(str(size), size), *row) for size, row in zip(found["sizes"], zip(*cells, strict=True), strict=True)
    )
    return Table("Credal prediction with fewer members", (Column("Members", "member"), *map(Column, curves)), rows)
