"""Advice follows the data: made-up results that favour the other way turn a sentence round."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.tables import SIZES
from credalens_paper.findings.advice.epistemic import epistemic_advice, epistemic_table
from credalens_paper.findings.advice.limits import limits_advice
from credalens_paper.findings.advice.listing import ADVICE, numbered_advice
from credalens_paper.findings.advice.meaning import meaning_advice
from credalens_paper.findings.advice.members import harmful_size, members_advice, sizes_table
from credalens_paper.findings.advice.prediction import prediction_advice, prediction_table
from credalens_paper.findings.advice.ranking import catalogue, ranking_table
from credalens_paper.findings.advice.samples import samples_advice
from credalens_paper.findings.advice.solver import solver_advice
from credalens_paper.findings.advice.which_score import near_and_far, which_score
from credalens_paper.findings.document import render_findings
from credalens_paper.measures.estimates import Estimate
from credalens_paper.measures.reduction import ReductionEffect
from credalens_paper.measures.solver import SolverEffect, SolverErrors
from credalens_paper.results.records import (
    ExactnessPart,
    ExactnessResult,
    Panel,
    ReductionRun,
    SolverRun,
    TableResult,
    read_results,
)
from reproduction.tests.findings.test_comparisons import ENSEMBLE, compared, detection
from reproduction.tests.findings.test_findings import cell, figure, lines, table

RESULTS = Path(__file__).parents[3] / "results"


def ranked(aurocs, *, id_set="cifar10"):
    """A score's AUROCs on SVHN, Tiny-ImageNet and CIFAR-100."""
    sets = ("svhn", "tiny-imagenet", "cifar100")
    model = {"backbone": "vgg16", "method": "DE", "id_set": id_set, "metric": "AUROC"}
    return table(
        "ScoreCatalogue",
        *(
            cell(value, measure=name, ood_set=ood_set, variant="credal", **model)
            for name, values in aurocs.items()
            for value, ood_set in zip(values, sets, strict=True)
        ),
    )


def estimates(title, *parts):
    return [
        Panel(title=title, keys=CellKey(metric=""), estimates=tuple(Estimate(name, *ends) for name, *ends in part))
        for part in parts
    ]


@pytest.mark.parametrize(("best", "other"), [("total", "epistemic"), ("epistemic", "total")])
def test_the_score_of_the_best_mean_rank_is_advised(best, other):
    results = [ranked({best: (90, 90, 90), other: (80, 95, 80), "mean_total": (70, 70, 70)})]
    advice = which_score(results)
    assert advice.do.startswith(f"Rank inputs by `{best}` (")
    assert (
        f"Of 3 scores it has the best mean rank over 3 pairs of network and unknown data: 1.3; `{other}` has 1.7"
        in advice.because
    )
    assert f"10 classes (CIFAR-10) `{best}`." in advice.because
    assert f"is {'credal ' + best} for" in ranking_table(results)
    assert which_score([]) is None


def test_equal_mean_ranks_are_told_apart_by_mean_auroc_and_the_leader_by_auroc_is_named():
    tied = [ranked({"total": (90, 80, 85), "mean_aleatoric": (80, 95, 85), "epistemic": (70, 70, 70)})]
    assert which_score(tied).do.startswith("Rank inputs by `mean_aleatoric` (")
    ahead = which_score([ranked({"total": (90, 90, 60), "mean_total": (89, 89, 80), "epistemic": (5, 5, 5)})]).because
    assert "1.3; `mean_total` has 1.7, `epistemic` 3.0. By mean AUROC `mean_total` is 6.00 points ahead of it." in ahead


def test_scores_that_are_as_good_as_the_best_one_are_named():
    scores = {
        "total": (90, 90, 90),
        "mean_total": (89.7, 89.7, 90.5),
        "entropy": (89.4, 89.4, 89.4),
        "epistemic": (5, 5, 5),
    }
    advice = which_score([ranked(scores)])
    assert advice.do.startswith("Rank inputs by `total` (")
    assert " By mean AUROC `total` and `mean_total` are within 0.03 points: any of these will do." in advice.because
    assert "any of these" not in which_score([ranked({"total": (90, 90, 90), "epistemic": (5, 5, 5)})]).because


