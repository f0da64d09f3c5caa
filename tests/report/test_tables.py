"""Tables: the better cell is marked, and names are shown as they are written."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from credalens.core.scores import SCORES
from credalens.evaluation import evaluate
from credalens.report import tables
from credalens.report.page import glossary
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


def test_headings_are_words_of_the_glossary(result):
    used = [
        tables.detection_table(result),
        tables.calibration_table(result.calibration, "ID"),
        tables.sets_table(result, result.sets),
        tables.selective_table(result.selective),
    ]
    for table in used:
        for column in table.columns:
            assert column.word is None or glossary()[column.word]


def test_the_better_cell_is_marked_by_what_is_shown():
    cells = [Cell("1.00", 1.001), Cell("1.00", 1.002), Cell("0.90", 0.9)]
    assert [cell.best for cell in mark_best(cells)] == [True, True, False]
    assert [cell.best for cell in mark_best(cells, min)] == [False, False, True]
    assert not any(cell.best for cell in mark_best(cells[:2]))
    assert [cell.best for cell in mark_best([Cell("–"), *cells])] == [False, True, True, False]


def test_the_detection_table_holds_the_numbers(result):
    table = tables.detection_table(result)
    assert len(table.rows) == 4
    parts = [(one, detector) for one in result.ood for _, detector in one.detectors()]
    for row, (one, part) in zip(table.rows, parts, strict=True):
        assert row[0].text == one.name
        assert [row[2].value, row[3].value] == [part.credal.auroc, part.averaged.auroc]
        assert [row[7].value, row[8].value] == [part.credal.fpr95, part.averaged.fpr95]
        assert row[4].value == part.difference.auroc.difference
        lower = min(part.credal.fpr95, part.averaged.fpr95)
        assert all(cell.best == (cell.value == lower) for cell in row[7:9]) or row[7].text == row[8].text


def test_the_narrow_table_says_the_same(result):
    wide, narrow = tables.detection_table(result), tables.detection_table(result, narrow=True)
    for place, row in enumerate(wide.rows):
        credal, averaged = narrow.rows[2 * place : 2 * place + 2]
        assert [cell.text for cell in (*credal[2:5], *averaged[2:5])] == [row[k].text for k in (2, 5, 7, 3, 6, 8)]
        assert credal[5] == row[4]
        assert averaged[5].text == ""
    assert [row[0].text for row in narrow.rows] == ["flat", "", "", "", STRANGE, "", "", ""]


def test_threshold_and_members_tables(result):
    table = tables.threshold_table(result, 0.05)
    chosen = [alarm for alarm in result.thresholds if alarm.threshold.false_alarm_rate == 0.05]
    assert [row[1].value for row in table.rows] == [alarm.threshold.value for alarm in chosen]
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


def test_a_narrow_terminal_breaks_names_between_words_and_shows_every_number():
    name, titles = "1 - max of the mean (mean_least_confidence)", [f"a-long-name-{place}" for place in range(5)]
    columns = (Column("Score", text=True), *map(Column, titles))
    table = Table("Scores", columns, ((Cell(name), *(Cell(f"{place}.125") for place in range(5))),))
    buffer = io.StringIO()
    console = Console(file=buffer, width=80, color_system=None)
    console.print(to_rich(table, console))
    assert all(word in buffer.getvalue().split() for word in [*name.split(), *(f"{place}.125" for place in range(5))])
    assert all(len(line) <= 80 for line in buffer.getvalue().splitlines())


def test_an_evaluation_gives_its_tables_as_text(result):
    text = result.table()
    assert text == printed(result, 100)
    assert "bold" not in text.lower()
    assert f"*{SCORES[result.recommended.score].label} ({result.recommended.score})" in text


def test_the_terminal_without_labels(result):
    assert "Point prediction" in printed(result, 80)
    bare = printed(replace(result, calibration=None), 80)
    assert "Point prediction" not in bare
    assert "No labels were given" in bare


def test_rich_cells_are_no_markup():
    table = Table("[bold]", (Column("[x]", text=True),), ((Cell("[red]a[/red]"),),))
    buffer = io.StringIO()
    console = Console(file=buffer, width=60, color_system=None)
    console.print(to_rich(table, console))
    assert all(text in buffer.getvalue() for text in ("[bold]", "[x]", "[red]a[/red]"))
