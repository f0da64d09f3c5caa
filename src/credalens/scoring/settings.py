"""What decides every number of a scoring run; two runs with equal settings may share parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from credalens import __version__
from credalens.checks.options import check_base, check_choice, check_count
from credalens.core.decisions import RULES
from credalens.scoring.columns import check_scores

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
