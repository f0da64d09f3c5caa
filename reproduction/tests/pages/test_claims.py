"""Claims of the paper are compared cell by cell, and nothing is said of what was not measured."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from credalens_paper.experiments.cell_keys import CellKey, is_better
from credalens_paper.experiments.paper_numbers import PAPER_FIGURES, PAPER_TABLES
from credalens_paper.pages.claims import AVERAGED, CLAIMS, CREDAL, Claim, Gap, claims_table, gaps, numbers_of, verdict
from credalens_paper.results.records import Panel
from reproduction.tests.pages.made_up import cell, figure, lines, table

LABELS = ["OODMain", "OODMainTU", "GHComparison", "CPUcost", "ece_cifar10_full", "Exactness"]


def test_a_gap_is_the_difference_of_two_cells_that_share_the_keys_asked_for():
    results = [
        table(
            "T",
            cell(90.0, 88.0, N=5, variant="credal", metric="AUROC"),
            cell(89.5, 88.5, n=1, N=25, variant="classical", metric="AUROC"),
            cell(None, 70.0, N=5, variant="credal", metric="AUPRC"),
            cell(60.0, None, N=25, variant="classical", metric="AUPRC"),
        )
    ]
    first, second = numbers_of(results, "T", N=5), numbers_of(results, "T", N=25)
    assert gaps(first, second, on=["metric"]) == [Gap("AUROC", 0.5, -0.5, 1), Gap("AUPRC", None, None, 0)]
    assert len(numbers_of(results, "T", metric=("AUROC", "AUPRC"), J=None)) == 4
    assert numbers_of(results, "T", J=5) == []


def test_without_a_result_the_papers_numbers_are_compared_alone():
    credal, classical = (numbers_of([], "AblationNEUAPP", variant=v) for v in ("credal", "classical"))
    found = gaps(credal, classical, on=["N", "ood_set", "metric"])
    cells = {
        (key.variant, key.N, key.ood_set, key.metric): n for key, n in PAPER_TABLES["AblationNEUAPP"].cells.items()
    }
    means = [cells[variant, 5, "svhn", "AUROC"].mean for variant in ("credal", "classical")]
    assert round(means[0] - means[1], 6) in {gap.paper for gap in found}
    assert {gap.ours for gap in found} == {None}


@pytest.mark.parametrize(
    ("metric", "limit", "means", "expected"),
    [
        ("AUROC", None, (1.0, 2.0), "yes"),
        ("AUROC", None, (1.0, -2.0), "partly"),
        ("ECE", None, (0.1, 0.2), "no"),
        ("ECE", None, (-0.1, -0.2), "yes"),
        ("ACC", 0.5, (-0.4, 0.5), "yes"),
        ("ACC", 0.5, (-0.4, 0.6), "partly"),
        ("ACC", None, (None, None), "not measured"),
    ],
)
def test_verdicts_by_hand(metric, limit, means, expected):
    cells = []
    for place, mean in zip(("svhn", "tiny-imagenet"), means, strict=True):
        cells.append(cell(mean, variant="credal", ood_set=place, metric=metric))
        cells.append(cell(0.0, variant="classical", ood_set=place, metric=metric))
    claim = Claim("?", "T", CREDAL, AVERAGED, {}, ("ood_set", "metric"), limit)
    assert verdict(claim, claim.gaps([table("T", *cells)])) == expected


def test_points_of_a_figure_are_cells_of_a_claim():
    keys = CellKey(N=3, metric="ECE")
    measured = Panel(title="N = 3", keys=keys, series=lines([0.1, 0.3], [0.2, 0.1]))
    results = [figure("F", measured, Panel(title="N = 5", reason="?"))]
    claim = Claim("?", "F", CREDAL, AVERAGED, {}, ("N", "severity"))
    found = claim.gaps(results)
    assert [(gap.ours, gap.n, is_better(gap.metric, gap.ours)) for gap in found] == [(0.1, 15, False), (-0.2, 15, True)]
    assert verdict(claim, found) == "partly"


def test_every_claim_is_about_cells_that_the_paper_or_our_tables_have(smoke_results):
    """Claims about metrics that the paper only draws have cells of ours alone."""
    results = [smoke_results[label] for label in LABELS]
    for claim in CLAIMS:
        found = claim.gaps(results)
        assert found or claim.label in set(PAPER_FIGURES) - set(LABELS), claim.text
        assert {claim.label, claim.other} & set(LABELS) or all(gap.paper is not None for gap in found)
    text = claims_table(results)
    assert text.partition("\n\n")[0].count("\n") == len(CLAIMS) + 1
    assert "8 of 8 cells, +0.75 to +5.46" in text  # the paper's ensembles against its distilled networks
    assert f"not measured: {len(CLAIMS)}." in claims_table([])


def test_a_claim_that_was_measured_on_another_network_says_so():
    keys = {"backbone": "resnet50", "method": "DE", "N": 5, "measure": "EU", "metric": "AUROC", "ood_set": "svhn"}
    pair = (cell(mean, variant=variant, **keys) for variant, mean in (("classical", 80.0), ("credal", 81.0)))
    cells = [replace(one, substitutes={"backbone": "resnet18"}) for one in pair]
    assert "`AblationPreTrain` (ResNet-18 for ResNet-50)" in claims_table([table("AblationPreTrain", *cells)])
    assert "`AblationPreTrain` |" in re.sub(" +", " ", claims_table([]))
