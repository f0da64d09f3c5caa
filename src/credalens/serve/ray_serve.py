"""Run the application of settings on Ray Serve: replicas on the machines of a cluster, started again if one is lost."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from starlette.applications import Starlette

from credalens.checks.options import needing
from credalens.engines.cluster import LOOPBACK, is_ours, ray_cluster
from credalens.serve.running import make_app
from credalens.serve.server import SIGNALS
from credalens.serve.settings import Content, Settings

NAME: Final = "credalens"
STORE: Final = 256 << 20  # bytes of a Ray of our own, for bodies on their way


def run_on_ray(
    settings: Settings, /, *, address: str | None = None, replicas: int = 1, host: str = LOOPBACK, port: int = 8000,
    **tls: str | os.PathLike[str] | None,
) -> None:  # fmt: skip
    """Serve until a signal comes, then answer what was taken. ``tls`` are the paths ssl_certfile and ssl_keyfile.

    ``address`` is that of a running cluster; without one, and without $RAY_ADDRESS, a Ray is started on this machine. Every
    machine of a cluster listens on the port, and must reach the paths of the settings.
    """
    content = Content.read(settings)
    make_app(settings, content)  # what is wrong is said here, once
    part, extra = "credalens serve --engine ray", "ray,serve"
    with needing("ray", part=part, extra=extra), needing("fastapi", part=part, extra=extra):
        serve: Any = importlib.import_module("ray.serve")
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    private, stopped = is_ours(address), threading.Event()
    with ray_cluster(address, workers=replicas, object_store=STORE), _reserved(host, port) as port:
        paths = {name: os.fspath(path) for name, path in tls.items() if path is not None}
        serve.start(proxy_location="EveryNode", http_options={"host": host, "port": port, **paths})
        try:
            deployment = _deployment(serve, settings, content.for_cluster(), replicas, private)
            serve.run(deployment, name=NAME, route_prefix="/")
            for number in SIGNALS:
                signal.signal(number, lambda *_: stopped.set())
            where = f"http{'s' if paths else ''}://{host}:{port}"
            sys.stderr.write(f"running on {where} (press CTRL+C to quit)\n")
            stopped.wait()
        finally:
            serve.shutdown() if private else serve.delete(NAME)  # a cluster may serve others too


def _deployment(serve: Any, settings: Settings, content: Content, replicas: int, private: bool) -> Any:
    def build() -> Starlette:
        if private:  # no other machines: a replica need not offer itself to them, behind Ray's token, on all networks
            replica: Any = importlib.import_module("ray.serve._private.replica")
            add_port = replica.add_port_to_grpc_server
            replica.add_port_to_grpc_server = lambda server, address: add_port(server, f"{LOOPBACK}:0")
        return make_app(settings, content)

    queue, timeout = settings.limits.queue, settings.limits.timeout
    limits = {"max_ongoing_requests": queue, "max_queued_requests": queue, "graceful_shutdown_timeout_s": timeout}
    return serve.deployment(serve.ingress(build)(), name=NAME, num_replicas=replicas, **limits).bind()


@contextmanager
def _reserved(host: str, port: int) -> Iterator[int]:
    """The port; for 0 a free one that is reserved until Ray listens on it, since Ray must be told which."""
    with socket.socket() as holder:
        if not port:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind((host, 0))
        yield port or holder.getsockname()[1]
