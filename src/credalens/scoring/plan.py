"""What a run is about to do: its input, told apart by fingerprint, its options, and its parts."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from credalens import __version__
from credalens.checks.options import check_base, check_choice, check_count
from credalens.core.decisions import RULES
from credalens.storage import Predictions

__all__ = ["Plan", "fingerprint", "make_plan", "rows_at_a_time"]

MEMORY = 128 * 2**20  # bytes that one chunk may take while it is scored
BLOCKS, BLOCK = 64, 1 << 16


@dataclass(frozen=True)
class Plan:
    """Everything that decides what ends up in the parts; two runs with equal plans may share them."""

    version: str
    kernels: str
    input: str
    logits: bool
    base: float
    rule: str
    members: int
    rows: int
    classes: int
    dtype: str
    chunk_rows: int

    @property
    def parts(self) -> int:
        """How many parts there will be."""
        return -(-self.rows // self.chunk_rows)

    def bounds(self, part: int, /) -> tuple[int, int]:
        """First and past-the-last row of a part."""
        return part * self.chunk_rows, min((part + 1) * self.chunk_rows, self.rows)

    def differences(self, stored: dict[str, Any], /) -> str:
        """How a stored plan differs from this one, in words; empty where they are the same."""
        mine = asdict(self)
        changed = [key for key in mine if mine[key] != stored.get(key)]
        if "input" in changed:
            return "another input file, or one that has changed"
        if "version" in changed or "kernels" in changed:
            return f"credalens {stored.get('version')}, whose last digits may differ from this one's ({self.version})"
        return ", ".join(f"{key} {stored.get(key)!r} instead of {mine[key]!r}" for key in changed)

    def settings(self) -> dict[str, Any]:
        """What a reader of the output wants to know about it."""
        return {key: value for key, value in asdict(self).items() if key not in ("kernels", "input", "chunk_rows")}


def make_plan(predictions: Predictions, /, *, base: float, rule: str, chunk_rows: int | None) -> Plan:
    """Check the options and settle how many rows are scored at a time."""
    from credalens.kernels.simd.jit import FINGERPRINT

    base, rule = check_base(base), check_choice(rule, RULES, "rule")
    members, rows, classes = predictions.shape
    size = rows_at_a_time(members, classes, chunk_rows)
    return Plan(
        version=__version__,
        kernels=FINGERPRINT,
        input=fingerprint(predictions.path),
        logits=predictions.logits,
        base=base,
        rule=rule,
        members=members,
        rows=rows,
        classes=classes,
        dtype=predictions.dtype,
        chunk_rows=min(size, rows),
    )


def rows_at_a_time(members: int, classes: int, asked: int | None, /) -> int:
    """As many rows as asked for, or as fit: about three float64 copies of the members and sixteen (rows, classes) arrays."""
    return max(1, MEMORY // (8 * classes * (3 * members + 16))) if asked is None else check_count(asked, "chunk_rows")


def fingerprint(path: Path, /) -> str:
    """A hash of a file's size, time of change and 64 blocks spread over it: cheap, and moved by any ordinary edit."""
    with path.open("rb") as file:
        state = os.fstat(file.fileno())
        digest = hashlib.sha256(f"{state.st_size} {state.st_mtime_ns}".encode())
        for number in range(BLOCKS):
            file.seek(max(0, state.st_size - BLOCK) * number // (BLOCKS - 1))
            digest.update(file.read(BLOCK))
    return digest.hexdigest()
