"""A Ray to work on: the one that runs, the one at an address, or one of our own on this machine."""

from __future__ import annotations

import importlib
import logging
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from credalens.checks.packages import needing

LOCAL: Final = "local"
LOOPBACK: Final = "127.0.0.1"
PATIENCE: Final = 10  # seconds for a machine to answer
STATISTICS: Final = "RAY_USAGE_STATS_ENABLED"
OBJECT_STORE: Final = 256 << 20  # bytes; part numbers and reports are all that travels when a table is scored


def import_ray() -> Any:
    """Ray, or an error that says how to get it."""
    with needing("ray", part="the Ray engine", extra="ray"):
        return importlib.import_module("ray")


@contextmanager
def ray_cluster(
    address: str | None = None, /, *, workers: int | None = None, object_store: int | None = None
) -> Iterator[Any]:
    """Ray, connected while the block lasts: to ``address`` (or $RAY_ADDRESS), or to one started here for the purpose.

    A Ray that this process is connected to already is used and left running. One of our own has ``workers`` CPUs (by
    default all), listens to this machine only, sends no usage statistics and writes nothing to the terminal.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    where = _where(address)
    with _no_statistics() if where == LOCAL else nullcontext():
        _start(ray, where, workers, object_store)
        try:
            yield ray
        finally:
            ray.shutdown()


def is_ours(address: str | None = None, /) -> bool:
    """Whether ``ray_cluster`` would start one for the purpose."""
    return _where(address) == LOCAL and not import_ray().is_initialized()


def _where(address: str | None) -> str:
    return address or os.environ.get("RAY_ADDRESS") or LOCAL


def _start(ray: Any, where: str, workers: int | None, object_store: int | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if where != LOCAL:
        _check_answers(where)
        _connect(ray, where, **quiet)
        return
    private: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False, "_node_ip_address": LOOPBACK}
    ray.init(address=LOCAL, object_store_memory=object_store, **private, **quiet)


def _check_answers(address: str) -> None:
    """Ray would try for a minute and then end the process."""
    parsed = re.fullmatch(r"(?:ray://)?([^:/]+):(\d+)", address)
    if parsed is None and address != "auto":
        raise ValueError(f"the address of a Ray cluster is HOST:PORT or ray://HOST:PORT, got {address!r}.")
    if parsed is not None:
        try:
            socket.create_connection((parsed[1], int(parsed[2])), timeout=PATIENCE).close()
        except OSError as error:
            raise ConnectionError(
                f"no Ray cluster answers at {address} ({error}); is `ray start --head` running there?"
            ) from error


def _connect(ray: Any, where: str, **quiet: Any) -> None:
    """Ray keeps its token to itself where an address is given, until it is told that it may send it."""
    try:
        ray.init(address=where, **quiet)
    except (ConnectionError, RuntimeError, ray.exceptions.RayError) as error:
        raise ConnectionError(
            f"cannot connect to the Ray cluster at {where} ({' '.join(str(error).split())[:300]}). Where it asks for a token, "
            "set RAY_AUTH_MODE=token and have the cluster's token here (`ray get-auth-token` on the head shows it); Ray and "
            "Python must have the versions of the cluster."
        ) from error


@contextmanager
def _no_statistics() -> Iterator[None]:
    """Ray's processes take this from the environment they start in; Ray Data asks later, and starts a collector if it may."""
    before = os.environ.get(STATISTICS)
    os.environ[STATISTICS] = "0"
    try:
        yield
    finally:
        os.environ.pop(STATISTICS)
        if before is not None:
            os.environ[STATISTICS] = before


def machines() -> list[dict[str, float]]:
    """What each machine of the cluster has to give: CPU, GPU, memory."""
    return [node["Resources"] for node in import_ray().nodes() if node["Alive"]]


def worker_name() -> str:
    """This process among all of a cluster."""
    return f"{import_ray().get_runtime_context().get_node_id()}:{os.getpid()}"


def attempts_before() -> int:
    """How often this task was begun before, on workers or machines that were lost. Ray knows, but has no public name for it."""
    worker = importlib.import_module("ray._private.worker").global_worker
    return int(worker.core_worker.get_current_task_attempt_number())
