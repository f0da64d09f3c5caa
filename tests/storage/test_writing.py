"""A file appears whole or not at all, whatever happens while it is written."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from credalens.storage import atomic_file, open_predictions, save_predictions
from credalens.storage.atomic import atomic_folder, side_name
from tests.strategies import batch_of

FORMATS = (".npy", ".npz", ".parquet", ".safetensors")
VALUES = batch_of("flat", 3, 20, 4)


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_name_appears_at_the_end(tmp_path):
    with atomic_file(tmp_path / "file") as file:
        file.write(b"half")
        assert not (tmp_path / "file").exists()
    assert (tmp_path / "file").read_bytes() == b"half"
    assert names(tmp_path) == ["file"]


def test_bytes_of_a_folder_are_put_on_disk_through_files_open_for_writing(tmp_path, monkeypatch):
    """Windows refuses the others with EBADF."""
    import fcntl

    def fsync(handle):
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY and not stat.S_ISDIR(
            os.fstat(handle).st_mode
        ):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(os, "fsync", fsync)
    write_report(tmp_path / "out", "whole")
    assert names(tmp_path / "out") == ["report.txt"]


def test_writers_of_one_file_do_not_mix(tmp_path):
    contents = [bytes([i]) * 200_000 for i in range(4)]

    def write(content):
        with atomic_file(tmp_path / "file") as file:
            file.write(content)

    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert (tmp_path / "file").read_bytes() in contents
    assert names(tmp_path) == ["file"]


def write_half(path):
    with atomic_file(path) as file:
        file.write(b"new")
        raise RuntimeError


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(RuntimeError):
        write_half(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_predictions(tmp_path, monkeypatch, suffix, step):
    path = tmp_path / f"m{suffix}"
    save_predictions(path, VALUES)
    with monkeypatch.context() as broken:
        broken.setattr(os, step, full)
        with pytest.raises(OSError, match="No space left"):
            save_predictions(path, VALUES[:, :5])
    assert open_predictions(path).shape == VALUES.shape
    assert names(tmp_path) == [path.name]


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("kept", [0o600, 0o664, 0o640])
def test_what_takes_the_place_of_a_file_is_open_to_the_same_people(tmp_path, kept):
    with atomic_file(tmp_path / "file") as file:
        file.write(b"first")
    assert mode(tmp_path / "file") == 0o640
    (tmp_path / "file").chmod(kept)
    with atomic_file(tmp_path / "file") as file:
        assert [mode(path) for path in tmp_path.glob(".*.partial")] == [kept]
        file.write(b"second")
    assert ((tmp_path / "file").read_bytes(), mode(tmp_path / "file")) == (b"second", kept)


@pytest.mark.usefixtures("umask")
def test_the_files_of_a_folder_keep_their_permissions_and_are_nobody_elses_before(tmp_path):
    write_report(tmp_path / "out", "first")
    page = tmp_path / "out" / "report.txt"
    assert (mode(page.parent), mode(page)) == (0o750, 0o640)
    page.chmod(0o600)
    with atomic_folder(tmp_path / "out") as scratch:
        (scratch / "report.txt").write_text("second")
        (scratch / "more.txt").write_text("more")
        assert mode(scratch.parent) == 0o700
    assert (page.read_text(), mode(page), mode(page.parent / "more.txt")) == ("second", 0o600, 0o640)


LONG = ("a" * 244 + ".npz", "a" * 251 + ".npz", "\N{GREEK SMALL LETTER ALPHA}" * 125 + ".npz")


@pytest.mark.parametrize("name", LONG, ids=["248 bytes", "255 bytes", "254 bytes of two each"])
def test_a_name_may_be_as_long_as_the_file_system_takes(tmp_path, name):
    save_predictions(tmp_path / name, batch_of("peaked", 2, 3, 4))
    with atomic_folder(tmp_path / name.replace(".npz", ".out")) as scratch:
        (scratch / name).write_text("text")
    assert names(tmp_path) == sorted([name, name.replace(".npz", ".out")])
    sides = {side_name(of, ".parts") for of in (name, f"b{name[1:]}", f"{name[:-5]}b.npz")}
    assert len(sides) == 3
    assert max(len(os.fsencode(side)) for side in sides) <= 255


def test_a_disk_that_is_full_names_the_file(tmp_path):
    with pytest.raises(OSError, match="file") as caught, atomic_file(tmp_path / "file"):
        raise OSError(errno.EFBIG, "File too large")
    assert caught.value.filename == str(tmp_path / "file")


def test_scratch_files_can_grow_elsewhere(tmp_path):
    (tmp_path / "scratch").mkdir()
    with atomic_file(tmp_path / "file", scratch=tmp_path / "scratch") as file:
        assert names(tmp_path) == ["scratch"]
        assert len(names(tmp_path / "scratch")) == 1
        file.write(b"x")
    assert names(tmp_path) == ["file", "scratch"]
    assert names(tmp_path / "scratch") == []


def test_the_same_input_gives_the_same_bytes(tmp_path):
    for suffix in (".npy", ".parquet", ".safetensors"):
        for name in ("a", "b"):
            save_predictions(tmp_path / f"{name}{suffix}", VALUES)
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_logits_that_are_not_called_that_are_refused(tmp_path):
    logits = np.log(batch_of("flat", 3, 5, 4))
    with pytest.raises(ValueError, match="logits=True"):
        save_predictions(tmp_path / "members.npz", logits)
    save_predictions(tmp_path / "members.npz", logits, logits=True)
    assert np.array_equal(open_predictions(tmp_path / "members.npz", logits=True).read(), logits)


def test_labels_must_fit(tmp_path):
    with pytest.raises(ValueError, match=r"a .npy file contains one array"):
        save_predictions(tmp_path / "m.npy", VALUES, np.zeros(20, int))
    for labels in (np.zeros(19, int), np.zeros(20), np.zeros((20, 4), int)):
        with pytest.raises(ValueError, match="labels must be 20 integers"):
            save_predictions(tmp_path / "m.npz", VALUES, labels)
    assert names(tmp_path) == []


@pytest.mark.parametrize("call", [lambda path: open_predictions(path), lambda path: save_predictions(path, VALUES)])
def test_without_pyarrow_it_says_how_to_get_it(tmp_path, monkeypatch, call):
    save_predictions(tmp_path / "in.parquet", VALUES)
    monkeypatch.delitem(sys.modules, "credalens.storage.formats.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"Parquet needs pyarrow.*pip install 'credalens\[cli\]'"):
        call(tmp_path / "in.parquet")


def test_an_atomic_folder_moves_nested_files(tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    with atomic_folder(target) as scratch:
        (scratch / "a").mkdir()
        (scratch / "a" / "b.txt").write_text("1")
        assert list(target.iterdir()) == []
    assert (target / "a" / "b.txt").read_text() == "1"
    assert names(tmp_path) == ["out"]


def write_report(target, text):
    with atomic_folder(target) as scratch:
        (scratch / "report.txt").write_text(text)


def test_an_atomic_folder_is_made_with_the_folders_above(tmp_path):
    write_report(tmp_path / "a" / "b", "1")
    assert names(tmp_path / "a") == ["b"]
    with pytest.raises(NotADirectoryError, match="is a file; name a folder"):
        write_report(tmp_path / "a" / "b" / "report.txt", "2")


def test_two_atomic_folders_of_one_name_do_not_mix(tmp_path):
    (tmp_path / "link").symlink_to("out")
    with atomic_folder(tmp_path / "out") as scratch:
        (scratch / "report.txt").write_text("first")
        with pytest.raises(ValueError, match=rf"another run is writing into {tmp_path / 'out'} right now"):
            write_report(tmp_path / "link", "second")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out" / "report.txt").read_text() == "first"
    assert names(tmp_path) == ["link", "out"]


KILLED = """
import os, signal, sys
from credalens.storage.atomic import atomic_folder
with atomic_folder(sys.argv[1]) as scratch:
    (scratch / "half.txt").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_run_removes_what_a_killed_one_left(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, tmp_path / "out"], check=False)
    [left] = names(tmp_path)
    (tmp_path / left / "thesis.tex").write_text("precious")
    write_report(tmp_path / "out", "whole")
    assert names(tmp_path / "out") == ["report.txt"]
    assert names(tmp_path / left) == ["thesis.tex"]
    (tmp_path / left / "thesis.tex").unlink()
    write_report(tmp_path / "out", "whole")
    assert names(tmp_path) == ["out"]
