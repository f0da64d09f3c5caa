"""Guard: what it keeps, what it decides, what it refuses, and its file."""

import dataclasses
import json
import re
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import MemberSummary, wrap
from credalens.core.scores import SCORES
from credalens.guard import Guard
from credalens.guard.decisions import REASONS
from credalens.storage.saved import SavedFormat
from tests.guard.earlier_files import earlier_fields
from tests.strategies import batch_of

pytestmark = pytest.mark.filterwarnings("ignore:.*the highest .* there can be")  # ties belong to what is tested here
MEMBERS = np.concatenate([batch_of("peaked", 5, 300, 4, seed=1), batch_of("flat", 5, 60, 4, seed=2)], axis=1)
PREDICTION = wrap(MEMBERS)
LABELS = PREDICTION.predict()
with warnings.catch_warnings(action="ignore"):
    GUARD = Guard.fit(PREDICTION, LABELS, score="total", max_error=0.05)
NEW = wrap(batch_of("mixed", 5, 80, 4, seed=3))


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("point", ["intersection", "mean"])
def test_decisions_follow_score_and_p_value(score, point):
    guard = Guard.fit(PREDICTION, score=score, point=point, false_alarm_rate=0.1)
    decided = guard.decide(NEW)
    values = np.asarray(NEW.score(score), float)
    p = np.array([(1 + (PREDICTION.score(score) >= s - 2**-17 * (1 + s) - 1e-12).sum()) / 361 for s in values])
    np.testing.assert_array_equal(decided.p_value, p)
    np.testing.assert_array_equal(decided.accepted, p > 0.1)
    np.testing.assert_array_equal(decided.decision == "accept", p > 0.1)
    np.testing.assert_array_equal(decided.reason == "unlike the calibration data", p <= 0.1)
    np.testing.assert_array_equal(decided.prediction, NEW.predict() if point == "intersection" else NEW.mean.argmax(-1))


def test_it_keeps_what_it_needs():
    assert (GUARD.score, GUARD.base, GUARD.classes, GUARD.n_members, GUARD.trim, GUARD.point, GUARD.n) == (
        "total", 2.0, 4, 5, 0.0, "intersection", 360,
    )  # fmt: skip
    assert GUARD.promises[0].max_error == 0.05
    with pytest.raises(dataclasses.FrozenInstanceError):
        GUARD.limit = 0.0
    assert repr(GUARD) == "Guard(score='total', n=360, false_alarm_rate=0.05, error rate <= 0.05)"
    assert repr(GUARD.decide(NEW)).startswith("Decisions(accept=")


def test_what_is_too_risky_is_told_from_what_is_unlike():
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(360) < (PREDICTION.total / 2) ** 6, (LABELS + 1) % 4, LABELS)
    guard = Guard.fit(PREDICTION, labels, max_error=0.25, confidence=0.9)
    scores = np.array([guard.limit / 2, guard.limit, (guard.limit + guard.threshold) / 2, guard.threshold + 1])
    assert guard.limit < guard.threshold
    assert [REASONS[k] for k in guard.reasons(scores)] == [
        "like the calibration data",
        "too uncertain for the promised error rate",
        "too uncertain for the promised error rate",
        "unlike the calibration data",
    ]
    assert guard.accepts(scores).tolist() == [True, False, False, False]


@given(st.integers(0, 2**32 - 1))
def test_a_batch_is_decided_row_by_row(seed):
    order = np.random.default_rng(seed).permutation(len(NEW))
    whole, mixed = GUARD.decide(NEW), GUARD.decide(NEW[order])
    for name in ("accepted", "p_value", "decision", "reason", "prediction"):
        np.testing.assert_array_equal(getattr(whole, name)[order], getattr(mixed, name))
    assert GUARD.decide(NEW[3]).accepted == whole.accepted[3]


def test_many_scores_have_the_p_values_of_few():
    scores = np.random.default_rng(0).gamma(1.0, size=(200, 100))
    np.testing.assert_array_equal(GUARD.p_values(scores), [GUARD.p_values(row) for row in scores])


