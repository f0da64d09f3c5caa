"""One run at a time writes an output: a lock file, on a local disk, a shared file system or an object store.

The file appears at once or not at all, and names its holder: machine, process, since when. The holder rewrites it every
few seconds. A run that finds a lock takes it over where the holder is dead: on the same machine when that process is
gone; elsewhere when the file stays as it is for the time of a lease, whatever the clocks say.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from credalens.checks.options import escaped
from credalens.storage.atomic import PARTIAL, atomic_file, naming_full_disk

if TYPE_CHECKING:
    from credalens.storage.arrow_path import ArrowPath

LOG: Final = logging.getLogger("credalens.storage")
LOCK: Final = ".lock"
SCRATCH: Final = (PARTIAL, ".parts")  # how the name of a folder ends that is there for the time of a run only
BEAT: Final = 5.0  # seconds between two signs of life
LEASE: Final = 60.0  # seconds without one after which the holder on another machine is dead
SETTLE: Final = 1.0  # seconds in which a second writer of an object store would show
TRIES: Final = 20
HELD: Final[set[str]] = set()  # the tokens of this process: an interrupt may keep it from deleting a lock


@dataclass(frozen=True)
class Holder:
    """Who holds a lock; ``beat`` counts its signs of life."""

    machine: str
    pid: int
    started: str
    since: str
    token: str
    beat: int = 0

    def __str__(self) -> str:
        return f"process {self.pid} on {self.machine.partition(' ')[0]}, since {self.since}"

    def content(self, beat: int = 0, /) -> bytes:
        """As the content of the lock file."""
        return json.dumps({**asdict(self), "beat": beat}).encode()


class Lock:
    """A lock that is held, for its holder to ask whether it still is."""

    def __init__(self, path: Path | ArrowPath, output: object, /) -> None:
        self._path, self._output, self._lost = path, output, False
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._holder = Holder(_machine(), os.getpid(), _start_of(os.getpid()), now, uuid.uuid4().hex)

    def check(self) -> None:
        """Raise an error where another run has taken the output over, which happens after a long suspension only."""
        if self._lost:
            raise ValueError(
                f"another run has taken over {self._output}, because this one gave no sign of life for {LEASE:.0f} s; "
                "nothing more is written. Run the same again when the other one has ended."
            )

    def acquire(self) -> None:
        """Make the lock file, or raise an error that says who holds it."""
        for _ in range(TRIES):
            if _create(self._path, self._holder.content()):
                return
            content = _read(self._path)
            if content is None:
                continue
            if self._is_alive(content):
                raise ValueError(self._refusal(content))
            self._remove_stale_lock(content)
        if (content := _read(self._path)) is None:
            raise OSError(f"cannot write {self._output}: no file can be made at {self._path}")
        raise ValueError(self._refusal(content))

    @contextmanager
    def known(self) -> Iterator[None]:
        """Let this process know that the lock is not left over, for the time of the block."""
        HELD.add(self._holder.token)
        try:
            yield
        finally:
            HELD.discard(self._holder.token)

    def beat(self, stop: threading.Event, /) -> None:
        """Give signs of life until ``stop``; one that the file system refuses is made good by the next."""
        number = 0
        while not stop.wait(BEAT) and not self._lost:
            with suppress(OSError):
                self._lost = _token(_read(self._path)) != self._holder.token
                if not self._lost:
                    _write(self._path, self._holder.content(number := number + 1))

    def release(self) -> None:
        """Delete the lock file, unless it is another run's by now."""
        if _token(_read(self._path)) == self._holder.token:
            self._path.unlink(missing_ok=True)

    def _is_alive(self, content: bytes) -> bool:
        """Whether the holder lives: by its process on this machine, elsewhere by watching the file for a lease."""
        holder = _holder(content)
        if holder is not None and holder.machine == _machine():
            if holder.pid == os.getpid():
                return holder.token in HELD
            started = _start_of(holder.pid)
            if started != "unknown":
                return started == holder.started
        LOG.warning("%s", escaped(self._waiting_for(holder)))
        end = time.monotonic() + LEASE
        while time.monotonic() < end:
            time.sleep(min(1.0, BEAT / 2))
            if (now := _read(self._path)) != content:
                return now is not None
        return False

    def _waiting_for(self, holder: Holder | None) -> str:
        who = f"is held by {holder}" if holder else "is empty or damaged, as after a full disk, and names nobody"
        return (
            f"waiting for up to {LEASE:.0f} s: the lock {self._path} {who}. If no run writes into {self._output}, "
            "delete it."
        )

    def _remove_stale_lock(self, content: bytes) -> None:
        """Delete the lock of a dead run, one process at a time: a late one would delete the lock of the next holder."""
        removal_lock = self._path.parent / f"{LOCK}.{_token(content) or uuid.UUID(int=0).hex}{PARTIAL}"
        with locked(removal_lock, self._output):
            if _read(self._path) == content:
                self._path.unlink(missing_ok=True)

    def _refusal(self, content: bytes | None) -> str:
        holder = _holder(content)
        who = f": {holder}" if holder else ""
        return (
            f"another run is writing into {self._output} right now{who}; wait for it to end, stop it, or name another "
            f"output. Its lock is {self._path}."
        )


