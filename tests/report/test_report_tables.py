"""Words and tables: a loss is said as a loss, the better cell is marked, and names are shown as they are written."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from credalens.evaluation import Comparison, Interval, evaluate
from credalens.evaluation.members_needed import Trend
from credalens.evaluation.prediction_quality import Calibration
from credalens.evaluation.words import numbers, remarks
from credalens.evaluation.words import verdicts as words
from credalens.evaluation.words.glossary import GLOSSARY
from credalens.report import tables
from credalens.report.html import to_html
from credalens.report.tables import Cell, Column, Table, mark_best
from credalens.report.terminal import print_result, to_rich
from tests.strategies import batch_of

STRANGE = "[red]<b>5 %</b>[/red] & more"


@pytest.fixture(scope="module")
def result():
    known = batch_of("peaked", 4, 60, 3, seed=1)
    others = {"flat": batch_of("flat", 4, 40, 3, seed=2), STRANGE: batch_of("mixed", 4, 40, 3, seed=3)}
    labels = np.arange(60) % 3
    return evaluate(known, others, labels=labels, replicates=60)


def changed(result, path, value):
    """A copy with another value at a path such as "ood.0.epistemic"."""
    name, _, rest = path.partition(".")
    if isinstance(result, tuple):
        place = int(name)
        return (*result[:place], changed(result[place], rest, value) if rest else value, *result[place + 1 :])
    return replace(result, **{name: changed(getattr(result, name), rest, value) if rest else value})


def comparison(low, difference, high):
    return Comparison("auroc", 0.5, 0.5, difference, low, high, 0.95, 0.5, "delong", 60, 40)


def with_gain(result, *numbers, place=0):
    return changed(result, f"ood.{place}.epistemic.difference.auroc", comparison(*numbers))


@pytest.mark.parametrize(
    ("numbers", "lower_is_better", "expected"),
    [
        ((0.01, 0.02, 0.03), False, "better"),
        ((-0.03, -0.02, -0.01), False, "worse"),
        ((-0.01, 0.02, 0.03), False, "undecided"),
        ((0.0, 0.0, 0.0), False, "undecided"),
        ((0.0, 0.02, 0.03), False, "undecided"),
        ((0.01, 0.02, 0.03), True, "worse"),
        ((-0.03, -0.02, -0.01), True, "better"),
    ],
)
def test_a_verdict_needs_an_interval_on_one_side_of_zero(numbers, lower_is_better, expected):
    assert words.verdict(comparison(*numbers), lower_is_better=lower_is_better) == expected


def test_a_loss_is_said_as_a_loss(result):
    said = words.summary(with_gain(with_gain(result, -0.03, -0.02, -0.01), 0.01, 0.02, 0.03, place=1))
    assert f"Against averaging it is better on {STRANGE} and worse on flat." in said.headline
    lost, won = said.detection
    assert lost.verdict == "worse"
    assert lost.epistemic == "2.00 points worse than averaging (−3.00 to −1.00)."
    assert won.epistemic == "2.00 points better than averaging (+1.00 to +3.00)."


def test_no_clear_difference_is_said_as_such(result):
    said = words.summary(with_gain(result, -0.01, 0.02, 0.05))
    assert "not clearly different on flat" in said.headline
    assert said.detection[0].epistemic == "no clear difference from averaging (−1.00 to +5.00)."
    same = words.summary(with_gain(result, 0.0, 0.0, 0.0))
    assert same.detection[0].epistemic == "the same as averaging."


def test_worse_than_chance_is_said(result):
    assert words.summary(result).detection[0].remark == ""
    below = Interval(0.25, 0.2, 0.3, 0.95, "delong", 60, 40)
    worse = changed(result, "ood.0.epistemic.credal.auroc_interval", below)
    assert words.summary(worse).detection[0].remark.startswith("Worse than chance")


def test_the_headline_gives_the_mean_auroc(result):
    mean = np.mean([one.epistemic.credal.auroc for one in result.ood])
    said = words.summary(result)
    assert f"at AUROC {numbers.percent(mean)} (mean of 2 data sets)." in said.headline
    assert f"in {100 * mean:.0f} of 100 cases" in said.plainly


def test_who_is_ahead_in_what(result):
    ours = replace(result.calibration.intersection, accuracy=0.9, ece=0.03, nll=0.5)
    theirs = replace(result.calibration.averaged, accuracy=0.8, ece=0.02, nll=0.5)
    said = words.summary(replace(result, calibration=Calibration(ours, theirs))).prediction
    assert said.endswith("Credal prediction is ahead in accuracy; averaging is ahead in ECE; they are equal in NLL.")
    ours = replace(ours, accuracy=0.7, nll=0.6)
    said = words.summary(replace(result, calibration=Calibration(ours, theirs))).prediction
    assert said.endswith("Averaging is ahead in accuracy, ECE and NLL.")


def with_auroc_by_size(result, mean):
    path = "members_needed.auroc.epistemic.credal"
    return changed(result, path, {"flat": Trend(mean, [0.0] * 4), STRANGE: Trend(mean, [0.0] * 4)})


def test_enough_members_are_named(result):
    said = words.summary(with_auroc_by_size(result, [0.5, 0.8, 0.896, 0.9])).members
    assert "From 3 to 4 members" in said
    assert "changes by +0.40 points" in said
    assert "With 3 of 4 members it is within 0.5 points" in said
    said = words.summary(with_auroc_by_size(result, [0.5, 0.7, 0.8, 0.9])).members
    assert said.endswith("More members may well help.")


@pytest.mark.parametrize(
    ("curve", "end"),
    [
        ([0.5, 0.2, 0.1, 0.01], "It has not settled yet."),
        ([0.5, 0.9, 0.8, 0.901], "More members may well help."),
        ([0.9, 0.9, 0.9, 0.9], "With 1 of 4 members it is within 0.5 points of the full ensemble."),
        ([0.5, 0.95, 0.902, 0.9], "With 3 of 4 members it is within 0.5 points of the full ensemble."),
    ],
)
def test_members_are_enough_only_where_it_stays_close(result, curve, end):
    assert words.summary(with_auroc_by_size(result, curve)).members.endswith(end)


def test_remarks_say_what_to_know_before_believing(result):
    assert words.summary(result).remarks == []
    doubtful = changed(changed(replace(result, calibration=None), "data.members", 1), "ood.1.rows", 29)
    one, many = (
        remarks.ONE_MEMBER,
        f"{STRANGE}: with only 29 inputs the intervals and the verdict may well be wrong.",
    )
    assert doubtful.words.remarks == [many, one, remarks.NO_LABELS]
    assert doubtful.words.detection[1].remark.startswith("With only 29 inputs")
    assert "".join(many.split()) in "".join(printed(doubtful, 80).split())


def test_numbers_in_words():
    assert numbers.percent(0.12345, 2).split() == ["12.35", "%"]
    assert numbers.percent(-0.5)[0] == "−"
    assert numbers.number(math.nan) == "–"
    assert numbers.joined(["one"]) == "one"
    assert numbers.unit(10.0) == "units of log 10"


def test_every_word_is_explained_in_one_sentence(result):
    for text in GLOSSARY.values():
        assert text.endswith(".")
        assert text.count(". ") == 0
    used = [
        tables.detection_table(result),
        tables.calibration_table(result.calibration, "ID"),
        tables.sets_table(result, result.sets),
        tables.selective_table(result.selective),
    ]
    for table in used:
        for column in table.columns:
            assert column.word is None or GLOSSARY[column.word]


def test_the_better_cell_is_marked_by_what_is_shown():
    cells = [Cell("1.00", 1.001), Cell("1.00", 1.002), Cell("0.90", 0.9)]
    assert [cell.best for cell in mark_best(cells)] == [True, True, False]
    assert [cell.best for cell in mark_best(cells, lower=True)] == [False, False, True]
    assert not any(cell.best for cell in mark_best(cells[:2]))
    assert [cell.best for cell in mark_best([Cell("–"), *cells])] == [False, True, True, False]


def test_the_detection_table_holds_the_numbers(result):
    table = tables.detection_table(result)
    assert len(table.rows) == 4
    parts = [(one, detector) for one in result.ood for _, detector in one.detectors()]
    for row, (one, part) in zip(table.rows, parts, strict=True):
        assert row[0].text == one.name
        assert [row[2].value, row[3].value] == [part.credal.auroc, part.classical.auroc]
        assert [row[7].value, row[8].value] == [part.credal.fpr95, part.classical.fpr95]
        assert row[4].value == part.difference.auroc.difference
        lower = min(part.credal.fpr95, part.classical.fpr95)
        assert all(cell.best == (cell.value == lower) for cell in row[7:9]) or row[7].text == row[8].text


def test_the_narrow_table_says_the_same(result):
    wide, narrow = tables.detection_table(result), tables.narrow_detection_table(result)
    for place, row in enumerate(wide.rows):
        credal, averaging = narrow.rows[2 * place : 2 * place + 2]
        assert [cell.text for cell in (*credal[2:5], *averaging[2:5])] == [row[k].text for k in (2, 5, 7, 3, 6, 8)]
        assert credal[5] == row[4]
        assert averaging[5].text == ""
    assert [row[0].text for row in narrow.rows] == ["flat", "", "", "", STRANGE, "", "", ""]


def test_threshold_and_members_tables(result):
    table = tables.threshold_table(result, 0.05)
    chosen = [alarm for alarm in result.thresholds if alarm.threshold.false_alarm_rate == 0.05]
    assert [row[2].value for row in table.rows] == [alarm.threshold.value for alarm in chosen]
    assert [row[-1].value for row in table.rows] == [alarm.caught[STRANGE] for alarm in chosen]
    members = tables.members_table(result.members_needed)
    assert [row[0].value for row in members.rows] == [1, 2, 3, 4]
    assert members.rows[-1][1].note == ""
    assert members.rows[1][1].note.startswith("± ")


def printed(result, width):
    buffer = io.StringIO()
    print_result(result, Console(file=buffer, width=width, color_system=None))
    return buffer.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_tables_and_words_as_written(result, width):
    text = printed(result, width)
    assert f"{100 * result.ood[0].epistemic.credal.auroc:.2f}" in text
    assert f"{result.calibration.averaged.nll:.4f}" in text
    assert all(len(line) <= width for line in text.splitlines())
    assert "".join(STRANGE.split()) in "".join(text.split())
    assert "".join(result.words.headline.split()) in "".join(text.split())


def test_the_terminal_without_labels(result):
    assert "Point prediction" in printed(result, 80)
    assert "Point prediction" not in printed(replace(result, calibration=None), 80)


def test_html_cells_carry_values_to_sort_by():
    table = Table(
        "A & B",
        (Column("Name", text=True), Column("AUROC", "AUROC")),
        ((Cell("<i>", "<i>"), Cell("0.50", 0.5, "0.4 to 0.6", best=True)), (Cell("b", "b"), Cell("", None))),
    )
    page = to_html(table)
    assert "<caption>A &amp; B</caption>" in page
    assert "&lt;i&gt;" in page
    assert "<i>" not in page
    assert 'data-value="0.5"' in page
    assert 'data-value=""' in page
    assert f'title="{GLOSSARY["AUROC"]}"' in page
    assert "<strong" in page
    assert "<small>0.4 to 0.6</small>" in page


def test_rich_cells_are_no_markup():
    table = Table("[bold]", (Column("[x]", text=True),), ((Cell("[red]a[/red]"),),))
    buffer = io.StringIO()
    Console(file=buffer, width=60, color_system=None).print(to_rich(table))
    assert all(text in buffer.getvalue() for text in ("[bold]", "[x]", "[red]a[/red]"))
