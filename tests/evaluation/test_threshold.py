"""Thresholds against their promise, at ties and limits, and through a file."""

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens.evaluation import Threshold, select_threshold

lawful = settings(derandomize=True, deadline=None, max_examples=60)
score = st.one_of(st.integers(0, 5).map(float), st.floats(-1e9, 1e9))
rates = st.sampled_from([0.01, 0.05, 0.1, 0.29, 0.5, 0.99])


@lawful
@given(st.lists(score, min_size=1, max_size=60), rates)
def test_threshold_keeps_its_rate_and_is_the_lowest_that_does(id_scores, rate):
    threshold, values = select_threshold(id_scores, false_alarm_rate=rate), np.array(id_scores)
    assert threshold.achieved_rate == threshold.flags(id_scores).mean() <= rate
    assert all((values > t).mean() > rate for t in values[values < threshold.value])


@lawful
@given(st.lists(score, min_size=20, max_size=40), st.sampled_from([0.06, 0.1, 0.25, 0.5, 0.9]))
def test_threshold_for_new_data_holds_when_each_sample_is_the_new_one(samples, rate):
    flagged = [
        select_threshold(np.delete(samples, i), false_alarm_rate=rate, guarantee="new").flags(samples[i])
        for i in range(len(samples))
    ]
    assert np.mean(flagged) <= rate


def test_new_data_needs_enough_samples():
    enough = select_threshold(np.arange(19), false_alarm_rate=0.05, guarantee="new")
    assert (enough.value, enough.achieved_rate) == (18.0, 0.0)
    with pytest.raises(ValueError, match=r"18 samples cannot promise.*at least 19 "):
        select_threshold(np.arange(18), false_alarm_rate=0.05, guarantee="new")


@pytest.mark.parametrize(("n", "rate", "alarms"), [(100, 0.29, 29), (100, 0.05, 5), (20, 0.05, 1), (19, 0.05, 0)])
def test_rate_that_divides_evenly_is_used_up(n, rate, alarms):
    assert select_threshold(np.arange(n), false_alarm_rate=rate).achieved_rate == alarms / n


def test_ties_are_never_split():
    threshold = select_threshold([1.0] * 90 + [2.0] * 10, false_alarm_rate=0.05)
    assert (threshold.value, threshold.achieved_rate) == (2.0, 0.0)
    assert select_threshold(np.zeros(50)).flags([0.0, 1e-300]).tolist() == [False, True]


def test_flags_keep_the_shape_and_refuse_nan():
    threshold = select_threshold([0.1, 0.2, 0.3], false_alarm_rate=0.4)
    assert threshold.flags([[0.1, 0.25], [0.3, np.inf]]).tolist() == [[False, True], [True, True]]
    with pytest.raises(ValueError, match=r"1 of 2 scores are NaN, the first at index \(1,\)"):
        threshold.flags([0.1, np.nan])


@pytest.mark.parametrize("value", [0.1 + 0.2, -1e-310, np.inf, -np.inf])
def test_file_returns_the_same_threshold(tmp_path, value):
    threshold = select_threshold(np.full(3, value), false_alarm_rate=1 / 3, name="epistemic")
    threshold.save(tmp_path / "alarm.json")
    assert Threshold.load(tmp_path / "alarm.json") == threshold
    assert threshold.value == value
    assert threshold.name == "epistemic"

    def refuse(constant):
        raise AssertionError(constant)

    json.loads((tmp_path / "alarm.json").read_text(), parse_constant=refuse)


def test_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "alarm.json"
    old, new = select_threshold([1.0]), select_threshold([2.0])
    old.save(path)

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        new.save(path)
    assert Threshold.load(path) == old
    assert [p.name for p in tmp_path.iterdir()] == ["alarm.json"]


def test_save_replaces(tmp_path):
    path = str(tmp_path / "alarm.json")
    select_threshold([1.0]).save(path)
    select_threshold([2.0]).save(path)
    assert Threshold.load(path).value == 2.0


def stored(**changes):
    fields = {"format": "credalens-threshold-1", **select_threshold([1.0]).as_dict(), **changes}
    return json.dumps({key: value for key, value in fields.items() if value is not None})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("[1, 2]", "list indices"),
        ("{}", "'format' is missing"),
        (stored(format="other"), "format is 'other'"),
        (stored(value=None), "'value' is missing"),
        (stored(value="nan"), "NaN"),
        (stored(value="high"), "could not convert"),
        (stored(false_alarm_rate=1.5), "strictly between"),
        (stored(n_id=0), "n_id must be at least 1"),
        (b"\xff\xfe", "utf-8"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "alarm.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=rf"alarm.json is not a saved threshold.*{message}"):
        Threshold.load(path)


def test_missing_file():
    with pytest.raises(FileNotFoundError):
        Threshold.load("no/such/alarm.json")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"false_alarm_rate": 0.0}, ValueError, "false_alarm_rate must lie strictly between 0 and 1"),
        ({"false_alarm_rate": 5}, ValueError, "false_alarm_rate must lie strictly between 0 and 1; got 5"),
        ({"false_alarm_rate": None}, TypeError, "false_alarm_rate must be a number"),
        ({"guarantee": "always"}, ValueError, "guarantee must be one of 'sample', 'new'"),
    ],
)
def test_bad_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        select_threshold([1.0, 2.0], **options)


def test_bad_scores_are_refused():
    with pytest.raises(ValueError, match="id_scores holds 0 samples"):
        select_threshold([])
    with pytest.raises(ValueError, match="NaN"):
        select_threshold([1.0, np.nan])
