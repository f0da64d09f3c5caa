"""The declarations say what the paper prints: every cell, every label, no more and no less."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from credalens_paper.experiments.cell_keys import CellKey, better_side
from credalens_paper.experiments.ensembles import ensembles, evaluation_sets
from credalens_paper.experiments.paper_entries import FIGURES, TABLES, ModelFigure, SeverityFigure
from credalens_paper.experiments.paper_numbers import PAPER_FIGURES, PAPER_TABLES
from credalens_paper.experiments.presets import PRESETS, get_preset


def test_every_table_and_figure_of_the_paper_is_declared_in_its_order():
    assert tuple(TABLES) == tuple(PAPER_TABLES)
    assert tuple(FIGURES) == tuple(PAPER_FIGURES)
    assert len(TABLES) + len(FIGURES) == 36


@pytest.mark.parametrize("label", PAPER_TABLES)
def test_a_table_declares_exactly_the_cells_that_the_paper_prints_and_extra_ones(label):
    declared = Counter(TABLES[label].cells)
    assert declared == Counter(PAPER_TABLES[label].cells.keys())
    assert not declared.keys() & set(TABLES[label].extra)


@pytest.mark.parametrize("label", PAPER_TABLES)
def test_the_layout_tells_the_rows_of_a_table_apart(label):
    """Rows merge the variants of a comparison; J belongs to credal cells alone and C has its own column."""
    table = TABLES[label]
    for variant in {cell.variant for cell in (*table.cells, *table.extra)}:
        cells = [cell for cell in (*table.cells, *table.extra) if cell.variant == variant]
        rows = Counter(tuple(getattr(cell, name) for name in table.layout) for cell in cells)
        assert max(rows.values()) == 1


@pytest.mark.parametrize("label", PAPER_TABLES)
def test_credal_cells_are_compared_with_classical_cells_of_the_same_table(label):
    table = TABLES[label]
    known = set(table.cells) | set(table.extra)
    classical = {cell for cell in known if cell.variant == "classical"}
    if classical:
        compared = {cell.baseline for cell in known if cell.variant == "credal"}
        assert compared == classical


def test_the_baseline_of_a_hartley_cell_is_mutual_information_without_reduction():
    cell = CellKey(metric="AUROC", variant="credal", measure="GH", J=20)
    assert cell.baseline == CellKey(metric="AUROC", variant="classical", measure="EU")


def cells_of(figure):
    if isinstance(figure, SeverityFigure):
        return [cell for panel in figure.panels for _, cell in panel.series]
    return list(figure.models) if isinstance(figure, ModelFigure) else []


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("label", PAPER_FIGURES)
def test_the_models_of_a_figure_exist_under_every_preset(label, preset):
    own, figure = get_preset(preset), FIGURES[label]
    pool = own.many_members if getattr(figure, "many", False) else own.members
    for cell in cells_of(figure):
        assert (own.substituted(cell).N or 1) > pool or ensembles(cell, own, pool=pool)


def test_figures_against_severity_follow_cells_of_corrupted_sets():
    for figure in FIGURES.values():
        if isinstance(figure, SeverityFigure):
            assert all(cell.ood_set == f"{cell.id_set}-c" for cell in cells_of(figure))


def test_the_figure_of_epistemic_uncertainty_shows_edd_and_that_of_total_does_not():
    methods = {label: {cell.method for cell in cells_of(FIGURES[label])} for label in ("OODEUTUVggRes", "OODTUVggRes")}
    assert methods == {"OODEUTUVggRes": {"BNNR", "BNNF", "DE", "EDD"}, "OODTUVggRes": {"BNNR", "BNNF", "DE"}}


def test_the_full_preset_is_the_papers_setting():
    full = get_preset("full")
    assert (full.members, full.many_members, full.runs, full.bnn_runs, full.edd_runs) == (15, 30, 15, 15, 15)
    assert (full.schedule, full.width, full.substitutes, full.left_out) == ("paper", 1.0, {}, {})
    assert len(evaluation_sets("cifar10-c", full)) == 75
    assert [full.pixels(name) for name in ("vgg16", "resnet18", "resnet50", "vit_base")] == [32, 32, 224, 224]


def test_the_fast_preset_keeps_image_sets_and_puts_resnet18_in_the_place_of_resnet50():
    fast = get_preset("fast")
    assert (fast.members, fast.many_members, fast.runs) == (15, 26, 15)
    assert fast.train_images is fast.test_images is None
    cell = CellKey(metric="ECE", backbone="resnet50", N=5)
    assert fast.substituted(cell) == replace(cell, backbone="resnet18")


def test_unknown_presets_and_impossible_sizes_are_refused():
    with pytest.raises(ValueError, match=r"'huge'; there are smoke, fast, scratch, text, full"):
        get_preset("huge")
    with pytest.raises(ValueError, match="runs of preset 'smoke' must be at least 1, got 0"):
        get_preset("smoke").changed(runs=0)
    assert get_preset("smoke").changed(runs=None) == get_preset("smoke")
    with pytest.raises(ValueError, match="MCMC"):
        get_preset("smoke").only(["MCMC"])


@pytest.mark.parametrize("metric", ["turned_away", "halved_turned_away", "halved_accepted", "accepted_ACC", "AUROC"])
def test_of_what_guards_accept_rightly_and_turn_away_more_is_better(metric):
    assert better_side(metric, 1.0) == "credal"


@pytest.mark.parametrize("metric", ["false_alarms", "halved_left", "halved_broken", "classes_in_set", "ECE"])
def test_of_errors_and_of_classes_in_a_set_fewer_are_better(metric):
    assert better_side(metric, 1.0) == "classical"
