"""The sections of the report, each a question a reader has and its answer."""

from __future__ import annotations

from html import escape
from typing import Any, Final

from credalens.evaluation.words.glossary import GLOSSARY
from credalens.evaluation.words.remarks import NO_LABELS, ONE_MEMBER
from credalens.report import charts as charts
from credalens.report.page_tables import to_html
from credalens.report.parts import cards, chart, choice, legend, meanings, paragraph
from credalens.report.svg import tag
from credalens.report.tables import (
    METHODS,
    SHORT,
    SIGNS,
    calibration_table,
    detection_table,
    members_table,
    selective_table,
    sets_table,
    threshold_table,
)

__all__ = ["NEED_OOD", "SECTIONS", "glossary"]

KIND_LEGEND: Final = {"credal": "credal", "classical": "averaging"}
FOUR_LINES: Final = {
    "credal epistemic": "EU, credal",
    "classical epistemic": "EU, averaging",
    "credal total": "TU, credal",
    "classical total": "TU, averaging",
}


def in_short(result: dict[str, Any], /) -> str:
    """The summary in words, a card for each OOD data set, and the gain of credal sets at a glance."""
    words = result["words"]
    others = (words["prediction"], words["threshold"], words["members"])
    bullets = tag("ul", "".join(tag("li", escape(line)) for line in others if line), class_="findings")
    if not result["ood"]:
        return bullets
    level = f"{100 * result['settings']['level']:g} %"
    gains = chart("Credal sets against averaging", charts.gain_chart(result["ood"]))
    key = paragraph(
        f"▲ better, ▼ worse, ■ undecided: the interval contains zero. Brackets and bars are {level} intervals of the "
        "difference to averaging, in percentage points.",
        class_="hint",
    )
    return (
        paragraph(words["headline"], class_="headline")
        + paragraph(words["plainly"])
        + cards(_finding(found) for found in words["detection"])
        + tag("div", tag("div", gains + key) + bullets, class_="split")
    )


def _finding(found: dict[str, str]) -> str:
    sign = SIGNS[found["verdict"]]
    return tag(
        "article",
        tag("h3", escape(found["name"]))
        + tag("p", escape(found["auroc"]), class_="big")
        + tag("p", escape(found["interval"]), class_="hint")
        + tag("p", f"{sign} {escape(found['epistemic'])}", class_=f"verdict {found['verdict']}")
        + "".join(paragraph(found[key], class_="hint") for key in ("remark", "total") if found[key]),
        class_="finding",
    )


def detection(result: dict[str, Any], /) -> str:
    """The table credal against averaging, ROC and PR curves."""
    curves = result["curves"]["detection"]
    rocs = [chart(one["name"], charts.roc_chart(curves[one["name"]], one)) for one in result["ood"]]
    prs = [chart(one["name"], charts.pr_chart(curves[one["name"]], one)) for one in result["ood"]]
    return (
        paragraph(
            "A good uncertainty is higher on inputs the members were never trained for. EU is epistemic uncertainty, the "
            "doubt that comes from members disagreeing; TU is total uncertainty. Each is taken once from credal sets and "
            "once from averaging, on the same inputs."
        )
        + to_html(detection_table(result))
        + meanings("AUROC", "AUPRC", "FPR95", "interval (95 %)")
        + tag("h3", "ROC curves")
        + paragraph("The closer to the upper left corner, the better; the dotted diagonal is guessing.", class_="hint")
        + legend(FOUR_LINES)
        + cards(rocs)
        + tag("h3", "Precision and recall")
        + paragraph("The longer a curve stays at the top, the better; the dotted line is guessing.", class_="hint")
        + cards(prs)
    )


def distributions(result: dict[str, Any], /) -> str:
    """Histograms of EU and TU, ID against each OOD data set."""
    known, base = result["data"]["id"]["name"], result["settings"]["base"]
    drawings = [
        chart(
            f"{one['name']}: {SHORT[measure]}, {METHODS[kind]}",
            charts.histogram_chart(result["curves"]["histograms"][measure][kind], (known, one["name"]), measure, base),
            data_kind=kind,
        )
        for one in result["ood"]
        for measure in ("epistemic", "total")
        for kind in METHODS
    ]
    shown = choice("kind", {"credal": "credal sets", "classical": "averaging", "": "both"})
    return (
        paragraph(
            "Where the two shapes overlap, no threshold can tell the inputs apart. The height is the share of inputs of "
            "each kind, so that data sets of different size can be compared."
        )
        + shown
        + legend({"id": f"{known} (ID)", "ood": "the OOD data named above each chart"})
        + cards(drawings, data_filter="kind")
    )


