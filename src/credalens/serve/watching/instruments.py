"""What is counted, under the names that Prometheus reads."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

LABELS: Final = ("model", "version")
SECONDS: Final = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60)
COUNTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
WAITING: Final = (0, *COUNTS[:8])
SIZES: Final = (1, 2, 3, 4, 5, 7, 10, 20, 50, 100, 1000, 10_000)
UNCERTAINTY: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 10, 14)


class Instruments:
    """All instruments of one application, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "credalens_requests", "Requests to infer, by the status of their answer.",
            (*LABELS, "status"), registry=self.registry,
        )  # fmt: skip
        self.decisions = Counter(
            "credalens_decisions", "Rows by what the guard decided, and why.",
            (*LABELS, "decision", "reason"), registry=self.registry,
        )  # fmt: skip
        self.seconds = self._histogram("request_seconds", "From the arrival of a request to its answer.", SECONDS)
        self.batch_seconds = self._histogram("batch_seconds", "Model and credal prediction of a batch.", SECONDS)
        self.batch_rows = self._histogram("batch_rows", "Rows of a batch.", COUNTS)
        self.batch_requests = self._histogram("batch_requests", "Requests joined in a batch.", COUNTS)
        self.queue = self._histogram("queue_requests", "Requests that waited when a batch began.", WAITING)
        self.total = self._histogram("total", "Total uncertainty of a row, in the base of the model.", UNCERTAINTY)
        self.epistemic = self._histogram("epistemic", "Epistemic uncertainty of a row, in that base.", UNCERTAINTY)
        self.set_size = self._histogram("set_size", "Classes that remain possible for a row (maximality).", SIZES)
        self.drift = self._gauge("drift_log_value", "Natural logarithm of the drift martingale, 0 without evidence.")
        self.drift_bound = self._gauge("drift_log_bound", "The alarm is raised once drift_log_value reaches this.")
        self.drift_alarm = self._gauge("drift_alarm", "1 once the alarm was raised, else 0.")

    def _histogram(self, name: str, words: str, bounds: tuple[float, ...]) -> Histogram:
        return Histogram(f"credalens_{name}", words, LABELS, buckets=bounds, registry=self.registry)

    def _gauge(self, name: str, words: str) -> Gauge:
        """A gauge; of several workers the highest value counts, and those that have died do not."""
        return Gauge(f"credalens_{name}", words, LABELS, registry=self.registry, multiprocess_mode="livemax")


def observe_all(histogram: Any, values: NDArray, /) -> None:
    """``histogram.observe`` for each of many values, in one pass over them instead of one call for each."""
    bounds = np.asarray(histogram._upper_bounds)
    counts = np.bincount(np.searchsorted(bounds, values), minlength=len(bounds))
    for n in counts.nonzero()[0]:
        histogram._buckets[n].inc(int(counts[n]))
    histogram._sum.inc(float(values.sum(dtype=np.float64)))
