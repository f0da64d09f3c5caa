"""Settings of a scoring run, which decide every number, and the columns that it writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens import __version__
from credalens.arrays import rounding
from credalens.checks.doubtful_members import warn_of_members
from credalens.checks.options import check_base, check_choice, check_threads
from credalens.core.decisions import RULES
from credalens.core.recalibration import Recalibration, check_recalibration, temperatures_of
from credalens.core.scores import SCORES
from credalens.prediction import CredalPrediction
from credalens.storage.source import Chunk, RowSource, Source, rows_at_a_time, wrap_chunk

if TYPE_CHECKING:
    from credalens.guard import Guard

DEFAULT_SCORES: Final = ("total", "aleatoric", "epistemic", "mean_total", "mean_aleatoric", "mean_epistemic")
GUARD: Final = ("decision", "p_value", "reason", "guard_set")
FIXED: Final = ("prediction", "label", "probability", "lower", "upper", "set", "aleatoric_bound")
FOR_READERS: Final = (
    "version",
    "logits",
    "base",
    "rule",
    "scores",
    "guard",
    "temperatures",
    "members",
    "rows",
    "classes",
    "dtype",
)

Columns = dict[str, NDArray]


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


def score_columns(
    prediction: CredalPrediction, rule: str, scores: Sequence[str] = DEFAULT_SCORES, labels: NDArray | None = None,
    guard: Guard | None = None, /,
) -> Columns:  # fmt: skip
    """The columns of a prediction's rows, those of ``column_names``."""
    decided = None if guard is None else guard.decide_rows(prediction)
    columns = {
        "prediction": (prediction.predict() if decided is None else decided.prediction).astype(np.int32),
        "label": None if labels is None else labels.astype(np.int32),
        "probability": prediction.probability,
        "lower": prediction.lower,
        "upper": prediction.upper,
        "set": prediction.predict_set(rule),
        "aleatoric_bound": prediction.aleatoric_bound,
        **{name: prediction.score(name) for name in scores},
    }
    if decided is not None:
        values = (decided.decision, decided.p_value, decided.reason, decided.set)
        columns |= dict(zip(GUARD, values, strict=True))
    return {name: column for name, column in columns.items() if column is not None}


@dataclass(frozen=True)
class ScoringSettings:
    """The options, the kind of the predictions, and the code.

    :ivar kernels: a fingerprint of the compiled code, which decides the last digits.
    :ivar guard: the digest of the guard that decides about every row.
    :ivar temperatures: that members are divided by.
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
    temperatures: tuple[float, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def for_readers(self, rows: int) -> dict[str, Any]:
        """The settings that a file of so many rows tells its reader."""
        known = {**self.as_dict(), "rows": rows}
        return {name: known[name] for name in FOR_READERS}

    def is_of_this_code(self) -> bool:
        """Tell whether this process gives the same digits as the one where the settings were made."""
        return (self.version, self.kernels) == (__version__, _kernels())


def _kernels() -> str:
    from credalens.kernels.simd.cache import FINGERPRINT

    return FINGERPRINT


@dataclass(frozen=True)
class Scorer:
    """Turns the rows of a source into columns, chunk by chunk; it can be sent to another machine."""

    settings: ScoringSettings
    guard: Guard | None
    recalibration: Recalibration | None
    chunk_rows: int
    threads: int | None

    @classmethod
    def checked(
        cls, guard: Guard | None, chunk_rows: int | None, threads: int | None, /, *, base: float, rule: str,
        scores: Sequence[str], recalibration: Recalibration | None = None, **kind: Any,
    ) -> Scorer:  # fmt: skip
        """A scorer of options as a caller gave them; a guard that is for predictions of another kind is refused."""
        names = tuple(check_choice(name, tuple(SCORES), "a score") for name in scores)
        if not names or len(set(names)) < len(names):
            raise ValueError(f"scores must name at least one score, each once; got {', '.join(names) or 'none'}.")
        base, rule, digest = check_base(base), check_choice(rule, RULES, "rule"), guard and guard.digest
        recalibration = check_recalibration(recalibration) if guard is None else guard.recalibration(recalibration)
        if recalibration is not None:
            recalibration.check(kind["members"], kind["classes"])
        kind |= {"guard": digest, "temperatures": temperatures_of(recalibration)}
        own = ScoringSettings(__version__, _kernels(), base=base, rule=rule, scores=names, **kind)
        if guard is not None:
            from credalens.guard.signature import Signature

            stored = rounding(own.dtype, logits=own.logits)
            guard.check(Signature(own.classes, own.members, 0.0, stored, own.base, own.temperatures))
        return cls(
            own, guard, recalibration, rows_at_a_time(own.members, own.classes, chunk_rows), check_threads(threads)
        )

    def scored(self, source: RowSource, /, *, warn: bool = False) -> Iterator[tuple[Chunk, Columns]]:
        """The columns of every chunk; ``warn`` of members, if the first chunk shows that they say little."""
        own = self.settings
        for chunk in source.chunks(self.chunk_rows):
            options: dict[str, Any] = {"base": own.base, "recalibration": self.recalibration, "threads": self.threads}
            prediction = wrap_chunk(source, chunk, **options)
            if warn and chunk.start == 0:
                warn_of_members(prediction)
            yield chunk, score_columns(prediction, own.rule, own.scores, chunk.labels, self.guard)

    def rehearse(self) -> None:
        """Score one row of certain members and forget it: kernels and libraries are loaded before the first rows come."""
        own = self.settings
        values = np.zeros((own.members, 1, own.classes), own.dtype)
        values[..., 0] = 10 if own.logits else 1
        for _ in self.scored(Source("rehearsal", values, own.logits)):
            pass


@dataclass(frozen=True)
class Totals:
    """Rows and sums over them, so that means need no second pass."""

    rows: int = 0
    sums: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Mapping[str, NDArray], /) -> Totals:
        """Those of the scores, of the sets, and of a guard's decisions."""
        sums = {name: float(column.sum(dtype=np.float64)) for name, column in columns.items() if name in SCORES}
        if (decisions := columns.get("decision")) is not None:
            from credalens.guard.decisions import DECISIONS

            sums |= {name: int((decisions == name).sum()) for name in DECISIONS}
        sizes = columns["set"].sum(axis=-1)
        return cls(len(sizes), sums | {"classes in sets": int(sizes.sum()), "determinate": int((sizes == 1).sum())})

    def __add__(self, other: Totals) -> Totals:
        names = self.sums | other.sums
        sums = {name: self.sums.get(name, 0) + other.sums.get(name, 0) for name in names}
        return Totals(self.rows + other.rows, sums)
