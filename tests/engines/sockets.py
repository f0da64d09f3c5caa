"""Which processes belong together, and on which addresses they listen. Reads /proc."""

from __future__ import annotations

import sys
from ipaddress import IPv6Address
from pathlib import Path


def family(pid):
    """A process and all that it started, directly or not."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:  # ended meanwhile
            continue
    members = {pid}
    while more := {child for child, parent in parents.items() if parent in members} - members:
        members |= more
    return members


def listening(pids):
    """The addresses that processes listen on."""
    sockets = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                sockets.add(str(link.readlink()))
            except OSError:  # closed meanwhile
                continue
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                yield _address(fields[1].split(":")[0])


def _address(text):
    """The kernel prints words of four bytes, in the machine's order."""
    words = [bytes.fromhex(text[i : i + 8]) for i in range(0, len(text), 8)]
    packed = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    return IPv6Address(packed if len(packed) == 16 else bytes(10) + b"\xff\xff" + packed)
