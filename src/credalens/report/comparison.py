"""The page of several models on the same inputs, and the report of each in a folder of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from credalens.checks.options import count_text
from credalens.core.scores import SCORES
from credalens.evaluation.model_comparison import ModelComparison, ModelDifference, recommended_point
from credalens.evaluation.results import Comparison
from credalens.evaluation.words import MINUS, SIGNS, gain_text, joined, percent, points
from credalens.report.charts.evaluation import X_AXES, draw_roc, gain_row, gains_chart
from credalens.report.charts.vega import Chart, Spec, by_series, line_rows
from credalens.report.figures import Figures, stem
from credalens.report.files import check_apart, older_report, write_report
from credalens.report.page import legend_entry, now, render_page
from credalens.report.tables import Cell, Column, Table, names, number_4, numbers, percents
from credalens.storage.atomic import atomic_folder
from credalens.theme import PAGE, Theme, dash_of


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
    evaluations, first = comparison.evaluations, comparison.evaluations[comparison.baseline]
    return render_page(
        "comparison.html",
        first,
        title or f"Credal report: {joined(evaluations)}",
        {"short": "In short", "gains": "Differences"} | ({"curves": "Curves"} if first.ood else {}),
        Figures(),
        made,
        f"{len(evaluations)} models",
        files={name: one.data for name, one in evaluations.items()},
        sentences=[sentence(comparison, one) for one in comparison.differences],
        models=models_table(comparison),
        baseline=comparison.baseline,
        gains=_gains(comparison),
        differences=differences_table(comparison),
        curves=[_roc(comparison, one.name) for one in first.ood],
        axes={name: name for name in X_AXES},
        legend=[legend_entry(f"model {k}", name, PAGE.color(k), dash_of(k)) for k, name in enumerate(evaluations)],
    )


def sentence(comparison: ModelComparison, one: ModelDifference, /) -> str:
    """Where a model is better, worse, or not to be told apart, and how many members it takes."""
    baseline = comparison.baseline
    said: dict[str, list[str]] = {"better": [], "worse": [], "undecided": []}
    for name, gain in one.items():
        said[gain.verdict].append(
            name if gain.verdict == "undecided" else f"{name} ({_written(gain)(gain.difference)})"
        )
    words = {
        "better": f"is better than {baseline} in",
        "worse": f"is worse than {baseline} in",
        "undecided": f"cannot be told apart from {baseline} by",
    }
    parts = [f"{words[side]} {joined(metrics)}" for side, metrics in said.items() if metrics]
    ours, theirs = (comparison.evaluations[name].data.members for name in (one.model, baseline))
    members = count_text(ours, "member")
    cost = f"Both have {members}." if ours == theirs else f"It has {members}, {baseline} has {theirs}."
    return f"{one.model} {'; '.join(parts)}. {cost}"


def _written(gain: Comparison) -> Callable[[float], str]:
    """A function that writes a difference in percentage points, that of NLLs in nats."""
    return (lambda nats: f"{nats:+.3f}".replace("-", MINUS)) if gain.metric == "nll" else points


def models_table(comparison: ModelComparison, /, *, caught: bool = True) -> Table:
    """Every model: its members, accuracy, calibration, recommended score, and how well that finds OOD inputs."""
    evaluations = list(comparison.evaluations.values())
    first, labelled, of_ood = evaluations[0], [], []
    if first.calibration:
        best = [recommended_point(evaluation) for evaluation in evaluations]
        labelled = [
            numbers("Accuracy (%)", [one.accuracy for one in best], percents(2), best=max),
            numbers("ECE (%)", [one.ece for one in best], percents(2), best=min),
            numbers("NLL", [one.nll for one in best], number_4, best=min),
        ]
    for name in (one.name for one in first.ood):
        qualities = [next(q for q in e.scores if q.name == e.recommended.score).ood[name] for e in evaluations]
        of_ood.append(numbers(f"AUROC {name} (%)", [one.auroc for one in qualities], percents(2), best=max))
        if caught:
            shares = [evaluation.alarm.caught[name] for evaluation in evaluations]
            of_ood.append(numbers(f"{name} caught (%)", shares, percents(1), best=max))
    rate = f"{100 * first.settings.false_alarm_rate:g} %"
    return Table.of(
        f"All models; caught: at {rate} of false alarms" if caught else "All models",
        names("Model", comparison.evaluations),
        numbers("Members", [evaluation.data.members for evaluation in evaluations], str),
        *labelled,
        names("Score", [SCORES[evaluation.recommended.score].label for evaluation in evaluations]),
        *of_ood,
        best="best",
    )


def differences_table(comparison: ModelComparison, /) -> Table:
    """Every difference to the first model with its interval."""
    gains = [(one.model, name, gain) for one in comparison.differences for name, gain in one.items()]

    def values(title: str, side: str) -> tuple[Column, list[Cell]]:
        cells = [(getattr(gain, side), number_4 if gain.metric == "nll" else percents(2)) for *_, gain in gains]
        return Column(title), [Cell(write(value), value) for value, write in cells]

    writers = [(gain, _written(gain)) for *_, gain in gains]
    changes = [Cell(write(gain.difference), gain.difference, gain_text(gain, write)) for gain, write in writers]
    verdicts = [Cell(f"{SIGNS[gain.verdict]} {gain.verdict}", gain.verdict) for *_, gain in gains]
    return Table.of(
        "Differences in percentage points, of the NLL in nats",
        names("Model", [model for model, *_ in gains]),
        names("What", [name for _, name, _ in gains]),
        values("Model's", "a"),
        values(f"{comparison.baseline}'s", "b"),
        (Column("Difference"), changes),
        (Column("Verdict", text=True), verdicts),
    )


def _gains(comparison: ModelComparison) -> Chart:
    """Every difference to the first model with its interval, but for NLLs, which are no shares."""
    rows = [
        gain_row(
            f"{SIGNS[gain.verdict]} {one.model}: {name}", "total", gain, f"{percent(gain.a)} against {percent(gain.b)}"
        )
        for one in comparison.differences
        for name, gain in one.items()
        if gain.metric != "nll"
    ]
    baseline = comparison.baseline
    return gains_chart(
        "gains", f"Every model minus {baseline}", f"Differences to {baseline}.", rows, "difference, points"
    )


def _roc(comparison: ModelComparison, ood_name: str) -> Chart:
    series = {f"model {k}": name for k, name in enumerate(comparison.evaluations)}
    models = zip(series, comparison.evaluations.values(), strict=True)
    lines = {key: one.curves.detection[ood_name][one.recommended.score].roc for key, one in models}
    values = [row for key, line in lines.items() for row in line_rows(key, *line)]
    label = f"ROC curves of {joined(comparison.evaluations)} for {ood_name}."
    return Chart("roc by model", ood_name, label, values, partial(_draw_roc, series))


def _draw_roc(series: dict[str, str], theme: Theme) -> Spec:
    colors, dashes = ([of(k) for k in range(len(series))] for of in (theme.color, lambda k: list(dash_of(k)) or [1, 0]))
    look = {"color": by_series(series, colors, theme), "strokeDash": by_series(series, dashes, theme)}
    return draw_roc(series, theme, look)
