"""Scoring a file of a million rows beside what pyarrow takes to write the same output table."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from benchmarks.predictions import MEMBERS, realistic
from benchmarks.timing import best_seconds

__all__ = ["measure_score"]

ROWS: Final = 1_000_000
CLASSES: Final = 10
DISTINCT: Final = 50_000  # rows that are generated; the others repeat them
REPEATS: Final = 3


def measure_score(rows: int = ROWS) -> dict[str, Any]:
    """Seconds of ``score_file`` from float32 ``.npy`` to Parquet, and of ``pyarrow.parquet.write_table`` for its output."""
    import pyarrow.parquet as parquet

    from credalens.scoring import score_file

    probs = realistic(MEMBERS, min(rows, DISTINCT), CLASSES).astype(np.float32)
    with TemporaryDirectory() as folder:
        source, target, copy = (Path(folder, name) for name in ("members.npy", "scores.parquet", "copy.parquet"))
        np.save(source, np.tile(probs, (1, -(-rows // probs.shape[1]), 1))[:, :rows])
        score_file(source, target)
        table = parquet.read_table(target)
        seconds = best_seconds(
            {
                "score": lambda: score_file(source, target),
                "write": lambda: parquet.write_table(table, copy),
            },
            repeats=REPEATS,
        )
    return {
        "rows": rows,
        "classes": CLASSES,
        **{f"{name}_seconds": value for name, value in seconds.items()},
        "score_over_write": seconds["score"] / seconds["write"],
    }
