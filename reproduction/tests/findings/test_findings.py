"""The findings say what the result files hold: every loss, every claim with its cells, nothing that was not measured."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.paper_numbers import PAPER_FIGURES, PAPER_TABLES, PaperNumber
from credalens_paper.findings.claims import CLAIMS, Claim, claims_table, verdict
from credalens_paper.findings.document import render_findings
from credalens_paper.findings.lookup import Gap, Kind, gaps, is_better, numbers_of
from credalens_paper.findings.notes import corner_note, corruption_note, weak_models, weakness_note
from credalens_paper.findings.score_tables import score_sentence, scores_table, severity_table, size_sentence
from credalens_paper.results.records import Cell, FigureResult, Line, Panel, Runs, TableResult

LABELS = ["OODMain", "OODMainTU", "GHComparison", "CPUcost", "ece_cifar10_full", "Exactness"]


@pytest.fixture
def results(smoke_results):
    return [smoke_results[label] for label in LABELS]


def cell(mean, paper=None, n=2, runs=(), **keys):
    ours = None if mean is None else Runs(mean, None, n, runs)
    printed = None if paper is None else PaperNumber(paper, None)
    return Cell(keys=CellKey(**keys), substitutes={}, paper=printed, ours=ours)


def table(label, *cells):
    about = {"kind": "table", "description": "", "models": (), "status": "measured", "provenance": None}
    lists = {"layout": (), "improvements": (), "solvers": (), "paper_runs": None}
    return TableResult(label=label, cells=cells, **lists, **about)


def figure(label, *panels):
    about = {"kind": "figure", "description": "", "models": (), "status": "measured", "provenance": None}
    return FigureResult(label=label, files=(), panels=panels, **about)


def lines(averaged, credal, *, x=(1, 5), n=(15, 15)):
    named = {"Averaged probability": averaged, "Intersection probability": credal}
    return tuple(Line(name, x, tuple(mean), (None,) * len(x), n) for name, mean in named.items())


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
    first, second = Kind("T", {"N": 5}), Kind("T", {"N": 25})
    assert gaps(results, first, second, on=["metric"]) == [
        Gap("AUROC", 0.5, -0.5, 1),
        Gap("AUPRC", None, None, 0),
    ]
    assert len(numbers_of(results, Kind("T", {"metric": ("AUROC", "AUPRC"), "J": None}))) == 4
    assert numbers_of(results, Kind("T", {"J": 5})) == []


def test_without_a_result_the_papers_numbers_are_compared_alone():
    credal, classical = (Kind("AblationNEUAPP", {"variant": v}) for v in ("credal", "classical"))
    found = gaps([], credal, classical, on=["N", "ood_set", "metric"])
    keys = {"N": 5, "ood_set": "svhn", "metric": "AUROC"}
    cells = {
        (key.variant, key.N, key.ood_set, key.metric): cell
        for key, cell in PAPER_TABLES["AblationNEUAPP"].cells.items()
    }
    credal_mean, classical_mean = (cells[v, *keys.values()].mean for v in ("credal", "classical"))
    assert round(credal_mean - classical_mean, 6) in {gap.paper for gap in found}
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
    claim = Claim(
        "?", Kind("T", {"variant": "credal"}), Kind("T", {"variant": "classical"}), ("ood_set", "metric"), limit
    )
    assert verdict([table("T", *cells)], claim) == expected


def test_points_of_a_figure_are_cells_of_a_claim():
    keys = CellKey(N=3, metric="ECE")
    measured = Panel(title="N = 3", keys=keys, series=lines([0.1, 0.3], [0.2, 0.1]))
    results = [figure("F", measured, Panel(title="N = 5", reason="?"))]
    credal, averaged = (Kind("F", {"variant": variant}) for variant in ("credal", "classical"))
    found = gaps(results, credal, averaged, on=("N", "severity"))
    assert [(gap.ours, gap.n, is_better(gap.metric, gap.ours)) for gap in found] == [(0.1, 15, False), (-0.2, 15, True)]
    assert verdict(results, Claim("?", credal, averaged, ("N", "severity"))) == "partly"


def test_networks_well_below_the_papers_accuracy_are_named_and_claims_about_them_marked():
    accuracy = {"backbone": "vgg16", "metric": "ACC"}
    by_eu = {"backbone": "vgg16", "metric": "AUROC", "measure": "EU", "ood_set": "svhn"}
    cells = [
        cell(83.0, 91.05, method="EDD", **accuracy),
        cell(92.0, 93.5, method="DE", N=5, variant="classical", **accuracy),
        cell(91.0, 90.0, method="DE", N=5, variant="credal", **by_eu),
        cell(85.0, 89.0, method="EDD", **by_eu),
    ]
    results = [table("OODMain", *cells)]
    assert weak_models(results) == [("vgg16", "EDD")]
    assert "VGG16 EDD (83.00 %, in the paper 91.05 %)." in weakness_note(results)
    marked = [line for line in claims_table(results).splitlines() if "is weaker here" in line]
    assert len(marked) == 1
    assert "(EDD)" in marked[0]
    assert "yes; EDD on VGG16 is weaker here" in marked[0]
    better = [table("OODMain", cell(90.0, 91.05, method="EDD", **accuracy), *cells[1:])]
    assert (weakness_note(better), weak_models(better)) == ("", [])
    assert "weaker" not in claims_table(better)


@pytest.mark.parametrize(("ours", "noted"), [(74.0, True), (30.0, False)])
def test_corrupted_images_of_another_accuracy_are_noted(ours, noted):
    keys = {
        "backbone": "vgg16",
        "method": "DE",
        "N": 5,
        "variant": "classical",
        "metric": "ACC",
        "ood_set": "cifar10-c",
    }
    note = corruption_note([table("OODMain", cell(ours, 25.0, **keys))])
    assert bool(note) == noted
    assert not noted or "74 to 74 % here and 25 to 25 % in the paper" in note


@pytest.mark.parametrize(("tu", "noted"), [([92.0, 92.5], True), ([92.0, 92.6], False)])
def test_scores_that_coincide_are_noted_beside_the_papers_that_do_not(tu, noted):
    keys = {"variant": "credal", "metric": "AUROC", "ood_set": "svhn"}
    eu = cell(92.25, 94.92, measure="EU", runs=(92.0, 92.5), **keys)
    note = corner_note([table("Overconfident", eu, cell(92.25, 95.24, measure="TU", runs=tuple(tu), **keys))])
    assert ("SVHN AUROC 94.92 and 95.24" in note) == noted
    assert corner_note([]) == ""


def test_every_claim_is_about_cells_that_the_paper_or_our_tables_have(results):
    """Claims about metrics that the paper only draws have cells of ours alone."""
    known = {result.label for result in results}
    for claim in CLAIMS:
        found = gaps(results, claim.first, claim.second, on=claim.on)
        assert found or claim.first.label in set(PAPER_FIGURES) - known, claim.text
        assert {claim.first.label, claim.second.label} & known or all(gap.paper is not None for gap in found)
    text = claims_table(results)
    assert text.count("\n") == len(CLAIMS) + 1
    assert "8 of 8 cells, +0.75 to +5.46" in text  # the paper's ensembles against its distilled networks


def test_a_claim_that_was_measured_on_another_network_says_so():
    keys = {"backbone": "resnet50", "method": "DE", "N": 5, "measure": "EU", "metric": "AUROC", "ood_set": "svhn"}
    pair = (cell(mean, variant=variant, **keys) for variant, mean in (("classical", 80.0), ("credal", 81.0)))
    cells = [replace(one, substitutes={"backbone": "resnet18"}) for one in pair]
    assert "`AblationPreTrain` (ResNet-18 for ResNet-50)" in claims_table([table("AblationPreTrain", *cells)])
    assert "`AblationPreTrain` |" in re.sub(" +", " ", claims_table([]))


def test_every_loss_is_listed_and_no_win(results):
    text = render_findings(results)
    losses = text.partition("## Every comparison that credal loses")[2].partition("\n## ")[0]
    shared = {  # comparisons that two tables have are listed once
        (entry.keys, entry.ours.mean)
        for result in results
        if isinstance(result, TableResult)
        for entry in result.improvements
        if entry.ours.better == "classical" and entry.keys.id_set
    }
    assert len(re.findall(r"\(loss, \d+ of \d+ runs\)", losses)) == losses.count("\n| `")
    assert "(win," not in losses
    assert losses.count("\n| `") == len(shared)
    assert "CPUcost" not in losses


def test_the_best_score_of_a_row_is_the_highest_and_the_sentence_counts_rows(results):
    rows = [line.split("|")[1:-1] for line in scores_table(results).splitlines()[2:]]
    assert len(rows) == 2 * 3 * 2
    beaten = 0
    for row in rows:
        values = {place: float(text.strip(" *")) for place, text in enumerate(row[3:8]) if text.strip() != "–"}
        (bold,) = [place for place, text in enumerate(row[3:8]) if "**" in text]
        assert values[bold] == max(values.values())
        beaten += values[4] > values[1]
    # Rows as printed are rounded; a tie in them decides nothing.
    assert f"credal TU beats credal EU in {beaten} of 12 rows" in score_sentence(results)


def test_severities_are_on_the_side_of_the_better_line():
    series = lines([0.1, 0.2, 0.3], [0.2, 0.1, 0.1], x=(1, 3, 5), n=(4, 4, 3))
    text = severity_table([figure("F", Panel(title="P", metric="ECE", series=series))])
    cells = [part.strip() for part in text.splitlines()[2].split("|")[1:-1]]
    assert cells == ["`F`", "P", "ECE", "3, 5", "1", "+0.100", "-0.200", "3"]


def test_the_sizes_at_which_calibration_is_lost_are_named():
    credal = {3: [0.05, 0.2], 10: [0.2, 0.2], 25: [0.3, 0.4]}
    panels = [Panel(title=f"N = {N}", metric="ECE", series=lines([0.1, 0.3], mean)) for N, mean in credal.items()]
    text = size_sentence([figure("AblationStudyEnsemble", *panels)])
    assert "at every severity for N = 3; it has the higher one for N = 10 at 1; N = 25 at 1, 5." in text
    assert size_sentence([figure("AblationStudyEnsemble", panels[0])]) == ""
    assert size_sentence([figure("ece_cifar10_full", *panels)]) == ""


def test_the_document_has_its_sections_and_names_what_is_missing(results):
    text = render_findings(results)
    titles = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert titles[:3] == ["What to do", "How to read the evidence", "Five scores beside the paper's"]
    assert titles[-3:] == ["Wins and losses", "Every comparison that credal loses", "Not measured"]
    assert "`AblationNEUAPP`" in text.partition("Without a result file")[2]
    assert "the sound form gives none" in text
    assert f"Of {len(CLAIMS)} claims of the paper" in text
    nothing = render_findings([])
    assert nothing.startswith("# Findings")
    assert f"not measured: {len(CLAIMS)}." in nothing
