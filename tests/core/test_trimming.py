"""Trimmed intervals: what is left out, that the mean stays inside, that bounds are attained, and merging."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import MemberSummary, ProbabilityIntervals, lower_entropy, upper_entropy, wrap, wrap_logits
from credalens.core.intervals import left_out
from tests.strategies import batch_of, ensembles

few_members_are_fine = pytest.mark.filterwarnings("ignore:trim=.* leaves out none")
TRIMS = st.sampled_from([0.05, 0.1, 0.2, 0.25, 0.4, 0.49])


def slow_bounds(members: np.ndarray, trim: float) -> tuple[np.ndarray, np.ndarray]:
    """Sorted, cut, widened to the mean, tightened; one class after the other."""
    count = max(k for k in range(len(members)) if k / len(members) <= trim)
    mean = members.mean(axis=0)
    low, high = np.empty_like(mean), np.empty_like(mean)
    for k, column in enumerate(members.T):
        kept = sorted(column)[count : len(column) - count]
        low[k], high[k] = min(kept[0], mean[k]), max(kept[-1], mean[k])
    classes = range(len(mean))
    least = [max(low[k], 1 - sum(high[j] for j in classes if j != k)) for k in classes]
    most = [min(high[k], 1 - sum(low[j] for j in classes if j != k)) for k in classes]
    return np.array(least), np.array(most)


@few_members_are_fine
@given(ensembles(max_members=12), TRIMS)
def test_the_bounds_are_the_inner_values_around_the_mean(members, trim):
    prediction = wrap(members, trim=trim)
    low, high = slow_bounds(members, trim)
    assert np.allclose(prediction.lower, low, rtol=0, atol=1e-12)
    assert np.allclose(prediction.upper, high, rtol=0, atol=1e-12)


@few_members_are_fine
@given(ensembles(max_members=12), TRIMS)
def test_the_set_is_reachable_holds_the_mean_and_lies_in_the_untrimmed_one(members, trim):
    prediction, whole = wrap(members, trim=trim), wrap(members)
    assert ProbabilityIntervals(prediction.lower, prediction.upper).is_reachable.all()
    assert ((prediction.lower <= prediction.mean + 1e-12) & (prediction.mean <= prediction.upper + 1e-12)).all()
    assert (prediction.lower >= whole.lower - 1e-12).all()
    assert (prediction.upper <= whole.upper + 1e-12).all()
    assert prediction.total <= whole.total + 1e-9
    assert prediction.aleatoric >= whole.aleatoric - 1e-9


@few_members_are_fine
@given(ensembles(max_members=12), TRIMS)
def test_entropies_are_those_of_the_trimmed_set(members, trim):
    prediction = wrap(members, trim=trim)
    assert abs(prediction.total - upper_entropy(prediction.lower, prediction.upper)) <= 1e-9
    assert abs(prediction.aleatoric - lower_entropy(prediction.lower, prediction.upper)) <= 1e-9
    assert np.allclose(prediction.classical.total, wrap(members).classical.total, rtol=0, atol=1e-12)


@few_members_are_fine
@given(ensembles(max_members=12), TRIMS, st.integers(1, 11))
def test_merging_equals_batching(members, trim, cut):
    keep = left_out(trim, len(members))
    parts = [MemberSummary(keep=keep).update(part) for part in (members[:cut], members[cut:]) if len(part)]
    merged = parts[0] if len(parts) == 1 else parts[0].merge(parts[1])
    expected, prediction = wrap(members, trim=trim), merged.prediction(trim=trim)
    for name in ("lower", "upper", "probability", "total", "aleatoric"):
        assert np.allclose(getattr(prediction, name), getattr(expected, name), rtol=0, atol=1e-9), name


def test_a_summary_that_keeps_too_few_says_how_many_are_needed():
    members = batch_of("flat", 10, 3, 4)
    with pytest.raises(ValueError, match=r"MemberSummary\(keep=2\)"):
        MemberSummary(keep=1).update(members).prediction(trim=0.2)
    with pytest.raises(ValueError, match="keep=1 and keep=0"):
        MemberSummary(keep=1).update(members).merge(MemberSummary().update(members))


@pytest.mark.parametrize("trim", [-0.1, 0.5, float("nan")])
def test_a_share_that_leaves_nothing_is_refused(trim):
    with pytest.raises(ValueError, match="below 0\\.5"):
        wrap(batch_of("flat", 3, 3, 4), trim=trim)


def test_too_few_members_to_trim_are_warned_of_where_they_were_given():
    members = batch_of("flat", 4, 5, 3)
    for call in (wrap, lambda p, trim: MemberSummary().update(p).prediction(trim=trim)):
        with pytest.warns(UserWarning, match=r"trim=0.2 of 4 members .* at least 5 members.* is 0.25") as caught:
            trimmed = call(members, trim=0.2)
        assert caught[0].filename == __file__
        assert np.array_equal(trimmed.lower, wrap(members).lower)


def test_trimmed_logits_are_as_trimmed_probabilities():
    members = batch_of("flat", 4, 5, 3)
    assert np.allclose(
        wrap_logits(np.log(members), trim=0.25).upper, wrap(members, trim=0.25).upper, rtol=0, atol=1e-12
    )


def test_a_row_that_is_no_distribution_is_refused():
    members = batch_of("flat", 10, 5, 3)
    members[3, 2] *= 2
    with pytest.raises(ValueError, match=r"\(3, 2"):
        wrap(members, trim=0.1)


def test_torch_gets_tensors_back():
    torch = pytest.importorskip("torch")
    members = batch_of("flat", 10, 5, 3).astype(np.float32)
    prediction = MemberSummary(keep=1).update(torch.from_numpy(members)).prediction(trim=0.1)
    assert isinstance(prediction.lower, torch.Tensor)
    assert np.allclose(prediction.lower.numpy(), wrap(members, trim=0.1).lower, rtol=0, atol=1e-6)
