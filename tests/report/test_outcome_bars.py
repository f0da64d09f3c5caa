"""The picture that opens the report counts every input once, as the decisions do, at every place of the slider."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from credalens import evaluate
from credalens.report import render_html
from credalens.report.outcome_bars import legend_of, outcome_bars
from tests.strategies import batch_of


@pytest.fixture(scope="module", params=[True, False], ids=["labels", "no labels"])
def evaluation(request):
    known, unknown = batch_of("peaked", 5, 300, 4), batch_of("flat", 5, 80, 4, seed=1)
    labels = known.mean(0).argmax(-1)
    labels[::7] = 0
    return evaluate(known, {"unknown": unknown}, labels=labels if request.param else None, replicates=50)


def test_each_bar_is_whole_and_its_parts_are_counts_of_decisions(evaluation):
    for alarm in evaluation.thresholds:
        id_bar, ood_bar = outcome_bars(evaluation, alarm)
        for bar in (id_bar, ood_bar):
            ends = np.cumsum([part.share for part in bar.parts])
            assert ends[-1] == pytest.approx(1)
            assert [part.start for part in bar.parts[1:]] == pytest.approx(ends[:-1])
        accepted = evaluation.values["in-distribution"][alarm.score] <= alarm.threshold.value
        shares = {part.name: part.share for part in id_bar.parts}
        assert shares["handed over"] == pytest.approx(1 - accepted.mean())
        if evaluation.judged is not None:
            assert shares["accepted and wrong"] == pytest.approx((accepted & ~evaluation.judged.correct).mean())
        missed = evaluation.values["unknown"][alarm.score] <= alarm.threshold.value
        assert ood_bar.parts[0].share == pytest.approx(missed.mean())


def test_the_slider_moves_every_part(evaluation):
    page = render_html(evaluation)
    lives = json.loads(re.search(r'id="live">(.*?)</script>', page, flags=re.DOTALL)[1])
    live = next(one for one in lives if one["rate"] == evaluation.settings.false_alarm_rate)
    drawn = re.findall(r'data-bar="([^"]+)" x="([^"]+)" width="([^"]+)"', page)
    assert {key: [float(x), float(width)] for key, x, width in drawn} == live["bars"]
    assert all(set(one["bars"]) == set(live["bars"]) for one in lives)
    bars = outcome_bars(evaluation, evaluation.alarm)
    assert page.count('class="part') == len(drawn) + len(legend_of(bars))
    assert [live["texts"][f"bar-{row}"] for row in range(2)] == [bar.text for bar in bars]
