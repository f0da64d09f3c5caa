"""The page of several models on the same inputs, and the report of each in a folder of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from credalens.checks.options import count_text
from credalens.core.scores import SCORES
from credalens.evaluation.model_comparison import ModelComparison, ModelDifference, recommended_point
from credalens.evaluation.results import TOO_FEW, Comparison
from credalens.evaluation.sentences import verdict
from credalens.evaluation.words import MINUS, SIGNS, joined, number, percent, points
from credalens.look import DASHES, PAGE, Theme
from credalens.report.charts.chart import HIDDEN, SQUARE, Chart, Spec, by_series, frame, percent_axis, shown
from credalens.report.charts.detection import X_AXES, gain_row, gains
from credalens.report.figures import Figures, stem
from credalens.report.files import check_apart, older_report, write_report
from credalens.report.footer import facts, files_read, footer, now
from credalens.report.page import Entry, render_page
from credalens.report.tables import Cell, Column, Table, mark_best
from credalens.storage.atomic_folder import atomic_folder


def write_comparison(
    comparison: ModelComparison,
    folder: str | os.PathLike[str],
    /,
    *,
    title: str = "",
    made: Sequence[str] | None = None,
) -> Path:
    """Write ``report.html`` and ``report.json`` of the comparison, and in folders beside them those of every model.

    ``compare_models(...).report(folder)`` calls it.
    """
    made = [now()] if made is None else made
    target, used = Path(folder), set[str]()
    older = older_report(target)
    with atomic_folder(target, stale=older) as scratch:
        (scratch / "report.html").write_text(render_comparison(comparison, title=title, made=made), encoding="utf-8")
        plain = json.dumps(comparison.as_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        (scratch / "report.json").write_text(plain + "\n", encoding="utf-8")
        for name, evaluation in comparison.evaluations.items():
            write_report(evaluation, scratch / stem(name, used), title=f"Credal report: {name}", made=made)
        check_apart(scratch, target, older)
    return target


def render_comparison(comparison: ModelComparison, /, *, title: str = "", made: Sequence[str] = ()) -> str:
    """The page of the comparison."""
    first = comparison.evaluations[comparison.baseline]
    links = {"short": "In short", "gains": "Differences", "curves": "Curves"}
    if not first.ood:
        del links["curves"]
    return render_page(
        "comparison.html",
        title or f"Credal report: {joined(comparison.evaluations)}",
        facts(first.data, f"{len(comparison.evaluations)} models"),
        [footer(first)[0], *(files_read(one.data, name) for name, one in comparison.evaluations.items()), *made],
        links,
        Figures(),
        sentences=[sentence(comparison, one) for one in comparison.differences],
        models=models_table(comparison),
        baseline=comparison.baseline,
        level=f"{100 * first.settings.level:g} %",
        gains=gains_chart(comparison),
        differences=differences_table(comparison),
        curves=[_roc(comparison, one.name) for one in first.ood],
        axes={name: name for name in X_AXES},
        legend=[
            Entry(key, name, PAGE.color(k), " ".join(f"{2 * length:g}" for length in DASHES[k % len(DASHES)]))
            for k, (key, name) in enumerate(_series(comparison).items())
        ],
    )


def sentence(comparison: ModelComparison, one: ModelDifference, /) -> str:
    """Where a model is better, worse, or not to be told apart, and how many members it takes."""
    baseline = comparison.baseline
    said: dict[str, list[str]] = {"better": [], "worse": [], "undecided": []}
    for name, gain in one.items():
        said[verdict(gain)].append(f"{name} ({_shown(gain)})" if verdict(gain) != "undecided" else name)
    words = {
        "better": "is better than {} in",
        "worse": "is worse than {} in",
        "undecided": "cannot be told apart from {} by",
    }
    parts = [f"{words[side].format(baseline)} {joined(names)}" for side, names in said.items() if names]
    ours, theirs = (comparison.evaluations[name].data.members for name in (one.model, baseline))
    members = count_text(ours, "member")
    cost = f"Both have {members}." if ours == theirs else f"It has {members}, {baseline} has {theirs}."
    return f"{one.model} {'; '.join(parts)}. {cost}"


def models_table(comparison: ModelComparison, /, *, caught: bool = True) -> Table:
    """What each model is: its members, accuracy, calibration, recommended score, and how well that finds OOD inputs."""
    evaluations = comparison.evaluations.values()
    first = next(iter(evaluations))
    columns: dict[str, list[Cell]] = {"Members": [Cell(str(e.data.members), e.data.members) for e in evaluations]}
    if first.calibration:
        best = [recommended_point(evaluation) for evaluation in evaluations]
        columns["Accuracy (%)"] = mark_best([Cell(f"{100 * one.accuracy:.2f}", one.accuracy) for one in best])
        columns["ECE (%)"] = mark_best([Cell(f"{100 * one.ece:.2f}", one.ece) for one in best], lower=True)
        columns["NLL"] = mark_best([Cell(number(one.nll, 4), one.nll) for one in best], lower=True)
    columns["Score"] = [Cell(SCORES[e.recommended.score].label, e.recommended.score) for e in evaluations]
    for detection in first.ood:
        quality = [next(q for q in e.scores if q.name == e.recommended.score).ood[detection.name] for e in evaluations]
        columns[f"AUROC {detection.name} (%)"] = mark_best([Cell(f"{100 * q.auroc:.2f}", q.auroc) for q in quality])
        if caught:
            shares = [e.alarm.caught[detection.name] for e in evaluations]
            columns[f"{detection.name} caught (%)"] = mark_best([Cell(f"{100 * share:.1f}", share) for share in shares])
    rate = f"{100 * first.settings.false_alarm_rate:g} %"
    rows = zip(comparison.evaluations, zip(*columns.values(), strict=True), strict=True)
    headings = (Column("Model", text=True), *(Column(name, text=name == "Score") for name in columns))
    cells = tuple((Cell(name, name), *of_model) for name, of_model in rows)
    said = f"; caught: at {rate} of false alarms" if caught else ""
    return Table(f"All models{said}", headings, cells, best="best")


def _shown(gain: Comparison, value: float | None = None, /) -> str:
    """A difference in percentage points, that of NLLs in nats."""
    shown = gain.difference if value is None else value
    return f"{shown:+.3f}".replace("-", MINUS) if gain.metric == "nll" else points(shown)


def differences_table(comparison: ModelComparison, /) -> Table:
    """Every difference to the first model with its interval."""
    titles = ("Model", "What", "Model's", f"{comparison.baseline}'s", "Difference", "Verdict")
    columns = tuple(Column(title, text=title in ("Model", "What", "Verdict")) for title in titles)
    rows = tuple(_difference_row(one.model, name, gain) for one in comparison.differences for name, gain in one.items())
    return Table("Differences in percentage points, of the NLL in nats", columns, rows)


def _difference_row(model: str, name: str, gain: Comparison) -> tuple[Cell, ...]:
    values = [Cell(number(x, 4) if gain.metric == "nll" else f"{100 * x:.2f}", x) for x in (gain.a, gain.b)]
    few, said = gain.method == TOO_FEW, verdict(gain)
    span = TOO_FEW if few else f"{_shown(gain, gain.low)} to {_shown(gain, gain.high)}"
    change = Cell(_shown(gain), gain.difference, span)
    return Cell(model, model), Cell(name, name), *values, change, Cell(f"{SIGNS[said]} {said}", said)


def gains_chart(comparison: ModelComparison, /) -> Chart:
    """Every difference to the first model with its interval."""
    rows = [
        gain_row(
            f"{SIGNS[verdict(gain)]} {one.model}: {name}", "total", gain, f"{percent(gain.a)} against {percent(gain.b)}"
        )
        for one in comparison.differences
        for name, gain in one.items()
        if gain.metric != "nll"  # is no share
    ]
    label = f"Differences to {comparison.baseline}. " + "; ".join(row["text"] for row in rows)
    draw = partial(gains, "difference, points")
    return Chart(
        "gains",
        f"Every model minus {comparison.baseline}",
        label,
        rows,
        draw,
        rows=[row["label"].strip() for row in rows],
    )


def _roc(comparison: ModelComparison, ood_name: str) -> Chart:
    names = _series(comparison)
    values = [
        {"series": key, "x": x, "y": y}
        for key, name in names.items()
        for x, y in zip(*_line(comparison, name, ood_name), strict=True)
    ]
    label = f"ROC curves of {joined(comparison.evaluations)} for {ood_name}."
    return Chart("roc by model", ood_name, label, values, partial(_roc_spec, names))


def _series(comparison: ModelComparison) -> dict[str, str]:
    return {f"model {k}": name for k, name in enumerate(comparison.evaluations)}


def _line(comparison: ModelComparison, name: str, ood_name: str) -> tuple[list[float], list[float]]:
    evaluation = comparison.evaluations[name]
    return evaluation.curves.detection[ood_name][evaluation.recommended.score].roc


def _roc_spec(names: dict[str, str], theme: Theme) -> Spec:
    dashes = [list(DASHES[k % len(DASHES)]) or [1, 0] for k in range(len(names))]
    line = {
        "transform": shown(),
        "mark": {"type": "line", "clip": True, "strokeWidth": 2},
        "encoding": {
            "x": {"field": "x", **percent_axis("ID inputs flagged by mistake", **X_AXES["up to 20 %"])},
            "y": {"field": "y", **percent_axis("OOD inputs caught", domain=[0, 1])},
            "order": {"field": "n"},
            "color": by_series(names, [theme.color(k) for k in range(len(names))], theme),
            "strokeDash": by_series(names, dashes, theme),
        },
    }
    readout = {"kind": "line", "x": "%", "y": "%", "at": "false alarms", "names": names, "axes": X_AXES}
    return frame(theme, [line], height=SQUARE, readout=readout, params=[HIDDEN])