def prediction(result: dict[str, Any], /) -> str:
    """Accuracy, calibration and sets on labelled data."""
    if result["calibration"] is None:
        return paragraph(NO_LABELS)
    drawing = chart("Reliability diagram", charts.reliability_chart(result["calibration"]))
    lines = legend({"credal": "intersection probability (credal)", "classical": "averaged probability"})
    hint = paragraph(
        "On the diagonal, confidence and accuracy agree; below it the prediction is surer than it should be. Larger dots "
        "stand for more inputs, hollow ones for fewer than five.",
        class_="hint",
    )
    text = to_html(calibration_table(result)) + meanings("accuracy", "ECE", "NLL", "Brier score")
    sets = (
        tag("h3", "Or name several classes")
        + paragraph(
            "A credal set also tells which classes are still possible. The rules differ in how much they rule out; a good "
            "one names a single class where it is right and several where it would have been wrong."
        )
        + to_html(sets_table(result))
        + meanings("coverage", "single class", "accuracy if single", "u65", "u80", "set size")
    )
    return tag("div", tag("div", text) + tag("div", lines + drawing + hint), class_="split") + sets


def rejection(result: dict[str, Any], /) -> str:
    """Accuracy-rejection curves."""
    if result["selective"] is None:
        return paragraph(
            "No labels were given, so that it is unknown which predictions are wrong. Pass them with --labels."
        )
    drawings = [
        chart(
            f"by {measure} uncertainty ({SHORT[measure]})",
            charts.rejection_chart(result["selective"][measure], measure),
        )
        for measure in ("epistemic", "total", "aleatoric")
    ]
    return (
        paragraph(
            "Hand the most uncertain inputs to a person and let the model keep the rest: how accurate is it then? The "
            "sooner a curve rises, the better the uncertainty knows where the mistakes are."
        )
        + legend(KIND_LEGEND)
        + cards(drawings)
        + to_html(selective_table(result))
        + meanings("mean accuracy on the inputs kept")
    )


def alarm(result: dict[str, Any], /) -> str:
    """Threshold choice."""
    rate = result["settings"]["false_alarm_rate"]
    rates = sorted({row["false_alarm_rate"] for row in result["thresholds"]})
    slider = (
        '<p class="slider" hidden><label for="rate">False alarms you can live with</label> '
        f'<input id="rate" type="range" min="0" max="{len(rates) - 1}" step="1" value="{rates.index(rate)}" '
        'aria-describedby="rate-value"> '
        f'<output id="rate-value" for="rate">{100 * rate:g} %</output></p>'
    )
    tables = "".join(
        tag(
            "div",
            to_html(threshold_table(result, one)),
            class_="rate",
            data_rate=f"{100 * one:g} %",
            hidden=None if one == rate else "",
        )
        for one in rates
    )
    promise = (
        "Thresholds are set so that a new ID input is flagged with at most the wanted probability, whatever the "
        "distribution of its uncertainty, as long as the ID data were not used for training."
    )
    if any(row["guarantee"] == "sample" for row in result["thresholds"]):
        promise += (
            " For the lowest rates there are too few ID inputs to promise that; there the rate is that of these inputs."
        )
    return (
        tag("p", escape(result["words"]["threshold"]), class_="headline")
        + slider
        + tag("div", tables, id="rates")
        + paragraph(promise, class_="hint")
        + meanings("threshold", "false-alarm rate")
    )


def members(result: dict[str, Any], /) -> str:
    """How the metrics change with the number of members."""
    found = result["members_needed"]
    if found is None:
        return paragraph(ONE_MEMBER)
    sizes = found["sizes"]
    drawings = [
        chart(
            f"{name}: AUROC of EU", charts.members_chart(sizes[1:], _tail(found["auroc"]["epistemic"], name), "AUROC")
        )
        for name in (one["name"] for one in result["ood"])
        if len(sizes) > 2
    ]
    for key, title in (("accuracy", "Accuracy"), ("ece", "ECE")):
        if key in found:
            drawings.append(chart(f"{title} on ID data", charts.members_chart(sizes, found[key], title)))
    return (
        paragraph(result["words"]["members"] or "Accuracy and calibration of fewer members.")
        + legend(KIND_LEGEND)
        + cards(drawings)
        + paragraph(
            "Lines are means over up to five subsets of the members, bands one standard deviation."
            + (
                " One member alone has no epistemic uncertainty, so those charts begin at two." if result["ood"] else ""
            ),
            class_="hint",
        )
        + tag("details", tag("summary", "The numbers") + to_html(members_table(result)))
    )


def _tail(series: dict[str, Any], name: str) -> dict[str, dict[str, list[float]]]:
    return {kind: {key: values[1:] for key, values in part[name].items()} for kind, part in series.items()}


def glossary() -> str:
    """What every word means."""
    entries = "".join(tag("dt", escape(word)) + tag("dd", escape(text)) for word, text in GLOSSARY.items())
    return tag("dl", entries)


SECTIONS: Final = {
    "short": ("In short", "In short", in_short),
    "detection": ("Finding OOD", "Does uncertainty find what is out of distribution?", detection),
    "distributions": ("ID against OOD", "How far apart are ID and OOD inputs?", distributions),
    "prediction": ("Accuracy", "Are the predictions right, and as sure as they should be?", prediction),
    "rejection": ("Turning away", "What does turning uncertain inputs away buy?", rejection),
    "alarm": ("Threshold", "Where should I set the alarm?", alarm),
    "members": ("Members", "How many members do I need?", members),
}
"""Name in the navigation, heading, and what builds the section."""
NEED_OOD: Final = ("detection", "distributions")
"""The sections that are left out where there are no OOD data."""
