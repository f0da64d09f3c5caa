"""The section on single inputs: a list to sort and filter, and one picture of every input in it."""

from __future__ import annotations

from html import escape
from typing import Final

from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.samples import Sample
from credalens.evaluation.words.names import GROUP_MEANINGS, GROUPS, METHOD_NAMES
from credalens.evaluation.words.numbers import number, percent, unit
from credalens.report.elements import paragraph, tag
from credalens.report.member_charts import bars_chart, simplex_chart

Pictures = dict[tuple[str, int], str]
"""Data set and row -> the picture of the input as a ``data:`` address."""
COLUMNS: Final = ("Input", "Why it is here", "Truth", "Credal", "Averaging", "TU", "AU", "EU", "Dispute")


def worst_inputs(evaluation: Evaluation, pictures: Pictures, /) -> str:
    """The worst inputs of every data set."""
    samples, names, measured_in = evaluation.samples, evaluation.data.class_names, unit(evaluation.settings.base)
    rows = "".join(_row(place, sample, names, pictures) for place, sample in enumerate(samples))
    head = "".join(
        tag("th", tag("button", title, type="button"), scope="col", class_="text" if place < 5 else None)
        for place, title in enumerate(COLUMNS)
    )
    caption = tag("caption", f"Inputs worth a look (uncertainty in {measured_in})")
    table = tag("table", caption + tag("thead", tag("tr", head)) + tag("tbody", rows), class_="sortable", id="samples")
    details = "".join(_detail(place, sample, names, measured_in, pictures) for place, sample in enumerate(samples))
    listed = tag("div", table, class_="scroll list", tabindex=0, role="region", aria_label="Inputs worth a look")
    return (
        paragraph(
            "Point at an input, or move to it with the Tab key, to see what every member says about it. Click to keep it."
        )
        + _filters(evaluation)
        + tag("div", listed + tag("div", details, id="details", aria_live="polite"), class_="browser")
        + _meanings(evaluation)
    )


def _groups(evaluation: Evaluation) -> dict[str, str]:
    """The groups that occur, with their names."""
    used = {group for sample in evaluation.samples for group in sample.groups}
    return {group: name for group, name in GROUPS.items() if group in used}


def _filters(evaluation: Evaluation) -> str:
    data = evaluation.data
    return (
        '<p class="filters" hidden>'
        + _select("set", "Data", {data_set.name: data_set.name for data_set in (data.id, *data.ood)})
        + _select("groups", "Kind", _groups(evaluation))
        + '<output id="shown"></output></p>'
    )


def _select(name: str, label: str, options: dict[str, str]) -> str:
    entries = tag("option", "all", value="") + "".join(
        tag("option", escape(text), value=value) for value, text in options.items()
    )
    return tag("label", escape(label) + " " + tag("select", entries, data_filter=name))


def _picture(sample: Sample, pictures: Pictures, size: int) -> str:
    uri = pictures.get((sample.set, sample.row))
    alt = f"{sample.set}, row {sample.row}"
    return f'<img src="{uri}" width="{size}" height="{size}" alt="{escape(alt)}">' if uri else ""


def _row(place: int, sample: Sample, names: list[str], pictures: Pictures) -> str:
    name = f"{sample.set} {sample.row}"
    link = tag("a", _picture(sample, pictures, 28) + escape(name), href=f"#sample-{place}")
    scores = sample.scores.credal
    truth = "–" if sample.label is None else names[sample.label]
    texts = [", ".join(GROUPS[group] for group in sample.groups), truth]
    texts += [names[sample.predicted], names[sample.averaged]]
    cells = tag("th", link, scope="row", class_="text", data_value=name)
    cells += "".join(tag("td", escape(text), class_="text", data_value=text) for text in texts)
    for value in (scores.total, scores.aleatoric, scores.epistemic, sample.dispute):
        cells += tag("td", number(value, 2), data_value=repr(value))
    return tag("tr", cells, data_set=sample.set, data_groups=" ".join(sample.groups), data_sample=place)


def _detail(place: int, sample: Sample, names: list[str], measured_in: str, pictures: Pictures) -> str:
    title = tag("h3", escape(f"{sample.set}, row {sample.row}"))
    badges = "".join(tag("span", GROUPS[group], class_="badge") for group in sample.groups)
    drawings = bars_chart(sample, names)
    if sample.simplex:
        drawings += simplex_chart(sample.simplex, names)
    head = _picture(sample, pictures, 96) + tag("div", title + tag("p", badges) + _said(sample, names))
    return tag(
        "article",
        tag("header", head) + _scores(sample, measured_in) + drawings + MARKS,
        id=f"sample-{place}",
        class_="sample",
    )


def _said(sample: Sample, names: list[str]) -> str:
    truth = "" if sample.label is None else f"Truth: {names[sample.label]}. "
    predicted, averaged = names[sample.predicted], names[sample.averaged]
    said = f"Both predict {predicted}." if predicted == averaged else f"Credal: {predicted}; averaging: {averaged}."
    return paragraph(truth + said)


def _scores(sample: Sample, measured_in: str) -> str:
    order = ("total", "aleatoric", "epistemic")
    rows = "".join(
        tag(
            "tr",
            tag("th", METHOD_NAMES[method], scope="row")
            + "".join(tag("td", number(scores.of(measure), 2)) for measure in order),
        )
        for method, scores in sample.scores.items()
    )
    head = tag("tr", tag("td", escape(measured_in)) + "".join(tag("th", title, scope="col") for title in order))
    dispute = paragraph(f"The members disagree on {percent(sample.dispute, 0)} of the probability.")
    return tag("table", tag("thead", head) + tag("tbody", rows), class_="small") + dispute


MARKS: Final = (
    '<ul class="legend marks">'
    '<li><svg viewBox="0 0 20 12" aria-hidden="true"><rect x="1" y="4" width="18" height="4" class="member"/></svg>member</li>'
    '<li><svg viewBox="0 0 20 12" aria-hidden="true"><rect x="1" y="1" width="18" height="10" class="interval"/></svg>'
    "interval, credal set</li>"
    '<li><svg viewBox="0 0 20 12" aria-hidden="true"><path d="M10,1 L15,6 L10,11 L5,6 Z" class="point averaged filled"/></svg>'
    "averaged</li>"
    '<li><svg viewBox="0 0 20 12" aria-hidden="true"><circle cx="10" cy="6" r="5" class="point intersection filled"/></svg>'
    "intersection</li>"
    '<li><svg viewBox="0 0 20 12" aria-hidden="true"><rect x="2" y="2" width="16" height="8" class="hull"/></svg>'
    "convex hull of the members</li></ul>"
)


def _meanings(evaluation: Evaluation) -> str:
    items = "".join(
        tag("li", tag("b", f"{name}:") + " " + GROUP_MEANINGS[group] + ".")
        for group, name in _groups(evaluation).items()
    )
    return tag("ul", items, class_="meanings")
