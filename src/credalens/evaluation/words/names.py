"""What measures, methods, rules and groups of inputs are called in tables, charts and legends."""

from __future__ import annotations

from typing import Final

SHORT: Final = {"epistemic": "EU", "total": "TU", "aleatoric": "AU"}
METHOD_NAMES: Final = {"credal": "credal", "classical": "averaging"}
RULE_NAMES: Final = {
    "interval_dominance": "interval dominance",
    "maximality": "maximality",
    "e_admissibility": "E-admissibility",
}
SIGNS: Final = {"better": "▲", "worse": "▼", "undecided": "■"}
GROUPS: Final = {
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


def line_name(method: str, measure: str, /) -> str:
    """One uncertainty of one method in a legend.

    >>> line_name("classical", "epistemic")
    'EU, averaging'
    """
    return f"{SHORT[measure]}, {METHOD_NAMES[method]}"