def test_every_kind_of_data_has_its_own_best_score():
    few, many = {"total": (90, 90, 90), "epistemic": (80, 80, 80)}, {"total": (60, 60, 60), "epistemic": (64, 64, 64)}
    text = TableResult(**{**vars(ranked(many, id_set="clinc150")), "label": "TextIntents"})
    advice = which_score([ranked(few), text])
    assert (
        "10 classes (CIFAR-10) `total`; texts (CLINC150) `epistemic` (`total` is 4.00 points of AUROC behind it)."
        in advice.because
    )


def test_near_and_far_unknowns_are_told_apart():
    aurocs = {"total": (80, 90, 90), "mean_aleatoric": (83, 85, 85), "epistemic": (60, 60, 60)}
    advice = near_and_far([ranked(aurocs)])
    assert advice.do.startswith(
        "If you do not know what will come, use `total`. If you do: `total` for near unknowns (CIFAR-10 against CIFAR-100, or "
        "back) and far unknown objects"
    )
    assert advice.do.endswith(
        "`mean_aleatoric` (the mean entropy of the members) for far pictures of another kind (SVHN)"
    )
    assert (
        "For far pictures of another kind (SVHN) `total` is 3.00 points of AUROC behind `mean_aleatoric`."
        in advice.because
    )
    turned = near_and_far([ranked({**aurocs, "epistemic": (99, 99, 99)})])
    assert turned.do == "If you do not know what will come, use `epistemic`"


def test_a_pair_with_a_missing_score_is_left_out():
    whole, part = (
        ranked({"total": (90, 90, 90), "epistemic": (80, 80, 80)}),
        ranked({"total": (1, 1, 1)}, id_set="cifar100"),
    )
    both = table("ScoreCatalogue", *whole.cells, *part.cells)
    assert {pair.id_set for pair in catalogue([both])} == {"cifar10"}


def test_epistemic_uncertainty_names_the_networks_for_which_it_loses():
    wins = [detection(1.0, N=N) for N in SIZES]
    lost = detection(-2.0, backbone="vit_base")
    results = [
        compared(*wins, lost, detection(0.5, "GH", backbone="vit_base")),
        ranked({"total": (9, 9, 9), "epistemic": (8, 8, 8)}),
    ]
    advice = epistemic_advice(results)
    assert "use the credal one (`epistemic`), not mutual information" in advice.do
    assert (
        "better in 6 of 7 cells, but loses for 1 of 2 kinds of network: ViT-Base on CIFAR-10. There the generalized"
        in advice.because
    )
    assert "beats mutual information (1 of 1 cells). Do not rank by `epistemic`" in advice.because
    assert advice.because.endswith("`total` ranks unknown inputs better in 3 of 3 cells.")
    assert "0 of 1 cells, -2.00" in epistemic_table(results)
    unmeasured = epistemic_advice([*results, compared(detection(-1.0, backbone="vgg16"), label="U")])
    assert "mutual information (1 of 1 cells; not measured for VGG16 on CIFAR-10)." in unmeasured.because
    turned = epistemic_advice([compared(*((-mean, keys) for mean, keys in wins))])
    assert "use mutual information (`mean_epistemic`), not the credal one" in turned.do
    assert "loses for 1 of 1 kinds of network: ResNet-18 on CIFAR-10." in turned.because
    assert "measure both" in epistemic_advice([compared(wins[0], lost)]).do


def test_the_few_pairs_are_named_for_which_epistemic_uncertainty_ranks_better():
    most = ranked({"total": (9, 9, 9), "epistemic": (8, 8, 8)}, id_set="clinc150").cells
    few = ranked({"total": (7, 9, 9), "epistemic": (8, 8, 8)}).cells
    advice = epistemic_advice([compared(detection(1.0)), table("ScoreCatalogue", *most, *few)])
    assert advice.because.endswith("better in 5 of 6 cells (not for VGG16 on CIFAR-10 against SVHN).")


