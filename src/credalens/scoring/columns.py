"""What is written for each row: the columns of a scored file, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from credalens.checks.options import check_choice
from credalens.core.scores import SCORES
from credalens.guard import Guard
from credalens.guard.decisions import DECISIONS, REASONS
from credalens.prediction import CredalPrediction
from credalens.storage.formats.parquet import fixed_lists, from_fixed_lists

DEFAULT_SCORES: Final = ("total", "aleatoric", "epistemic", "mean_total", "mean_aleatoric", "mean_epistemic")
GUARD: Final = ("decision", "p_value", "reason", "guard_set")
ENCODED: Final = ["prediction", "label", "decision", "reason"]  # by a dictionary, since values repeat
TEXTS: Final = {"decision": np.array(DECISIONS).dtype, "reason": np.array(REASONS).dtype}  # of one width in all parts
FIXED: Final = ("prediction", "label", "probability", "lower", "upper", "set", "aleatoric_bound")


def column_names(
    scores: Sequence[str] = DEFAULT_SCORES, /, *, labels: bool = False, guard: Guard | None = None
) -> tuple[str, ...]:
    """The columns of a scored file in their order: what to expect of a file before it is read.

    - ``prediction``: the class with the highest intersection probability, with a guard the class that it decides about;
      ``label``: the true class, if the input has it.
    - ``probability``, ``lower``, ``upper``: intersection probability and bounds of each class.
    - ``set``: the classes that the decision rule leaves possible.
    - ``aleatoric_bound``: a certified lower bound of ``aleatoric``.
    - each of ``scores`` under its name in the catalogue.
    - with a guard its ``decision``, ``p_value`` and ``reason``, and ``guard_set`` if it has sets.
    """
    decided = () if guard is None else GUARD if guard.sets else GUARD[:3]
    return (*(name for name in FIXED if labels or name != "label"), *scores, *decided)


def check_scores(names: Sequence[str], /) -> tuple[str, ...]:
    """Different scores of the catalogue, one at least."""
    checked = tuple(check_choice(name, tuple(SCORES), "a score") for name in names)
    if not checked or len(set(checked)) < len(checked):
        raise ValueError(f"scores must name at least one score, each once; got {', '.join(checked) or 'none'}.")
    return checked


def score_columns(
    prediction: CredalPrediction,
    rule: str,
    scores: Sequence[str] = DEFAULT_SCORES,
    labels: NDArray | None = None,
    guard: Guard | None = None,
    /,
) -> dict[str, NDArray]:
    """The columns of a prediction's rows, those of ``column_names``."""
    fixed = {
        "prediction": prediction.predict().astype(np.int32),
        "label": None if labels is None else labels.astype(np.int32),
        "probability": prediction.probability,
        "lower": prediction.lower,
        "upper": prediction.upper,
        "set": prediction.predict_set(rule),
        "aleatoric_bound": prediction.aleatoric_bound,
    }
    written = {name: column for name, column in fixed.items() if column is not None}
    return written | {name: prediction.score(name) for name in scores} | _decided(prediction, guard)


def _decided(prediction: CredalPrediction, guard: Guard | None) -> dict[str, NDArray]:
    if guard is None:
        return {}
    decided = guard.decide_rows(prediction)
    columns = {
        "prediction": decided.prediction.astype(np.int32),  # in place of the intersection probability's
        "decision": decided.decision,
        "p_value": decided.p_value,
        "reason": decided.reason,
    }
    return columns if decided.set is None else columns | {"guard_set": decided.set}


def table_of(columns: dict[str, NDArray], /) -> pa.Table:
    """The columns as an Arrow table."""
    return pa.table({name: fixed_lists(column) for name, column in columns.items()})


def values_of(name: str, column: Any, /) -> NDArray:
    """The values of a column, flat; texts as wide as the longest that can occur."""
    return np.array(column.to_pylist(), TEXTS[name]) if name in TEXTS else from_fixed_lists(column)


def sums_of(columns: dict[str, NDArray], /) -> dict[str, float]:
    """Sums over the rows, so that means over all parts need no second pass over them."""
    sums = {name: float(column.sum(dtype=np.float64)) for name, column in columns.items() if name in SCORES}
    sizes = columns["set"].sum(axis=-1)
    decisions = columns.get("decision", np.array([], str))
    sums |= {name: int((decisions == name).sum()) for name in DECISIONS}
    return sums | {"classes in sets": int(sizes.sum()), "determinate": int((sizes == 1).sum())}