@given(st.sampled_from([0.01, 0.05, 0.1, 0.3]), st.sampled_from([0.02, 0.05, 0.2, 0.5]))
def test_a_higher_false_alarm_rate_accepts_no_more(a, b):
    few, many = (Guard.fit(PREDICTION, false_alarm_rate=rate).decide(NEW).accepted for rate in sorted((a, b)))
    assert (few >= many).all()


def test_tensors_come_back_as_tensors():
    torch = pytest.importorskip("torch")
    decided = GUARD.decide(wrap(torch.tensor(batch_of("mixed", 5, 80, 4, seed=3))))
    assert decided.accepted.dtype == torch.bool
    assert decided.p_value.dtype == torch.float64
    np.testing.assert_array_equal(decided.accepted.numpy(), GUARD.decide(NEW).accepted)
    np.testing.assert_array_equal(decided.prediction.numpy(), NEW.predict())


def test_a_summary_serves_as_well_as_members():
    summary = MemberSummary().update(MEMBERS[:2]).merge(MemberSummary().update(MEMBERS[2:])).prediction()
    guard = Guard.fit(summary, LABELS, score="total", max_error=0.05)
    assert (guard.threshold, guard.limit) == pytest.approx((GUARD.threshold, GUARD.limit))


@pytest.mark.parametrize(
    ("prediction", "message"),
    [
        (wrap(batch_of("flat", 5, 3, 6)), "fitted with 4 classes and the prediction has 6"),
        (
            wrap(batch_of("flat", 5, 3, 4), base=np.e),
            r"'total' in base 2 and the prediction is in base 2.71828; use wrap",
        ),
        (wrap(batch_of("flat", 5, 3, 4), trim=0.2), r"trim=0 and the prediction has trim=0.2; use wrap\(..., trim=0\)"),
        (wrap(np.zeros((5, 0, 4))), r"the batch is empty: its shape is \(0,\)"),
    ],
)
def test_predictions_of_another_kind_are_refused(prediction, message):
    with pytest.raises(ValueError, match=message):
        GUARD.decide(prediction)


def test_scores_without_a_unit_of_information_may_have_any_base():
    guard = Guard.fit(PREDICTION, score="imprecision")
    np.testing.assert_array_equal(guard.decide(wrap(MEMBERS, base=np.e)).accepted, guard.decide(wrap(MEMBERS)).accepted)


def test_other_numbers_of_members_and_arrays_are_refused():
    with pytest.raises(ValueError, match="fitted with 5 members and the prediction has 3"):
        GUARD.decide(wrap(MEMBERS[:3]))
    with pytest.raises(TypeError, match=r"expected a CredalPrediction; got ndarray. Use wrap\(probs\)"):
        GUARD.decide(PREDICTION.total)


def test_nan_is_refused():
    broken = dataclasses.replace(PREDICTION, total=np.where(np.arange(360) == 7, np.nan, PREDICTION.total))
    for judge in (partial(Guard.fit, score="total"), GUARD.decide):
        with pytest.raises(ValueError, match=r"1 of 360 scores are NaN, the first at index \(7,\)"):
            judge(broken)


@pytest.mark.parametrize(
    ("prediction", "labels", "options", "message"),
    [
        (PREDICTION[:10], None, {}, "10 samples cannot promise a false-alarm rate of 0.05 .* at least 19 are needed"),
        (wrap(np.zeros((5, 0, 4))), None, {}, "the calibration data are empty"),
        (PREDICTION, LABELS + 4, {}, r"360 of 360 labels are out of range, .* labels run from 0 to 3"),
        (PREDICTION, LABELS[1:], {}, r"labels must have shape \(360,\)"),
        (PREDICTION, None, {"max_error": 0.05}, "a promise about errors needs labels"),
        (
            PREDICTION,
            LABELS,
            {"max_error": 0.001, "score": "total"},
            "it concerns at most 360 accepted ones, and at least 2,995 are needed",
        ),
        (PREDICTION, None, {"false_alarm_rate": None}, "nothing to promise"),
        (PREDICTION, None, {"false_alarm_rate": 0}, "nothing to promise"),
        (PREDICTION, None, {"false_alarm_rate": 1}, "false_alarm_rate must lie strictly between 0 and 1"),
        (PREDICTION, None, {"confidence": 1.0}, "confidence must lie strictly between 0 and 1"),
        (PREDICTION, None, {"score": "size"}, "score must be one of 'total'"),
        (PREDICTION, None, {"point": "median"}, "point must be one of 'intersection', 'mean'"),
    ],
)
def test_bad_calibration_is_refused(prediction, labels, options, message):
    with pytest.raises(ValueError, match=message):
        Guard.fit(prediction, labels, **options)


