"""Promises count samples, and the pixels of a map are none: predictions of maps are refused with the reason."""

import numpy as np
import pytest

from credalens import evaluate, wrap
from credalens.guard import ConformalSets, CoveringIntervals, Guard, compare_sets
from tests.strategies import batch_of

MEMBERS = batch_of("peaked", 3, 48, 4)
ROWS, MAPS = wrap(MEMBERS), wrap(MEMBERS.reshape(3, 3, 4, 4, 4))
LABELS = ROWS.predict()
OF_MAPS = LABELS.reshape(3, 4, 4)
pytestmark = pytest.mark.filterwarnings("ignore:.*the highest .* there can be")


@pytest.mark.parametrize(
    "use",
    [
        lambda: Guard.fit(MAPS),
        lambda: Guard.fit(MAPS, OF_MAPS, max_error=0.3),
        lambda: Guard.fit(ROWS).decide(MAPS),
        lambda: Guard.fit(ROWS).decide_rows(MAPS),
        lambda: Guard.fit(ROWS).check_promises(MAPS),
        lambda: ConformalSets.fit(MAPS, OF_MAPS),
        lambda: ConformalSets.fit(ROWS, LABELS).predict_set(MAPS),
        lambda: CoveringIntervals.fit(MAPS, MAPS.mean),
        lambda: CoveringIntervals.fit(ROWS, ROWS.mean).inflate(MAPS),
        lambda: compare_sets(ROWS, LABELS, MAPS, OF_MAPS),
    ],
)  # fmt: skip
def test_a_promise_about_pixels_is_refused(use):
    with pytest.raises(ValueError, match=r"3 axes, \(3, 4, 4\), and promises are about samples"):
        use()


def test_an_evaluation_of_pixels_is_refused():
    with pytest.raises(ValueError, match=r"\(members, rows, classes\).* pixels of an image are not"):
        evaluate(MEMBERS.reshape(3, 3, 4, 4, 4), labels=OF_MAPS)


def test_one_prediction_alone_is_decided():
    assert np.ndim(Guard.fit(ROWS).decide(ROWS[0]).accepted) == 0
