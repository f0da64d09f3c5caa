"""Pictures of our own tables, drawn from their numbers when the pages are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from credalens_paper.findings.pictures.guard_promises import draw_guards
from credalens_paper.findings.pictures.label_noise import draw_noise
from credalens_paper.findings.pictures.score_ranks import draw_ranks
from credalens_paper.findings.pictures.trims import draw_trims
from credalens_paper.results.records import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_pictures"]

PICTURES: Final[Mapping[str, Callable[[Sequence[Result]], Figure | None]]] = {
    "ScoreCatalogue": draw_ranks,
    "LabelNoise": draw_noise,
    "GuardPromises": draw_guards,
    "TrimmedIntervals": partial(draw_trims, label="TrimmedIntervals"),
    "TrimmedText": partial(draw_trims, label="TrimmedText"),
}
"""By the label of a table what draws it from all results; None where the numbers are not there."""


def draw_pictures(results: Sequence[Result], /) -> dict[str, Figure]:
    """The pictures of the tables that are among the results, by their labels."""
    pictures = {result.label: PICTURES[result.label](results) for result in results if result.label in PICTURES}
    return {label: picture for label, picture in pictures.items() if picture is not None}
