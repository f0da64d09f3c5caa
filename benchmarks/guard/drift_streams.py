"""How long a drift alarm takes: shares of the inputs of a stream are replaced by others from some input on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.guard import DriftAlarm

Draw = Callable[
    [np.random.Generator], tuple[NDArray, NDArray, NDArray]
]  # calibration, ID and OOD scores, in random order


@dataclass(frozen=True)
class Delay:
    """Inputs from the beginning of the drift until the alarm, over streams.

    :ivar noticed: share of streams in which the drift was noticed at all; :ivar early: share with an alarm before it.
    :ivar median: infinite where fewer than half are noticed, then None; :ivar p90: likewise for nine tenths.
    """

    share: float
    method: str
    streams: int
    noticed: float
    early: float
    median: int | None
    p90: int | None


def delay(draw: Draw, share: float, method: Any, *, streams: int, clean: int = 0, batch: int = 250) -> Delay:
    """The delay with ``share`` of the inputs OOD after ``clean`` inputs; a stream ends with its ID or OOD scores."""
    delays, early = [], 0
    for stream in range(streams):
        rng = np.random.default_rng([stream, round(1000 * share)])
        calibration, id_scores, ood_scores = draw(rng)
        alarm = DriftAlarm(calibration, method=method, seed=stream)
        run(alarm, mixed(id_scores, ood_scores, share, clean, rng), batch)
        at = np.inf if alarm.alarm_at is None else alarm.alarm_at - clean
        early += at <= 0
        delays.append(at if at > 0 else np.inf)
    noticed = np.isfinite(delays).mean()
    quantiles = [float(np.quantile(delays, q, method="higher")) for q in (0.5, 0.9)]
    median, p90 = (int(q) if np.isfinite(q) else None for q in quantiles)
    return Delay(share, method, streams, float(noticed), early / streams, median, p90)


def mixed(id_scores: NDArray, ood_scores: NDArray, share: float, clean: int, rng: np.random.Generator) -> NDArray:
    """A stream of scores in the order given, OOD with probability ``share`` after the first ``clean``."""
    ood = rng.random(clean + len(ood_scores) + len(id_scores)) < share
    ood[:clean] = False
    length = min(len(ood), *(_until(flags, len(pool)) for flags, pool in ((ood, ood_scores), (~ood, id_scores))))
    stream = np.empty(length)
    stream[ood[:length]] = ood_scores[: ood[:length].sum()]
    stream[~ood[:length]] = id_scores[: (~ood[:length]).sum()]
    return stream


def _until(flags: NDArray, most: int) -> int:
    """The longest beginning with at most ``most`` flags."""
    beyond = np.flatnonzero(flags)[most : most + 1]
    return int(beyond[0]) if len(beyond) else len(flags)


def run(alarm: DriftAlarm, scores: NDArray, batch: int) -> None:
    """Update until the alarm or the end."""
    for start in range(0, len(scores), batch):
        alarm.update(scores[start : start + batch])
        if alarm.alarm:
            return


def delays(draw: Draw, shares: Iterable[float], *, streams: int, clean: int = 0) -> list[dict[str, Any]]:
    """Delays by share, for both methods."""
    return [
        asdict(delay(draw, share, method, streams=streams, clean=clean))
        for share in shares
        for method in ("online", "fixed")
    ]
