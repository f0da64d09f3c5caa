"""The report: one HTML file with everything inside, that opens without a network."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from credalens.evaluation.outcome import DataSets, Evaluation
from credalens.evaluation.words.numbers import percent, unit
from credalens.report.elements import tag
from credalens.report.images import check_images, png_uri
from credalens.report.sections import NEED_OOD, SECTIONS, glossary
from credalens.report.worst_inputs import Pictures, worst_inputs

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""Tells the browser to load nothing from anywhere."""


def render_html(evaluation: Evaluation, /, *, title: str = "", images: Mapping[str, Any] | None = None) -> str:
    """The page for an evaluation; ``images``, data set -> (rows, height, width[, 3]) of bytes, shows the inputs themselves."""
    pictures = _pictures(evaluation, images or {})
    name = title or f"Credal report: {evaluation.data.id.name}"
    sections = {
        key: (short, heading, build(evaluation))
        for key, (short, heading, build) in SECTIONS.items()
        if evaluation.ood or key not in NEED_OOD
    }
    sections["inputs"] = ("Inputs", "Which inputs are worst?", worst_inputs(evaluation, pictures))
    sections["words"] = ("Glossary", "What the words mean", glossary())
    body = "".join(
        tag("section", tag("h2", escape(heading), id=f"{key}-title") + content, id=key, aria_labelledby=f"{key}-title")
        for key, (_, heading, content) in sections.items()
    )
    links = "".join(tag("li", tag("a", escape(short), href=f"#{key}")) for key, (short, *_) in sections.items())
    return _page(name, _header(name, evaluation.data), links, body, _footer(evaluation))


def _pictures(evaluation: Evaluation, images: Mapping[str, Any]) -> Pictures:
    data = evaluation.data
    rows = {data_set.name: data_set.rows for data_set in (data.id, *data.ood)}
    unknown = sorted(set(images) - set(rows))
    if unknown:
        raise ValueError(
            f"images were given for {unknown[0]!r}, which is no data set; there are {', '.join(map(repr, rows))}."
        )
    checked = {name: check_images(array, rows[name], name) for name, array in images.items()}
    shown = [(sample.set, sample.row) for sample in evaluation.samples if sample.set in checked]
    return {(name, row): png_uri(checked[name][row]) for name, row in shown}


def _header(title: str, data: DataSets) -> str:
    labels = "" if data.id.labelled else " (without labels)"
    ood = ", ".join(f"{data_set.rows:,} of {data_set.name}" for data_set in data.ood) or "no data given"
    members = f"{data.members} members" if data.members > 1 else "1 member"
    facts = (
        f"{members}, {data.classes} classes. In distribution: {data.id.rows:,} inputs of {data.id.name}{labels}. "
        f"Out of distribution: {ood}."
    )
    toggle = '<button id="theme" type="button" hidden>Dark</button>'
    return tag(
        "header", tag("div", tag("h1", escape(title)) + toggle, class_="title") + tag("p", escape(facts)), class_="page"
    )


def _footer(evaluation: Evaluation) -> str:
    settings = evaluation.settings
    versions = f"credalens {evaluation.version}, Python {platform.python_version()}, NumPy {np.__version__}"
    intervals = (
        f"Intervals hold {percent(settings.level, 0)}: those of the AUROC by DeLong's variance, with two extreme samples added "
        f"to each kind, the others by {settings.replicates} bootstrap draws with seed {settings.seed}. "
    )
    text = (
        f"Made by {versions} from {'logits' if settings.logits else 'probabilities'}. Uncertainty is in "
        f"{unit(settings.base)}; the ECE has {settings.bins} bins of equal width. {intervals if evaluation.ood else ''}"
        "All numbers are in report.json next to this page."
    )
    return tag("footer", tag("p", escape(text)))


def _page(title: str, header: str, links: str, body: str, footer: str) -> str:
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{_asset('report.css')}</style></head>\n"
        '<body><a class="skip" href="#main">Skip to the report</a>'
        f'{header}<nav aria-label="Sections"><ol>{links}</ol></nav>'
        f'<main id="main" tabindex="-1">{body}</main>{footer}'
        f"<script>{_asset('report.js')}</script></body></html>\n"
    )


def _asset(name: str) -> str:
    return files("credalens.report").joinpath("assets", name).read_text(encoding="utf-8")
