"""Machine code on disk: found again by later processes, also read-only, and never by those it is not for."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from credalens.kernels.simd import cache

INTERSECT = """
import sys
import numpy as np
from credalens.kernels.members import intersect_rows, intersection_rows
out = np.empty((1, 2))
intersection_rows(np.array([[0.2, 0.4]]), np.array([[0.6, 0.8]]), out)
assert np.allclose(out, [[0.4, 0.6]])
print(sum(intersect_rows.stats.cache_hits.values()), "numba.np.arraymath" in sys.modules)
"""
COMPILED, LOADED = "0 True", "1 False"  # what is loaded needs nothing of what Numba prepares for compiling

NOT_WRITABLE = """
import pathlib
def refuse(*arguments, **options):
    raise OSError(30, "Read-only file system")
pathlib.Path.mkdir = pathlib.Path.write_bytes = refuse
"""


def run(code, **environment):
    """What a process prints whose environment names no cache but the given one."""
    kept = {key: value for key, value in os.environ.items() if key not in ("NUMBA_CACHE_DIR", cache.CACHE_FOLDER)}
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=kept | {key: str(value) for key, value in environment.items()},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.processes
def test_entry_points_are_kept_for_the_next_process_and_helpers_are_not(tmp_path):
    """In the folder that ours or Numba's variable names, and ours goes first."""
    ours, numbas = tmp_path / "ours", tmp_path / "numbas"
    assert run(INTERSECT, NUMBA_CACHE_DIR=numbas) == COMPILED
    assert run(INTERSECT, NUMBA_CACHE_DIR=numbas) == LOADED
    assert run(INTERSECT, NUMBA_CACHE_DIR=numbas, CREDALENS_KERNEL_CACHE=ours) == COMPILED
    (file,) = (path for path in ours.rglob("*") if path.is_file())
    assert file.name.startswith("members.intersect_rows.")


@pytest.mark.processes
def test_a_folder_that_cannot_be_written_is_read(tmp_path):
    """Also by another user on another machine, as the folder holds nothing of either; and other processors find nothing."""
    assert run(NOT_WRITABLE + INTERSECT, CREDALENS_KERNEL_CACHE=tmp_path) == COMPILED
    assert not list(tmp_path.iterdir())
    assert run(INTERSECT, CREDALENS_KERNEL_CACHE=tmp_path) == COMPILED
    elsewhere = {"HOME": tmp_path / "home", "USER": "stranger", "HOSTNAME": "elsewhere"}
    assert run(NOT_WRITABLE + INTERSECT, CREDALENS_KERNEL_CACHE=tmp_path, **elsewhere) == LOADED
    baseline = {"CREDALENS_KERNEL_CACHE": tmp_path, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert run(INTERSECT, **baseline) == COMPILED
    assert run(NOT_WRITABLE + INTERSECT, **baseline) == LOADED
    assert run(INTERSECT, CREDALENS_KERNEL_CACHE=tmp_path) == LOADED


class Codegen:
    """What says for which processor machine code is."""

    def __init__(self, *processor):
        self.magic_tuple = lambda: processor


def compiled(content, processor="x"):
    return SimpleNamespace(codegen=Codegen(processor), _reduce=lambda: (content,))


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Two folders, neither of which is there, and what was loaded in place of a compiled kernel."""
    folders = [tmp_path / "first", tmp_path / "second"]
    monkeypatch.setattr(cache, "folders", lambda: folders)
    monkeypatch.setattr(cache.CompileResult, "_rebuild", lambda context, content: content)
    return folders


def load(kernel, signature, processor="x"):
    codegen = Codegen(processor)
    return kernel.load_overload(signature, SimpleNamespace(codegen=lambda: codegen))


def test_code_is_found_for_its_types_and_its_processor_only(places):
    kernel = cache.KernelCache(test_code_is_found_for_its_types_and_its_processor_only)
    kernel.save_overload("float64", compiled("code"))
    assert load(kernel, "float64") == "code"
    assert load(kernel, "float32") is None
    assert load(kernel, "float64", processor="y") is None
    assert load(cache.KernelCache(compiled), "float64") is None
    kernel.save_overload("float64", compiled("newer"))
    assert load(kernel, "float64") == "newer"
    assert [path.suffix for path in places[0].iterdir()] == [".nbc"]


def test_the_first_place_that_takes_it_is_written_and_every_place_is_read(places):
    first, second = places
    first.write_text("no folder")
    kernel = cache.KernelCache(compiled)
    kernel.save_overload("float64", compiled("code"))
    assert len(list(second.iterdir())) == 1
    assert load(kernel, "float64") == "code"
    second.rename(second.with_name("away"))
    second.write_text("no folder")
    kernel.save_overload("float64", compiled("code"))
    assert load(kernel, "float64") is None


def test_what_cannot_be_finished_leaves_nothing_behind(places, monkeypatch):
    monkeypatch.setattr(cache.Path, "replace", lambda self, target: (_ for _ in ()).throw(OSError("no space left")))
    cache.KernelCache(compiled).save_overload("float64", compiled("code"))
    assert [list(folder.iterdir()) for folder in places] == [[], []]


@pytest.mark.parametrize("keep", [0, 5, -1])
def test_a_damaged_file_is_compiled_again(places, keep):
    kernel = cache.KernelCache(compiled)
    kernel.save_overload("float64", compiled("a long text of machine code"))
    (file,) = places[0].iterdir()
    file.write_bytes(file.read_bytes()[:keep])
    assert load(kernel, "float64") is None


def test_the_fingerprint_follows_names_and_contents_of_all_kernel_files(tmp_path, monkeypatch):
    """A kernel becomes part of others, so a change of one makes all of them outdated."""
    monkeypatch.setattr(cache, "ROOT", tmp_path)
    (tmp_path / "lower").mkdir()
    file = tmp_path / "lower" / "root.py"
    seen = [cache._fingerprint()]
    for content in ("x = 1", "x = 2"):
        file.write_text(content)
        seen.append(cache._fingerprint())
    file.rename(tmp_path / "root.py")
    seen.append(cache._fingerprint())
    assert len(set(seen)) == 4
    (tmp_path / "other.txt").write_text("no kernel")
    assert cache._fingerprint() == seen[-1]


def test_without_a_name_kernels_lie_beside_their_source_or_in_the_users_cache(monkeypatch):
    monkeypatch.delenv(cache.CACHE_FOLDER, raising=False)
    monkeypatch.setattr(cache.numba.config, "CACHE_DIR", "")
    beside, users = cache.folders()
    assert beside.parent == cache.ROOT / "__pycache__"
    assert beside.name == users.name
    assert cache.FINGERPRINT[:16] in beside.name
