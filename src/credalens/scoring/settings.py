"""What decides every number of a scoring run; two runs with equal settings may share parts.

Among them the columns that are written for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from credalens import __version__
from credalens.checks.options import check_base, check_choice, check_count
from credalens.core.decisions import RULES
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


MEMORY: Final = 128 * 2**20  # bytes that one chunk may take while it is scored
FOR_READERS: Final = ("version", "logits", "base", "rule", "scores", "guard", "members", "rows", "classes", "dtype")


@dataclass(frozen=True)
class ScoringSettings:
    """The options, the shape of the predictions, and the code; the last four fields are those of a single file.

    :ivar kernels: a fingerprint of the compiled code, which decides the last digits.
    :ivar scores: the scores of the catalogue that are written.
    :ivar labels: whether the input has labels, which are written too.
    :ivar guard: the digest of the guard that decides about every row.
    :ivar id: the column of row ids.
    :ivar input: a fingerprint of the file.
    """

    version: str
    kernels: str
    logits: bool
    base: float
    rule: str
    scores: tuple[str, ...]
    labels: bool
    members: int
    classes: int
    dtype: str
    guard: str | None = None
    id: str | None = None
    input: str | None = None
    rows: int | None = None
    chunk_rows: int | None = None
    member_axis: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def for_readers(self) -> dict[str, Any]:
        """What the reader of an output file wants to know about it."""
        return {name: getattr(self, name) for name in FOR_READERS}


def make_settings(*, base: float, rule: str, scores: Sequence[str], **fields: Any) -> ScoringSettings:
    """Check the options, and add the version and kernels of this process."""
    base, rule, scores = check_base(base), check_choice(rule, RULES, "rule"), check_scores(scores)
    return ScoringSettings(version=__version__, kernels=_kernels(), base=base, rule=rule, scores=scores, **fields)


def same_code(settings: ScoringSettings, /) -> bool:
    """Whether this process gives the same digits as the one where the settings were made."""
    return (settings.version, settings.kernels) == (__version__, _kernels())


def rows_at_a_time(members: int, classes: int, asked: int | None, /) -> int:
    """As many rows as asked for, or as fit: about three float64 copies of the members and sixteen (rows, classes) arrays."""
    return max(1, MEMORY // (8 * classes * (3 * members + 16))) if asked is None else check_count(asked, "chunk_rows")


def _kernels() -> str:
    from credalens.kernels.simd.jit import FINGERPRINT

    return FINGERPRINT
