"""Goals are compared honestly: reached, not reached, not proven, not measured."""

from __future__ import annotations

import json

import pytest

from benchmarks.goals import Goal, compare_with_goals


@pytest.mark.parametrize(
    ("value", "at_least", "reached"),
    [
        (0.9, False, True),
        (1.0, False, True),
        (1.1, False, False),
        (0.9, True, False),
        (1.1, True, True),
        (None, True, None),
    ],
)
def test_reached(value, at_least, reached):
    assert Goal("x", "", 1.0, value, at_least=at_least).reached is reached


def test_a_value_without_its_certificate_reaches_nothing():
    assert Goal("x", "us", 10.0, 1.0, proven=False).reached is False


def test_nothing_measured_is_nothing_reached():
    assert all(goal.reached is None for goal in compare_with_goals({}))


MEASURED = {
    "decomposition": [
        {
            "classes": c,
            "ours_over_classical": 0.5,
            "two_threads_over_classical": 0.3,
            "slsqp_over_ours": 1e5,
            "float32_ours_over_classical": 0.7,
        }
        for c in (3, 10, 100, 1000)
    ],
    "calls": [{"classes": 100, "sum_us": 2.0}],
    "decide": [{"classes": classes, "decide_with_p_value_over_wrap": 0.05} for classes in (10, 100)],
    "score": {"score_over_write": 2.0},
    "flat": [{"tolerance_bits": t, "us": 100.0, "widest_bracket_bits": t} for t in (1e-3, 1e-6)],
    "hartley": [{"classes": c, "us": us} for c, us in ((10, 1.0), (100, 2.0), (100, 3.0), (1000, 4.0))],
    "growth": {"exponents": {"classes": 1.2, "classes_log_classes": 0.9, "rows": 1.0, "members": 0.5}},
    "memory": {"peak_over_outputs": 1.1},
    "startup": {"import_seconds": 0.1, "first_ever_seconds": 4.0, "later_process_seconds": 0.4},
    "wrapper": {"cpu": {"overhead": 0.01}, "cuda": {"overhead": 0.02}},
    "device": [{"classes": c, "ours_over_classical": 1.5, "kernel_over_copy": 0.6} for c in (10, 100, 1000)],
}


def test_every_goal_finds_its_value():
    goals = compare_with_goals(MEASURED)
    assert all(goal.reached is True for goal in goals), [goal for goal in goals if not goal.reached]
    assert len({goal.name for goal in goals}) == len(goals)
    json.dumps([goal.as_json() for goal in goals], allow_nan=False)


def test_the_slower_kind_of_input_counts():
    values = {goal.name: goal.value for goal in compare_with_goals(MEASURED)}
    assert values["Hartley, C = 100"] == 3.0


def test_a_bracket_wider_than_the_tolerance_is_not_a_certificate():
    wide = [{"tolerance_bits": 1e-6, "us": 100.0, "widest_bracket_bits": 2e-6}]
    goal = next(g for g in compare_with_goals({"flat": wide}) if g.name.endswith("1e-06 bit"))
    assert goal.value == 100.0
    assert goal.reached is False


def test_skipped_parts_are_not_measured():
    skipped = {
        "wrapper": {"cuda": {"skipped": "no CUDA device"}},
        "device": [{"classes": 10, "skipped": "no CUDA device"}],
    }
    assert all(goal.reached is None for goal in compare_with_goals(skipped))