@contextmanager
def locked(path: Path | ArrowPath, output: object, /) -> Iterator[Lock]:
    """Hold the lock at ``path`` for the time of the block; an error where another run holds it."""
    lock, stop = Lock(path, output), threading.Event()
    with lock.known():
        lock.acquire()
        heart = threading.Thread(target=lock.beat, args=(stop,), daemon=True)
        try:
            heart.start()
            yield lock
        finally:
            stop.set()
            heart.join()
            lock.release()


def _holder(content: bytes | None) -> Holder | None:
    """None where the file is gone, half written or damaged."""
    try:
        return Holder(**json.loads(content or b""))
    except (ValueError, TypeError, RecursionError):
        return None


def _token(content: bytes | None) -> str:
    holder = _holder(content)
    return holder.token if holder else ""


def _machine() -> str:
    """This machine since it was started, and its numbering of processes, which a container has of its own."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    since = boot.read_text().strip() if boot.is_file() else f"{uuid.getnode():x}"
    space = Path("/proc/self/ns/pid")
    numbering = space.readlink() if space.is_symlink() else ""
    return f"{platform.node()} {since} {numbering}"


def _start_of(pid: int) -> str:
    """When a process began, empty where there is none; "unknown" where the system does not tell."""
    if Path("/proc/self/stat").is_file():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] in "ZX" else fields[19]
    if os.name == "posix":
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return ""
        except PermissionError:
            pass
    return "unknown"


def _create(path: Path | ArrowPath, content: bytes) -> bool:
    """Make a file where there is none; whether this process made it. An object store shows afterwards who was last."""
    if isinstance(path, Path):
        with suppress(FileExistsError, FileNotFoundError):  # the folder goes with the last run that leaves it empty
            _link(path, content)
    elif not path.is_file():
        _write(path, content)
        time.sleep(SETTLE)
    return _read(path) == content


def _link(path: Path, content: bytes) -> None:
    """The file appears whole, or, in a file system without hard links, at least for one process only.

    A scratch folder is nobody else's to read: what grows there may take the place of a file that is not either.
    """
    path.parent.mkdir(0o700 if path.parent.name.endswith(SCRATCH) else 0o777, parents=True, exist_ok=True)
    claim = path.with_name(f".{path.name}.{uuid.uuid4().hex}{PARTIAL}")
    try:
        with naming_full_disk(path):
            claim.write_bytes(content)
        try:
            os.link(claim, path)
        except (FileExistsError, FileNotFoundError):
            raise
        except OSError:
            _write_exclusively(path, content)
    finally:
        claim.unlink(missing_ok=True)


def _write_exclusively(path: Path, content: bytes) -> None:
    """Where a full disk refuses the content, the file goes too: an empty lock would keep the next run out for a lease."""
    with naming_full_disk(path), path.open("xb") as file:
        try:
            file.write(content)
            file.flush()
        except OSError:
            path.unlink(missing_ok=True)
            raise


def _read(path: Path | ArrowPath) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path | ArrowPath, content: bytes) -> None:
    with atomic_file(path) if isinstance(path, Path) else path.atomic_file() as file:
        file.write(content)
