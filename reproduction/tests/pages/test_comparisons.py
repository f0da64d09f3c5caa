"""Credal against averaging: what counts as a cell, every loss, and which prediction is the better one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.pages.claims import Tally
from credalens_paper.pages.comparisons import (
    by_data,
    by_network,
    cells,
    comparisons,
    losses_table,
    networks_table,
    predictions_table,
    tally_table,
)
from credalens_paper.results.records import Panel, TableResult
from reproduction.tests.pages.made_up import ENSEMBLE, compared, detection, figure, lines

CLEAN = "clean images of 10 classes"


@given(st.lists(st.floats(-5, 5), min_size=1), st.sampled_from(["AUROC", "ECE"]))
def test_a_tally_turned_round_picks_the_other_way(differences, metric):
    tally, turned = Tally(metric, tuple(differences)), Tally(metric, tuple(-one for one in differences))
    swap = {"first": "second", "second": "first", "neither": "neither"}
    assert turned.pick("first", "second", "neither") == swap[tally.pick("first", "second", "neither")]


def test_a_tally_of_nothing_picks_neither():
    assert Tally("AUROC", ()).pick("first", "second", "neither") == "neither"


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


def test_metrics_are_listed_by_the_names_that_readers_know():
    larger = comparisons([compared((0.25, {"metric": "classes_in_set"}))])
    assert "classes in a set" in losses_table(larger)
    assert "classes in a set" in tally_table(larger)


def test_every_loss_is_listed_and_no_win(smoke_results):
    results = list(smoke_results.values())
    losses = losses_table(comparisons(results))
    shared = {  # comparisons that two tables have are listed once
        (entry.keys, entry.ours.mean)
        for result in results
        if isinstance(result, TableResult) and result.label != "CorruptedMistakes"
        for entry in result.improvements
        if entry.ours and entry.ours.better == "classical" and entry.keys.id_set
    }
    assert "(win," not in losses
    assert 0 < losses.count("\n| `") == len(re.findall(r"\(loss, \d+ of \d+ runs\)", losses)) <= len(shared)
    assert "CPUcost" not in losses


def test_networks_have_a_tally_for_each_measure():
    results = [compared(detection(1.0, N=3), detection(-2.0), detection(0.5, "GH", backbone="vit_base"))]
    assert by_network(results, "EU")["ResNet-18 on CIFAR-10"].text == "1 of 2 cells, -2.00 to +1.00"
    assert re.search(r"\| ViT-Base on CIFAR-10 +\| – +\| 1 of 1 cells, \+0.50 +\| – +\|", networks_table(results))


@pytest.mark.parametrize(("sign", "better"), [(1, "the average"), (-1, "the intersection probability")])
def test_the_better_prediction_of_each_kind_of_data(sign, better):
    metrics = {"ACC": 0.1, "ECE": 0.01, "NLL": 0.02}
    clean = [(sign * value, {"metric": metric}) for metric, value in metrics.items()]
    corrupted = [(-sign * value, {"metric": metric, "ood_set": "cifar10-c"}) for metric, value in metrics.items()]
    results = [compared(*clean, *corrupted)]
    first, second = (line for line in predictions_table(results).splitlines()[2:])
    assert first.startswith(f"| {CLEAN} ")
    assert f"| {better} " in first
    assert "| corrupted images of 10 classes |" in second
    assert f"| {better} " not in second
    bayesian = compared(*((mean, {**keys, "method": "BNNR"}) for mean, keys in clean))
    assert list(by_data([bayesian])) == [(CLEAN, "Bayesian samples", True)]


@pytest.mark.parametrize(
    ("ece", "nll", "better"),
    [
        ((1, -1), (1, 1), "the average"),  # ECE is undecided
        ((-1, -1), (-1, 1), "either"),
        ((-1, -1), (1, 1), "either"),
        ((-1, 1), (-1, 1), "either"),
        ((-1, -1), (-1, -1), "the intersection probability"),
    ],
)
def test_the_average_is_better_where_one_metric_is_for_it_and_none_against_it(ece, nll, better):
    means = [
        (value, {"metric": metric, "backbone": backbone})
        for metric, values in (("ECE", ece), ("NLL", nll))
        for backbone, value in zip(("vgg16", "resnet18"), values, strict=True)
    ]
    assert predictions_table([compared(*means)]).endswith(f" {better} |")


def drawn(metric, *means, id_set="cifar100", n=1):
    """A figure against severity: the averaged and the credal line of an ensemble."""
    keys = CellKey(**ENSEMBLE, variant="classical", id_set=id_set, ood_set=f"{id_set}-c", metric=metric)
    label = f"{metric.lower()}_cifar10_100_de"
    return figure(label, Panel(title="P", keys=keys, substitutes={}, metric=metric, series=lines(*means, n=(n, n))))


def test_trainings_of_one_kind_of_network_are_one_cell_in_figures_too():
    better, worse = drawn("ECE", [0.2, 0.4], [0.1, 0.3]), drawn("ECE", [0.2, 0.4], [0.25, 0.35], n=3)
    log_losses = [drawn("NLL", [1.0, 2.0], [1.0, 1.6]), drawn("NLL", [1.0, 2.0], [1.0, 1.8], n=3)]
    ((case, tallies),) = by_data([better, worse, *log_losses]).items()
    assert case[0] == "corrupted images of 100 classes"
    assert tallies["ECE"].differences == pytest.approx((-0.025,))  # the mean over four runs
    assert predictions_table([worse, better, *log_losses]) == predictions_table([better, worse, *log_losses])


def test_networks_that_only_figures_show_on_corrupted_images_count_and_those_of_tables_once():
    figures = [drawn("ECE", [0.2, 0.4], [0.1, 0.3]), drawn("NLL", [1.0, 2.0], [1.0, 1.6])]
    assert re.search(r"\| – +\| 1 of 1 cells, -0.100 +\| 1 of 1 cells, -0.200 +\|", predictions_table(figures))
    metrics = {"ACC": 0.1, "ECE": -0.1, "NLL": -0.2}
    in_table = compared(*((mean, {"metric": metric, "ood_set": "cifar10-c"}) for metric, mean in metrics.items()))
    same = [drawn("ECE", [0.2, 0.4], [0.1, 0.3], id_set="cifar10")]
    assert predictions_table([in_table, *same]) == predictions_table([in_table])
