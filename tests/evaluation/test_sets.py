"""Set metrics sample by sample, at their limits and by hand."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from credalens.evaluation import set_metrics

lawful = settings(derandomize=True, deadline=None, max_examples=60)


@st.composite
def set_predictions(draw):
    n, classes = draw(st.integers(1, 15)), draw(st.integers(2, 6))
    label = st.integers(0, classes - 1)
    sets = draw(st.lists(st.sets(label, min_size=1), min_size=n, max_size=n))
    return [sorted(s) for s in sets], draw(st.lists(label, min_size=n, max_size=n)), classes


def as_masks(sets, classes):
    masks = np.zeros((len(sets), classes), dtype=bool)
    for row, members in zip(masks, sets, strict=True):
        row[members] = True
    return masks


def utility(members, label, gain, loss):
    return gain / len(members) - loss / len(members) ** 2 if label in members else 0.0


@lawful
@given(set_predictions())
def test_sample_by_sample(case):
    sets, labels, classes = case
    ours, pairs = set_metrics(as_masks(sets, classes), labels), list(zip(sets, labels, strict=True))
    single = [s[0] == y for s, y in pairs if len(s) == 1]
    assert ours.coverage == pytest.approx(np.mean([y in s for s, y in pairs]))
    assert ours.mean_size == pytest.approx(np.mean([len(s) for s in sets]))
    assert ours.determinacy == pytest.approx(len(single) / len(sets))
    assert ours.single_accuracy == pytest.approx(np.mean(single) if single else np.nan, nan_ok=True)
    assert ours.u65 == pytest.approx(np.mean([utility(s, y, 1.6, 0.6) for s, y in pairs]))
    assert ours.u80 == pytest.approx(np.mean([utility(s, y, 2.2, 1.2) for s, y in pairs]))
    assert ours.n == len(sets)


@lawful
@given(set_predictions())
def test_utilities_lie_between_discounted_and_plain_accuracy(case):
    sets, labels, classes = case
    ours = set_metrics(as_masks(sets, classes), labels)
    discounted = np.mean([utility(s, y, 1.0, 0.0) for s, y in zip(sets, labels, strict=True)])
    assert discounted - 1e-12 <= ours.u65 <= ours.u80 + 1e-12 <= ours.coverage + 1e-9


def test_names_of_the_utilities():
    both = set_metrics([[True, True]], [0])
    assert (both.u65, both.u80) == pytest.approx((0.65, 0.80))


def test_single_classes_are_plain_accuracy():
    predicted, labels = np.array([0, 2, 1, 1]), np.array([0, 1, 1, 2])
    ours = set_metrics(np.eye(3, dtype=bool)[predicted], labels)
    accuracy = accuracy_score(labels, predicted)
    assert (ours.coverage, ours.single_accuracy, ours.u65, ours.u80) == pytest.approx([accuracy] * 4)
    assert (ours.mean_size, ours.determinacy) == (1.0, 1.0)


def test_sets_of_everything_cover_everything_and_decide_nothing():
    ours = set_metrics(np.ones((4, 10), dtype=bool), [0, 3, 9, 9])
    assert (ours.coverage, ours.mean_size, ours.determinacy) == (1.0, 10.0, 0.0)
    assert np.isnan(ours.single_accuracy)
    assert json.loads(json.dumps(ours.as_dict(), allow_nan=False))["single_accuracy"] is None


def test_batches_of_any_shape():
    rng = np.random.default_rng(0)
    masks, labels = rng.random((4, 5, 3)) < 0.5, rng.integers(0, 3, (4, 5))
    masks[..., 0] = True
    assert set_metrics(masks, labels) == set_metrics(masks.reshape(-1, 3), labels.ravel())


@pytest.mark.parametrize(
    ("masks", "labels", "error", "message"),
    [
        ([[True, False], [False, False]], [0, 0], ValueError, r"1 of 2 set sizes of masks are 0.*index \(1,\)"),
        ([[1, 0], [0, 1]], [0, 1], TypeError, "masks must be boolean"),
        ([[True, False]], [2], ValueError, "labels are out of range"),
        ([[True, False]], [0, 1], ValueError, r"labels must have shape \(1,\)"),
        ([[True, False]], [0.0], TypeError, "labels must be integers"),
        ([[True]], [0], ValueError, "2 classes"),
        (np.empty((0, 3), bool), np.empty(0, int), ValueError, "at least 1 sample"),
    ],
)
def test_bad_input_is_refused(masks, labels, error, message):
    with pytest.raises(error, match=message):
        set_metrics(masks, labels)
