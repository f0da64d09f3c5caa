"""What all instruments show: of this process, or of all workers that share a folder (Prometheus' multiprocess mode)."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder; it must be set before the process imports prometheus_client."""


def collected(registry: CollectorRegistry, /) -> CollectorRegistry:
    """The registry to read: the one given, or one that sums those of all workers."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return registry
    for process in _dead(Path(folder)):
        mark_process_dead(process, folder)  # type: ignore[no-untyped-call]
    joined = CollectorRegistry()
    MultiProcessCollector(joined, folder)  # type: ignore[no-untyped-call]
    return joined


def _dead(folder: Path) -> Iterator[int]:
    """Workers whose gauges are still in the folder."""
    for path in folder.glob("gauge_live*.db"):
        process = int(path.stem.rpartition("_")[2])
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            yield process


def sums(registry: CollectorRegistry, /) -> dict[str, float]:
    """The counts that the page shows, by short names, summed over models; decisions and statuses by their label."""
    found: dict[str, float] = {}
    for family in collected(registry).collect():
        for sample in family.samples:
            if name := _name(sample):
                before = found.get(name)
                both = max if family.type == "gauge" else operator.add
                found[name] = sample.value if before is None else both(before, sample.value)
    return found


def _name(sample: Any) -> str | None:
    """The name of a count on the page; None for what it does not show."""
    name, labels = sample.name.removeprefix("credalens_"), sample.labels
    if name == "decisions_total":
        return labels["decision"]
    if name == "requests_total":
        return f"status_{labels['status'][0]}xx" if labels["status"] != "503" else "busy"
    if name == "request_seconds_bucket":
        return f"within_{labels['le']}"
    return name if name.endswith(("_sum", "_count")) or name.startswith("drift_") else None