def sizes(label, measure, credal, averaged, id_set="cifar10"):
    shared = {"measure": measure, "metric": "AUROC", "ood_set": "svhn", "method": "DE", "id_set": id_set}
    return table(
        label,
        *(cell(value, variant="credal", N=N, **shared) for N, value in credal.items()),
        *(cell(value, variant="classical", N=N, **shared) for N, value in averaged.items()),
    )


def calibration(harmful):
    panels = [
        Panel(
            title=f"N = {N}",
            keys=CellKey(N=N, metric="ECE"),
            metric="ECE",
            series=lines([0.1, 0.3], [0.2 if harmful == N else 0.05, 0.2]),
        )
        for N in SIZES
    ]
    return figure("AblationStudyEnsemble", *panels)


def test_members_are_worth_what_they_add_and_harm_from_the_size_measured():
    total = sizes("AblationNTU", "TU", {5: 90.0, 25: 90.5}, {25: 91.0})
    results = [total, sizes("AblationNEUAPP", "EU", {5: 90.0}, {25: 89.0}), calibration(10)]
    advice = members_advice(results)
    assert advice.do == (
        "Train 5 members; more add little. From 10 on predict with the average, unless inputs are badly corrupted"
    )
    assert "`total` by +0.50 points for 10 classes (CIFAR-10, 25 members)." in advice.because
    assert "average on mildly corrupted images (10 members: severity 1)" in advice.because
    assert "By epistemic uncertainty 5 credal members beat 25 averaged ones" in advice.because
    assert "by total uncertainty they do not (0 of 1 cells)" in advice.because
    assert "91.00 / 90.50" in sizes_table(results)
    turned = members_advice([sizes("AblationNTU", "TU", {5: 90.0, 25: 93.0}, {25: 89.0}), calibration(None)])
    assert turned.do == "Train more than 5 members if you can"
    assert "never harmed" in turned.because
    assert harmful_size([calibration(15)]) == 15


def test_the_number_of_members_is_advised_by_the_data():
    few, many = sizes("AblationNTU", "TU", {5: 90.0, 25: 90.5}, {}), {5: 80.0, 10: 80.8, 15: 81.5}
    texts = [sizes(label, "TU", {N: 95.0}, {}, "clinc150") for label, N in (("TextIntents", 5), ("TrimmedText", 25))]
    advice = members_advice([few, sizes("TrimmedIntervals", "TU", many, {}, "cifar100"), *texts])
    assert advice.do == (
        "Train 5 members for 10 classes and texts, where more add little; train more for 100 classes if you can"
    )
    assert (
        "by +0.50 points for 10 classes (CIFAR-10, 25 members), +1.50 points for 100 classes (CIFAR-100, 15 members) and "
        "+0.00 points for texts (CLINC150, 25 members)." in advice.because
    )


@pytest.mark.parametrize(("sign", "choice"), [(1, "the average"), (-1, "the intersection probability")])
def test_the_better_prediction_is_advised_for_each_kind_of_data(sign, choice):
    metrics = {"ACC": 0.1, "ECE": 0.01, "NLL": 0.02}
    clean = [(sign * value, {"metric": metric}) for metric, value in metrics.items()]
    corrupted = [(-sign * value, {"metric": metric, "ood_set": "cifar10-c"}) for metric, value in metrics.items()]
    results = [compared(*clean, *corrupted)]
    advice = prediction_advice(results)
    assert advice.do.startswith(f"Predict with {choice} for clean images of 10 classes; with")
    assert advice.do.endswith("for corrupted images of 10 classes")
    assert f"clean images of 10 classes {sign * 0.01:+.3f} (1 cell)" in advice.because
    assert re.search(rf"clean images of 10 classes .*\| {choice} ", prediction_table(results))
    bayesian = compared(*((mean, {**keys, "method": "BNNR"}) for mean, keys in clean))
    assert prediction_advice([bayesian]) is None


