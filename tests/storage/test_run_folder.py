"""One folder for every long run: whose it is, what is finished in it, and that nothing in it is half written."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest
from pyarrow import fs

from credalens.storage.arrow_path import arrow_path
from credalens.storage.run_folder import RunFolder, check_settings, settings_differences

SETTINGS = {"seed": 1, "sizes": (2, 3), "schedule": {"epochs": 4}}


@pytest.fixture(params=["path", "object store"])
def run(request, tmp_path):
    """A folder below ``tmp_path``; an object store is any file system that is not the local one."""
    if request.param == "path":
        return RunFolder(tmp_path / "run")
    return RunFolder(arrow_path("run", fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())))


def begin(run, settings, **options):
    with run.open_run(settings, **options):
        pass


def write(run, name, content=b"done"):
    with run.writing(name) as file:
        file.write(content)


def test_the_same_settings_go_on(run):
    assert run.parts() == []
    begin(run, SETTINGS, parts=["part-1", "deep/part-0"])
    write(run, "part-1")
    write(run, "notes")
    begin(run, SETTINGS, parts=["part-1", "part-2"])
    assert run.parts() == ["part-1"]
    write(run, "part-2")
    with pytest.raises(ValueError, match=r"1 part .* such as part-2.*--restart"):
        begin(run, SETTINGS, parts=["part-1"])
    assert (run.path / "part-1").read_bytes() == b"done"


def test_other_settings_are_named(run):
    begin(run, SETTINGS)
    with pytest.raises(ValueError, match=r"schedule.epochs was 4 and is now 5; seed was 1 and is now 2\. "):
        begin(run, {**SETTINGS, "seed": 2, "schedule": {"epochs": 5}})
    with pytest.raises(ValueError, match=r"other settings: the seed has changed\. .*--restart"):
        begin(run, {**SETTINGS, "seed": 2}, phrases={"seed": "the seed has changed"})
    with pytest.raises(ValueError, match="new was None and is now 7"):
        begin(run, {**SETTINGS, "new": 7})
    begin(run, {**SETTINGS, "new": 7}, defaults={"new": 7})


def test_restart_drops_what_the_manifest_names_and_nothing_else(run):
    """Files of a user stay, whatever their names, in the folder and below."""
    begin(run, SETTINGS, parts=["part-0", "deep/part-1"])
    mine = ["notes", "part-9", "part-2/part-0", ".thesis.partial"]
    for name in ("part-0", "deep/part-1", *mine):
        write(run, name)
    begin(run, {"seed": 2}, restart=True)
    assert run.parts() == []
    assert not (run.path / "part-0").exists()
    assert not (run.path / "deep/part-1").exists()
    assert all((run.path / name).exists() for name in mine)
    assert run.read_manifest()["settings"] == {"seed": 2}


@pytest.mark.parametrize("kept", [0o600, 0o640])
def test_a_restart_opens_nothing_to_others(tmp_path, kept):
    run = RunFolder(tmp_path / "run")
    before = os.umask(0o022)
    try:
        begin(run, SETTINGS, parts=["part-0", "part-1"])
        write(run, "part-0")
        assert [stat.S_IMODE((run.path / name).stat().st_mode) for name in ("manifest.json", "part-0")] == [
            0o644,
            0o644,
        ]
        for path in run.path.iterdir():
            path.chmod(kept)
        write(run, "part-1")
        begin(run, {"seed": 2}, parts=["part-0"], restart=True)
        assert not (run.path / "part-0").exists()
        write(run, "part-0")
        assert {stat.S_IMODE(path.stat().st_mode) for path in run.path.iterdir()} == {kept}
    finally:
        os.umask(before)


@pytest.mark.parametrize("text", ['{"settings": {"seed": 1}, "parts": ["part-0"]}', '{"seed": 1}'])
def test_a_manifest_of_someone_else_names_nothing(run, text):
    write(run, "manifest.json", text.encode())
    write(run, "part-0", b"precious")
    with pytest.raises(ValueError, match=r"not written by this version .*nothing is deleted"):
        begin(run, {"seed": 2}, restart=True)
    assert (run.path / "part-0").read_bytes() == b"precious"


@pytest.mark.parametrize("restart", [False, True])
def test_a_folder_of_someone_else_is_left_alone(run, restart):
    write(run, "part-0", b"precious")
    with pytest.raises(ValueError, match=r"contains other files \(part-0\) and no manifest.json"):
        begin(run, SETTINGS, restart=restart)
    assert (run.path / "part-0").read_bytes() == b"precious"


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "run").touch()
    with pytest.raises(NotADirectoryError, match="it is a file; name a folder"):
        begin(RunFolder(tmp_path / "run"), SETTINGS)


def test_what_a_killed_process_left_is_removed(run, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f".part-0.{'1f' * 16}.partial").write_text("half")
    begin(run, SETTINGS)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["manifest.json"]


def test_a_file_appears_whole_or_not_at_all(run, tmp_path):
    begin(run, SETTINGS)
    write(run, "part-0", b"old")
    with pytest.raises(TypeError), run.writing("part-0") as file:
        file.write(3)
    assert (run.path / "part-0").read_bytes() == b"old"
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"manifest.json", "part-0"}


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"settings": 3}', '{"parts": 3}', "[" * 100_000])
@pytest.mark.parametrize("restart", [False, True])
def test_a_damaged_manifest_is_refused(run, text, restart):
    begin(run, SETTINGS)
    write(run, "manifest.json", text.encode())
    with pytest.raises(ValueError, match=r"manifest.json is damaged.*delete .* yourself"):
        begin(run, SETTINGS, restart=restart)


def test_a_manifest_of_settings_alone_is_read(run):
    write(run, "manifest.json", json.dumps({"seed": 1}).encode())
    begin(run, {"seed": 1})
    run.write_manifest({"seed": 1}, batches=3)
    assert run.read_manifest() == {"made_by": "credalens", "settings": {"seed": 1}, "batches": 3, "parts": []}


def test_json_is_read_as_written_and_damage_is_named(run):
    run.write_json("a/b.json", {"x": [1, "ü"]})
    assert run.read_json("a/b.json") == {"x": [1, "ü"]}
    write(run, "a/b.json", b"{")
    with pytest.raises(ValueError, match=r"b.json is damaged .*delete it"):
        run.read_json("a/b.json")
    with pytest.raises(ValueError, match="Out of range float"):
        run.write_json("a/c.json", float("nan"))


def test_a_full_disk_says_what_is_kept(tmp_path):
    run = RunFolder(tmp_path)
    with pytest.raises(OSError, match="was finished before is kept") as caught, run.writing("part-0"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "part-0"))
    with pytest.raises(OSError, match="no such input"), run.writing("part-0"):
        raise OSError(errno.ENOENT, "no such input")


def test_a_second_run_is_kept_out(tmp_path):
    run = RunFolder(tmp_path / "run")
    with run.open_run(SETTINGS), pytest.raises(ValueError, match=r"another run is writing into .*: process \d+ on"):
        begin(run, SETTINGS, restart=True)
    begin(run, SETTINGS)


def test_a_run_that_was_overtaken_is_told_where_nothing_locks(run):
    begin(run, SETTINGS)
    run.check_unchanged(SETTINGS)
    begin(run, {"seed": 2}, restart=True)
    if isinstance(run.path, Path):  # is locked
        run.check_unchanged(SETTINGS)
        return
    with pytest.raises(ValueError, match="another run has taken over run; nothing more is written"):
        run.check_unchanged(SETTINGS)


@pytest.mark.parametrize("premade", [False, True])
def test_a_folder_made_for_a_run_is_removed_when_it_is_empty(tmp_path, premade):
    run = RunFolder(tmp_path / "run")
    if premade:
        run.path.mkdir()
    with run.open_run(SETTINGS):
        (run.path / "manifest.json").unlink()
    assert run.path.exists() == premade
    with run.open_run(SETTINGS):
        (run.path / "manifest.json").rename(run.path / "thesis.tex")
    assert [path.name for path in run.path.iterdir()] == ["thesis.tex"]


def test_settings_are_compared_as_json():
    check_settings({"sizes": [2, 3]}, {"sizes": (2, 3)}, "here")
    assert settings_differences({"a": 1}, {"a": 1}) == []
