"""All entries by their labels: the paper's tables and figures, and those of our own."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from credalens_paper.experiments.beyond import BESIDE, OWN_TABLES
from credalens_paper.experiments.estimates import ESTIMATES
from credalens_paper.experiments.exactness import EXACTNESS
from credalens_paper.experiments.paper_numbers import PAPER_FIGURES, PAPER_TABLES

DESCRIPTIONS: Final = {
    **{label: table.description for label, table in PAPER_TABLES.items()},
    **PAPER_FIGURES,
    EXACTNESS.label: EXACTNESS.description,
    **{label: BESIDE[label].description for label in OWN_TABLES},
    **{label: entry.description for label, entry in ESTIMATES.items()},
}
"""What every entry shows, in one line."""
LABELS: Final = tuple(DESCRIPTIONS)
GROUPS: Final = {
    "all": LABELS,
    "tables": tuple(PAPER_TABLES),
    "figures": tuple(PAPER_FIGURES),
    "ours": (EXACTNESS.label, *OWN_TABLES, *ESTIMATES),
}


def file_name(label: str, /) -> str:
    """A label as the stem of a file.

    >>> file_name("ablation BNNsVGG16EU")
    'ablation_BNNsVGG16EU'
    """
    return label.replace(" ", "_")


def kind_of(label: str, /) -> str:
    """ "table" or "figure" of the paper, or "ours"."""
    if label in GROUPS["ours"]:
        return "ours"
    return "table" if label in PAPER_TABLES else "figure"


def check_labels(labels: Iterable[str], /) -> tuple[str, ...]:
    """The labels meant, each once, in the order given; "all", "tables", "figures" and "ours" stand for many.

    An underscore may stand for the space that some labels have.

    >>> len(check_labels(["all"])), check_labels(["PIA", "PIA"])
    (48, ('PIA',))
    """
    groups = {**GROUPS, **{file_name(label): (label,) for label in LABELS}}
    checked: dict[str, None] = {}
    for label in labels:
        if file_name(label) not in groups:
            raise ValueError(_unknown(label))
        checked |= dict.fromkeys(groups[file_name(label)])
    if not checked:
        raise ValueError("name at least one table or figure; `credalens reproduce --list` shows them all")
    return tuple(checked)


def _unknown(label: str) -> str:
    lowered = {name.lower(): name for name in (*GROUPS, *LABELS)}
    close = [lowered[name] for name in get_close_matches(label.lower(), lowered, n=3)]
    hint = f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""
    return f"the paper has no table or figure {label!r}{hint}; `credalens reproduce --list` shows them all"
