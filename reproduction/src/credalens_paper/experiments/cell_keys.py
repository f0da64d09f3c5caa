"""Where a number stands: the keys that tell the cells of the paper's tables apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from credalens_paper.json_records import optional, to_json

TURNED_AWAY: Final = ("turned_away", "halved_turned_away")
HIGHER: Final = frozenset({"ACC", "AUROC", "AUPRC", "accepted_ACC", "halved_accepted", *TURNED_AWAY})
"""Metrics of which more is better; of the others less is."""
DIGITS: Final = 12
"""Of a mean difference, so that runs which cancel each other are a tie."""
ALARM_METRICS: Final = ("false_alarms", "accepted_ACC")
ERROR_METRICS: Final = ("halved_accepted", "halved_left", "halved_broken")
SET_METRICS: Final = ("coverage", "classes_in_set")
"""What guards and sets keep of their promises: `measures.guarding`."""
MEAN: Final = "mean"
"""The mean uncertainty of a test set, in bits."""
NEUTRAL: Final = frozenset({MEAN, "coverage"})
"""Metrics of which neither more nor less is better."""


@dataclass(frozen=True, kw_only=True)
class CellKey:
    """The keys of a cell; None where one does not apply.

    `id_set` is the set that a model was trained on; `ood_set` is the other set it was tested with (None: the test split of
    `id_set`), and `preparation` is how its images are given to the networks (None: all of them, as in training).
    "Baseline" of the paper is the variant "classical" and "Ours" is "credal"; EDD is neither.
    """

    backbone: str | None = optional()
    method: str | None = optional()
    variant: str | None = optional()
    N: int | None = optional()
    J: int | None = optional()
    C: int | None = optional()
    measure: str | None = optional()
    id_set: str | None = optional()
    ood_set: str | None = optional()
    preparation: str | None = optional()
    metric: str

    def get(self, key: str, /) -> Any:
        """The value of a key by its name; None where it does not apply or is not a key of the paper's cells."""
        return getattr(self, key, None)

    def as_dict(self) -> dict[str, Any]:
        """The keys that apply."""
        return dict(to_json(self))

    @property
    def baseline(self) -> CellKey:
        """The classical cell that a credal one is compared with: no PIA, and mutual information as its EU."""
        measure = "EU" if self.measure == "GH" else self.measure
        return replace(self, variant="classical", J=None, measure=measure)


KEYS: Final = tuple(CellKey.__dataclass_fields__)


def cells(**axes: Any) -> tuple[CellKey, ...]:
    """The cells of all combinations of the keys' values, each a value or a tuple of them.

    >>> [cell.N for cell in cells(metric="ECE", N=(5, 10))]
    [5, 10]
    """
    values = [value if isinstance(value, tuple) else (value,) for value in axes.values()]
    return tuple(CellKey(**dict(zip(axes, combination, strict=True))) for combination in product(*values))


def better_side(metric: str, difference: float, /) -> str:
    """Which side a difference credal - classical speaks for.

    >>> better_side("ECE", -0.01), better_side("AUROC", -0.01)
    ('credal', 'classical')
    """
    if difference == 0:
        return "equal"
    return "credal" if (difference > 0) == (metric in HIGHER) else "classical"
