"""Records are what the result files hold, no more and no less."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from credalens_paper.experiments.index import LABELS
from credalens_paper.json_records import from_json, inline, named, optional, to_json
from credalens_paper.results.records import TableResult, declared_label, read_repeated, read_result, read_results

RESULTS = Path(__file__).parents[3] / "results"
FAST, SCRATCH = RESULTS / "fast", RESULTS / "scratch"
FILES = [path for path in sorted(FAST.rglob("*.json")) if path.read_text("utf-8").startswith('{\n "label":')]


@pytest.mark.parametrize("path", [*FILES, *sorted(SCRATCH.glob("*.json"))], ids=lambda path: path.stem)
def test_every_measured_result_is_written_as_it_was_read_to_the_byte(path):
    text = json.dumps(to_json(read_result(path)), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    assert text == path.read_text(encoding="utf-8")


def test_other_files_of_the_folder_are_no_results():
    assert read_result(FAST / "bnn_gpu_ms.json") is None
    assert len(FILES) == len(read_results(FAST)) + 1  # a table was measured twice
    assert isinstance(read_results(FAST)[0], TableResult)


def test_a_label_of_several_folders_is_that_of_the_first_that_has_it():
    alone, second = ({result.label: result for result in read_results(folder)} for folder in (FAST, SCRATCH))
    together = {result.label: result for result in read_results(FAST, SCRATCH)}
    assert together == {**second, **alone}
    assert alone.keys() & second.keys()
    assert list(together) == [label for label in LABELS if label in together]


def test_the_others_are_named_after_their_preset():
    first, second = ({result.label for result in read_results(folder)} for folder in (FAST, SCRATCH))
    repeated = {result.label: result for result in read_repeated(FAST, SCRATCH)}
    assert repeated.keys() == {f"{label} (scratch)" for label in first & second}
    assert {declared_label(label) for label in repeated} == first & second
    assert repeated["AblationNTU (scratch)"].cells == read_result(SCRATCH / "AblationNTU.json").cells
    assert [result.label for result in read_repeated(FAST, SCRATCH, labels=["AblationNTU"])] == [
        "AblationNTU (scratch)"
    ]
    assert read_repeated(FAST) == []


def test_a_folder_without_results_is_an_error(tmp_path):
    (tmp_path / "other.json").write_text("[1]")
    with pytest.raises(FileNotFoundError, match="no result files"):
        read_results(tmp_path)


@dataclass(frozen=True)
class Point:
    x: float
    y: float | None


@dataclass(frozen=True, kw_only=True)
class Owner:
    points: tuple[Point, ...]
    where: Point | None = inline()
    note: str | None = optional()
    share: float = named("the share")


@pytest.mark.parametrize(
    ("record", "content"),
    [
        (Owner(points=(), share=0.5), {"points": [], "the share": 0.5}),
        (
            Owner(points=(Point(1.0, None),), where=Point(2.0, 3.0), note="n", share=0.5),
            {"points": [{"x": 1.0, "y": None}], "x": 2.0, "y": 3.0, "note": "n", "the share": 0.5},
        ),
    ],
)
def test_records_and_their_json_by_hand(record, content):
    assert to_json(record) == content
    assert from_json(Owner, {**content, "of a later version": 1}) == record
