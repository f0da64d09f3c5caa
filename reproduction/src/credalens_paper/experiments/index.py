"""All entries by their labels: the paper's tables and figures, and those of our own."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from credalens_paper.experiments.own_entries import ESTIMATES, EXACTNESS, OWN_TABLES, EstimatesEntry, Exactness
from credalens_paper.experiments.paper_entries import FIGURES, TABLES, Figure, Table
from credalens_paper.experiments.paper_numbers import PAPER_FIGURES, PAPER_TABLES

Drawn = Figure | EstimatesEntry  # entries that are drawn
OURS: Final[dict[str, Table | EstimatesEntry | Exactness]] = {EXACTNESS.label: EXACTNESS, **OWN_TABLES, **ESTIMATES}
ENTRIES: Final[dict[str, Table | Drawn | Exactness]] = {**TABLES, **FIGURES, **OURS}
"""What is measured, as it is declared. `pipeline.measure_entries` says by which function."""
LABELS: Final = tuple(ENTRIES)
GROUPS: Final = {"all": LABELS, "tables": tuple(TABLES), "figures": tuple(FIGURES), "ours": tuple(OURS)}
DESCRIPTIONS: Final[dict[str, str]] = {
    **{label: table.description for label, table in PAPER_TABLES.items()},
    **PAPER_FIGURES,
    **{label: entry.description for label, entry in OURS.items()},
}
"""What every entry shows, in one line."""


def file_name(label: str, /) -> str:
    """A label as the stem of a file.

    >>> file_name("ablation BNNsVGG16EU")
    'ablation_BNNsVGG16EU'
    """
    return label.replace(" ", "_")


def check_labels(labels: Iterable[str], /) -> tuple[str, ...]:
    """The labels meant, each once, in the order given; "all", "tables", "figures" and "ours" stand for many.

    An underscore may stand for the space that some labels have.
    """
    groups = {**GROUPS, **{file_name(label): (label,) for label in LABELS}}
    checked: dict[str, None] = {}
    for label in labels:
        if file_name(label) not in groups:
            lowered = {name.lower(): name for name in (*GROUPS, *LABELS)}
            close = [lowered[name] for name in get_close_matches(label.lower(), lowered, n=3)]
            hint = f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""
            raise ValueError(
                f"the paper has no table or figure {label!r}{hint}; `credalens reproduce --list` shows them all"
            )
        checked |= dict.fromkeys(groups[file_name(label)])
    if not checked:
        raise ValueError("name at least one table or figure; `credalens reproduce --list` shows them all")
    return tuple(checked)
