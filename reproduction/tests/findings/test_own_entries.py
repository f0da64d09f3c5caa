"""Trimmed intervals, texts and people: every number of a sentence is one of its result."""

from __future__ import annotations

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.findings.people import people_sentence
from credalens_paper.findings.texts import text_sentence, text_table
from credalens_paper.findings.trimming import trim_sentence, trim_table
from credalens_paper.measures.estimates import Estimate
from credalens_paper.results.records import Panel
from reproduction.tests.findings.test_findings import cell, figure, table


def trimmed(N, variants):
    model = {"backbone": "resnet18", "method": "DE", "id_set": "cifar100", "N": N}
    for variant, (ece, *aurocs) in variants.items():
        yield cell(ece, variant=variant, metric="ECE", **model)
        for ood_set, auroc in zip(("svhn", "tiny-imagenet"), aurocs, strict=True):
            yield cell(auroc, variant=variant, measure="TU", ood_set=ood_set, metric="AUROC", **model)


def test_trims_are_compared_with_whole_sets_and_averaging_and_losses_are_marked():
    many = {"classical": (0.01, 80, 82), "credal": (0.09, 84, 86), "trim10": (0.02, 81, 83), "trim20": (0.11, 84, 88)}
    few = {"classical": (0.01, 80, 82), "credal": (0.02, 84, 86), "trim10": (0.02, 84, 86)}
    results = [table("TrimmedIntervals", *trimmed(15, many), *trimmed(5, few))]
    sentence = trim_sentence(results)
    assert "deep ensembles: ECE in 1 of 1 cells (-0.070), AUROC by TU in 0 of 1 cells (-3.00)" in sentence
    assert "ECE below averaging's in 0 of 1" in sentence
    assert "Bayesian" not in sentence
    shown = trim_table(results)
    assert "0.010 / 0.090 / – / 0.020 / 0.110↓" in shown
    assert "81.00 / 85.00 / – / 82.00↓ / 86.00" in shown
    assert "0.010 / 0.020 / – / – / –" in shown  # a tenth of five is nobody
    assert trim_sentence([]) == trim_table([]) == ""


def panels(title, *parts):
    keys = CellKey(metric="", method="DE")
    return [
        Panel(
            title=title,
            keys=keys,
            n=3,
            estimates=tuple(Estimate(name, mean, mean - 0.5, mean + 0.5) for name, mean in part),
        )
        for part in parts
    ]


def test_texts_name_the_best_score_the_differences_and_what_a_guard_catches():
    scores = (("credal total", 94.0), ("credal epistemic", 90.0), ("entropy of p*", 95.0))
    gains = (
        ("credal total less entropy of the mean", -0.25),
        ("credal epistemic less mutual information", 1.25),
    )
    guard = (("caught, credal total", 70.0), ("caught, credal epistemic", 30.0))
    point = [
        cell(value, variant=variant, method="DE", metric=metric)
        for metric, pair in {"ECE": (0.02, 0.03), "NLL": (0.4, 0.5)}.items()
        for variant, value in zip(("classical", "credal"), pair, strict=True)
    ]
    results = [figure("TextScores", *panels("MLP DE", scores, gains, guard)), table("TextIntents", *point)]
    sentence = text_sentence(results)
    assert "DE: best by entropy of p* (95.00), credal total 94.00;" in sentence
    assert "TU -0.25 (-0.75 to +0.25), EU +1.25 (+0.75 to +1.75)" in sentence
    assert "caught 70 % by credal total, 30 % by credal epistemic" in sentence
    assert "credal total is 1.00 below the best score of a method, credal epistemic 5.00." in sentence
    assert "lower ECE and NLL with 1 of 1 methods" in sentence
    assert "0.020 / 0.030" in text_table(results)
    assert text_sentence([]) == text_table([]) == ""


def test_people_are_compared_with_every_uncertainty():
    parts = (
        (("credal TU", 0.39), ("averaged EU", 0.35)),
        (("credal AU less credal EU", 0.0),),
        (("all classes", 14.0),),
    )
    sentence = people_sentence([figure("HumanDisagreement", *panels("ResNet-18 DE", *parts))])
    assert "ResNet-18 DE: 0.350 to 0.390, credal AU less EU +0.000 (-0.500 to +0.500)" in sentence
    assert "for 14.0 % of the images" in sentence
    assert "in 0 of 1 kinds of network" in sentence
    assert people_sentence([]) == ""