@pytest.mark.parametrize(
    ("ece", "nll", "choice"),
    [
        ((1, -1), (1, 1), "the average"),  # ECE is undecided
        ((-1, -1), (-1, 1), "either"),
        ((-1, -1), (1, 1), "either"),
        ((-1, 1), (-1, 1), "either"),
        ((-1, -1), (-1, -1), "the intersection probability"),
    ],
)
def test_the_average_is_advised_where_one_metric_is_for_it_and_none_against_it(ece, nll, choice):
    means = [
        (value, {"metric": metric, "backbone": backbone})
        for metric, values in (("ECE", ece), ("NLL", nll))
        for backbone, value in zip(("vgg16", "resnet18"), values, strict=True)
    ]
    advice = prediction_advice([compared(*means)])
    assert advice.do == f"Predict with {choice} for clean images of 10 classes"
    decides = "Where it does not decide, the log loss does: clean images of 10 classes +1.000."
    assert (decides in advice.because) == (choice == "the average")


def test_trainings_of_one_kind_of_network_are_one_cell_in_figures_too():
    better, worse = drawn("ECE", [0.2, 0.4], [0.1, 0.3]), drawn("ECE", [0.2, 0.4], [0.25, 0.35], n=3)
    log_losses = [drawn("NLL", [1.0, 2.0], [1.0, 1.6]), drawn("NLL", [1.0, 2.0], [1.0, 1.8], n=3)]
    advice = prediction_advice([better, worse, *log_losses])
    assert "corrupted images of 100 classes -0.025 (1 cell)." in advice.because  # the mean over four runs
    assert "at the mildest severity for 0 of 1 kinds of network, at the severest for 1." in advice.because
    assert prediction_advice([worse, better, *log_losses]).because == advice.because


def drawn(metric, *means, id_set="cifar100", n=1):
    """A figure against severity: the averaged and the credal line of an ensemble."""
    keys = CellKey(**ENSEMBLE, variant="classical", id_set=id_set, ood_set=f"{id_set}-c", metric=metric)
    label = f"{metric.lower()}_cifar10_100_de"
    return figure(label, Panel(title="P", keys=keys, substitutes={}, metric=metric, series=lines(*means, n=(n, n))))


def test_networks_that_only_figures_show_on_corrupted_images_count_and_those_of_tables_once():
    figures = [drawn("ECE", [0.2, 0.4], [0.1, 0.3]), drawn("NLL", [1.0, 2.0], [1.0, 1.6])]
    advice = prediction_advice(figures)
    assert advice.do == "Predict with the intersection probability for corrupted images of 100 classes"
    assert "corrupted images of 100 classes -0.100 (1 cell)." in advice.because
    assert "Accuracy" not in advice.because
    assert "at the mildest severity for 1 of 1 kinds of network, at the severest for 1." in advice.because
    turned = prediction_advice([drawn("ECE", [0.2, 0.4], [0.3, 0.3]), drawn("NLL", [1.0, 2.0], [1.0, 1.6])])
    assert "at the mildest severity for 0 of 1 kinds of network, at the severest for 1." in turned.because
    assert re.search(r"\| – +\| 1 of 1 cells, -0.100 +\| 1 of 1 cells, -0.200 +\|", prediction_table(figures))
    metrics = {"ACC": 0.1, "ECE": -0.1, "NLL": -0.2}
    in_table = compared(*((mean, {"metric": metric, "ood_set": "cifar10-c"}) for metric, mean in metrics.items()))
    same = [drawn("ECE", [0.2, 0.4], [0.1, 0.3], id_set="cifar10")]
    assert prediction_table([in_table, *same]) == prediction_table([in_table])


def samples(credal, averaged, ensemble, distilled):
    shared = {"backbone": "vgg16", "measure": "EU", "metric": "AUROC", "ood_set": "svhn"}
    few, many = {"variant": "credal", "N": 10}, {"variant": "classical", "N": 50}
    return [
        table(
            "AblationBNNs", *(cell(v, method="BNNR", **keys, **shared) for v, keys in ((credal, few), (averaged, many)))
        ),
        table(
            "OODMain",
            cell(ensemble, method="DE", variant="credal", **shared),
            cell(distilled, method="EDD", **shared),
        ),
    ]


