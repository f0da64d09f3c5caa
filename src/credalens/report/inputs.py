"""The section on single inputs: a list to sort and filter, and one picture of every input in it."""

from __future__ import annotations

from html import escape
from typing import Any, Final

from credalens.evaluation.words.verdicts import number, percent, unit
from credalens.report.parts import paragraph
from credalens.report.samples import bars_chart, simplex_chart
from credalens.report.svg import tag

__all__ = ["inputs"]

GROUP_NAMES: Final = {
    "uncertain": "most uncertain",
    "contradictory": "most contradictory",
    "missed": "OOD, with least doubt",
    "wrong": "wrong, with least doubt",
}
GROUP_MEANINGS: Final = {
    "uncertain": "highest total uncertainty",
    "contradictory": "the members put most of their probability on different classes",
    "missed": "out of distribution, with the lowest epistemic uncertainty: a threshold finds them last",
    "wrong": "the wrong predictions of lowest total uncertainty",
}
COLUMNS: Final = ("Input", "Why it is here", "Truth", "Credal", "Averaging", "TU", "AU", "EU", "Dispute")


def inputs(result: dict[str, Any], pictures: dict[tuple[str, int], str], /) -> str:
    """The worst inputs of every data set."""
    samples, names = result["samples"], result["data"]["class_names"]
    rows = "".join(_row(place, sample, names, pictures) for place, sample in enumerate(samples))
    head = "".join(
        tag("th", tag("button", title, type="button"), scope="col", class_="text" if place < 5 else None)
        for place, title in enumerate(COLUMNS)
    )
    caption = tag("caption", f"Inputs worth a look (uncertainty in {unit(result['settings']['base'])})")
    table = tag("table", caption + tag("thead", tag("tr", head)) + tag("tbody", rows), class_="sortable", id="samples")
    details = "".join(_detail(place, sample, result, pictures) for place, sample in enumerate(samples))
    listed = tag("div", table, class_="scroll list", tabindex=0, role="region", aria_label="Inputs worth a look")
    return (
        paragraph(
            "Point at an input, or move to it with the Tab key, to see what every member says about it. Click to keep it."
        )
        + _filters(result)
        + tag("div", listed + tag("div", details, id="details", aria_live="polite"), class_="browser")
        + _meanings(result)
    )


def _filters(result: dict[str, Any]) -> str:
    sets = [result["data"]["id"]["name"], *(one["name"] for one in result["data"]["ood"])]
    used = {group for sample in result["samples"] for group in sample["groups"]}
    groups = {group: name for group, name in GROUP_NAMES.items() if group in used}
    return (
        '<p class="filters" hidden>'
        + _select("set", "Data", {name: name for name in sets})
        + _select("groups", "Kind", groups)
        + '<output id="shown"></output></p>'
    )


def _select(name: str, label: str, options: dict[str, str]) -> str:
    entries = tag("option", "all", value="") + "".join(
        tag("option", escape(text), value=value) for value, text in options.items()
    )
    return tag("label", escape(label) + " " + tag("select", entries, data_filter=name))


def _picture(sample: dict[str, Any], pictures: dict[tuple[str, int], str], size: int) -> str:
    uri = pictures.get((sample["set"], sample["row"]))
    alt = f"{sample['set']}, row {sample['row']}"
    return f'<img src="{uri}" width="{size}" height="{size}" alt="{escape(alt)}">' if uri else ""


def _row(place: int, sample: dict[str, Any], names: list[str], pictures: dict[tuple[str, int], str]) -> str:
    name = f"{sample['set']} {sample['row']}"
    link = tag("a", _picture(sample, pictures, 28) + escape(name), href=f"#sample-{place}")
    scores = sample["scores"]["credal"]
    truth = "–" if sample["label"] is None else names[sample["label"]]
    texts = [", ".join(GROUP_NAMES[group] for group in sample["groups"]), truth]
    texts += [names[sample["predicted"]], names[sample["averaged"]]]
    cells = tag("th", link, scope="row", class_="text", data_value=name)
    cells += "".join(tag("td", escape(text), class_="text", data_value=text) for text in texts)
    for value in (*(scores[measure] for measure in ("total", "aleatoric", "epistemic")), sample["dispute"]):
        cells += tag("td", number(value, 2), data_value=repr(value))
    return tag("tr", cells, data_set=sample["set"], data_groups=" ".join(sample["groups"]), data_sample=place)


def _detail(place: int, sample: dict[str, Any], result: dict[str, Any], pictures: dict[tuple[str, int], str]) -> str:
    names = result["data"]["class_names"]
    title = tag("h3", escape(f"{sample['set']}, row {sample['row']}"))
    badges = "".join(tag("span", GROUP_NAMES[group], class_="badge") for group in sample["groups"])
    drawings = bars_chart(sample, names)
    if sample["simplex"]:
        drawings += simplex_chart(sample, names)
    head = _picture(sample, pictures, 96) + tag("div", title + tag("p", badges) + _said(sample, names))
    return tag(
        "article",
        tag("header", head) + _scores(sample, unit(result["settings"]["base"])) + drawings + MARKS,
        id=f"sample-{place}",
        class_="sample",
    )


def _said(sample: dict[str, Any], names: list[str]) -> str:
    truth = "" if sample["label"] is None else f"Truth: {names[sample['label']]}. "
    predicted, averaged = names[sample["predicted"]], names[sample["averaged"]]
    said = f"Both predict {predicted}." if predicted == averaged else f"Credal: {predicted}; averaging: {averaged}."
    return paragraph(truth + said)


def _scores(sample: dict[str, Any], name: str) -> str:
    rows = "".join(
        tag("tr", tag("th", title, scope="row") + "".join(tag("td", number(scores[key], 2)) for key in KEYS))
        for title, scores in (("credal", sample["scores"]["credal"]), ("averaging", sample["scores"]["classical"]))
    )
    head = tag(
        "tr",
        tag("td", escape(name))
        + "".join(tag("th", title, scope="col") for title in ("total", "aleatoric", "epistemic")),
    )
    dispute = paragraph(f"The members disagree on {percent(sample['dispute'], 0)} of the probability.")
    return tag("table", tag("thead", head) + tag("tbody", rows), class_="small") + dispute


KEYS: Final = ("total", "aleatoric", "epistemic")
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


def _meanings(result: dict[str, Any]) -> str:
    used = {group for sample in result["samples"] for group in sample["groups"]}
    items = "".join(
        tag("li", tag("b", f"{GROUP_NAMES[group]}:") + " " + GROUP_MEANINGS[group] + ".")
        for group in GROUP_NAMES
        if group in used
    )
    return tag("ul", items, class_="meanings")
