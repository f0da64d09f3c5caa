"""One folder for every long run: whose it is, what is finished in it, and that nothing in it is half written."""

from __future__ import annotations

import errno
import fcntl
import json

import pytest
from pyarrow import fs

from credalens.storage.arrow_path import arrow_path
from credalens.storage.run_folder import RunFolder, check_settings, settings_differences

SETTINGS = {"seed": 1, "sizes": (2, 3), "schedule": {"epochs": 4}}


@pytest.fixture(params=["path", "arrow", "object store"])
def run(request, tmp_path):
    """A folder below ``tmp_path``; an object store is any file system that is not the local one."""
    if request.param == "path":
        return RunFolder(tmp_path / "run", pattern="part-*")
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()) if request.param == "object store" else None
    return RunFolder(arrow_path("run" if store else tmp_path / "run", store), pattern="part-*")


def write(run, name, content=b"done"):
    with run.writing(name) as file:
        file.write(content)


def test_the_same_settings_go_on(run):
    run.begin(SETTINGS)
    write(run, "part-1")
    write(run, "deep/part-0")
    write(run, "notes")
    run.begin(SETTINGS)
    assert run.parts() == ["part-1"]
    assert (run.path / "part-1").read_bytes() == b"done"


def test_other_settings_are_named(run):
    run.begin(SETTINGS)
    with pytest.raises(
        ValueError, match=r"other settings: schedule.epochs was 4 and is now 5; seed was 1 and is now 2\. "
    ):
        run.begin({**SETTINGS, "seed": 2, "schedule": {"epochs": 5}})
    with pytest.raises(ValueError, match=r"other settings: the seed has changed\. .*--restart"):
        run.begin({**SETTINGS, "seed": 2}, phrases={"seed": "the seed has changed"})
    with pytest.raises(ValueError, match="new was None and is now 7"):
        run.begin({**SETTINGS, "new": 7})
    run.begin({**SETTINGS, "new": 7}, defaults={"new": 7})


def test_restart_drops_the_parts_and_nothing_else(run):
    run.begin(SETTINGS)
    write(run, "part-0")
    write(run, "notes")
    run.begin({"seed": 2}, restart=True)
    assert run.parts() == []
    assert (run.path / "notes").is_file()
    assert run.read_manifest()["settings"] == {"seed": 2}


@pytest.mark.parametrize("restart", [False, True])
def test_a_folder_of_someone_else_is_left_alone(run, restart):
    write(run, "part-0", b"precious")
    with pytest.raises(ValueError, match=r"files of another origin \(part-0\) and no manifest.json"):
        run.begin(SETTINGS, restart=restart)
    assert (run.path / "part-0").read_bytes() == b"precious"


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "run").touch()
    with pytest.raises(NotADirectoryError, match="it is a file; name a folder"):
        RunFolder(tmp_path / "run").begin(SETTINGS)


def test_what_a_killed_process_left_is_removed(run, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".part-0.1f.partial").write_text("half")
    run.begin(SETTINGS)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["manifest.json"]


def test_a_file_appears_whole_or_not_at_all(run, tmp_path):
    run.begin(SETTINGS)
    write(run, "part-0", b"old")
    with pytest.raises(TypeError), run.writing("part-0") as file:
        file.write(3)
    assert (run.path / "part-0").read_bytes() == b"old"
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"manifest.json", "part-0"}


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"settings": 3}', "[" * 100_000])
def test_a_damaged_manifest_is_refused_until_restarted(run, text):
    run.begin(SETTINGS)
    write(run, "manifest.json", text.encode())
    with pytest.raises(ValueError, match=r"manifest.json is damaged.*--restart"):
        run.begin(SETTINGS)
    run.begin(SETTINGS, restart=True)


def test_a_manifest_of_settings_alone_is_read(run):
    write(run, "manifest.json", json.dumps({"seed": 1}).encode())
    run.begin({"seed": 1})
    run.write_manifest({"seed": 1}, parts=3)
    assert run.read_manifest() == {"settings": {"seed": 1}, "parts": 3}


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
    with run.locked():
        run.begin(SETTINGS)
    with (tmp_path / "run" / "lock").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="another run is writing into"), run.locked():
            pass


def test_removal_leaves_what_others_put_there(tmp_path):
    run = RunFolder(tmp_path / "run", pattern="part-*")
    for names in ([], ["thesis.tex"]):
        with run.locked():
            run.begin(SETTINGS)
            write(run, "part-0")
            for name in names:
                write(run, name)
            run.remove()
        assert run.path.exists() == bool(names)
    assert [path.name for path in run.path.iterdir()] == ["thesis.tex"]


def test_settings_are_compared_as_json():
    check_settings({"sizes": [2, 3]}, {"sizes": (2, 3)}, "here")
    assert settings_differences({"a": 1}, {"a": 1}) == []
