"""In how many cells one of two ways is better, by how much, and which of them to take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from credalens_paper.findings.lookup import is_better, spread_text

CLEAR: Final = 0.8
"""The share of the cells that one way must win to be called the better one."""


@dataclass(frozen=True)
class Tally:
    """Differences of a metric, the first way less the second, a cell each.

    >>> tally = Tally("AUROC", (1.0, 2.0, -0.5, 0.25, 0.5))
    >>> tally.text, tally.pick("credal", "averaged", "either")
    ('4 of 5 cells, -0.50 to +2.00', 'credal')
    """

    metric: str
    differences: tuple[float, ...]

    @classmethod
    def of(cls, metric: str, differences: Iterable[float | None], /) -> Tally:
        """A tally of the differences that were measured."""
        return cls(metric, tuple(difference for difference in differences if difference is not None))

    def __bool__(self) -> bool:
        return bool(self.differences)

    @property
    def won(self) -> int:
        """Cells in which the first way is better."""
        return sum(is_better(self.metric, difference) for difference in self.differences)

    @property
    def lost(self) -> int:
        """Cells in which the second way is better."""
        return sum(is_better(self.metric, -difference) for difference in self.differences)

    def pick(self, first: str, second: str, neither: str, /) -> str:
        """The way that is better in most cells (`CLEAR`), or neither."""
        enough = CLEAR * len(self.differences)
        return neither if not self else first if self.won >= enough else second if self.lost >= enough else neither

    @property
    def share(self) -> str:
        """The cells that the first way wins."""
        return f"{self.won} of {len(self.differences)} cells"

    @property
    def spread(self) -> str:
        """The least and the greatest difference."""
        return spread_text(self.differences, self.metric)

    @property
    def text(self) -> str:
        """The cells that the first way wins, and the differences."""
        return f"{self.share}, {self.spread}"
