"""The sections of the report, each a question a reader has and its answer."""

from __future__ import annotations

from html import escape
from typing import Final

from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.results import DETECTORS, METHODS
from credalens.evaluation.words.glossary import GLOSSARY
from credalens.evaluation.words.names import METHOD_NAMES, SHORT, SIGNS, line_name
from credalens.evaluation.words.remarks import NO_LABELS, ONE_MEMBER
from credalens.evaluation.words.verdicts import Finding
from credalens.report import charts
from credalens.report.elements import cards, chart, choice, legend, meanings, paragraph, tag, to_html
from credalens.report.tables import (
    calibration_table,
    detection_table,
    members_table,
    scores_table,
    selective_table,
    sets_table,
    threshold_table,
)

FOUR_LINES: Final = {f"{method} {m}": line_name(method, m) for m in DETECTORS for method in METHODS}


def in_short(evaluation: Evaluation, /) -> str:
    """The summary in words, a card for each OOD data set, and the gain of credal sets at a glance."""
    words = evaluation.words
    lines = (words.prediction, words.rejection, words.threshold, words.members)
    bullets = tag("ul", "".join(tag("li", escape(line)) for line in lines if line), class_="findings")
    if not evaluation.ood:
        return bullets
    level = f"{100 * evaluation.settings.level:g} %"
    gains = chart("Credal sets against averaging", charts.gain_chart(evaluation.ood))
    key = paragraph(
        f"▲ better, ▼ worse, ■ undecided: the interval contains zero. Brackets and bars are {level} intervals of the "
        "difference to averaging, in percentage points.",
        class_="hint",
    )
    return (
        paragraph(words.headline or "", class_="headline")
        + paragraph(words.plainly or "")
        + cards(_finding(finding) for finding in words.detection)
        + tag("div", tag("div", gains + key) + bullets, class_="split")
    )


def _finding(finding: Finding) -> str:
    sign = SIGNS[finding.verdict]
    return tag(
        "article",
        tag("h3", escape(finding.name))
        + tag("p", escape(finding.auroc), class_="big")
        + tag("p", escape(finding.interval), class_="hint")
        + tag("p", f"{sign} {escape(finding.total)}", class_=f"verdict {finding.verdict}")
        + "".join(paragraph(text, class_="hint") for text in (finding.remark, finding.epistemic) if text),
        class_="finding",
    )


def detection(evaluation: Evaluation, /) -> str:
    """The table credal against averaging, ROC and PR curves."""
    curves = evaluation.curves.detection
    rocs = [chart(one.name, charts.roc_chart(curves[one.name], one)) for one in evaluation.ood]
    prs = [chart(one.name, charts.pr_chart(curves[one.name], one)) for one in evaluation.ood]
    return (
        paragraph(
            "A good uncertainty is higher on inputs the members were never trained for. EU is epistemic uncertainty, the "
            "doubt that comes from members disagreeing; TU is total uncertainty. Each is taken once from credal sets and "
            "once from averaging, on the same inputs."
        )
        + to_html(scores_table(evaluation))
        + tag("h3", "Credal sets against averaging")
        + to_html(detection_table(evaluation))
        + meanings("AUROC", "AUPRC", "FPR95", "interval (95 %)")
        + tag("h3", "ROC curves")
        + paragraph("The closer to the upper left corner, the better; the dotted diagonal is guessing.", class_="hint")
        + legend(FOUR_LINES)
        + cards(rocs)
        + tag("h3", "Precision and recall")
        + paragraph("The longer a curve stays at the top, the better; the dotted line is guessing.", class_="hint")
        + cards(prs)
    )


def distributions(evaluation: Evaluation, /) -> str:
    """Histograms of EU and TU, ID against each OOD data set."""
    id_name, base, histograms = evaluation.data.id.name, evaluation.settings.base, evaluation.curves.histograms
    drawings = [
        chart(
            f"{one.name}: {line_name(method, measure)}",
            charts.histogram_chart(histogram, (id_name, one.name), measure, base),
            data_kind=method,
        )
        for one in evaluation.ood
        for measure, by_method in (histograms.items() if histograms else ())
        for method, histogram in by_method.items()
    ]
    kinds = choice("kind", {"credal": "credal sets", "classical": "averaging", "": "both"})
    return (
        paragraph(
            "Where the two shapes overlap, no threshold can tell the inputs apart. The height is the share of inputs of "
            "each kind, so that data sets of different size can be compared."
        )
        + kinds
        + legend({"id": f"{id_name} (ID)", "ood": "the OOD data named above each chart"})
        + cards(drawings, data_filter="kind")
    )


