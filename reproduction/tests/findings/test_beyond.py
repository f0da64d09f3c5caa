"""What the tables of our own say: every number of a sentence is one of its table."""

from __future__ import annotations

from pathlib import Path

import pytest

from credalens_paper.findings.beyond import backbone_note, near_sentence, noise_sentence, tuned_sentence
from credalens_paper.results.records import read_results
from reproduction.tests.findings.test_findings import cell, table

SCRATCH = Path(__file__).parents[3] / "results" / "scratch"


def detection(credal, classical, measure, **keys):
    shared = {"measure": measure, "metric": "AUROC", "backbone": "resnet18", "ood_set": "svhn", **keys}
    return cell(credal, variant="credal", **shared), cell(classical, variant="classical", **shared)


def means(variant, measure, clean, noisy):
    keys = {"variant": variant, "measure": measure, "metric": "mean"}
    return cell(clean, id_set="cifar10", **keys), cell(noisy, id_set="cifar10n", **keys)


@pytest.mark.parametrize(("label", "sentence_of"), [("NearOOD", near_sentence), ("FineTuned", tuned_sentence)])
def test_unknowns_are_counted_by_measure(label, sentence_of):
    one_way, back = {"id_set": "cifar10", "ood_set": "cifar100"}, {"id_set": "cifar100", "ood_set": "cifar10"}
    pairs = (
        *detection(80.0, 79.0, "EU", **one_way),
        *detection(70.0, 72.0, "EU", **back),
        *detection(81.0, 80.5, "TU", **one_way),
        detection(80.5, None, "GH", **one_way)[0],
    )
    sentence = sentence_of([table(label, *pairs)])
    assert "credal EU beats mutual information in 1 of 2 cells, -2.00 to +1.00" in sentence
    assert "Hartley measure beats mutual information in 1 of 1 cells, +1.50" in sentence
    assert "credal TU beats classical TU in 1 of 1 cells, +0.50" in sentence
    assert sentence_of([]) == sentence_of([table(label, *pairs[:4])]) == ""


def test_near_unknowns_of_both_tables_count_and_far_ones_do_not():
    near = [one for name in ("EU", "TU") for one in detection(80.0, 79.0, name, id_set="cifar10", ood_set="cifar100")]
    far = [one for name in ("EU", "TU") for one in detection(70.0, 79.0, name, id_set="cifar10", ood_set="svhn")]
    hartley = detection(79.5, None, "GH", id_set="cifar10", ood_set="cifar100")[0]
    sentence = near_sentence([table("NearOOD", *near, hartley), table("FineTuned", *near, *far, hartley)])
    assert sentence.count("2 of 2 cells, +1.00") == 2
    assert "Hartley measure beats mutual information in 2 of 2 cells, +0.50" in sentence


def test_noise_names_what_rises_and_counts_the_noisy_cells_alone():
    uncertainties = [
        one
        for variant in ("classical", "credal")
        for measure, pair in {"AU": (0.1, 1.5), "EU": (0.2, 0.25)}.items()
        for one in means(variant, measure, *pair)
    ]
    pairs = (
        *detection(60.0, 75.0, "EU", id_set="cifar10n"),
        *detection(90.0, 88.0, "EU", id_set="cifar10"),
        *detection(91.0, 90.0, "TU", id_set="cifar10n"),
        detection(77.0, None, "GH", id_set="cifar10n")[0],
    )
    sentence = noise_sentence([table("LabelNoise", *uncertainties, *pairs)])
    assert "classical AU 0.100 to 1.500" in sentence
    assert "credal EU 0.200 to 0.250" in sentence
    assert "credal EU beats mutual information in 0 of 1 cells, -15.00" in sentence
    assert "Hartley measure beats mutual information in 1 of 1 cells, +2.00" in sentence
    assert noise_sentence([table("LabelNoise", *pairs)]) == noise_sentence([]) == ""


def test_networks_from_random_weights_are_noted_with_their_pixels_and_accuracy():
    results = read_results(SCRATCH)
    note = backbone_note(results)
    assert "ResNet-50 at 64 pixels" in note
    assert "ViT-B at 32 pixels" in note
    assert backbone_note([result for result in results if result.label != "AblationBackbones"]) == ""
