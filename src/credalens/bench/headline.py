"""The table of speed in the README, taken from the benchmark's result file so that nobody types it."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["speed_table"]

HEAD = ("classes", "averaging, NumPy", "exact credal", "ratio", "SLSQP / exact", "SLSQP wrong by 0.001 bit")


def speed_table(result: str | Path, /) -> str:
    """Microseconds a sample of averaging and of `wrap`, their ratio, and what the local solver takes and misses."""
    measured = json.loads(Path(result).read_text(encoding="utf-8"))["decomposition"]
    rows = [
        (
            f"{row['classes']}",
            f"{row['classical_us']:.2f} us",
            f"{row['ours_us']:.2f} us",
            f"{row['ours_over_classical']:.2f}",
            f"{row['slsqp_over_ours']:,.0f}",
            f"{row['slsqp_wrong_share']:.0%} of {row['solver_rows']}",
        )
        for row in measured
    ]
    lines = [HEAD, ("---",) * len(HEAD), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
