"""A Ray to work on: the one that is running, the one at an address, or a new one on this machine."""

from __future__ import annotations

import importlib
import logging
import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from credalens.checks.options import needing

LOCAL: Final = "local"
LOOPBACK: Final = "127.0.0.1"
PATIENCE: Final = 10  # seconds for a machine to answer
STATISTICS: Final = "RAY_USAGE_STATS_ENABLED"
AUTHENTICATION: Final = "RAY_AUTH_MODE"
MANY_NODES: Final = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # nodes on other machines may join, on any system
PRIVATE: Final = {STATISTICS: "0", MANY_NODES: "0", AUTHENTICATION: None}
OBJECT_STORE: Final = 256 << 20  # bytes; part numbers and reports are all that travels when a table is scored


def import_ray() -> Any:
    """Ray, or an error that says how to get it."""
    with needing("ray", part="the Ray engine", extra="ray"):
        return importlib.import_module("ray")


@contextmanager
def ray_cluster(
    address: str | None = None, /, *, workers: int | None = None, object_store: int | None = None
) -> Iterator[Any]:
    """Ray, connected for the time of the block: to ``address`` (or $RAY_ADDRESS), or to a new Ray on this machine.

    A Ray that this process is already connected to is used and left running. A new one has ``workers`` CPUs (by
    default all), listens on the loopback only, refuses clients without its token, sends no usage statistics and writes
    nothing to the terminal.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    where = _where(address)
    with _private(ray) if where == LOCAL else nullcontext():
        _start(ray, where, workers, object_store)
        try:
            yield ray
        finally:
            ray.shutdown()


def is_ours(address: str | None = None, /) -> bool:
    """Tell whether ``ray_cluster`` would start a Ray for the purpose."""
    return _where(address) == LOCAL and not import_ray().is_initialized()


def _where(address: str | None) -> str:
    return address or os.environ.get("RAY_ADDRESS") or LOCAL


def _start(ray: Any, where: str, workers: int | None, object_store: int | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if where == LOCAL:
        private: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False, "_node_ip_address": LOOPBACK}
        ray.init(address=LOCAL, object_store_memory=object_store, **private, **quiet)
        if ray.util.get_node_ip_address() != LOOPBACK or os.environ.get(AUTHENTICATION) != "token":
            ray.shutdown()  # rather none than one that lets others in
            raise RuntimeError(
                f"the Ray started here (version {ray.__version__}) was stopped, because it listens to other machines or lets "
                "clients in without a token; use Ray 2.59 or later: pip install 'credalens[ray]'."
            )
        return
    _check_answers(where)
    try:
        ray.init(address=where, **quiet)
    except (ConnectionError, RuntimeError, ray.exceptions.RayError) as error:
        # Ray keeps its token to itself where an address is given, until it is told that it may send it.
        raise ConnectionError(
            f"cannot connect to the Ray cluster at {where} ({' '.join(str(error).split())[:300]}). If it asks for a token, "
            "set RAY_AUTH_MODE=token and copy the cluster's token here (`ray get-auth-token` on the head shows it); Ray and "
            "Python must have the same versions as on the cluster."
        ) from error


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


@contextmanager
def _private(ray: Any) -> Iterator[None]:
    """The environment of a Ray of our own, from which its processes take what they are told, and Ray Data later too.

    Ray replaces 127.0.0.1 by the address of a network card, and its servers then listen on all of them, unless it may not
    have nodes on other machines. With no mode of authentication in the environment it asks for a token, since 2.59.
    """
    constants = ray._private.ray_constants  # has read the environment already
    before, many_nodes = {name: os.environ.get(name) for name in PRIVATE}, constants.ENABLE_RAY_CLUSTER
    _set_environment(PRIVATE)
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = many_nodes
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def machines() -> list[dict[str, float]]:
    """The resources of each machine of the cluster: CPU, GPU, memory."""
    return [node["Resources"] for node in import_ray().nodes() if node["Alive"]]


def worker_name() -> str:
    """This process among all of a cluster."""
    return f"{import_ray().get_runtime_context().get_node_id()}:{os.getpid()}"


def attempts_before() -> int:
    """Count how often this task was begun before, on workers or machines that were lost. Ray has no public name for it."""
    worker = importlib.import_module("ray._private.worker").global_worker
    return int(worker.core_worker.get_current_task_attempt_number())
