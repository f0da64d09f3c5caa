"""The tables of speed in the documentation, taken from the benchmark's result files so that nobody types them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

__all__ = ["device_table", "speed_table"]

HEAD = (
    "classes",
    "averaging, NumPy",
    "exact credal",
    "ratio",
    "ratio in float32",
    "SLSQP / exact",
    "SLSQP wrong by 0.001 bit",
)
DEVICE_HEAD = ("classes", "rows", "averaging, torch", "exact credal", "ratio")


def speed_table(result: str | Path, /) -> str:
    """Microseconds a sample of averaging and of `wrap`, their ratio, and what the local solver takes and misses."""
    measured = json.loads(Path(result).read_text(encoding="utf-8"))["decomposition"]
    rows = [
        (
            f"{row['classes']}",
            f"{row['classical_us']:.2f} us",
            f"{row['ours_us']:.2f} us",
            f"{row['ours_over_classical']:.2f}",
            f"{row['float32_ours_over_classical']:.2f}",
            f"{row['slsqp_over_ours']:,.0f}",
            f"{row['slsqp_wrong_share']:.0%} of {row['solver_rows']}",
        )
        for row in measured
    ]
    return _table(HEAD, rows)


def device_table(result: str | Path, /) -> str:
    """Milliseconds a call of averaging in torch and of `wrap` on the same GPU, and their ratio."""
    measured = json.loads(Path(result).read_text(encoding="utf-8"))["device"]
    rows = [
        (
            f"{row['classes']}",
            f"{row['rows']:,}",
            f"{row['classical_ms']:.2f} ms",
            f"{row['ours_ms']:.2f} ms",
            f"{row['ours_over_classical']:.2f}",
        )
        for row in measured
    ]
    return _table(DEVICE_HEAD, rows)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
