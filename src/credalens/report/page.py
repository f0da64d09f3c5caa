"""The report: one HTML file with everything inside, that opens without a network.

In a notebook an evaluation shows its sentences and the table of all scores.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np

from credalens.checks.options import count_text, escaped, needing
from credalens.evaluation.data_sets import check_images, score_name
from credalens.evaluation.evaluate import ID_NAME, Evaluation
from credalens.evaluation.results import MEASURES, METHODS
from credalens.evaluation.sentences import NO_LABELS, ONE_MEMBER, alarm_sentence
from credalens.evaluation.single_inputs import Sample
from credalens.evaluation.words import GROUPS, SPACE, unit
from credalens.report import tables
from credalens.report.charts import evaluation as charts
from credalens.report.charts.evaluation import X_AXES
from credalens.report.charts.one_input import input_charts
from credalens.report.charts.vega import names_of
from credalens.report.outcome_bars import legend_of, live_bars, outcome_bars
from credalens.theme import PAGE, STROKES, css_variables

with needing("jinja2", part="the report", extra="report"):
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from credalens.report.figures import Figures, interactive_script, png_uri

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""Tells the browser to load nothing from anywhere, and to make no code of text."""
LINKS: Final = {
    "short": "In short",
    "scores": "Scores",
    "detection": "Finding OOD",
    "alarm": "Threshold",
    "prediction": "Accuracy",
    "groups": "Groups",
    "members": "Members",
    "inputs": "Inputs",
    "words": "Glossary",
}


def render_html(evaluation: Evaluation, /, *, title: str = "", images: Any = None, made: Sequence[str] = ()) -> str:
    """The page for an evaluation as text, to send or embed it; ``write_report`` writes it to a folder.

    ``images``, data set -> one image for each input, shows the inputs themselves, also those that were not given to
    ``evaluate``; ``made`` are lines of the footer, such as the date and the command.
    """
    data, curves = evaluation.data, names_of(list(evaluation.curves.histograms))
    late = check_images(images, data.rows(), data.id.name)
    pictures = evaluation.pictures | {
        (one.set, one.row): late[one.set][one.row] for one in evaluation.samples if one.set in late
    }
    uris = {place: png_uri(image) for place, image in pictures.items()}
    recommended = next(quality for quality in evaluation.scores if quality.name == evaluation.recommended.score)
    left_out = {"scores", "detection"} if not evaluation.ood else set[str]()
    left_out |= set() if evaluation.groups else {"groups"}
    figures, of_members = Figures(), ("epistemic", "mean_epistemic") if evaluation.ood else ()
    used = {group for sample in evaluation.samples for group in sample.groups}
    return render_page(
        "report.html",
        evaluation,
        title or ("Credal report" if data.id.name == ID_NAME else f"Credal report: {data.id.name}"),
        {key: text for key, text in LINKS.items() if key not in left_out},
        figures,
        made,
        count_text(data.members, "member"),
        live=live_texts(evaluation),
        guard="" if evaluation.guard is None else evaluation.guard.digest,
        files={"": data},
        tables=tables,
        charts=charts,
        findings=sorted(evaluation.words.detection, key=lambda finding: recommended.ood[finding.name].auroc),
        inputs=[
            _input(sample, data.class_names, uris.get((sample.set, sample.row)), figures)
            for sample in evaluation.samples
        ],
        bars=(bars := outcome_bars(evaluation, evaluation.alarm)),
        bar_legend=legend_of(bars),
        rates=alarm_rates(evaluation),
        rate=evaluation.settings.false_alarm_rate,
        legend=_legend(curves),
        point_legend=_legend(charts.reliability_series(evaluation.recalibration)),
        rejection_legend=_legend(score_name(method, measure) for measure in MEASURES for method in METHODS),
        members_legend=_legend((*of_members, *(METHODS if evaluation.calibration else ()))),
        axes={name: name for name in X_AXES},
        histogram_scores=curves,
        kinds={group: name for group, name in GROUPS.items() if group in used},
        no_labels=NO_LABELS,
        one_member=ONE_MEMBER,
    )


