"""The report: one HTML file with everything inside, that opens without a network.

In a notebook an evaluation shows its sentences and the table of all scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from credalens.checks.options import escaped, needing
from credalens.evaluation.data_sets import score_name
from credalens.evaluation.guarded import Alarm
from credalens.evaluation.images import check_images
from credalens.evaluation.outcome import ID_NAME, Evaluation
from credalens.evaluation.remarks import NO_LABELS, ONE_MEMBER
from credalens.evaluation.results import MEASURES, METHODS
from credalens.evaluation.sentences import Finding, alarm_sentence
from credalens.evaluation.single_inputs import Sample
from credalens.evaluation.words import GLOSSARY, GROUP_MEANINGS, GROUPS, unit
from credalens.look import PAGE, STROKES, css_variables
from credalens.report import tables
from credalens.report.charts.all import Charts, input_charts
from credalens.report.charts.chart import Chart, names_of
from credalens.report.charts.detection import X_AXES
from credalens.report.footer import facts, footer, promise
from credalens.report.tables import Table, groups_table, outcome_table, threshold_table


def live_texts(evaluation: Evaluation, /) -> list[dict[str, Any]]:
    """For each rate, rising: the texts, the rate itself, and the thresholds of all scores for the charts."""
    return [_texts(evaluation, rate) for rate in alarm_rates(evaluation)]


def alarm_rates(evaluation: Evaluation, /) -> list[float]:
    """The false-alarm rates that the slider offers."""
    return sorted({alarm.threshold.false_alarm_rate for alarm in evaluation.thresholds})


def _texts(evaluation: Evaluation, rate: float) -> dict[str, Any]:
    alarms = {alarm.score: alarm for alarm in evaluation.thresholds if alarm.threshold.false_alarm_rate == rate}
    chosen: Alarm = alarms[evaluation.recommended.score]
    texts = {"rate": f"{100 * rate:g} %", "sentence": alarm_sentence(evaluation, chosen)}
    place = alarm_rates(evaluation).index(rate)
    groups = [groups_table(evaluation, one, place) for one in evaluation.groups]
    for table in (threshold_table(evaluation, rate), outcome_table(evaluation, chosen), *groups):
        texts |= _cells(table)
    return {"rate": rate, "thresholds": {name: a.threshold.value for name, a in alarms.items()}, "texts": texts}


def _cells(table: Table) -> dict[str, str]:
    return {cell.live: cell.text for row in table.rows for cell in row if cell.live}


def to_notebook(evaluation: Evaluation, /) -> str:
    """A fragment of HTML without scripts and styles of its own."""
    words = evaluation.words
    lines = (words.headline, words.prediction, words.rejection, words.threshold, words.members, *words.remarks)
    shown = [tables.scores_table(evaluation)] if evaluation.ood else []
    if evaluation.calibration:
        shown.append(tables.calibration_table(evaluation.calibration, evaluation.data.id.name))
    return templates().get_template("notebook.html").render(lines=[line for line in lines if line], tables=shown)


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

    ``images``, data set -> one image for each input, shows the inputs themselves; ``made`` are lines of the footer, such
    as the date and the command.
    """
    pictures = _pictures(evaluation, images)
    figures, charts = Figures(), Charts.of(evaluation)
    context = {
        "evaluation": evaluation,
        "tables": _tables(evaluation),
        "charts": charts,
        "sets": _sets(evaluation, charts),
        "inputs": [_input(evaluation, sample, pictures, figures) for sample in evaluation.samples],
        "rates": alarm_rates(evaluation),
        "rate": evaluation.settings.false_alarm_rate,
        "promise": promise(evaluation),
        **_legends(evaluation),
        **_words(evaluation),
    }
    live = live_texts(evaluation)
    of_data = evaluation.data.id.name
    name = title or ("Credal report" if of_data == ID_NAME else f"Credal report: {of_data}")
    links = {key: text for key, text in LINKS.items() if evaluation.ood or key not in ("scores", "detection")}
    if not context["tables"]["groups"]:
        del links["groups"]
    guard = "" if evaluation.guard is None else evaluation.guard.digest
    return render_page(
        "report.html",
        name,
        facts(evaluation.data),
        [*footer(evaluation), *made],
        links,
        figures,
        live,
        guard=guard,
        **context,
    )


