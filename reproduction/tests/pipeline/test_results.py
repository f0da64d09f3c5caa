"""What a result file holds and how it reads: laws of all entries, of one run with small networks."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest
import torch

from credalens_paper.experiments.cell_keys import HIGHER
from credalens_paper.experiments.index import LABELS, check_labels
from credalens_paper.experiments.paper_entries import TABLES
from credalens_paper.experiments.paper_numbers import PAPER_FIGURES, PAPER_TABLES
from credalens_paper.json_records import to_json
from credalens_paper.pages.markdown import markdown_table
from credalens_paper.pages.result_page import render_result
from credalens_paper.pages.write_pages import render_pages
from credalens_paper.pipeline.engines import TorchEngine
from credalens_paper.pipeline.fill.table import improvement, statistics
from credalens_paper.results.records import Runs, TableResult
from reproduction.tests.tiny_preset import TINY

COSTS = ("CPUcost", "DEsamples", "InferenceBNNsamples")


@pytest.fixture(name="results")
def _results(smoke_results):
    return smoke_results


@pytest.mark.parametrize("label", LABELS)
def test_every_entry_has_a_result_with_its_provenance(results, label):
    result = results[label]
    without_gpu = label in COSTS[1:] and not torch.cuda.is_available()
    partly = without_gpu or label == "TrimmedText"  # of a thousand samples only sums are kept, which cannot be trimmed
    assert result.status == ("partly measured" if partly else "measured")
    assert result.provenance.preset.name == "smoke"
    assert result.provenance.engine == TorchEngine(device="cpu").about()
    assert result.provenance.hardware.cores >= 1
    json.dumps(to_json(result), allow_nan=False)


@pytest.mark.parametrize("label", PAPER_TABLES)
def test_every_cell_stands_beside_the_papers_number(results, label):
    shown = {cell.keys: cell.paper for cell in results[label].cells}
    for key, printed in PAPER_TABLES[label].cells.items():
        assert shown[key] == printed
    assert sum(paper is not None for paper in shown.values()) == len(PAPER_TABLES[label].cells)
    assert results[label].paper_runs == PAPER_TABLES[label].runs


@pytest.mark.parametrize("label", ["entropy_plots_cifar10", "PIA"])
def test_densities_show_the_number_of_their_runs(results, label):
    rows = [line.split("|") for line in render_result(results[label]).splitlines() if line.startswith("| ")]
    assert rows[0][-2].strip() == "n"
    assert {row[-2].strip() for row in rows[1:]} == {str(results[label].panels[0].n)} == {"3"}


@pytest.mark.parametrize("label", LABELS)
def test_no_column_is_empty(results, label):
    for table in re.findall(r"(?:^\|.*\n)+", render_result(results[label]), flags=re.MULTILINE):
        columns = zip(*(line.split("|")[1:-1] for line in table.splitlines()), strict=True)
        assert all({cell.strip() for cell in column[2:]} - {"–", ""} for column in columns)


def test_another_measure_is_named_where_it_stands_alone(results):
    rows = [line for line in render_result(results["OODMainTU"]).splitlines() if "| GH " in line]
    alone = [cell for cell in results["OODMainTU"].cells if cell.keys.measure == "GH"]
    assert len(rows) == len(alone) > 0


@pytest.mark.parametrize("label", PAPER_TABLES)
def test_numbers_are_within_their_range_and_are_the_means_of_their_runs(results, label):
    for cell in results[label].cells:
        if cell.reason is not None:
            assert cell.reason == "no CUDA device on this machine"
            continue
        assert cell.ours.n == len(cell.ours.runs)
        assert cell.ours.mean == pytest.approx(math.fsum(cell.ours.runs) / cell.ours.n)
        metric, most = cell.keys.metric, {"ECE": 1}.get(cell.keys.metric, 100)
        assert min(cell.ours.runs) >= 0
        if metric in (*HIGHER, "ECE"):
            assert max(cell.ours.runs) <= most
        assert (cell.ours.std is None) == (cell.ours.n == 1)


@pytest.mark.parametrize("label", [label for label in PAPER_TABLES if label not in COSTS])
def test_the_number_of_runs_is_that_of_the_preset(results, label):
    for cell in results[label].cells:
        own = TINY.substituted(cell.keys)
        pool = TINY.many_members if TABLES[label].many else TINY.members
        sampled = TINY.bnn_runs if (own.N or 1) <= TINY.keep else TINY.long_runs
        combined = min(TINY.runs, math.comb(pool, own.N or 1))
        assert cell.ours.n == {"DE": combined, "BNNR": sampled, "BNNF": sampled}.get(own.method, TINY.edd_runs)


@pytest.mark.parametrize("label", [label for label in PAPER_TABLES if label not in COSTS])
def test_the_seeds_of_every_run_are_told_and_deep_ensembles_are_distinct(results, label):
    for kind in results[label].models:
        assert len(kind.seeds) == kind.runs + kind.diverged
        assert kind.schedule["epochs"] == 2
        assert kind.provenance["device"] == "cpu"
        assert kind.seconds > 0
        if kind.method == "DE":
            assert len({tuple(seeds) for seeds in kind.seeds}) == kind.runs
            assert {len(set(seeds)) for seeds in kind.seeds} == {kind.N}


@pytest.mark.parametrize("label", PAPER_TABLES)
def test_an_improvement_is_credal_less_classical_run_by_run(results, label):
    cells = {cell.keys: cell for cell in results[label].cells}
    for entry in results[label].improvements:
        ours, theirs = cells[entry.keys], cells[entry.keys.baseline]
        assert entry.ours.n == ours.ours.n == theirs.ours.n
        assert entry.ours.mean == pytest.approx(ours.ours.mean - theirs.ours.mean, abs=1e-9)
        pairs = list(zip(ours.ours.runs, theirs.ours.runs, strict=True))
        better = [a > b if entry.keys.metric in HIGHER else a < b for a, b in pairs if abs(a - b) > 1e-12]
        assert entry.ours.wins == sum(better)
        if ours.paper and theirs.paper:
            assert entry.paper.mean == pytest.approx(ours.paper.mean - theirs.paper.mean, abs=1e-6)


def test_hartley_on_request_and_the_papers_solver_are_in_the_tables_of_detection(results):
    main = results["OODMain"]
    hartley = [entry for entry in main.improvements if entry.keys.measure == "GH"]
    assert len(hartley) == 2 * 3 * 2 * 2  # backbones, methods, sets, metrics
    assert len(main.solvers) == 2 * 3 * 2
    for entry in main.solvers:
        assert entry.errors.samples == 2 * TINY.solver_samples
        assert all(0 <= share <= 1 for share in entry.errors.wrong)
    assert "SLSQP on a subsample" in render_result(main)


def test_overconfidence_changes_the_numbers_of_the_same_ensembles(results):
    main, changed = results["AblationPreTrain"], results["Overconfident"]
    assert {str(k.seeds) for k in main.models} == {str(k.seeds) for k in changed.models}
    same = {"id_set": "cifar10", "ood_set": "svhn", "metric": "AUROC", "variant": "credal", "measure": "EU"}
    values = [
        cell.ours.runs
        for result in (main, changed)
        for cell in result.cells
        if all(cell.keys.get(key) == value for key, value in same.items())
    ]
    assert len(values) == 2
    assert values[0] != values[1]


def test_reduction_to_all_classes_is_no_reduction(results):
    whole = {
        (cell.keys.ood_set, cell.keys.metric): cell.ours.runs
        for cell in results["AblationPreTrain"].cells
        if cell.keys.id_set == "cifar10" and (cell.keys.variant, cell.keys.measure) == ("credal", "EU")
    }
    reduced = {
        (cell.keys.ood_set, cell.keys.metric): cell.ours.runs
        for cell in results["AblationPIA"].cells
        if cell.keys.J == 100 and cell.keys.ood_set
    }
    assert reduced == {place: whole[place] for place in reduced}


@pytest.mark.parametrize("label", PAPER_FIGURES)
def test_every_figure_is_a_picture_and_its_numbers(results, smoke_run, label):
    result = results[label]
    assert len(result.files) == 1
    picture = smoke_run / "figures" / result.files[0]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert result.panels
    assert all(panel.reason is None for panel in result.panels)


def test_lines_against_severity_are_the_tables_corrupted_numbers_averaged(results):
    """The mean over severities of a line is the table's mean over all corrupted sets, as all severities are alike."""
    panel = next(p for p in results["ece_cifar10_full"].panels if p.title == "ResNet-18, DE")
    line = next(one for one in panel.series if one.name == "Intersection probability")
    wanted = {"backbone": "resnet18", "method": "DE", "variant": "credal", "ood_set": "cifar10-c", "metric": "ECE"}
    (cell,) = [
        cell for cell in results["OODMain"].cells if all(cell.keys.get(key) == value for key, value in wanted.items())
    ]
    assert line.x == TINY.severities
    assert sum(line.mean) / len(line.mean) == pytest.approx(cell.ours.mean)
    assert line.n == (cell.ours.n,) * len(line.x)


