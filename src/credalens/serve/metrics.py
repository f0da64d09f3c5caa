"""Metrics under the names that Prometheus reads, of this process or of all workers that share a folder."""

from __future__ import annotations

import operator
import os
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"  # names the folder of all workers, before prometheus_client is imported
LABELS: Final = ("model", "version")
SECONDS: Final = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60)
COUNTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
WAITING: Final = (0, *COUNTS[:8])
SIZES: Final = (1, 2, 3, 4, 5, 7, 10, 20, 50, 100, 1000, 10_000)
UNCERTAINTY: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 10, 14)


class Metrics:
    """All metrics of one application, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter("requests", "Requests to infer, by the status of their answer.", "status")
        self.decisions = self._counter("decisions", "Rows by what the guard decided, and why.", "decision", "reason")
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

    def _counter(self, name: str, words: str, *labels: str) -> Counter:
        return Counter(f"credalens_{name}", words, (*LABELS, *labels), registry=self.registry)

    def _histogram(self, name: str, words: str, bounds: tuple[float, ...]) -> Histogram:
        return Histogram(f"credalens_{name}", words, LABELS, buckets=bounds, registry=self.registry)

    def _gauge(self, name: str, words: str) -> Gauge:
        """A gauge; of several workers the highest value counts, and those that have died do not."""
        return Gauge(f"credalens_{name}", words, LABELS, registry=self.registry, multiprocess_mode="livemax")

    def collected(self) -> CollectorRegistry:
        """The registry to read: that of this process, or one that sums those of all workers."""
        if not (folder := os.environ.get(FOLDER)):
            return self.registry
        for path in Path(folder).glob("gauge_live*.db"):  # of workers, some of which may be dead
            process = int(path.stem.rpartition("_")[2])
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                mark_process_dead(process, folder)  # type: ignore[no-untyped-call]
        joined = CollectorRegistry()
        MultiProcessCollector(joined, folder)  # type: ignore[no-untyped-call]
        return joined

    def sums(self) -> dict[str, float]:
        """The counts for the page by short names, summed over models; decisions and statuses by their label."""
        sums: dict[str, float] = {}
        for family in self.collected().collect():
            for sample in family.samples:
                if name := _name_on_page(sample):
                    both = max if family.type == "gauge" else operator.add
                    sums[name] = both(sums[name], sample.value) if name in sums else sample.value
        return sums


def _name_on_page(sample: Any) -> str | None:
    name, labels = sample.name.removeprefix("credalens_"), sample.labels
    if name == "decisions_total":
        return labels["decision"]
    if name == "requests_total":
        return f"status_{labels['status'][0]}xx" if labels["status"] != "503" else "busy"
    if name == "request_seconds_bucket":
        return f"within_{labels['le']}"
    return name if name.endswith(("_sum", "_count")) or name.startswith("drift_") else None


def observe_all(histogram: Any, values: NDArray, /) -> None:
    """``histogram.observe`` for each of many values, in one pass over them instead of one call for each."""
    bounds = np.asarray(histogram._upper_bounds)
    counts = np.bincount(np.searchsorted(bounds, values), minlength=len(bounds))
    for n in counts.nonzero()[0]:
        histogram._buckets[n].inc(int(counts[n]))
    histogram._sum.inc(float(values.sum(dtype=np.float64)))


STEP: Final = 5  # seconds
MINUTES: Final = 15


@dataclass(frozen=True)
class History:
    """The last minutes: samples of counts, the oldest first. A sample between two steps replaces the one before it."""

    samples: deque[dict[str, float]] = field(default_factory=lambda: deque(maxlen=round(60 * MINUTES / STEP) + 1))

    def add(self, counts: dict[str, float], now: float | None = None, /) -> None:
        """Add the counts of now."""
        now = time.time() if now is None else now
        if len(self.samples) > 1 and self.samples[-1]["time"] - self.samples[-2]["time"] < STEP:
            self.samples.pop()
        self.samples.append({"time": round(now, 3)} | counts)
