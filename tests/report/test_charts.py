"""Charts are drawn through the values they are given, and look the same in every theme."""

from __future__ import annotations

import re

import numpy as np
import pytest

from credalens.evaluation import evaluate
from credalens.evaluation.single_inputs import view_members
from credalens.report.charts.evaluation import named_charts, pr_chart, roc_chart
from credalens.report.charts.one_input import bars_chart, input_charts, simplex_chart
from credalens.report.figures import to_png, to_svg, values_table
from credalens.theme import DARK, LIGHT, PAGE, STROKES
from tests.strategies import batch_of, make_members


@pytest.fixture(scope="module")
def found():
    known = batch_of("peaked", 4, 60, 3, seed=1)
    return evaluate(known, {"flat": batch_of("flat", 4, 40, 3, seed=2)}, labels=np.arange(60) % 3, replicates=60)


def series(chart, name):
    rows = [row for row in chart.values if row["series"] == name]
    return [row["x"] for row in rows], [row["y"] for row in rows]


def test_curves_hold_their_points(found):
    lines = found.curves.detection["flat"]["epistemic"]
    assert series(roc_chart(found, "flat"), "epistemic") == tuple(lines.roc)
    assert "AUROC" in roc_chart(found, "flat").label


def test_the_area_under_the_steps_of_precision_is_the_auprc(found):
    qualities = {one.name: one.ood["flat"] for one in found.scores}
    for name in ("total", "mean_total"):
        recall, precision = series(pr_chart(found, "flat"), name)
        assert (np.diff(recall) * precision[1:]).sum() == pytest.approx(qualities[name].auprc, abs=2e-3)


@pytest.mark.parametrize("theme", [LIGHT, DARK, PAGE], ids=lambda theme: theme.name)
def test_lines_have_the_colour_and_the_dashes_of_their_score(found, theme):
    svg = to_svg(roc_chart(found, "flat"), theme)
    for name in found.curves.detection["flat"]:
        stroke = STROKES[name]
        dashes = ",".join(f"{length:g}" for length in stroke.dash or (1, 0))
        line = rf'<path[^>]*stroke="{re.escape(stroke.color(theme))}"[^>]*stroke-dasharray="{dashes}"'
        assert re.search(line, svg), name


def test_every_chart_is_drawn_and_has_values(found):
    charts = [chart for _, chart in named_charts(found)] + input_charts(found.samples[0], ["a", "b", "c"])
    assert {chart.kind.split()[0] for chart in charts} == {
        "ranking", "reliability", "rejection", "roc", "pr", "histogram", "members", "bars", "simplex",
    }  # fmt: skip
    for chart in charts[:-1]:
        assert values_table(chart).rows
    assert to_png(charts[0]).startswith(b"\x89PNG")


def test_values_are_read_off_the_lines(found):
    chart = roc_chart(found, "flat")
    table = values_table(chart)
    row = next(row for row in table.rows if row[0].text == "10 %")
    assert row[1].text == f"{100 * np.interp(0.1, *series(chart, next(iter(found.curves.histograms)))):.1f} %"


def test_member_marks_lie_at_their_probabilities():
    members = make_members("flat", 3, 4, np.random.default_rng(0))
    rows = bars_chart(view_members(members, 2), ["a", "b", "c", "d"]).values
    for place, name in enumerate(["a", "b", "✓ c", "d"]):
        of_class = [row for row in rows if row["name"].strip() == name]
        drawn = [row["x"] for row in of_class if row["kind"] == "member"]
        np.testing.assert_allclose(drawn, members[:, place], atol=1e-5)
        (interval,) = (row for row in of_class if row["kind"] == "interval")
        assert (interval["x"], interval["x2"]) == (min(drawn), max(drawn))
    assert sum(row.get("first", False) for row in rows) == 2


def test_the_triangle_shows_members_set_hull_and_points():
    members = np.array([[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]])
    chart = simplex_chart(view_members(members, None).simplex, ["sun", "rain", "snow"])
    kinds = [row["kind"] for row in chart.values]
    assert (kinds.count("member"), kinds.count("bound")) == (3, 12)
    assert {"set", "hull", "intersection", "averaged"} < set(kinds)
    svg = to_svg(chart)
    assert all(text in svg for text in ("sun", "10 to 70 %", "10 to 60 %", "20 to 70 %"))
