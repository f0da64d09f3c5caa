"""An error about a bad row names the row of the file, whatever chunk it came in."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from credalens import ConvexHull, MemberSummary, wrap, wrap_logits
from credalens.checks.members import BadRowError, naming_bad_row

GOOD = np.full((3, 8, 4), 0.25)


def spoilt(value: float) -> np.ndarray:
    """Member 2 is wrong in row 3 and member 0 in row 6."""
    members = GOOD.copy()
    members[2, 3, 1] = members[0, 6, 0] = value
    return members


@pytest.mark.parametrize(
    ("call", "value", "fault"),
    [
        (wrap, np.nan, "class 1 is nan; every value must be finite"),
        (wrap, -0.5, "class 1 is -0.5; probabilities are at least 0"),
        (wrap, 0.5, "it sums to 1.25; a row must sum to 1 within 1e-05 for float64"),
        (wrap_logits, np.nan, "class 1 is nan; every value must be finite, or -inf"),
        (wrap_logits, np.inf, "class 1 is inf; every value must be finite, or -inf"),
        (MemberSummary().update, 0.5, "it sums to 1.25"),
    ],
)
def test_the_first_bad_row_of_a_file_is_named(call, value, fault):
    with pytest.raises(ValueError, match=rf"^big\.npy: row 103, member 2: {fault}"), naming_bad_row("big.npy", 100):
        call(spoilt(value))


def test_a_source_may_call_its_rows_by_other_names():
    with (
        pytest.raises(ValueError, match=r"^big\.npy: row 13 of member 2: it sums"),
        naming_bad_row("big.npy", 10, row_name=lambda row, member: f"row {row} of member {member}"),
    ):
        wrap(spoilt(0.5))


def test_other_errors_say_where_they_happened():
    with (
        pytest.raises(ValueError, match=r"^big\.npy: rows from 10 on: probs needs at least two"),
        naming_bad_row("big.npy", 10),
    ):
        wrap(np.ones((2, 3, 1)))


def test_the_error_survives_a_process_boundary():
    with pytest.raises(BadRowError) as caught:
        wrap(spoilt(0.5))
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert (copy.row, copy.member, copy.fault) == (3, 2, caught.value.fault)
    assert str(copy) == str(caught.value)


@pytest.mark.parametrize("call", [wrap, wrap_logits, MemberSummary().update, ConvexHull])
def test_a_signalling_nan_is_refused_without_a_warning(call):
    members = GOOD.astype(np.float32)
    members.view(np.uint32)[2, 3, 1] = 0x7FA00000
    with pytest.raises(ValueError, match=r"index \(2, 3\).*class 1 is nan"):
        call(members)