def render_page(
    template: str, title: str, facts: str, footer: Sequence[str], links: Mapping[str, str], figures: Figures,
    live: Sequence[Any] = (), guard: str = "", **context: Any,
) -> str:  # fmt: skip
    """A page of a template, with the style, the scripts and the charts that it shows, and the notices of these scripts."""
    return templates().get_template(template).render(
        title=escaped(title),
        guard=guard,
        facts=facts,
        footer=[escaped(line) for line in footer],
        links=links,
        figures=figures,
        live=live,
        policy=POLICY,
        variables=css_variables(),
        asset=_asset,
        library=lambda: Markup(interactive_script()),  # noqa: S704
        glossary=GLOSSARY,
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


def _tables(evaluation: Evaluation) -> dict[str, Any]:
    calibration, selective, sets = evaluation.calibration, evaluation.selective, evaluation.sets
    needed, rate = evaluation.members_needed, evaluation.settings.false_alarm_rate
    return {
        "outcomes": tables.outcome_table(evaluation, evaluation.alarm),
        "scores": tables.scores_table(evaluation, intervals=True),
        "detection": tables.detection_table(evaluation),
        "thresholds": tables.threshold_table(evaluation, rate),
        "guard": tables.guard_table(evaluation) if evaluation.outcomes else None,
        "calibration": tables.calibration_table(calibration, evaluation.data.id.name) if calibration else None,
        "selective": tables.selective_table(selective) if selective else None,
        "sets": tables.sets_table(evaluation, sets) if sets else None,
        "members": tables.members_table(needed) if needed else None,
        "groups": [
            tables.groups_table(evaluation, one, alarm_rates(evaluation).index(rate)) for one in evaluation.groups
        ],
    }


@dataclass(frozen=True)
class OODSet:
    """One OOD data set of the page; the hardest is open."""

    finding: Finding
    charts: list[Chart]
    open: bool


def _sets(evaluation: Evaluation, charts: Charts) -> list[OODSet]:
    score = next(quality for quality in evaluation.scores if quality.name == evaluation.recommended.score)
    findings = sorted(evaluation.words.detection, key=lambda finding: score.ood[finding.name].auroc)
    return [OODSet(finding, charts.detection[finding.name], not place) for place, finding in enumerate(findings)]


@dataclass(frozen=True)
class Entry:
    """A series in a legend."""

    name: str
    label: str
    color: str
    dash: str


def _legend(series: Iterable[str]) -> list[Entry]:
    names = names_of(list(series))
    strokes = {name: STROKES[name] for name in names}
    return [
        Entry(name, names[name], stroke.color(PAGE), " ".join(f"{2 * length:g}" for length in stroke.dash))
        for name, stroke in strokes.items()
    ]


def _legends(evaluation: Evaluation) -> dict[str, Any]:
    drawn = names_of(list(evaluation.curves.histograms))
    of_members = ("epistemic", "mean_epistemic") if evaluation.ood else ()
    of_points = ("intersection", "averaged")
    return {
        "legend": _legend(drawn),
        "point_legend": _legend(of_points),
        "rejection_legend": _legend(score_name(method, measure) for measure in MEASURES for method in METHODS),
        "members_legend": _legend((*of_members, *(of_points if evaluation.calibration else ()))),
        "axes": {name: name for name in X_AXES},
        "histogram_scores": drawn,
    }


def _words(evaluation: Evaluation) -> dict[str, Any]:
    used = {group for sample in evaluation.samples for group in sample.groups}
    data = evaluation.data
    return {
        "kinds": {group: name for group, name in GROUPS.items() if group in used},
        "kind_meanings": GROUP_MEANINGS,
        "set_names": [one.name for one in (data.id, *data.ood)],
        "unit": unit(evaluation.settings.base),
        "no_labels": NO_LABELS,
        "one_member": ONE_MEMBER,
    }


Pictures = dict[tuple[str, int], str]
"""Data set and row -> the picture of the input as a ``data:`` address."""


@dataclass(frozen=True)
class Input:
    """One input of the page."""

    sample: Sample
    picture: str | None
    why: str
    truth: str
    predicted: str
    averaged: str
    numbers: tuple[float, ...]
    charts: list[str]
    values: Table


def _input(evaluation: Evaluation, sample: Sample, pictures: Pictures, figures: Figures) -> Input:
    names, scores = evaluation.data.class_names, sample.scores.credal
    return Input(
        sample,
        pictures.get((sample.set, sample.row)),
        ", ".join(GROUPS[group] for group in sample.groups),
        "–" if sample.label is None else names[sample.label],
        names[sample.predicted],
        names[sample.averaged],
        (scores.total, scores.aleatoric, scores.epistemic, sample.dispute),
        [figures.add(chart) for chart in input_charts(sample, names)],
        tables.input_table(sample, names),
    )


def _pictures(evaluation: Evaluation, images: Any) -> Pictures:
    """Those that were given to ``evaluate``, and those that are given now."""
    given = check_images(images, evaluation.data)
    late = {(one.set, one.row): given[one.set][one.row] for one in evaluation.samples if one.set in given}
    return {place: png_uri(image) for place, image in (evaluation.pictures | late).items()}
