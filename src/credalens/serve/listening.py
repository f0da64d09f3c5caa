"""Sockets that listen: bound to an address, and closed without sending anybody away who has connected."""

from __future__ import annotations

import ctypes
import errno
import selectors
import socket
import struct
import sys
from collections.abc import Sequence
from typing import Final

NO_SYN: Final = ((0x30, 0, 0, 13), (0x54, 0, 0, 0x12), (0x15, 0, 1, 0x02), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF))
"""A classic BPF program, run on each TCP header: flags & (SYN | ACK) == SYN ? drop : accept."""

SO_ATTACH_FILTER: Final = 26  # of Linux; Python's socket has no name for it


def bound_sockets(host: str, port: int, /) -> list[socket.socket]:
    """A socket for each address of a host, on one port; 0 chooses a free one. They do not listen yet."""
    sockets: list[socket.socket] = []
    lacking: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    ):
        try:
            sockets.append(_bound(family, kind, protocol, (address[0], port, *address[2:])))
        except OSError as error:
            lacking = OSError(error.errno, f"cannot listen on {host}, port {port}: {error.strerror}")
            if error.errno not in (
                errno.EADDRNOTAVAIL,
                errno.EAFNOSUPPORT,
            ):  # the system need not have both IPv4 and IPv6
                break
        port = port or (sockets[0].getsockname()[1] if sockets else 0)
    else:
        if sockets:
            return sockets
    for listener in sockets:
        listener.close()
    raise lacking or OSError(errno.EADDRNOTAVAIL, f"{host} has no address")


def _bound(family: int, kind: int, protocol: int, address: tuple[object, ...]) -> socket.socket:
    listener = socket.socket(family, kind, protocol)  # named: asyncio switches TCP's delays off only where it is
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def refuse_new(sockets: Sequence[socket.socket], /) -> bool:
    """Let no further connection begin, without touching those that have: on Linux, where this is possible.

    Its client's system tries again after a second, and is refused then, since nobody listens any more.
    """
    if sys.platform != "linux":
        return False
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in NO_SYN))
    filter_of_it = struct.pack("HP", len(NO_SYN), ctypes.addressof(program))
    try:
        for sock in sockets:
            sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, filter_of_it)
    except OSError:  # a kernel or a sandbox without it
        return False
    return True


def any_waiting(sockets: Sequence[socket.socket], /) -> bool:
    """Whether a connection waits to be accepted."""
    with selectors.DefaultSelector() as selector:
        for sock in sockets:
            selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))
