"""One run at a time: a living holder keeps others out, a dead one does not."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from credalens.storage import atomic
from credalens.storage.atomic import locked
from tests.engines.waiting import wait_until

HOLD = """
import sys, time
from pathlib import Path
from credalens.storage.atomic import locked
with locked(Path(sys.argv[1]), "the output"):
    print("held", flush=True)
    time.sleep(60)
"""
ENTER = """
import sys
from pathlib import Path
from credalens.storage.atomic import locked
print("ready", flush=True)
input()
try:
    with locked(Path(sys.argv[1]), "the output"):
        print("held", flush=True)
        input()
except ValueError as error:
    print(error, flush=True)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / ".lock"


def enter(path) -> None:
    with locked(path, "the output"):
        assert path.is_file()
    assert not path.is_file()


def test_only_one_enters_and_the_next_one_afterwards(path):
    with (
        locked(path, "the output"),
        pytest.raises(ValueError, match=rf"process {os.getpid()} on .*, since 2.*wait for it"),
    ):
        enter(path)
    enter(path)


def test_an_error_lets_the_next_one_enter(path):
    with pytest.raises(ZeroDivisionError), locked(path, "the output"):
        raise ZeroDivisionError
    enter(path)


def test_of_many_threads_one_enters(path):
    begin, held, errors = threading.Barrier(8), [], []

    def run():
        begin.wait()
        try:
            with locked(path, "the output"):
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


def test_threads_that_come_and_go_never_hold_it_together(path, monkeypatch):
    """Each deletes the file, which others may have opened by then."""
    monkeypatch.setattr(atomic, "PATIENCE", 30.0)
    inside, most = [], []

    def run():
        for _ in range(40):
            with locked(path, "the output"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), max(most)) == (240, 1)
    assert not path.exists()


@pytest.mark.parametrize("left", [False, True], ids=["free", "left by a dead process"])
def test_of_three_processes_one_enters(tmp_path, left):
    if left:
        (tmp_path / ".lock").write_text("process 7 on elsewhere, since 2020")
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


def test_a_killed_holder_is_followed_at_once(path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    with pytest.raises(ValueError, match=f"process {process.pid} on"):
        enter(path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    begin = time.monotonic()
    enter(path)
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"process 7 on elsewhere, since 2020"])
def test_what_a_file_that_nobody_holds_says_keeps_nobody_out(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    enter(path)


@pytest.mark.parametrize("content", ["", "half a"])
def test_a_holder_that_could_not_say_who_it_is_is_not_named(path, content):
    with locked(path, "the output"):
        path.write_text(content)
        with pytest.raises(ValueError, match="into the output right now; wait for it to end"):
            enter(path)


def test_a_disk_that_is_full_keeps_nobody_out(tmp_path):
    """It may refuse the content of the lock, which is none of its business."""
    script = """
import resource, signal, sys
from pathlib import Path
from credalens.storage.atomic import locked
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with locked(Path(sys.argv[1]), "the output"):
    print("held")
"""
    run = subprocess.run([sys.executable, "-c", script, tmp_path / ".lock"], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("held\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_warned_of(path, monkeypatch, number):
    import fcntl

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    for _ in range(2):
        with pytest.warns(UserWarning, match="the output has no locks, so that nothing keeps a second run out"):
            enter(path)


def test_a_lock_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        enter(tmp_path / "file" / ".lock")


def test_without_filelock_it_says_how_to_get_it(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "filelock", None)
    with pytest.raises(ImportError, match=r"needs filelock.*pip install 'credalens\[cli\]'"):
        enter(path)
