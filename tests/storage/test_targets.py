"""What can be written where: said before the work, with what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from credalens.storage.atomic import check_file, check_folder, check_no_input


def test_a_folder_is_there_or_can_be_made(tmp_path):
    for path in (tmp_path, tmp_path / "new", tmp_path / "new" / "deep"):
        assert check_folder(path) == path
        assert list(tmp_path.iterdir()) == []


def test_a_relative_path_is_made_below_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert check_folder(Path("runs")) == Path("runs")
    Path("runs").touch()
    with pytest.raises(NotADirectoryError, match="cannot write into runs: runs is a file; name a folder"):
        check_folder(Path("runs"))


def test_nothing_is_written_below_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"deep: .*file is a file; name a folder"):
        check_folder(tmp_path / "file" / "deep")
    with pytest.raises(NotADirectoryError, match="is a file; name a folder"):
        check_file(tmp_path / "file" / "x.json", make_folder=True)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*file; it is a file, name a folder"):
        check_file(tmp_path / "file" / "x.json")


def test_a_file_may_be_replaced_but_no_folder(tmp_path):
    (tmp_path / "file").touch()
    assert check_file(tmp_path / "file") == tmp_path / "file"
    with pytest.raises(IsADirectoryError, match="it is a folder; name a file in it"):
        check_file(tmp_path)
    with pytest.raises(IsADirectoryError, match="it is a folder; name a file in it"):
        check_file(tmp_path, make_folder=True)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*; create it first"):
        check_file(tmp_path / "new" / "file")
    assert check_file(tmp_path / "new" / "file", make_folder=True)


def test_a_closed_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=r"no permission to write in .*; name another folder"):
        check_folder(tmp_path / "new")


def test_what_is_read_is_not_replaced_under_any_name(tmp_path):
    (tmp_path / "in").write_text("read")
    (tmp_path / "other").write_text("other")
    (tmp_path / "link").symlink_to(tmp_path / "in")
    (tmp_path / "same").hardlink_to(tmp_path / "in")
    inputs = [None, tmp_path / "missing", tmp_path / "in"]
    for name in ("in", "link", "same"):
        with pytest.raises(ValueError, match=rf"cannot write .*{name}: .*in; choose"):
            check_no_input([tmp_path / "new", tmp_path / name], inputs)
    check_no_input([tmp_path / "new", tmp_path / "other"], inputs)
