"""The folder of a report: whole or not there, and in the place of nothing but an older report."""

from __future__ import annotations

import errno
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from credalens.evaluation import compare_models, evaluate
from credalens.guard import Guard
from credalens.guard.signature import CalibrationData, Signature
from credalens.report import files
from credalens.report.files import write_report
from credalens.report.page import render_html
from tests.strategies import batch_of


@pytest.fixture(scope="module")
def found():
    others = {"flat": batch_of("flat", 4, 40, 3, seed=2), "mixed": batch_of("mixed", 4, 40, 3, seed=3)}
    return evaluate(batch_of("peaked", 4, 60, 3, seed=1), others, labels=np.arange(60) % 3, replicates=60)


def test_the_folder_holds_the_report(found, undrawn, tmp_path):
    folder = found.report(tmp_path / "report", made=["today"])
    assert sorted(path.name for path in folder.iterdir()) == ["guard.json", "report.html", "report.json"]
    assert (folder / "report.json").read_text(encoding="utf-8") == found.to_json() + "\n"
    assert Guard.load(folder / "guard.json").digest == found.guard.digest
    assert (folder / "report.html").read_text(encoding="utf-8") == render_html(found, made=["today"])
    again = found.report(tmp_path / "report") / "report.html"
    assert re.search(r"<footer>.*<p>\d{4}-\d\d-\d\d \d\d:\d\d UTC</p></footer>", again.read_text(encoding="utf-8"))
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_an_older_report_is_replaced_and_other_files_stay(found, undrawn, tmp_path):
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    write_report(replace(found, version="0.0.1"), folder)
    write_report(found, folder)
    assert "0.0.1" not in (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "notes.txt").read_text() == "mine"
    assert json.loads((folder / "report.json").read_text(encoding="utf-8"))["format"] == "credalens-report-3"
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_figures_are_files_of_their_own(found, undrawn, tmp_path):
    folder = write_report(found, tmp_path / "report", figures=True) / "figures"
    names = sorted(path.name for path in folder.iterdir())
    assert {path.rsplit(".", 1)[1] for path in names} == {"png", "svg"}
    assert len(names) % 2 == 0
    for name in ("roc-flat", "pr-flat", "histogram-flat", "reliability", "rejection", "members-accuracy-on-id-data"):
        assert {f"{name}.png", f"{name}.svg"} <= set(names)
    assert any(name.startswith("bars-") for name in names)
    assert any(name.startswith("simplex-") for name in names)
    assert (folder / "roc-flat.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "error", [ValueError("no"), OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
def test_an_error_leaves_no_folder_and_no_change(found, undrawn, tmp_path, monkeypatch, error):
    folder = tmp_path / "report"
    write_report(found, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(*args, **options):
        raise error

    monkeypatch.setattr(files, "render_html", fail)
    for target in (folder, tmp_path / "new"):
        with pytest.raises(type(error)):
            write_report(found, target)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_a_full_disk_is_said_on_one_line(found, undrawn, tmp_path, monkeypatch):
    def full(self, *args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match=r"cannot write .*report: No space left on device"):
        write_report(found, tmp_path / "report")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(found):
    with pytest.raises(OSError, match=r"cannot write /proc/.*/x: "):
        write_report(found, Path(f"/proc/{os.getpid()}/task/x"))


CALIBRATION = CalibrationData(Signature(classes=4, n_members=5, trim=0.0), "total", "intersection", np.arange(100.0))


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_belongs_to_an_older_report_is_replaced_or_removed_with_it(found, undrawn, tmp_path):
    folder = write_report(found, tmp_path / "report", figures=True)
    (folder / "figures" / "mine.png").write_bytes(b"mine")
    (folder / "notes.txt").write_text("mine")
    few = replace(found, guard=None)
    write_report(few, folder)
    assert set(files_of(folder)) == {"figures/mine.png", "notes.txt", "report.html", "report.json"}
    write_report(found, folder)
    assert Guard.load(folder / "guard.json").digest == found.guard.digest
    (folder / "figures" / "mine.png").unlink()
    write_report(found, folder, figures=True)
    write_report(found, folder)
    assert set(files_of(folder)) == {"guard.json", "notes.txt", "report.html", "report.json"}
    assert not (folder / "figures").exists() or not any((folder / "figures").iterdir())


@pytest.mark.parametrize("place", ["guard.json", "figures/reliability.png", "report.html", "report.json"])
def test_what_belongs_to_no_report_is_refused_and_nothing_changes(found, undrawn, tmp_path, place):
    folder = tmp_path / "report"
    (folder / "figures").mkdir(parents=True)
    other = Guard.from_calibration(CALIBRATION)
    other.save(folder / "guard.json") if place == "guard.json" else (folder / place).write_bytes(b"mine")
    before = files_of(folder)
    with pytest.raises(ValueError, match=rf"{place} is there and belongs to no report"):
        write_report(found, folder, figures=True)
    assert files_of(folder) == before


def test_a_guard_that_took_the_place_of_the_reports_own_stays(found, undrawn, tmp_path):
    folder = write_report(found, tmp_path / "report")
    Guard.from_calibration(CALIBRATION).save(folder / "guard.json")
    before = files_of(folder)
    with pytest.raises(ValueError, match=r"guard\.json is there and belongs to no report"):
        write_report(replace(found, guard=None), folder)
    assert files_of(folder) == before


def test_a_guard_beside_a_report_that_has_none_stays(found, undrawn, tmp_path):
    folder = write_report(replace(found, guard=None), tmp_path / "report")
    found.guard.save(folder / "guard.json")
    before = files_of(folder)
    with pytest.raises(ValueError, match=r"guard\.json is there and belongs to no report"):
        write_report(found, folder)
    assert files_of(folder) == before


@pytest.mark.parametrize("name", ["report.html", "report.json"])
def test_a_comparison_takes_the_place_of_nothing_in_the_folders_of_its_models(found, undrawn, tmp_path, name):
    comparison = compare_models({"small": found, "large": replace(found)})
    place = tmp_path / "out" / "small" / name
    place.parent.mkdir(parents=True)
    place.write_text("mine")
    with pytest.raises(ValueError, match=rf"{name} is there and belongs to no report"):
        comparison.report(tmp_path / "out")
    assert files_of(tmp_path / "out") == {f"small/{name}": b"mine"}
    place.unlink()
    comparison.report(tmp_path / "out")
    comparison.report(tmp_path / "out")
    write_report(found, tmp_path / "out")
    assert set(files_of(tmp_path / "out")) == {"guard.json", "report.html", "report.json"}


def test_a_report_of_an_earlier_version_is_replaced_with_its_guard(found, undrawn, tmp_path):
    folder = write_report(found, tmp_path / "report")
    page = (folder / "report.html").read_text(encoding="utf-8")
    (folder / "report.html").write_text(re.sub(r'\n<meta name="credalens-guard"[^>]*>', "", page), encoding="utf-8")
    write_report(replace(found, guard=None), folder)
    assert "guard.json" not in files_of(folder)


def test_a_guard_beside_an_earlier_report_is_its_own_or_stays(found, undrawn, tmp_path):
    folder = write_report(found, tmp_path / "report")
    page = (folder / "report.html").read_text(encoding="utf-8")
    (folder / "report.html").write_text(re.sub(r'\n<meta name="credalens-guard"[^>]*>', "", page), encoding="utf-8")
    Guard.from_calibration(CALIBRATION).save(folder / "guard.json")
    with pytest.raises(ValueError, match=r"guard\.json is there and belongs to no report"):
        write_report(found, folder)
