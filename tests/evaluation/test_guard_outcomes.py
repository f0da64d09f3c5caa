"""The guard of an evaluation, and what would have happened with it."""

import json

import numpy as np
import pytest

from credalens import wrap
from credalens.evaluation import evaluate
from credalens.report.tables import guard_table
from tests.strategies import batch_of

ID = np.concatenate([batch_of("peaked", 5, 300, 4, seed=1), batch_of("mixed", 5, 100, 4, seed=2)], axis=1)
LABELS = np.where(np.arange(400) % 9, wrap(ID).predict(), 0)
OOD = {"flat": batch_of("flat", 5, 200, 4, seed=3)}
OPTIONS = {"replicates": 40, "false_alarm_rate": 0.07}


@pytest.fixture(scope="module")
def found():
    return evaluate(ID, labels=LABELS, ood=OOD, **OPTIONS)


def test_the_guard_decides_as_the_recommended_threshold(found):
    guard, prediction = found.guard, wrap(OOD["flat"])
    assert (guard.score, guard.false_alarm_rate, guard.n) == (found.recommended.score, 0.07, 400)
    assert (guard.classes, guard.n_members, guard.base) == (4, 5, 2.0)
    assert guard.point == found.point.prediction
    assert guard.threshold == found.threshold.value
    np.testing.assert_array_equal(guard.decide(prediction).accepted, ~found.threshold.flags(prediction))


def test_outcomes_count_every_input_once(found):
    rates = [outcome.false_alarm_rate for outcome in found.outcomes]
    assert rates == sorted(rates)
    assert 0.07 in rates
    for outcome in found.outcomes:
        own, flat = outcome.data
        assert (own.rows, flat.rows, flat.errors) == (400, 200, None)
        assert own.accepted + own.abstained == 400
        assert 0 <= own.errors <= own.accepted
        alarm = next(x for x in found.thresholds if (x.score, x.threshold.false_alarm_rate) == (
            found.recommended.score, outcome.false_alarm_rate))  # fmt: skip
        assert flat.abstained == round(200 * alarm.caught["flat"])
    accepted = [outcome.data[1].accepted for outcome in found.outcomes]
    assert accepted == sorted(accepted, reverse=True)


def test_outcomes_of_the_id_data_are_near_the_rate(found):
    for outcome in found.outcomes:
        rate = outcome.false_alarm_rate
        assert abs(outcome.data[0].abstained / 400 - rate) < 0.02 + 3 * np.sqrt(rate / 200)


def test_the_table_and_the_json_hold_them(found):
    table = guard_table(found)
    assert len(table.rows) == len(found.outcomes)
    assert all(len(row) == len(table.columns) == 5 for row in table.rows)
    stored = json.loads(found.to_json())
    assert stored["outcomes"][0]["data"][0]["rows"] == 400
    assert "guard" not in stored


def test_too_few_inputs_have_no_guard(tmp_path):
    few = evaluate(ID[:, :12], labels=LABELS[:12], ood=OOD, **OPTIONS)
    assert few.guard is None
    assert [outcome.false_alarm_rate for outcome in few.outcomes] == [0.15, 0.2, 0.25, 0.3, 0.4, 0.5]
    few.report(tmp_path / "out")
    assert not (tmp_path / "out" / "guard.json").exists()


def test_without_labels_errors_are_unknown():
    unlabelled = evaluate(ID, ood=OOD, **OPTIONS)
    assert unlabelled.guard.point == "intersection"
    assert {outcome.data[0].errors for outcome in unlabelled.outcomes} == {None}
    assert len(guard_table(unlabelled).columns) == 4
