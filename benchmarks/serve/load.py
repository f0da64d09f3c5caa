"""credalens serve beside MLServer and KServe under load: `python -m benchmarks.serve.load --mlserver PYTHON --kserve PYTHON`.

All serve what 5 members predict for 10 classes, with the same call of `wrap` (examples/serving), one process each; clients and
servers share the machine. The servers are asked in turns, in rounds of two seconds whose order rotates. MLServer takes tensors
as JSON only, and gets them so where the others get binary data. Writes results/serve_load.json and the table of
docs/serving.md.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.provenance import provenance
from benchmarks.serve.client import Counted, body, first_answer, load, post
from benchmarks.serve.publish import publish
from benchmarks.serve.servers import Server, running
from credalens import wrap

MEMBERS, CLASSES, CLIENTS = 5, 10, (1, 8, 32)
FORMS: Final = {"1 row, JSON": (1, False), "256 rows, binary": (256, True)}
PEERS: Final = ("mlserver", "kserve")
PACKAGES: Final = ("mlserver", "kserve", "starlette", "uvicorn", "uvloop", "httptools", "orjson", "numpy", "numba")
JSON_ONLY: Final = ("mlserver",)
RESULTS: Final = Path("results/serve_load.json")
HEADINGS: Final = (
    "| request | clients | answers, times MLServer's | times KServe's | CPU time each | part of MLServer's "
    "| of KServe's |"
)


def members_probs(rows: int, classes: int) -> NDArray:
    """What the members predict, with a seed."""
    logits = np.random.default_rng(0).normal(size=(MEMBERS, rows, classes)).astype(np.float32)
    exponentials = np.exp(2 * logits)
    return exponentials / exponentials.sum(-1, keepdims=True)


def request(name: str, values: NDArray, binary: bool) -> bytes:
    """A request for all outputs that come unasked."""
    tensor: dict[str, Any] = {"name": name, "datatype": "FP32", "shape": list(values.shape)}
    tensor |= {"parameters": {"binary_data_size": values.nbytes}} if binary else {"data": values.ravel().tolist()}
    content = {"id": "1", "inputs": [tensor]} | ({"parameters": {"binary_data_output": True}} if binary else {})
    head = json.dumps(content).encode()
    headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
    tail = values.tobytes() if binary else b""
    return post("/v2/models/credal/infer", head + tail, headers if binary else {})


def check_answer(answer: bytes, probs: NDArray) -> None:
    """Whatever serves it, the numbers are those of ``wrap``."""
    head, content = answer.partition(b"\r\n\r\n")[0], body(answer)
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"no answer but {answer[:1000]!r}")
    declared = re.search(rb"(?i)inference-header-content-length: *(\d+)", head)
    length = int(declared[1]) if declared else len(content)
    tail, prediction = content[length:], wrap(probs)
    for output in json.loads(content[:length])["outputs"]:
        dtype = np.int64 if output["datatype"] == "INT64" else np.float32
        values = np.array(output.get("data", ()), dtype)
        if "data" not in output or output["data"] is None:
            size = output["parameters"]["binary_data_size"]
            values, tail = np.frombuffer(tail[:size], dtype), tail[size:]
        name = output["name"]
        wanted = prediction.predict() if name == "prediction" else getattr(prediction, name)
        np.testing.assert_array_equal(values.ravel(), wanted.ravel(), err_msg=name)


def measure(servers: Sequence[Server], seconds: float, round_seconds: float) -> Iterator[dict[str, Any]]:
    """Every form of request with every number of clients."""
    for form, (rows, binary) in FORMS.items():
        probs = members_probs(rows, CLASSES)
        requests = {server.name: request("probs", probs, binary and server.name not in JSON_ONLY) for server in servers}
        for server in servers:
            check_answer(first_answer(server.port, requests[server.name]), probs)
        for clients in CLIENTS:
            rounds = max(1, round(seconds / round_seconds))
            cell = _cell(servers, requests, clients, rounds, round_seconds)
            yield {"form": form, "rows": rows, "clients": clients, "servers": cell}


def _cell(
    servers: Sequence[Server], requests: dict[str, bytes], clients: int, rounds: int, seconds: float
) -> dict[str, dict[str, Any]]:
    counted: dict[str, list[tuple[Counted, float]]] = {server.name: [] for server in servers}
    for turn in range(rounds):
        for server in _rotated(servers, turn):
            before = server.cpu_seconds()
            count = load(server.port, requests[server.name], clients, seconds)
            counted[server.name].append((count, server.cpu_seconds() - before))
    return {name: _summary(pairs) for name, pairs in counted.items()}


def _rotated(servers: Sequence[Server], turn: int) -> list[Server]:
    start = turn % len(servers)
    return [*servers[start:], *servers[:start]]


def _summary(pairs: Sequence[tuple[Counted, float]]) -> dict[str, Any]:
    latencies = [latency for count, _ in pairs for latency in count.latencies]
    centiles = quantiles(latencies, n=100)
    return {
        "answers": len(latencies),
        "failures": sum(count.failures for count, _ in pairs),
        "seconds": round(sum(count.seconds for count, _ in pairs), 1),
        "cpu_ms_per_answer": round(1000 * sum(cpu for _, cpu in pairs) / len(latencies), 3),
        "latency_ms": {"p50": round(1000 * centiles[49], 2), "p99": round(1000 * centiles[98], 2)},
        "answers_per_second": [round(len(count.latencies) / count.seconds, 1) for count, _ in pairs],
    }


def answers_ratio(cell: dict[str, Any], peer: str) -> float:
    """Throughput of credalens over that of a peer."""
    ours, theirs = (cell["servers"][name] for name in ("credalens", peer))
    return float(ours["answers"] / ours["seconds"] / (theirs["answers"] / theirs["seconds"]))


def cpu_ratio(cell: dict[str, Any], peer: str) -> float:
    """Processor time of an answer of credalens over that of a peer."""
    return float(cell["servers"]["credalens"]["cpu_ms_per_answer"] / cell["servers"][peer]["cpu_ms_per_answer"])


def table(content: dict[str, Any]) -> str:
    """The rows for the document."""
    lines = [HEADINGS, "|---|---|---|---|---|---|---|"]
    for cell in content["cells"]:
        answers, cpu = ([f"{ratio(cell, peer):.2f}" for peer in PEERS] for ratio in (answers_ratio, cpu_ratio))
        took = f"{cell['servers']['credalens']['cpu_ms_per_answer']:.2f} ms"
        columns = [cell["form"], str(cell["clients"]), *answers, took, *cpu]
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines)


def _versions(python: Path = Path(sys.executable)) -> dict[str, str]:
    """What serves there; uvicorn takes uvloop and httptools where they are installed."""
    code = f"""
import json
from importlib.metadata import PackageNotFoundError, version
found = {{}}
for name in {PACKAGES}:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(found))
"""
    run = subprocess.run([python, "-c", code], capture_output=True, check=True)  # noqa: S603
    return dict(json.loads(run.stdout))


def main() -> None:
    """Measure, and write both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mlserver", type=Path, required=True, help="Python of an environment with MLServer")
    parser.add_argument("--kserve", type=Path, required=True, help="Python of an environment with the KServe SDK")
    parser.add_argument("--seconds", type=float, default=60, help="of each server in each cell")
    parser.add_argument("--round", type=float, default=2)
    parser.add_argument("--dry", action="store_true", help="print the table, write nothing")
    options = parser.parse_args()
    made = provenance()
    with running(options.mlserver, options.kserve) as servers:
        cells = list(measure(servers, options.seconds, options.round))
    versions = {"mlserver": _versions(options.mlserver), "kserve": _versions(options.kserve), "credalens": _versions()}
    content = {
        "seconds": options.seconds,
        "provenance": made,
        "versions": versions,
        "cells": cells,
    }
    publish(content, table(content), RESULTS, dry=options.dry)


if __name__ == "__main__":
    main()