@pytest.mark.parametrize("label", LABELS)
def test_rendering_shows_every_number_of_the_paper_and_of_ours(results, label):
    result = results[label]
    text = render_result(result)
    assert text.startswith(f"# {label}\n\n{result.description}\n")
    assert "Preset smoke, schedule smoke" in text
    for cell in result.cells if isinstance(result, TableResult) else ():
        if cell.keys.metric in HIGHER and cell.paper:
            assert f"{cell.paper.mean:.2f}" in text
            assert f"{cell.ours.mean:.2f}" in text
    if result.kind == "figure":
        assert f"(smoke/figures/{result.files[0]})" in text


def test_losses_are_shown_as_losses(results):
    entries = [entry for label in PAPER_TABLES for entry in results[label].improvements]
    assert {"credal", "classical"} <= {entry.ours.better for entry in entries}
    for label in PAPER_TABLES:
        text = render_result(results[label])
        losses = [entry for entry in results[label].improvements if entry.ours.better == "classical"]
        assert len(re.findall(r"\(loss, \d+ of \d+ runs\)", text)) == len(losses)
    assert "-0.04 (loss)" in render_result(results["OODMain"])  # the paper's own loss: BNNF on VGG16, ACC


def test_substitutes_and_what_is_not_measured_are_said(results):
    text = render_result(results["OODMain"])
    assert "N = 2 for N = 5" in text
    assert "digits for CIFAR-10" in text
    assert "Not measured (2 cells: ResNet-50 DE N = 5; ResNet-50 DE N = 25): no CUDA device" in render_result(
        results["DEsamples"]
    )