def render_page(
    template: str, evaluation: Evaluation, title: str, links: Mapping[str, str], figures: Figures, made: Sequence[str],
    who: str, /, *, live: Sequence[Any] = (), guard: str = "", **context: Any,
) -> str:  # fmt: skip
    """A page of a template, with the style, the scripts and the charts that it shows, and the notices of these scripts.

    Its head says of what ``who`` made the evaluation, its foot how, of which ``files``, and the lines ``made``.
    """
    return templates().get_template(template).render(
        evaluation=evaluation,
        title=escaped(title),
        links=links,
        figures=figures,
        made=[escaped(line) for line in made],
        who=who,
        live=live,
        guard=guard,
        policy=POLICY,
        variables=css_variables(),
        asset=_asset,
        library=lambda: Markup(interactive_script()),  # noqa: S704
        glossary=glossary(),
        id_name=ID_NAME,
        unit=unit(evaluation.settings.base),
        level=f"{100 * evaluation.settings.level:g}{SPACE}%",
        count_text=count_text,
        versions=f"Python {platform.python_version()}, NumPy {np.__version__}",
        **context,
    )  # fmt: skip


@cache
def templates() -> Environment:
    """The templates of this folder, everything escaped."""
    loader = PackageLoader("credalens.report")
    made = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    made.policies["json.dumps_kwargs"] = {"sort_keys": False, "separators": (",", ":")}
    return made


def _asset(name: str) -> Markup:
    return Markup(files("credalens.report").joinpath("assets", name).read_text(encoding="utf-8"))  # noqa: S704


@cache
def glossary() -> dict[str, str]:
    """Every word that needs one, with its meaning in one sentence."""
    return json.loads(_asset("glossary.json"))


def alarm_rates(evaluation: Evaluation, /) -> list[float]:
    """The false-alarm rates that the slider offers."""
    return sorted({alarm.threshold.false_alarm_rate for alarm in evaluation.thresholds})


def live_texts(evaluation: Evaluation, /) -> list[dict[str, Any]]:
    """For each rate, rising: the texts, the rate itself, and the thresholds of all scores for the charts."""
    lives = []
    for place, rate in enumerate(alarm_rates(evaluation)):
        alarms = {alarm.score: alarm for alarm in evaluation.thresholds if alarm.threshold.false_alarm_rate == rate}
        chosen = alarms[evaluation.recommended.score]
        shown = [tables.threshold_table(evaluation, rate), tables.outcome_table(evaluation, chosen)]
        shown += [tables.groups_table(one, place) for one in evaluation.groups]
        texts = {"rate": f"{100 * rate:g} %", "sentence": alarm_sentence(evaluation, chosen)}
        texts |= {cell.live: cell.text for table in shown for row in table.rows for cell in row if cell.live}
        thresholds = {name: alarm.threshold.value for name, alarm in alarms.items()}
        bars = live_bars(outcome_bars(evaluation, chosen))
        texts |= bars["texts"]
        lives.append({"rate": rate, "thresholds": thresholds, "texts": texts, "bars": bars["bars"]})
    return lives


def legend_entry(name: str, label: str, color: str, dash: Iterable[float]) -> dict[str, str]:
    """A series in a legend, with dashes that can be told apart in a short line."""
    return {"name": name, "label": label, "color": color, "dash": " ".join(f"{2 * length:g}" for length in dash)}


def _legend(series: Iterable[str]) -> list[dict[str, str]]:
    labels = names_of(list(series))
    return [legend_entry(name, text, STROKES[name].color(PAGE), STROKES[name].dash) for name, text in labels.items()]


def _input(sample: Sample, names: list[str], picture: str | None, figures: Figures) -> dict[str, Any]:
    """One input, as its template reads it."""
    scores = sample.scores.credal
    return {
        "sample": sample,
        "picture": picture,
        "why": ", ".join(GROUPS[group] for group in sample.groups),
        "truth": "–" if sample.label is None else names[sample.label],
        "predicted": names[sample.predicted],
        "averaged": names[sample.averaged],
        "numbers": (scores.total, scores.aleatoric, scores.epistemic, sample.dispute),
        "charts": [figures.add(chart) for chart in input_charts(sample, names)],
        "table": tables.input_table(sample, names),
    }


def to_notebook(evaluation: Evaluation, /) -> str:
    """A fragment of HTML without scripts and styles of its own."""
    shown = [tables.scores_table(evaluation)] if evaluation.ood else []
    if evaluation.calibration:
        shown.append(tables.calibration_table(evaluation.calibration, evaluation.data.id.name))
    return templates().get_template("notebook.html").render(lines=evaluation.words.lines(), tables=shown)


def now() -> str:
    """The date and the time for the foot of a page."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
