"""When leaving out the most extreme members of each class helps, by the number of members; every cell in which it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.tables import BAYESIAN
from credalens_paper.findings.lookup import Kind, is_better, model_name, numbers_of
from credalens_paper.findings.tally import Tally
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import NONE, itemised, joined, markdown_table
from credalens_paper.results.rendering.values import value_text

Cell = tuple[str, str | None, str | None]
"""A metric, a measure and an OOD set."""
Model = tuple[str, str, str, int]
"""Training set, backbone, method and number of members."""
Variants = Mapping[str, Mapping[Cell, float]]
"""Averaging, whole sets and trims, each with its cells."""
GROUPS: Final = {"deep ensembles": ("DE",), "samples of Bayesian networks": BAYESIAN}
LABELS: Final = ("TrimmedIntervals", "TrimmedText")
WHOLE: Final = ("classical", "credal")
TRIMS: Final = {"trim5": 5, "trim10": 10, "trim20": 20}
SHOWN: Final = "trim10"
WORDS: Final = {"ECE": "ECE", "NLL": "NLL", "ACC": "accuracy", "EU": "AUROC by EU", "TU": "AUROC by TU"}
NOTE: Final = (
    "Averaging / whole credal sets / without the most extreme 5 / 10 / 20 % of the members at each end (– where that is\n"
    "less than one member). AUROC is the mean over a table's OOD sets; ↓ marks what is worse than of the whole sets."
)


def trim_sentence(results: Sequence[Result], /) -> str:
    """In how many models and sizes leaving out a tenth at each end is better than the whole sets, and than averaging."""
    trimmed = {model: cells for model, cells in models_by_size(results).items() if SHOWN in cells}
    parts = [
        _group_words(words, [cells for (_, _, method, _), cells in trimmed.items() if method in methods])
        for words, methods in GROUPS.items()
    ]
    if not any(parts):
        return ""
    return itemised(
        "A tenth of the members left out at each end, from ten members on, against whole credal sets. Better:",
        filter(None, parts),
    )


def _group_words(words: str, models: Sequence[Variants]) -> str:
    """For every kind of number in how many models it is better, and from which to which change."""
    tallies = {kind: _tally(models, kind, "credal") for kind in WORDS}
    parts = [f"{WORDS[kind]} in {tally.share} ({tally.spread})" for kind, tally in tallies.items() if tally]
    below = _tally(models, "ECE", "classical")
    return f"{words}: {', '.join(parts)}, ECE below averaging's in {below.share}" if parts else ""


def trim_tally(results: Sequence[Result], kind: str, against: str, /) -> Tally:
    """Trimmed sets of all models less whole ones ("credal") or averaging ("classical"), by a kind of number."""
    return _tally(list(models_by_size(results).values()), kind, against)


def _tally(models: Sequence[Variants], kind: str, against: str) -> Tally:
    return Tally.of(_metric(kind), (_gain(cells, kind, against) for cells in models))


def _gain(cells: Variants, kind: str, against: str) -> float | None:
    trimmed, other = (kind_of_number(cells.get(variant, {}), kind) for variant in (SHOWN, against))
    return None if trimmed is None or other is None else round(trimmed - other, 9)


def trim_table(results: Sequence[Result], /) -> str:
    """Every model and size with all trims, a metric in each column."""
    rows = [
        [
            display_name(data),
            model_name({"backbone": backbone, "method": method, "N": N}),
            *(_texts(cells, k) for k in WORDS),
        ]
        for (data, backbone, method, N), cells in models_by_size(results).items()
    ]
    table = markdown_table(["Trained on", "Model", *WORDS.values()], rows)
    return joined(table, NOTE) if table else ""


def models_by_size(results: Sequence[Result], /) -> dict[Model, dict[str, dict[Cell, float]]]:
    """Model -> variant -> cell -> its mean; a trim that leaves out nobody is not among the variants."""
    models: dict[Model, dict[str, dict[Cell, float]]] = {}
    for number in (number for label in LABELS for number in numbers_of(results, Kind(label, {}))):
        if number.ours:
            keys = number.keys
            model = (keys["id_set"], keys["backbone"], keys["method"], keys["N"])
            if leaves_out(keys["variant"], keys["N"]):
                cells = models.setdefault(model, {}).setdefault(keys["variant"], {})
                cells[keys["metric"], keys.get("measure"), keys.get("ood_set")] = number.ours.mean
    return models


def leaves_out(variant: str, N: int, /) -> bool:
    """Whether a variant is what it is called for so many members; a trim of fewer than one leaves out nobody."""
    return variant in WHOLE or TRIMS[variant] * N >= 100


def _metric(kind: str) -> str:
    return "AUROC" if kind in ("EU", "TU") else kind


def kind_of_number(cells: Mapping[Cell, float], kind: str, /) -> Any:
    """The number of a kind; the mean over OOD sets for detection. None where there is none."""
    measure = kind if kind in ("EU", "TU") else None
    found = [value for (metric, by, _), value in cells.items() if (metric, by) == (_metric(kind), measure)]
    return sum(found) / len(found) if found else None


def _texts(cells: Variants, kind: str) -> str:
    whole, texts = kind_of_number(cells.get("credal", {}), kind), []
    for variant in (*WHOLE, *TRIMS):
        value = kind_of_number(cells.get(variant, {}), kind)
        worse = variant in TRIMS and None not in (whole, value) and is_better(_metric(kind), whole - value)
        texts.append(NONE if value is None else f"{value_text(value, _metric(kind))}{'↓' if worse else ''}")
    return " / ".join(texts)
