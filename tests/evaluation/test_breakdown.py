"""Groups of the ID data: every number is that of the rows of the group alone."""

from __future__ import annotations

import numpy as np
import pytest

from credalens import evaluate
from tests.strategies import batch_of

ROWS = 90
SITES = np.array(["north", "south", "<b>"])[np.arange(ROWS) % 3]
MONTHS = np.arange(ROWS) % 5


@pytest.fixture(scope="module")
def found():
    members = batch_of("mixed", 4, ROWS, 3, seed=1)
    labels = np.arange(ROWS) // 2 % 3
    groups = {"site": SITES, "month": MONTHS}
    return evaluate(members, {"o": members[:, :40]}, labels=labels, groups=groups, replicates=60, false_alarm_rate=0.1)


def test_groups_are_measured_by_their_rows_alone(found):
    by_column = {one.column: one.groups for one in found.groups}
    assert list(by_column) == ["true class", "site", "month"]
    scores = found.values["in-distribution"][found.recommended.score]
    for group in by_column["site"]:
        rows = group.name == SITES
        assert group.rows == rows.sum()
        assert group.accuracy.value == found.judged.correct[rows].mean()
        assert group.accuracy.low < group.accuracy.value < group.accuracy.high
        assert group.false_alarms.value == found.threshold.flags(scores[rows]).mean()
        assert group.false_alarms.value in group.flagged
        assert 1 / 3 <= group.confidence <= 1
    assert {group.name for group in by_column["month"]} == set("01234")
    assert sum(group.rows for group in by_column["true class"]) == ROWS


def test_the_worst_group_comes_first(found):
    for breakdown in found.groups:
        accuracies = [group.accuracy.value for group in breakdown.groups]
        assert accuracies == sorted(accuracies)


def test_without_labels_groups_are_compared_by_false_alarms():
    members = batch_of("mixed", 4, ROWS, 3, seed=1)
    (site,) = evaluate(members, {"o": members[:, :40]}, groups={"site": SITES}, replicates=60).groups
    assert all(group.accuracy is None for group in site.groups)
    alarms = [group.false_alarms.value for group in site.groups]
    assert alarms == sorted(alarms, reverse=True)


@pytest.mark.parametrize("values", [SITES[:7], np.stack([SITES, SITES])])
def test_groups_of_another_length_are_refused(values):
    members = batch_of("mixed", 4, ROWS, 3)
    with pytest.raises(ValueError, match=r"column 'site' must hold one value for each .* 90 inputs; got shape \("):
        evaluate(members, {"o": members}, groups={"site": values})
