"""Mistakes are sorted by how near they come to the paper's numbers, whichever they are."""

from __future__ import annotations

from credalens_paper.findings.mistakes import mistakes_sentence, mistakes_table
from reproduction.tests.findings.test_findings import cell, table


def given(preparation, accuracy, ece, **keys):
    about = {"preparation": preparation, "ood_set": "cifar10-c", "backbone": "resnet18", "variant": "classical", **keys}
    return cell(accuracy, 26.0, metric="ACC", **about), cell(ece, 0.3, metric="ECE", **about)


def test_a_mistake_must_reproduce_accuracy_and_ece_of_all_networks():
    cells = (*given("trained", 74.0, 0.1), *given("swapped", 28.0, 0.32), *given("bytes", 24.0, 0.6))
    sentence = mistakes_sentence([table("CorruptedMistakes", *cells)])
    assert "and 0.05 of its ECEs: height and width swapped. " in sentence
    assert (
        "accuracies alone: 0 to 255, not normalised. Of its ECEs alone: none. Farther from both: as in training. "
        in sentence
    )
    assert "Nearest by both is height and width swapped, accuracy off by +2.00, ECE by +0.020." in sentence
    other = given("swapped", 40.0, 0.3, backbone="vgg16")
    sentence = mistakes_sentence([table("CorruptedMistakes", *cells, *other)])
    assert "of its ECEs: none. " in sentence
    assert "Of its ECEs alone: height and width swapped. " in sentence
    assert (
        "Nearest by both is height and width swapped, accuracy off by +2.00 to +14.00, ECE by +0.000 to +0.020."
        in sentence
    )


def test_the_table_ends_with_the_papers_numbers():
    both = (*given("trained", 74.0, 0.1), *given("trained", 73.0, 0.05, variant="credal"))
    clean = given("trained", 93.0, 0.01, ood_set=None)
    rows = mistakes_table([table("CorruptedMistakes", *both, *clean)]).splitlines()
    assert [value.strip() for value in rows[-2].split("|")[1:-1]] == [
        "as in training",
        "74.00 / 73.00",
        "0.100 / 0.050",
    ]
    assert [value.strip() for value in rows[-1].split("|")[1:-1]] == ["the paper", "26.00 / 26.00", "0.300 / 0.300"]


def test_nothing_is_said_of_what_was_not_measured():
    half = given("trained", 74.0, None)
    assert mistakes_sentence([]) == mistakes_sentence([table("CorruptedMistakes", *half)]) == ""
    assert mistakes_table([]) == mistakes_sentence([table("OODMain", *half)]) == ""
