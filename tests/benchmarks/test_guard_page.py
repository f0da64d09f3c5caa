"""The page about the guard is the one that its result files give, and the measure of delays counts right."""

import re

import numpy as np
import pytest

from benchmarks.guard.drift_streams import delay, mixed
from benchmarks.guard.page import TARGET, page, read


def test_the_page_is_current():
    assert TARGET.read_text() == page(read("simulated"), read("real_predictions"), read("decisions"))


def test_the_example_on_the_page_runs():
    from credalens import wrap

    (block,) = re.findall(r"```python\n(.*?)```", TARGET.read_text(), flags=re.DOTALL)
    rng = np.random.default_rng(0)
    members = rng.dirichlet([1, 1, 1], (3, 100))
    names = {"calibration": wrap(members), "prediction": wrap(members[:, :9]), "labels": members[0].argmax(axis=-1)}
    exec(block, names | {"answers": rng.multinomial(20, members[1])})  # noqa: S102 - our own page


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_stream_ends_with_its_scores(share):
    rng = np.random.default_rng(1)
    stream = mixed(np.zeros(50), np.ones(30), share, 10, rng)
    assert not stream[:10].any()
    assert stream.sum() <= 30
    assert (stream == 0).sum() <= 50
    assert len(stream) >= 40


def test_delays_count_from_the_beginning_of_the_drift():
    def draw(rng):
        return rng.random(300), rng.random(400), np.full(100, 2.0)

    at_once, late = (delay(draw, 1.0, "online", streams=5, clean=clean) for clean in (0, 300))
    assert 1 <= at_once.median <= late.median <= 30
    assert late.noticed == 1
    assert delay(draw, 0.0, "fixed", streams=5).median is None