def test_samples_and_distilled_networks():
    advice = samples_advice(samples(90.0, 88.0, 91.0, 90.0))
    assert "wrap 10 samples instead of averaging 50" in advice.do
    assert "distilled from an ensemble is worse than five credal networks by epistemic uncertainty" in advice.because
    turned = samples_advice(samples(88.0, 90.0, 90.0, 91.0))
    assert "averaging 50 samples beats wrapping 10" in turned.do
    assert "distilled from an ensemble is better than five credal networks by epistemic uncertainty" in turned.because


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("rises", [True, False])
def test_uncertainties_mean_what_was_measured(known, rises):
    gap = ("credal AU less credal EU", 0.1, 0.05, 0.15) if known else ("credal AU less credal EU", 0.0, -0.01, 0.01)
    people = figure(
        "HumanDisagreement", *estimates("DE", [("credal TU", 0.4, 0.4, 0.4)], [gap], [("all classes", 1, 1, 1)])
    )
    keys = {"variant": "credal", "measure": "EU", "metric": "mean"}
    noise = table(
        "LabelNoise", cell(0.3, id_set="cifar10", **keys), cell(0.8 if rises else 0.31, id_set="cifar10n", **keys)
    )
    advice = meaning_advice([noise, people])
    assert advice.do.startswith("Read aleatoric" if known else "Do not read aleatoric")
    assert ("nor epistemic" in advice.do or "but not epistemic" in advice.do) == rises


@pytest.mark.parametrize(("wrong", "empty"), [(0.2, 0.9), (0.0, 0.0), (0.2, 0.0)])
def test_a_solver_is_advised_against_where_it_errs(wrong, empty):
    numbers = {field.name: 90.0 for field in fields(SolverEffect)}
    effect = SolverEffect(**{**numbers, "difference": 0.25})
    errors = [SolverErrors(10, (share, 0.0), 0.0, 0.0, 0.0, 1.0) for share in (0.0, wrong)]
    part = ExactnessPart(
        keys=CellKey(metric=""),
        substitutes={},
        solver=(SolverRun((), {"cifar10": errors[0], "svhn": errors[1]}, {"svhn": effect}),),
        reduction=(ReductionRun((), {"2": {"svhn": ReductionEffect(empty, 0.0, 0.0, 0.0, None, None)}}),),
    )
    about = {"kind": "ours", "description": "", "models": (), "status": "measured", "provenance": None}
    exactness = ExactnessResult(label="Exactness", wrong_sizes=(0.001,), parts=(part,), **about)
    advice = solver_advice([exactness])
    assert "exact values change the AUROC of `epistemic` by +0.25 points" in advice.because
    assert ("not by a local solver" in advice.do) == (wrong > 0)
    assert ("do not use the paper's class reduction" in advice.do) == (empty > 0)
    for reduced, loses in ((-1.0, True), (3.0, False)):
        both = compared(detection(2.0), detection(reduced, J=20))
        assert ("nor at all" in solver_advice([exactness, both]).do) == (loses and empty > 0)


def test_a_gain_is_small_or_not_and_networks_that_lose_are_named():
    small = limits_advice(
        [compared(detection(0.1, "TU"), detection(-1.0, "TU", backbone="vgg16"), detection(0.2, "TU", N=10))]
    )
    assert "or can forgo a small gain" in small.do
    assert "by +0.10 points of AUROC in the median, -0.23 in the mean" in small.because
    assert "averaging wins for VGG16 on CIFAR-10" in small.because
    large = limits_advice([compared(detection(2.0, "TU"))])
    assert "small" not in large.do
    assert "averaging wins" not in large.because


def test_the_stored_results_give_all_sentences_and_their_links_lead_to_headings():
    results = read_results(*(RESULTS / name for name in ("fast", "scratch", "text")))
    text = render_findings(results)
    listing = numbered_advice(results)
    assert re.findall(r"^(\d+)\. \*\*", listing, flags=re.MULTILINE) == [str(n + 1) for n in range(len(ADVICE))]
    titles = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}
    assert set(re.findall(r"\(#([^)]*)\)", text)) <= anchors
    pages = re.findall(r"\(\.\./results/([^)]*)\)", listing)
    assert [page for page in pages if not (RESULTS / page).exists()] == []
    assert numbered_advice([]) == ""
