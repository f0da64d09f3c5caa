"""One run at a time: a living holder keeps others out, a dead one does not."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from pyarrow import fs

from credalens.storage import lock
from credalens.storage.arrow_path import arrow_path
from tests.engines.waiting import wait_until

HOLD = """
import sys, time
from pathlib import Path
from credalens.storage.lock import locked
with locked(Path(sys.argv[1]), "the output"):
    print("held", flush=True)
    time.sleep(60)
"""
ENTER = """
import sys
from pathlib import Path
from credalens.storage.lock import locked
print("ready", flush=True)
input()
try:
    with locked(Path(sys.argv[1]), "the output"):
        print("held", flush=True)
        input()
except ValueError as error:
    print(error, flush=True)
"""


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    for name, seconds in (("BEAT", 0.05), ("LEASE", 0.5), ("SETTLE", 0.2)):
        monkeypatch.setattr(lock, name, seconds)


@pytest.fixture(params=["path", "object store"])
def path(request, tmp_path):
    if request.param == "path":
        return tmp_path / ".lock"
    return arrow_path("run/.lock", fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()))


def stale(**fields) -> bytes:
    """A lock of a run on another machine that ended long ago."""
    about = {"machine": "elsewhere 1f pid:[2]", "pid": 7, "started": "3", "since": "2020", "token": "0" * 32}
    return json.dumps({**about, "beat": 3, **fields}).encode()


def put(path, content: bytes) -> None:
    lock._write(path, content)


def enter(path) -> None:
    with lock.locked(path, "the output"):
        assert path.is_file()
    assert not path.is_file()


def test_only_one_enters_and_the_next_one_afterwards(path):
    with (
        lock.locked(path, "the output"),
        pytest.raises(
            ValueError, match=rf"into the output right now: process {os.getpid()} on .*, since 2.*wait for it"
        ),
    ):
        enter(path)
    enter(path)


def test_of_many_threads_one_enters(path):
    begin, held, errors = threading.Barrier(8), [], []

    def run():
        begin.wait()
        try:
            with lock.locked(path, "the output"):
                held.append(1)
                wait_until(lambda: len(errors) == 7)
        except ValueError as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(errors)) == (1, 7)


@pytest.mark.parametrize("left", [False, True], ids=["free", "left by a dead process"])
def test_of_three_processes_one_enters(tmp_path, left):
    if left:
        (tmp_path / ".lock").write_bytes(stale(machine=lock._machine(), pid=2**22 + 1))
    command = [sys.executable, "-c", ENTER, tmp_path / ".lock"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    processes = [subprocess.Popen(command, **pipes) for _ in range(3)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 3
    for process in processes:
        process.stdin.write("\n")
    told = sorted(process.stdout.readline() for process in processes)
    for process in processes:
        process.communicate("\n")
    assert told[-1] == "held\n"
    assert all("another run is writing into the output right now" in text for text in told[:-1])
    assert list(tmp_path.iterdir()) == []


def test_a_killed_holder_is_followed_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "LEASE", 60.0)
    path = tmp_path / ".lock"
    process = subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    with pytest.raises(ValueError, match=f"process {process.pid} on"):
        enter(path)
    process.send_signal(signal.SIGKILL)
    while process.poll() is None and lock._start_of(process.pid):  # a zombie is dead too
        time.sleep(0.001)
    begin = time.monotonic()
    enter(path)
    assert time.monotonic() - begin < 30  # half a lease: nobody waited for it to run out
    process.communicate()


@pytest.mark.parametrize("content", [stale(), b"", b"{", b"[3]"], ids=["other machine", "empty", "half", "list"])
def test_a_silent_holder_elsewhere_is_followed_after_a_lease(path, content):
    put(path, content)
    enter(path)


def test_a_silent_holder_is_named_before_it_is_waited_for(path, monkeypatch, caplog):
    said = []
    monkeypatch.setattr(lock.time, "sleep", lambda seconds: said.append(caplog.text))
    put(path, stale(machine="el\x1bse"))
    enter(path)
    assert "waiting for up to 0 s" in said[0]
    assert (
        f"{path} is held by process 7 on el\\u001bse, since 2020. If no run writes into the output, delete it."
        in said[0]
    )
    put(path, b"")
    enter(path)
    assert f"{path} is empty or damaged, as after a full disk, and names nobody" in caplog.text


@pytest.mark.parametrize("links", [True, False], ids=["hard links", "none"])
def test_a_disk_that_refuses_the_lock_keeps_nobody_out(tmp_path, links):
    refuse = "" if links else "os.link = lambda *_: (_ for _ in ()).throw(OSError(95, 'no links'))"
    big = "" if links else "lock.Path.write_bytes = lambda self, content: None"
    script = f"""
import os, resource, sys
from pathlib import Path
from credalens.storage import lock
{refuse}
{big}
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
try:
    with lock.locked(Path(sys.argv[1]), "the output"):
        print("held")
except OSError as error:
    print(error.errno)
"""
    run = subprocess.run([sys.executable, "-c", script, tmp_path / ".lock"], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == (f"{errno.EFBIG}\n", "")
    assert list(tmp_path.iterdir()) == []
    enter(tmp_path / ".lock")


def test_a_number_of_a_process_that_is_used_again_is_no_holder(path):
    put(path, stale(machine=lock._machine(), pid=os.getppid(), started="1"))
    enter(path)


def test_a_holder_elsewhere_that_gives_signs_of_life_is_none_to_follow(path):
    put(path, stale())
    stop = threading.Event()

    def beat():
        for number in range(1000):
            if stop.wait(0.05):
                return
            put(path, stale(beat=number))

    heart = threading.Thread(target=beat)
    heart.start()
    try:
        with pytest.raises(ValueError, match="process 7 on elsewhere, since 2020"):
            enter(path)
    finally:
        stop.set()
        heart.join()


def test_a_holder_gives_signs_of_life_and_notices_that_it_was_followed(path):
    with lock.locked(path, "the output") as held:
        first = path.read_bytes()
        while path.read_bytes() == first:
            time.sleep(0.01)
        held.check()
        put(path, stale())
        while not held._lost:
            time.sleep(0.01)
        with pytest.raises(ValueError, match="another run has taken over the output"):
            held.check()
    assert path.read_bytes() == stale()  # not ours to delete


def test_whoever_dies_while_following_keeps_nobody_out(path):
    put(path, stale())
    put(path.parent / f".lock.{'0' * 32}.partial", stale(token="1" * 32))
    enter(path)


def test_a_system_that_tells_no_start_is_asked_for_the_process(monkeypatch, path):
    monkeypatch.setattr(lock.Path, "is_file", lambda self: False)
    assert lock._start_of(os.getpid()) == "unknown"
    assert lock._start_of(2**22 + 1) == ""
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(95, "Operation not supported")))
    assert lock._create(path.parent / "other" if isinstance(path, lock.Path) else path, b"mine")
