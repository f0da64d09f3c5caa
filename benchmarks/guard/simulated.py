"""Drift alarms on simulated streams: `python -m benchmarks.guard.simulated`. Takes a few minutes.

False alarms without drift on streams that are 10 and 200 times as long as the calibration set, with and without ties; the same
for a fixed reference without a margin, which is unsound. Delays where a share of the inputs comes from the top tenth of the
scores, from the first input on and after 5,000 inputs without drift. Writes results/guard/simulated.json.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.guard.drift_streams import delays
from benchmarks.provenance import provenance
from credalens.guard import DriftAlarm
from credalens.guard.binomial import binomial_interval
from credalens.guard.drift import Wealth

TARGET: Final = Path("results/guard/simulated.json")
ALPHA, CALIBRATION = 0.05, 50
LENGTHS: Final = {500: 10_000, 10_000: 500}  # of a stream: how many
METHODS: Final = ("online", "fixed", "no margin")
SHARES: Final = (0.05, 0.1, 0.2, 0.5)
Source = Callable[[np.random.Generator, int], NDArray]
SOURCES: Final[dict[str, Source]] = {
    "continuous": lambda rng, n: rng.random(n),
    "heavily tied": lambda rng, n: rng.choice(4, n, p=[0.7, 0.2, 0.09, 0.01]).astype(float),
}


def raised(method: str, scores: NDArray, seed: int) -> bool:
    """Whether a stream raises an alarm; its first scores are the calibration set."""
    if method != "no margin":
        alarm = DriftAlarm(scores[:CALIBRATION], alpha=ALPHA, seed=seed, method=method)  # type: ignore[arg-type]
        alarm.update(scores[CALIBRATION:])
        return alarm.alarm
    ordered, stream = np.sort(scores[:CALIBRATION]), scores[CALIBRATION:]
    p_values = (1 + CALIBRATION - np.searchsorted(ordered, stream)) / (1 + CALIBRATION)
    return bool((Wealth.start().after(p_values)[1] >= -math.log(ALPHA)).any())


def false_alarms(length: int, source: str, method: str) -> dict[str, Any]:
    """The share of streams without drift that raise an alarm, with its exact 99.9 % interval."""
    rng, streams = np.random.default_rng(0), LENGTHS[length]
    hits = sum(raised(method, SOURCES[source](rng, CALIBRATION + length), draw) for draw in range(streams))
    low, high = binomial_interval(hits, streams, level=0.999)
    rates = {"false_alarms": hits / streams, "low": round(low, 5), "high": round(high, 5)}
    return {"length": length, "streams": streams, "scores": source, "method": method, **rates}


def top_tenth(rng: np.random.Generator) -> tuple[NDArray, NDArray, NDArray]:
    """2,000 calibration scores, a stream like them, and others from their top tenth."""
    return rng.random(2000), rng.random(20_000), 0.9 + 0.1 * rng.random(20_000)


def main() -> None:
    """Simulate and write."""
    content = {
        "provenance": provenance(),
        "alpha": ALPHA,
        "calibration": CALIBRATION,
        "false_alarms": [false_alarms(*case) for case in product(LENGTHS, SOURCES, METHODS)],
        "delay": {str(clean): delays(top_tenth, SHARES, streams=100, clean=clean) for clean in (0, 5000)},
    }
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
