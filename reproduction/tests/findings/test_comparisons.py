"""Credal against averaging: what counts as a cell, and what the reduction of classes costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.findings.advice.solver import lost_by_reduction
from credalens_paper.findings.comparisons import cells, comparisons, losses_table, tally_table
from credalens_paper.findings.tally import Tally
from credalens_paper.results.records import Difference, Improvement, TableResult
from reproduction.tests.findings.test_findings import cell, table

ENSEMBLE = {"backbone": "resnet18", "method": "DE", "N": 5}


def compared(*differences, label="T"):
    """A table of credal less classical under some keys each."""
    cells, improvements = [], []
    for mean, keys in differences:
        key = CellKey(variant="credal", **{**ENSEMBLE, "id_set": "cifar10", **keys})
        better = "credal" if (mean > 0) == (key.metric in ("AUROC", "ACC")) else "classical"
        cells.append(cell(0.0, **key.as_dict()))
        improvements.append(
            Improvement(keys=key, paper=None, ours=Difference(mean, None, 1, better == "credal", better))
        )
    bare = table(label, *cells)
    return TableResult(**{**vars(bare), "improvements": tuple(improvements)})


def detection(mean, measure="EU", **keys):
    return mean, {"measure": measure, "metric": "AUROC", "ood_set": "svhn", **keys}


@given(st.lists(st.floats(-5, 5), min_size=1), st.sampled_from(["AUROC", "ECE"]))
def test_a_tally_turned_round_picks_the_other_way(differences, metric):
    tally, turned = Tally(metric, tuple(differences)), Tally(metric, tuple(-one for one in differences))
    swap = {"first": "second", "second": "first", "neither": "neither"}
    assert turned.pick("first", "second", "neither") == swap[tally.pick("first", "second", "neither")]
    assert (turned.won, turned.lost) == (tally.lost, tally.won)


def test_a_comparison_that_another_table_repeats_from_rounded_predictions_is_counted_once():
    first, again = compared(detection(2.0, N=5), label="A"), compared(detection(2.00001, N=5), label="B")
    other = compared(detection(2.1, N=5), label="C")
    assert [entry.label for entry in comparisons([first, again, other])] == ["A", "C"]


def test_a_cell_is_the_mean_over_the_runs_of_all_tables_that_measured_it():
    first, second = (
        compared(detection(2.0, N=5), detection(1.0, N=3), label="A"),
        compared(detection(-1.0, N=5), label="B"),
    )
    means = {entry.keys.N: (entry.ours.mean, entry.ours.n, entry.ours.wins) for entry in cells([first, second])}
    assert means == {5: (0.5, 2, 1), 3: (1.0, 1, 1)}


def test_reduced_sets_are_no_cells_and_are_named_where_they_lose():
    exact, reduced = compared(detection(2.0, N=5), label="A"), compared(detection(-1.0, N=5, J=20), label="B")
    assert [entry.label for entry in cells([exact, reduced])] == ["A"]
    assert "ResNet-18 DE, N = 5, J = 20" in losses_table(comparisons([exact, reduced]))


@pytest.mark.parametrize("label", ["Overconfident", "Overconfident (scratch)"])
def test_members_made_overconfident_are_no_cells(label):
    plain, spoilt = compared(detection(2.0, N=5)), compared(detection(-1.0, N=5), label=label)
    assert [entry.ours.mean for entry in cells([plain, spoilt])] == [2.0]
    assert len(comparisons([plain, spoilt])) == 2


def test_reducing_classes_is_compared_with_exact_sets_of_the_same_table():
    both = compared(detection(2.0, N=5), detection(-1.0, N=5, J=20), label="A")
    alone = compared(detection(0.0, N=3, J=20), label="B")
    again = compared(detection(2.0, N=5), detection(-1.0, N=5, J=20), label="C")
    assert lost_by_reduction([both, alone, again], "EU").differences == (3.0, 3.0)
    assert not lost_by_reduction([both], "TU")


def test_metrics_are_listed_by_the_names_that_readers_know():
    larger = comparisons([compared((0.25, {"metric": "classes_in_set"}))])
    assert "classes in a set" in losses_table(larger)
    assert "classes in a set" in tally_table(larger)