def prediction(evaluation: Evaluation, /) -> str:
    """Accuracy, calibration and sets on labelled data."""
    if evaluation.calibration is None or evaluation.sets is None:
        return paragraph(NO_LABELS)
    drawing = chart("Reliability diagram", charts.reliability_chart(evaluation.calibration))
    lines = legend({"credal": "intersection probability (credal)", "classical": "averaged probability"})
    hint = paragraph(
        "On the diagonal, confidence and accuracy agree; below it the prediction is surer than it should be. Larger dots "
        "stand for more inputs, hollow ones for fewer than five.",
        class_="hint",
    )
    table = calibration_table(evaluation.calibration, evaluation.data.id.name)
    text = to_html(table) + meanings("accuracy", "ECE", "NLL", "Brier score")
    sets = (
        tag("h3", "Or name several classes")
        + paragraph(
            "A credal set also tells which classes are still possible. The rules differ in how much they rule out; a good "
            "one names a single class where it is right and several where it would have been wrong."
        )
        + to_html(sets_table(evaluation, evaluation.sets))
        + meanings("coverage", "single class", "accuracy if single", "u65", "u80", "set size")
    )
    return tag("div", tag("div", text) + tag("div", lines + drawing + hint), class_="split") + sets


def rejection(evaluation: Evaluation, /) -> str:
    """Accuracy-rejection curves."""
    if evaluation.selective is None:
        return paragraph(
            "No labels were given, so that it is unknown which predictions are wrong. Pass them with --labels."
        )
    drawings = [
        chart(f"by {measure} uncertainty ({SHORT[measure]})", charts.rejection_chart(curves, measure))
        for measure, curves in evaluation.selective.items()
    ]
    return (
        paragraph(
            "Hand the most uncertain inputs to a person and let the model keep the rest: how accurate is it then? The "
            "sooner a curve rises, the better the uncertainty knows where the mistakes are."
        )
        + legend(METHOD_NAMES)
        + cards(drawings)
        + to_html(selective_table(evaluation.selective))
        + meanings("mean accuracy on the inputs kept")
    )


def alarm(evaluation: Evaluation, /) -> str:
    """Threshold choice."""
    wanted, thresholds = evaluation.settings.false_alarm_rate, [alarm.threshold for alarm in evaluation.thresholds]
    rates = sorted({threshold.false_alarm_rate for threshold in thresholds})
    slider = (
        '<p class="slider" hidden><label for="rate">False alarms you can live with</label> '
        f'<input id="rate" type="range" min="0" max="{len(rates) - 1}" step="1" value="{rates.index(wanted)}" '
        'aria-describedby="rate-value"> '
        f'<output id="rate-value" for="rate">{100 * wanted:g} %</output></p>'
    )
    tables = "".join(
        tag(
            "div",
            to_html(threshold_table(evaluation, rate)),
            class_="rate",
            data_rate=f"{100 * rate:g} %",
            hidden=None if rate == wanted else "",
        )
        for rate in rates
    )
    promise = (
        "Thresholds are set so that a new ID input is flagged with at most the wanted probability, whatever the "
        "distribution of its uncertainty, as long as the ID data were not used for training."
    )
    if any(threshold.guarantee == "sample" for threshold in thresholds):
        promise += (
            " For the lowest rates there are too few ID inputs to promise that; there the rate is that of these inputs."
        )
    return (
        tag("p", escape(evaluation.words.threshold), class_="headline")
        + slider
        + tag("div", tables, id="rates")
        + paragraph(promise, class_="hint")
        + meanings("threshold", "false-alarm rate")
    )


def members(evaluation: Evaluation, /) -> str:
    """How the metrics change with the number of members."""
    needed = evaluation.members_needed
    if needed is None:
        return paragraph(ONE_MEMBER)
    drawings = [
        chart(f"{name}: AUROC of EU", charts.members_chart(needed.sizes[1:], trends, "AUROC"))
        for name, trends in needed.epistemic_auroc().items()
        if len(needed.sizes) > 2
    ]
    for title, by_method in (("Accuracy", needed.accuracy), ("ECE", needed.ece)):
        if by_method:
            drawings.append(chart(f"{title} on ID data", charts.members_chart(needed.sizes, by_method, title)))
    return (
        paragraph(evaluation.words.members or "Accuracy and calibration of fewer members.")
        + legend(METHOD_NAMES)
        + cards(drawings)
        + paragraph(
            "Lines are means over up to five subsets of the members, bands one standard deviation."
            + (
                " One member alone has no epistemic uncertainty, so those charts begin at two."
                if evaluation.ood
                else ""
            ),
            class_="hint",
        )
        + tag("details", tag("summary", "The numbers") + to_html(members_table(needed)))
    )


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
