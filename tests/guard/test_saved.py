"""Saved fields: back to the bit, whole or not at all, and refused where something is wrong."""

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens.guard.saved import SavedFormat, number, numbers

RULE = SavedFormat("rule")
FIELDS = {"limit": 0.1 + 0.2, "names": ["ä", "b"], "inner": {"n": 3, "none": None}, "empty": {}}


def same(fields):
    return fields


def test_fields_come_back(tmp_path):
    RULE.write(tmp_path / "rule.json", FIELDS)
    assert RULE.read(tmp_path / "rule.json", same) == FIELDS


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.floats(allow_nan=False), max_size=20))
def test_numbers_come_back_to_the_bit(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("saved") / "rule.json"
    RULE.write(path, {"values": np.array(values), "first": np.float64(values[0] if values else 0)})
    array, first = RULE.read(path, lambda fields: (numbers(fields["values"]), number(fields["first"])))
    assert array.tobytes() == np.array(values, np.float64).tobytes()
    assert first == (values[0] if values else 0)
    json.loads(path.read_text(), parse_constant=pytest.fail)


def test_nan_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(ValueError, match="found NaN where a number is expected"):
        RULE.write(tmp_path / "rule.json", {"values": np.array([0.0, np.nan])})
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    RULE.write(tmp_path / "rule.json", {"n": 1})

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        RULE.write(tmp_path / "rule.json", {"n": 2})
    assert RULE.read(tmp_path / "rule.json", same) == {"n": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["rule.json"]


def changed(old, new):
    return lambda text: text.replace(old, new)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "Expecting value"),
        (lambda text: text[:-20], "Expecting|Unterminated"),
        (lambda text: "[1, 2]", "it is not a JSON object"),
        (lambda text: "{}", "'format' is missing"),
        (lambda text: "[" * 100_000, "recursion|Expecting"),
        (lambda text: '{"format": NaN}', "found NaN where a number is expected"),
        (changed("credalens-rule-1", "credalens-rule-2"), "credalens-rule-2, of a newer credalens. Update credalens"),
        (changed("credalens-rule-1", "credalens-rule-0"), "credalens-rule-0, which is no longer read"),
        (changed("credalens-rule-1", "credalens-guard-1"), "format is 'credalens-guard-1'"),
        (changed("0.3", "0.4"), "checksum is wrong: it was damaged, or changed by hand"),
        (changed('"checksum"', '"check"'), "'checksum' is missing"),
    ],
)
def test_other_files_are_refused(tmp_path, change, message):
    path = tmp_path / "rule.json"
    RULE.write(path, {"limit": 0.3})
    path.write_text(change(path.read_text()))
    with pytest.raises(ValueError, match=rf"(?s)rule.json is not a saved rule \(credalens-rule-1\): .*({message})"):
        RULE.read(path, same)


@pytest.mark.parametrize(
    ("restore", "message"),
    [
        (lambda fields: fields["other"], "'other' is missing"),
        (lambda fields: number(fields["text"]), "found 'high' where a number is expected"),
        (lambda fields: numbers(fields["text"]), "found 'high' where a list of numbers is expected"),
    ],
)
def test_what_cannot_be_restored_names_the_file(tmp_path, restore, message):
    RULE.write(tmp_path / "rule.json", {"text": "high"})
    with pytest.raises(ValueError, match=rf"rule.json is not a saved rule \(credalens-rule-1\): {message}"):
        RULE.read(tmp_path / "rule.json", restore)


def test_other_bytes_and_no_file(tmp_path):
    (tmp_path / "rule.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"rule.json is not a saved rule.*utf-8"):
        RULE.read(tmp_path / "rule.json", same)
    with pytest.raises(FileNotFoundError):
        RULE.read(tmp_path / "none.json", same)