def test_a_cell_that_was_not_measured_keeps_its_row_beside_the_papers_numbers(results):
    measured = results["OODMainTU"]
    cells = tuple(replace(cell, ours=None, reason="SVHN not found") for cell in measured.cells)
    improvements = tuple(replace(entry, ours=None) for entry in measured.improvements)
    result = replace(measured, cells=cells, improvements=improvements)
    text = render_result(result)
    assert text.count("not measured") == len(result.improvements)
    assert "88.18 ± 1.30" in text
    assert "SVHN not found" in text


def test_the_index_lists_every_entry_with_its_status_and_a_page(results):
    pages = render_pages(list(results.values()))
    links = re.findall(r"^- \[`(.*)`\]\((.*?)\): (.*)", pages["README.md"], flags=re.MULTILINE)
    assert sorted(label for label, _, _ in links) == sorted(results)
    for label, path, text in links:
        assert text.startswith(results[label].description)
        assert text.endswith("*Partly measured.*") == (results[label].status == "partly measured")
        assert pages[path].startswith(f"# {label}\n")
        assert "](../README.md)" in pages[path]
        assert f"[`{label}`]({path})" in pages["machines.md"]


def test_a_result_that_was_measured_again_stands_on_a_page_of_such_and_leads_to_its_own_file(results):
    again = replace(results["OODMainTU"], label="OODMainTU (smoke)")
    pages = render_pages(list(results.values()), [again])
    assert "[Mostly with other networks](repeated.md): `OODMainTU (smoke)`." in pages["README.md"]
    assert "\n## OODMainTU (smoke)\n" in pages["repeated.md"]
    assert (
        "[smoke/OODMainTU.json](smoke/OODMainTU.json), made by `credalens reproduce OODMainTU " in pages["repeated.md"]
    )
    assert "repeated.md" not in render_pages(list(results.values()))


def test_exact_measures_stand_beside_the_reduced_ones_of_the_paper(results):
    extra = [cell for cell in results["AblationPreTrain"].cells if cell.paper is None]
    exact = [cell for cell in extra if cell.keys.measure == "EU"]
    assert {cell.keys.id_set for cell in exact} == {"cifar100", "imagenet"}
    assert all(cell.keys.J is None for cell in exact)


def test_groups_of_labels_and_underscores_for_spaces():
    assert check_labels(["tables"]) == tuple(PAPER_TABLES)
    assert check_labels(["PIA", "figures"])[:2] == ("PIA", "ACreNNStructure")
    assert check_labels(["ours"])[0] == "Exactness"
    assert check_labels(["Concept_comparisons"]) == ("Concept comparisons",)


def test_statistics_by_hand():
    assert statistics([2.0]) == Runs(2.0, None, 1)
    assert statistics([1.0, 2.0, 3.0]) == Runs(2.0, 1.0, 3)


@pytest.mark.parametrize(
    ("metric", "classical", "credal", "mean", "wins", "better"),
    [
        ("AUROC", [80.0, 80.0], [81.0, 79.5], 0.25, 1, "credal"),
        ("ECE", [0.25, 0.25], [0.5, 0.25], 0.125, 0, "classical"),
        ("ACC", [90.0], [90.0], 0.0, 0, "equal"),
        ("NLL", [1.0], [0.5], -0.5, 1, "credal"),
    ],
)
def test_improvements_by_hand(metric, classical, credal, mean, wins, better):
    found = improvement(metric, classical, credal)
    assert (found.mean, found.wins, found.better) == (mean, wins, better)


def test_tables_line_up():
    lines = markdown_table(["a", "long head"], [["wide cell", "1"], ["x", "2"]]).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1] == "|-----------|-----------|"
