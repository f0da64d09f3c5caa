"""Workers that cannot start, hang, or do not end: what their parent does."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from credalens.serve import running as module
from credalens.serve.running import PING, Supervisor
from tests.serve.test_processes import eventually


def work(pipe, folder):
    """Answer the parent until it says stop; files in the folder say what goes wrong instead."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if (folder / "broken").exists():
        raise SystemExit(5)
    if (folder / "doomed").exists():
        (folder / "doomed").unlink(missing_ok=True)
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / f"{os.getpid()}.pid").touch()
    while pipe.recv() == PING:
        if (folder / f"{os.getpid()}.mute").exists():
            time.sleep(1000)
        pipe.send(True)
    if (folder / "endless").exists():
        (folder / "told").touch()
        time.sleep(1000)


@pytest.fixture
def supervised(tmp_path, monkeypatch):
    """A supervisor of two workers, and what `run` of another thread does while the main one supervises."""
    monkeypatch.setattr(module, "TICK", 0.01)
    supervisor = Supervisor(work, (tmp_path,), 2, (), timeout=0)

    def until(scene):
        def play():
            try:
                scene(supervisor)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        with ThreadPoolExecutor(1) as pool:
            played = pool.submit(play)
            try:
                supervisor.run()
            finally:
                played.result()

    return until


def pids(supervisor):
    return {worker.process.pid for worker in supervisor.workers if worker.started}


def begun(supervisor):
    eventually(lambda: len(pids(supervisor)) == 2)
    return pids(supervisor)


def test_where_no_worker_can_start_the_server_ends(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(module, "LOG", logging.getLogger("supervisor"))  # uvicorn's may keep its records to itself
    (tmp_path / "broken").touch()
    supervisor = Supervisor(work, (tmp_path,), 2, (), timeout=0)
    with pytest.raises(SystemExit) as ended:
        supervisor.run()
    assert ended.value.code == 3
    assert "workers cannot start" in caplog.text


def test_a_worker_that_is_killed_before_any_has_begun_is_replaced(supervised, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.01)
    (tmp_path / "doomed").touch()
    supervised(begun)
    assert not (tmp_path / "doomed").exists()


def test_a_replacement_that_cannot_start_is_tried_again(supervised, tmp_path, monkeypatch):
    """The other worker goes on meanwhile."""
    monkeypatch.setattr(module, "PAUSE", 0.01)

    def scene(supervisor):
        before, tries = begun(supervisor), []
        monkeypatch.setattr(module, "Worker", lambda *arguments, new=module.Worker: tries.append(1) or new(*arguments))
        (tmp_path / "broken").touch()
        os.kill(killed := min(before), signal.SIGKILL)
        eventually(lambda: len(tries) >= 3)
        assert pids(supervisor) == before - {killed}
        (tmp_path / "broken").unlink()
        assert begun(supervisor) > before - {killed}

    supervised(scene)


def test_a_worker_that_says_nothing_is_replaced(supervised, tmp_path, monkeypatch):
    def scene(supervisor):
        before = begun(supervisor)
        (tmp_path / f"{min(before)}.mute").touch()
        time.sleep(0.1)
        monkeypatch.setattr(module, "PATIENCE", 0.5)
        eventually(lambda: min(before) not in pids(supervisor))
        monkeypatch.setattr(module, "PATIENCE", 100)
        begun(supervisor)

    supervised(scene)


@pytest.mark.parametrize("patience", [0.0, 1000.0])
def test_workers_that_do_not_end_are_killed_in_the_end(supervised, tmp_path, monkeypatch, patience):
    """When their time is over, or when somebody asks twice; the exit code says so."""
    (tmp_path / "endless").touch()
    left = []

    def scene(supervisor):
        left.extend(begun(supervisor))
        monkeypatch.setattr(module, "IDLE", 0)
        monkeypatch.setattr(module, "PATIENCE", patience)
        if patience:
            threading.Thread(target=ask_twice, args=(tmp_path / "told",)).start()

    with pytest.raises(SystemExit) as ended:
        supervised(scene)
    assert ended.value.code == 1
    for pid in left:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def ask_twice(told: Path) -> None:
    eventually(told.exists)
    os.kill(os.getpid(), signal.SIGTERM)
