"""How much of the server's time is credal: `python -m benchmarks.serve.credal_part`.

`credalens serve` with clocks inside (timed_app.py says what is counted) answers requests for what comes unasked: given members'
outputs, and running five networks through ONNX Runtime; without a guard and with one. Writes results/serve_credal_part.json and
a table of docs/serving.md.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.provenance import provenance
from benchmarks.serve.client import load
from benchmarks.serve.load import members_probs, request
from benchmarks.serve.networks import demo_network, resnet18, write_members
from benchmarks.serve.publish import publish
from benchmarks.serve.servers import Server, timed_credalens
from credalens import wrap
from credalens.core.decomposition import Decomposition
from credalens.core.members import read_members
from credalens.core.options import Options
from credalens.guard import Guard
from credalens.serve.settings import Settings

RESULTS: Final = Path("results/serve_credal_part.json")
HEADINGS: Final = (
    "| the server is given | rows | clients | CPU time of an answer | credal part | share of CPU time | of time to answer "
    "| share of CPU time with a guard |"
)
LEAST: Final = 5  # answers, where they take long
TOGETHER: Final = 20  # calls that are timed at once
CALIBRATION: Final = 500  # rows for a guard


@dataclass(frozen=True)
class Source:
    """What predicts: members' outputs in the request, or networks in the server, with inputs of a shape."""

    name: str
    classes: int
    binary: bool = True
    network: Any = None
    shape: tuple[int, ...] = ()

    def settings(self, folder: Path) -> Settings:
        """With files in a folder."""
        models = () if self.network is None else write_members(folder, self.network, self.shape, self.classes)
        return Settings(models=models, name="credal")

    def message(self, rows: int) -> bytes:
        """A request with random inputs."""
        if self.network is None:
            return request("probs", members_probs(rows, self.classes), self.binary)
        return request("x", _normal(rows, *self.shape), self.binary)


def _normal(*shape: int) -> NDArray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


SOURCES: Final = (
    *(
        Source(f"members' outputs as {form}, C = {classes}", classes, form != "JSON")
        for classes in (10, 100)
        for form in ("JSON", "binary data")
    ),
    Source("five networks of the demo, C = 10", 10, network=demo_network, shape=(64,)),
    Source("five ResNet-18 (3 x 32 x 32), C = 100", 100, network=resnet18, shape=(3, 32, 32)),
)
LOADS: Final = ((1, 1), (1, 8), (256, 1))  # rows, clients


def measure(seconds: float) -> Iterator[dict[str, Any]]:
    """Every source with every load, without a guard and with one."""
    for source in SOURCES:
        with TemporaryDirectory() as name, ExitStack() as stack:
            folder = Path(name)
            settings = source.settings(folder)
            path = str(folder / "guard.json")
            Guard.fit(wrap(members_probs(CALIBRATION, source.classes))).save(path)
            guarded = Settings(**vars(settings) | {"guard": path})
            servers = [stack.enter_context(timed_credalens(_as_json(each))) for each in (settings, guarded)]
            for rows, clients in LOADS:
                spent, guarded_spent = (_spent(server, source.message(rows), clients, seconds) for server in servers)
                yield {
                    "source": source.name,
                    "rows": rows,
                    "clients": clients,
                    "plain": spent,
                    "guarded": guarded_spent,
                }


def _as_json(settings: Settings) -> str:
    """All of them but the limits, which are those by default."""
    return json.dumps({name: value for name, value in vars(settings).items() if name != "limits"})


def _spent(server: Server, message: bytes, clients: int, seconds: float) -> dict[str, float]:
    """Per answer, in microseconds: of the processor's time and, for one client, of the time from arrival to answer."""
    soon = load(server.port, message, clients, seconds / 4)  # until memory and threads are as they stay
    before = _clocks(server)
    counted = load(server.port, message, clients, max(seconds, LEAST * soon.seconds / len(soon.latencies)))
    if counted.failures:
        raise RuntimeError(f"{counted.failures} requests failed.")
    after = _clocks(server)
    process, cpu, wall, request_wall, answers = (b - a for a, b in zip(before, after, strict=True))
    return {
        "answers": int(answers),
        "cpu_us": round(1e6 * process / answers, 1),
        "credal_cpu_us": round(1e6 * cpu / answers, 1),
        "cpu_share": round(cpu / process, 5),
        "wall_us": round(1e6 * request_wall / answers, 1),
        "credal_wall_us": round(1e6 * wall / answers, 1),
        "wall_share": round(wall / request_wall, 5),
    }


def _clocks(server: Server) -> tuple[float, ...]:
    counts = server.get("/metrics").decode()
    sums = (
        re.search(rf"^credalens_request_seconds_{name}\{{.*\}} (.*)$", counts, re.MULTILINE)
        for name in ("sum", "count")
    )
    spent = json.loads(server.get("/spent"))
    requests = (float(found[1]) if found else 0.0 for found in sums)
    return (spent["process"], spent["credal"]["cpu"], spent["credal"]["wall"], *requests)


def kernels_us(rows: int, classes: int) -> float:
    """What the compiled loops of `wrap` take alone, again and again: the least that the credal part can take."""
    members = read_members(members_probs(rows, classes))
    results = Decomposition(rows, classes, np.dtype(np.float32), Options())
    times = []
    for _ in range(50):
        begin = time.thread_time()
        for _ in range(TOGETHER):
            results.solve_members(members, 0, rows)
        times.append((time.thread_time() - begin) / TOGETHER)
    return round(1e6 * min(times), 1)


def table(content: dict[str, Any]) -> str:
    """The rows for the document."""
    lines = [HEADINGS, "|---|---|---|---|---|---|---|---|"]
    for cell in content["cells"]:
        plain, guarded = cell["plain"], cell["guarded"]
        wall = f"{100 * plain['wall_share']:.1f} %" if cell["clients"] == 1 else ""
        times = (f"{plain['cpu_us'] / 1000:.2f} ms", f"{plain['credal_cpu_us'] / 1000:.3f} ms")
        shares = (f"{100 * plain['cpu_share']:.1f} %", wall, f"{100 * guarded['cpu_share']:.1f} %")
        columns = (cell["source"], str(cell["rows"]), str(cell["clients"]), *times, *shares)
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and write both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6, help="of each cell")
    parser.add_argument("--dry", action="store_true", help="print the table, write nothing")
    options = parser.parse_args()
    content = {
        "seconds": options.seconds,
        "provenance": provenance(),
        "kernels_us": {f"{rows} x {classes}": kernels_us(rows, classes) for rows in (1, 256) for classes in (10, 100)},
        "cells": list(measure(options.seconds)),
    }
    publish(content, table(content), RESULTS, dry=options.dry)


if __name__ == "__main__":
    main()
