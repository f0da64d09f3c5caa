"""MemberSummary: a monoid whose prediction equals wrapping all members at once; the classical decomposition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import MemberSummary, classical_uncertainty, wrap
from tests import oracles
from tests.strategies import OPEN_ROWS, batch_of, ensembles

FIELDS = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic")


def assert_same_prediction(one, two, atol=1e-12):
    for name in FIELDS:
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=0, atol=atol, err_msg=name)
    for name in ("total", "aleatoric", "epistemic"):
        np.testing.assert_allclose(
            getattr(one.classical, name), getattr(two.classical, name), rtol=0, atol=atol, err_msg=name
        )
    assert one.n_members == two.n_members


@given(ensembles(max_members=8), st.integers(0, 2**32 - 1))
def test_any_grouping_and_order_equals_wrapping_at_once(members, seed):
    rng = np.random.default_rng(seed)
    batch = members[:, None, :]
    parts = [MemberSummary().update(batch[n : n + 1]) for n in rng.permutation(len(batch))]
    while len(parts) > 1:
        i, j = rng.choice(len(parts), 2, replace=False)
        merged = parts[i].merge(parts[j])
        parts = [p for k, p in enumerate(parts) if k not in (i, j)] + [merged]
    assert_same_prediction(parts[0].prediction(), wrap(batch))


def test_merging_is_associative_commutative_and_has_an_identity():
    batch = batch_of("peaked", 6, 5, 4)
    a, b, c = (MemberSummary().update(batch[i : i + 2]) for i in (0, 2, 4))
    assert_same_prediction(a.merge(b).merge(c).prediction(), a.merge(b.merge(c)).prediction())
    assert_same_prediction(a.merge(b).prediction(), b.merge(a).prediction())
    assert_same_prediction(MemberSummary().merge(a).prediction(), a.merge(MemberSummary()).prediction())
    assert_same_prediction((a + b).prediction(), wrap(batch[:4]))
    assert a.count == 2


@pytest.mark.parametrize(
    "dtypes", [("float64", "float32"), ("float16", "float64"), ("float16", "float32"), ("int64", "float32")]
)
def test_merging_takes_the_wider_dtype_in_either_order(dtypes):
    batch = np.eye(3)[None]
    one, two = (MemberSummary().update(batch.astype(dtype)) for dtype in dtypes)
    expected = np.float32 if dtypes == ("float16", "float32") else np.float64
    for merged in (one.merge(two), two.merge(one), MemberSummary().merge(one).merge(two)):
        assert merged.prediction().total.dtype == merged.prediction().classical.total.dtype == expected


def test_updates_fold_in_place_and_chain():
    batch = batch_of("flat", 5, 3, 4)
    summary = MemberSummary()
    assert summary.update(batch[:2]) is summary
    summary.update(batch[2], member_axis=None).update(np.moveaxis(batch[3:], 0, 1), member_axis=1)
    assert summary.count == 5
    assert_same_prediction(summary.prediction(), wrap(batch))


def test_merging_leaves_its_parts_alone():
    batch = batch_of("flat", 4, 3, 4)
    a, b = MemberSummary().update(batch[:2]), MemberSummary().update(batch[2:])
    before = a.lower.copy()
    merged = a.merge(b)
    merged.update(batch[:1])
    np.testing.assert_array_equal(a.lower, before)
    assert (a.count, b.count, merged.count) == (2, 2, 5)


@pytest.mark.filterwarnings(OPEN_ROWS)
def test_the_budget_is_that_of_wrap():
    batch = batch_of("flat", 20, 3, 100)
    summary = MemberSummary().update(batch)
    for options in ({"max_nodes": 1}, {"tolerance": 0.1}, {"max_nodes": 2000, "tolerance": 1e-3}):
        assert_same_prediction(summary.prediction(**options), wrap(batch, **options))
    gap, narrower = (
        (found.aleatoric - found.aleatoric_bound).max()
        for found in (summary.prediction(max_nodes=1), summary.prediction(max_nodes=2000))
    )
    assert gap > narrower
    with pytest.raises(ValueError, match="max_nodes"):
        summary.prediction(max_nodes=0)
    with pytest.raises(ValueError, match="tolerance"):
        summary.prediction(tolerance=-1)


def test_an_empty_summary_has_no_prediction():
    with pytest.raises(ValueError, match=r"call update\(probs\)"):
        MemberSummary().prediction()


@pytest.mark.parametrize(
    ("other", "error"),
    [(MemberSummary().update(batch_of("flat", 1, 3, 5)), ValueError), ({"count": 1}, TypeError)],
)
def test_what_does_not_fit_does_not_merge(other, error):
    with pytest.raises(error):
        MemberSummary().update(batch_of("flat", 1, 3, 4)).merge(other)


def test_two_axes_are_the_members_of_a_single_input_as_in_wrap():
    members = batch_of("flat", 3, 1, 4)[:, 0]
    assert_same_prediction(MemberSummary().update(members).prediction(), wrap(members))


@pytest.mark.parametrize(
    ("batch", "shape", "axis", "message"),
    [
        ((3,), (3, 4), 0, r"\(3, 4\) cannot be members along member_axis=0.*2 so far has shape \(3, 4\).*axis=None"),
        ((4, 4), (4, 4, 4), 0, r"for one more member pass member_axis=None"),
        ((), (4,), 0, r"for one more member pass member_axis=None"),
        ((3,), (1, 3, 4), None, r"\(1, 3, 4\) cannot be one member.*for several members pass member_axis=0"),
        ((), (3, 4), None, r"2 so far has shape \(4,\).*for several members pass member_axis=0"),
        ((), (2, 3, 4), 0, r"2 so far has shape \(4,\).*the same inputs and classes"),
        ((2, 3), (2, 4), 0, r"the same inputs and classes"),
    ],
)
def test_an_axis_too_few_or_too_many_is_refused_with_how_to_pass_it(batch, shape, axis, message):
    summary = MemberSummary().update(np.full((2, *batch, 4), 0.25))
    with pytest.raises(ValueError, match=message):
        summary.update(np.full(shape, 0.25), member_axis=axis)
    assert (summary.count, summary.lower.shape) == (2, (*batch, 4))


def test_a_bad_row_has_the_index_that_wrap_gives_it():
    batch = batch_of("flat", 5, 7, 4)
    batch[3, 2] *= 1.1
    for function in (wrap, MemberSummary().update):
        with pytest.raises(ValueError, match=r"1 of 35 rows of probs.*index \(3, 2\) .*sums to 1\.1"):
            function(batch)
    with pytest.raises(ValueError, match=r"1 of 35 rows.*index \(3, 2\) \(member, \*batch\)"):
        MemberSummary().update(np.moveaxis(batch, 0, 1), member_axis=1)
    with pytest.raises(ValueError, match=r"1 of 7 rows.*index \(2,\) \(\*batch\)"):
        MemberSummary().update(batch[3], member_axis=None)
    narrow = batch.astype(np.float16)
    with pytest.raises(ValueError, match=r"1 of 35 rows.*within 0\.01"):
        MemberSummary().update(narrow)


@given(ensembles())
def test_classical_decomposition(members):
    result = classical_uncertainty(members)
    assert abs(result.total - oracles.entropy(members.mean(axis=0))) <= 1e-12
    assert abs(result.aleatoric - oracles.entropy(members).mean()) <= 1e-12
    assert abs(result.epistemic - (result.total - result.aleatoric)) <= 1e-12
    assert result.epistemic >= 0


def test_classical_by_hand():
    # Mean (.5, .5): 1 bit; members are certain: 0 bits each.
    result = classical_uncertainty(np.array([[[1.0, 0.0]], [[0.0, 1.0]]]), base=math.e)
    np.testing.assert_allclose(
        [result.total[0], result.aleatoric[0], result.epistemic[0]], [math.log(2), 0, math.log(2)]
    )


def test_the_earlier_name_of_the_kind_of_array_still_works():
    summary = MemberSummary().update(np.full((2, 3, 4), 0.25, np.float32))
    assert MemberSummary().origin is None
    assert summary.origin is summary.array_kind
    assert summary.origin.dtype == "float32"
