"""Saved fields: back to the bit, whole or not at all, and refused where something is wrong."""

import json
import os
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import wrap
from credalens.guard import ConformalSets, CoveringIntervals, DriftAlarm, Guard
from credalens.storage.saved import SavedFormat, checksum, number, numbers

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
    with pytest.raises(ValueError, match=rf"(?s)rule.json .*credalens-rule-1.*({message})"):
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
    with pytest.raises(ValueError, match=rf"rule.json .*credalens-rule-1.*{message}"):
        RULE.read(tmp_path / "rule.json", restore)


@pytest.mark.parametrize("error", [RuntimeError, NotImplementedError, RecursionError, OverflowError, MemoryError])
def test_whatever_restoring_raises_names_the_file(tmp_path, error):
    def restore(fields):
        raise error("from a library below")

    RULE.write(tmp_path / "ru\x1ble.json", {"text": "high"})
    with pytest.raises(ValueError, match=r"ru\\u001ble.json is not a saved rule \(credalens-rule-1\): ") as caught:
        RULE.read(tmp_path / "ru\x1ble.json", restore)
    assert isinstance(caught.value.__cause__, error)


ROWS = np.random.default_rng(0).dirichlet([20, 2, 1], (5, 200))
SAVED = {
    "guard": lambda: Guard.fit(wrap(ROWS)),
    "sets": lambda: ConformalSets.fit(wrap(ROWS), ROWS.mean(0).argmax(-1), alpha=0.2),
    "intervals": lambda: CoveringIntervals.fit(wrap(ROWS), np.round(20 * ROWS.mean(0)), alpha=0.2),
    "drift": lambda: DriftAlarm(wrap(ROWS).total),
}
HOSTILE = (10**400, -(10**400), "inf", [[[]]], {}, None, "\ud800", 2**64, -1, True)


@pytest.mark.parametrize("kind", SAVED)
def test_a_hostile_value_with_a_right_checksum_is_a_value_error(tmp_path, kind):
    path, saved = tmp_path / "file.json", SAVED[kind]()
    saved.save(path)
    good = json.loads(path.read_text(encoding="utf-8"))
    for name in good.keys() - {"format", "checksum"}:
        for value in HOSTILE:
            fields = {**good, name: value}
            del fields["checksum"]
            path.write_text(json.dumps({**fields, "checksum": checksum(fields)}), encoding="utf-8")
            with suppress(ValueError):  # or a file that says nothing wrong
                type(saved).load(path)


def test_other_bytes_and_no_file(tmp_path):
    (tmp_path / "rule.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"rule.json is not a saved rule.*utf-8"):
        RULE.read(tmp_path / "rule.json", same)
    with pytest.raises(FileNotFoundError):
        RULE.read(tmp_path / "none.json", same)
