"""Advice about guards follows the data, and what they keep stands in a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.presets import get_preset
from credalens_paper.findings.advice.guards import guard_advice
from credalens_paper.findings.guard_table import guards_table
from credalens_paper.results.records import Panel, Provenance
from reproduction.tests.findings.test_advice import ranked
from reproduction.tests.findings.test_findings import cell, figure, lines, table

PRESET = get_preset("smoke").changed(repeats=7)
MADE = Provenance(date="", commit=None, hardware=None, versions={}, preset=PRESET, engine=None)


def guards(*cells):
    return replace(table("GuardPromises", *cells), provenance=MADE)


def guarded(turned_away, accepted, *, halved=None, alarms=5.0, left=40.0, broken=5.0):
    """What guards by some scores do to the inputs of two networks, of which the second has two more points on two sets."""
    cells = []
    for backbone, ood_sets in {"vgg16": ("svhn",), "resnet18": ("svhn", "tiny-imagenet")}.items():
        shared = {"backbone": backbone, "method": "DE", "id_set": "cifar10"}
        more = 2.0 * (len(ood_sets) - 1)
        for metric, shares in {"turned_away": turned_away, "halved_turned_away": halved or turned_away}.items():
            for name, share in shares.items():
                cells += [cell(share + more, metric=metric, measure=name, ood_set=one, **shared) for one in ood_sets]
        for name, share in accepted.items():
            kept = {
                "false_alarms": alarms,
                "halved_left": left,
                "halved_broken": broken,
                "halved_accepted": share + more,
            }
            cells += [cell(value, metric=metric, measure=name, **shared) for metric, value in kept.items()]
        for side in ("classical", "credal"):
            sets = {"coverage": 95.0, "classes_in_set": 1.5 if side == "credal" else 1.25}
            cells += [cell(value, metric=metric, variant=side, **shared) for metric, value in sets.items()]
    return guards(*cells)


@pytest.mark.parametrize(("best", "worst"), [("total", "epistemic"), ("epistemic", "total")])
@pytest.mark.parametrize("mild", [60.0, 85.0])
def test_a_guard_uses_the_score_that_catches_most(best, worst, mild):
    turned, accepted = ({best: x, "mean_total": x - 1, worst: x - 30} for x in (70.0, 50.0))
    halved = {best: 90.0, "mean_total": 99.0, worst: 95.0}
    corrupted = Panel(
        title="VGG16",
        keys=CellKey(metric="AUROC", measure="TU"),
        metric="AUROC (%)",
        series=lines([50, 60], [mild, 90]),
    )
    advice = guard_advice([guarded(turned, accepted, halved=halved), figure("OODTUVggRes", corrupted)])
    assert advice.do.endswith(f"with `{best}` as its score")
    assert "had 5.0 % (2 kinds of network, 3 scores)" in advice.because
    shares = f"by `{best}` (70 to 72 % by network and data), 70 % by `mean_total`, 41 % by `{worst}`."
    assert f"turned away 71 % of the unknown inputs {shares}" in advice.because  # each network counts once
    assert f"accepted 51 % of the known and turned away 91 % of the unknown inputs by `{best}`." in advice.because
    assert ("Do not expect one to notice" in advice.because) == (mild == 60.0)


def test_scores_that_turn_away_as_few_are_named_together():
    turned = {"total": 70.0, "mean_total": 60.0, "epistemic": 20.1, "mean_epistemic": 20.0}
    advice = guard_advice([guarded(turned, turned)])
    assert ", 61 % by `mean_total`, 21 % by `epistemic` and `mean_epistemic`." in advice.because


@pytest.mark.parametrize(("ahead", "advised"), [(0.4, "total"), (0.6, "mean_total")])
def test_a_guard_uses_the_score_to_rank_by_unless_another_clearly_catches_more(ahead, advised):
    shares = {"mean_total": 70.0, "total": 70.0 - ahead}
    by_rank = ranked({"total": (90, 90, 90), "mean_total": (80, 80, 80), "epistemic": (70, 70, 70)})
    shown = guarded(shares, shares)
    assert guard_advice([shown, by_rank]).do.endswith(f"with `{advised}` as its score")
    assert guard_advice([shown]).do.endswith("with `mean_total` as its score")


def test_a_guard_that_promises_few_errors_may_need_another_score():
    turned, accepted = {"total": 70.0, "least_confidence": 60.0}, {"total": 80.0, "least_confidence": 85.0}
    advice = guard_advice([guarded(turned, accepted)])
    assert "with `total` as its score, or with `least_confidence` if it is to promise few errors" in advice.do
    other = "81 % of the known and turned away 71 % of the unknown inputs by `total`"
    sure = "accepted 86 % of the known and turned away 61 % of the unknown inputs by `least_confidence`"
    assert f"{sure}, {other}" in advice.because
    assert guard_advice([]) is None


def test_what_guards_keep_stands_in_a_row_for_each_kind_of_network_that_is_measured_whole():
    shares = {"total": 70.0, "mean_total": 65.0}
    whole = guarded(shares, {"total": 80.0}, halved={"total": 90.0}, left=46.0)
    part = cell(5.0, metric="false_alarms", measure="total", backbone="vit_base", method="DE", id_set="cifar10")
    text = guards_table([guards(*whole.cells, part)])
    first, second, *sets = (
        [part.strip() for part in line.split("|")] for line in text.splitlines() if "CIFAR-10 " in line
    )
    assert first[1:-1] == ["VGG16 on CIFAR-10", "5.0", "70 / 65 / – / –", "80 / – / – / –", "90 / – / – / –", "46"]
    assert second[1:-1] == ["ResNet-18 on CIFAR-10", "5.0", "72 / 67 / – / –", "82 / – / – / –", "92 / – / – / –", "46"]
    assert [row[2:-1] for row in sets] == 2 * [["95.0 / 95.0", "1.25 / 1.50"]]
    assert "halves of the test inputs, 7 for each ensemble" in text
    assert "five\nmembers each, 2 ensembles of a kind" in text
    assert "5 % of the halves had more (5 % by network and score)" in text
    assert text.count("standard error 0.2 points for 10,000 images") == 2
    assert not guards_table([])


def ordered(id_set, *pairs):
    """Networks with their accuracy on what guards accept, and what these turn away, as a mean over two sets."""
    cells = []
    for backbone, (accuracy, turned) in zip(("vit_base", "vgg16", "resnet50", "resnet18", "mlp"), pairs, strict=False):
        shared = {"backbone": backbone, "method": "DE", "id_set": id_set, "measure": "total"}
        cells += [
            cell(accuracy, metric="accepted_ACC", **shared),
            cell(turned - 1, metric="turned_away", ood_set="svhn", **shared),
            cell(turned + 1, metric="turned_away", ood_set="tiny-imagenet", **shared),
        ]
    return cells


RISING = ordered("cifar100", (80, 10), (85, 20), (90, 30))


@pytest.mark.parametrize(
    ("cells", "verb", "correlations"),
    [
        (RISING, "turn", "1.00 over 3 networks for CIFAR-100"),
        (ordered("cifar100", (80, 10), (85, 30), (90, 20)), "need not turn", "0.50 over 3 networks for CIFAR-100"),
        (ordered("cifar100", (80, 20), (85, 20), (90, 20)), "need not turn", "0.00 over 3 networks for CIFAR-100"),
        (ordered("cifar100", *zip(range(80, 85), (1, 2, 4, 3, 5), strict=True)), "turn", "0.90 over 5"),
        (ordered("cifar100", *zip(range(80, 85), (1, 3, 4, 2, 5), strict=True)), "need not turn", "0.70 over 5"),
        (
            [*RISING, *ordered("clinc150", (80, 30), (85, 20), (90, 10))],
            "need not turn",
            "1.00 over 3 networks for CIFAR-100 and -1.00 over 3 networks for CLINC150",
        ),
        ([*RISING, *ordered("clinc150", (80, 30), (85, 20))], "turn", "is 1.00 over 3 networks for CIFAR-100."),
        (
            [*ordered("cifar10", (80, 10)), *ordered("cifar10n", (70, 30), (90, 20))],
            "need not turn",
            "-0.50 over 3 networks for CIFAR-10.",
        ),
    ],
)
def test_more_accurate_networks_are_said_to_turn_away_more_only_if_they_do(cells, verb, correlations):
    """Networks count together that have the same test images, also if some were trained on wrong labels."""
    shares = {"total": 70.0}
    text = guards_table([guards(*guarded(shares, shares).cells, *cells)])
    assert f"More accurate networks {verb} away more" in text
    assert correlations in " ".join(text.split())


def test_two_networks_are_not_put_in_an_order():
    shares = {"total": 70.0}
    pair = ordered("cifar100", (80, 10), (90, 20))
    assert "More accurate networks" not in guards_table([guards(*guarded(shares, shares).cells, *pair)])
