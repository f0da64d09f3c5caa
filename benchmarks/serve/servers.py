"""The servers: processes on ports of their own, and the processor time that they took."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = ROOT / "examples" / "serving"
PATIENCE: Final = 120.0
VARIABLE: Final = "CREDALENS_SERVE"  # the environment variable by which the server of `timed_app` gets its settings


@dataclass(frozen=True)
class Server:
    """A running server."""

    name: str
    port: int
    pid: int

    def get(self, path: str) -> bytes:
        """The body of an answer."""
        return _get(self.port, path)

    def cpu_seconds(self) -> float:
        """Processor time of the process and its children so far."""
        return sum(_cpu_seconds(pid) for pid in _with_children(self.pid))


def _with_children(pid: int) -> Iterator[int]:
    yield pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield from _with_children(int(child))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(mlserver: Path | None, kserve: Path | None) -> Iterator[list[Server]]:
    """credalens serve, and the peers whose Python is given, one process each."""
    with ExitStack() as stack:
        servers = [stack.enter_context(_credalens())]
        if mlserver is not None:
            servers.append(stack.enter_context(_mlserver(mlserver)))
        if kserve is not None:
            servers.append(stack.enter_context(_kserve(kserve)))
        yield servers


def timed_credalens(settings: str) -> AbstractContextManager[Server]:
    """credalens with a clock for its credal part; the settings as JSON."""
    port = _free_port()
    options = ["--factory", "--port", str(port), "--no-access-log", "benchmarks.serve.timed_app:application"]
    return _started("timed", [sys.executable, "-m", "uvicorn", *options], port, {VARIABLE: settings})


def _credalens() -> AbstractContextManager[Server]:
    port = _free_port()
    return _started("credalens", [sys.executable, "-m", "credalens", "serve", "--port", str(port)], port)


def _mlserver(python: Path) -> AbstractContextManager[Server]:
    """In one process: with a pool of workers each request would cross to another one."""
    port = _free_port()
    settings = {
        "HOST": "127.0.0.1", "HTTP_PORT": port, "GRPC_PORT": _free_port(), "METRICS_PORT": _free_port(),
        "PARALLEL_WORKERS": 0, "DEBUG": "false",
    }  # fmt: skip
    environment = {f"MLSERVER_{name}": str(value) for name, value in settings.items()}
    command = [str(python.parent / "mlserver"), "start", str(EXAMPLES / "mlserver")]
    return _started("mlserver", command, port, environment)


def _kserve(python: Path) -> AbstractContextManager[Server]:
    port = _free_port()
    options = ["--http_port", str(port), "--enable_grpc", "false", "--enable_latency_logging", "false"]
    return _started("kserve", [str(python), str(EXAMPLES / "kserve_model.py"), *options], port)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def _started(
    name: str, command: list[str], port: int, environment: Mapping[str, str] | None = None
) -> Iterator[Server]:
    variables = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **(environment or {})}
    process = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        _wait_until_ready(process, name, port)
        yield Server(name, port, process.pid)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _wait_until_ready(process: subprocess.Popen[bytes], name: str, port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while not _is_ready(port):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{name} did not start; run it by hand to see why: {process.args!r}.")
        time.sleep(0.2)


def _is_ready(port: int) -> bool:
    try:
        _get(port, "/v2/models/credal/ready")
    except OSError:
        return False
    return True


def _get(port: int, path: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return bytes(answer.read())
