"""Advice from tables: every number of a sentence is one of its table."""

from __future__ import annotations

from credalens_paper.findings.advice import score_ranks_sentence
from reproduction.tests.findings.test_findings import cell, table


def ranked(auroc, measure, ood_set):
    variant = "classical" if measure.startswith("mean_") else "credal"
    return cell(
        auroc, variant=variant, measure=measure, metric="AUROC", id_set="cifar10", backbone="vgg16", ood_set=ood_set
    )


def test_scores_are_ranked_and_chosen_without_the_pair_they_are_used_on():
    aurocs = {"total": (90, 80, 70), "epistemic": (80, 90, 60), "mean_total": (70, 70, 80)}
    sets = ("svhn", "tiny-imagenet", "cifar100")
    cells = [ranked(value, name, of) for name, values in aurocs.items() for value, of in zip(values, sets, strict=True)]
    sentence = score_ranks_sentence([table("ScoreCatalogue", *cells)])
    assert "Of 3 scores over 3 pairs" in sentence
    assert "credal total 1.7, credal epistemic 2.0, entropy of the mean 2.3" in sentence
    assert "is credal total for" in sentence
    assert score_ranks_sentence([]) == ""
