"""All entries of the paper, and which of them a folder of results holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from credalens_paper.experiments.entries import DESCRIPTIONS, kind_of
from credalens_paper.results.records import read_results

__all__ = ["Entry", "list_entries"]


@dataclass(frozen=True)
class Entry:
    """A table or figure of the paper, or an entry of our own, and whether it was measured."""

    label: str
    kind: str
    description: str
    status: str


def list_entries(folder: str | Path | None = None, /) -> list[Entry]:
    """All 36 tables and figures and our own entry, "not measured" where the folder has no result file.

    >>> list_entries()[0].label, len(list_entries())
    ('OODMain', 37)
    """
    status = {} if folder is None else {result.label: result.status for result in read_results(folder)}
    return [
        Entry(label, kind_of(label), description, status.get(label, "not measured"))
        for label, description in DESCRIPTIONS.items()
    ]