@pytest.mark.parametrize("options", [{}, {"false_alarm_rate": None, "max_error": 0.1}, {"score": "mean_pairwise_kl"}])
def test_the_file_returns_the_same_guard(tmp_path, options):
    guard = Guard.fit(PREDICTION, LABELS, note="five networks", **options)
    guard.save(tmp_path / "guard.json")
    again = Guard.load(tmp_path / "guard.json")
    assert again.digest == guard.digest
    assert again.scores.tobytes() == guard.scores.tobytes()
    assert (again.promises, again.threshold, again.limit, again.note, again.version) == (
        guard.promises, guard.threshold, guard.limit, "five networks", guard.version,
    )  # fmt: skip
    np.testing.assert_array_equal(again.decide(NEW).p_value, guard.decide(NEW).p_value)


def test_the_file_is_json_with_a_line_for_each_field(tmp_path):
    GUARD.save(tmp_path / "guard.json")
    text = (tmp_path / "guard.json").read_text()
    stored = json.loads(text)
    assert stored["format"] == Guard.FORMAT.name == "credalens-guard-4"  # a new version says how it reads the last
    assert stored["promises"]["error rate"]["max_error"] == 0.05
    assert len(text.splitlines()) < 45


def test_guards_that_decide_differently_have_different_digests():
    others = [Guard.fit(PREDICTION), Guard.fit(PREDICTION, score="epistemic"), Guard.fit(PREDICTION[:300])]
    assert len({guard.digest for guard in (GUARD, *others)}) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"score": "size"}, "score must be one of"),
        ({"scores": "none"}, "found 'none' where a list of numbers is expected"),
        ({"classes": 1}, "classes must be at least 2"),
        ({"limit": None}, "found None where a number is expected"),
        ({"promises": {"error rate": {"risk": 1}}}, "unexpected keyword argument 'risk'"),
    ],
)
def test_fields_that_make_no_guard_are_refused(tmp_path, changes, message):
    path = tmp_path / "guard.json"
    Guard.FORMAT.write(path, {**GUARD.saved_fields(), **changes})
    with pytest.raises(ValueError, match=rf"guard.json .*{Guard.FORMAT.name}.*{re.escape(message)}"):
        Guard.load(path)


def test_a_newer_file_says_so(tmp_path):
    newer = SavedFormat("guard", Guard.FORMAT.version + 1)
    newer.write(tmp_path / "guard.json", GUARD.saved_fields())
    with pytest.raises(ValueError, match=rf"{newer.name}.* Update credalens"):
        Guard.load(tmp_path / "guard.json")


def test_the_earlier_name_of_the_note_is_taken_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"members= of Guard\.fit is called note= now"):
        guard = Guard.fit(PREDICTION, members="five networks")
    assert guard.note == "five networks"


@pytest.mark.parametrize("version", Guard.FORMAT.earlier)
def test_files_of_earlier_versions_are_read(tmp_path, version):
    guard = Guard.fit(PREDICTION, LABELS, max_error=0.1, note="five networks")
    fields = earlier_fields(guard, version)
    SavedFormat("guard", version).write(tmp_path / "guard.json", fields)
    again = Guard.load(tmp_path / "guard.json")
    assert (again.note, again.threshold, again.limit) == ("five networks", guard.threshold, guard.limit)
    np.testing.assert_array_equal(again.decide(NEW).accepted, guard.decide(NEW).accepted)
