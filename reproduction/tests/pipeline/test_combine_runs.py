"""Runs measured in two goes are one result: the same numbers as in one go, none counted twice."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens_paper.json_records import to_json
from credalens_paper.origin import hardware
from credalens_paper.pages.result_page import render_result
from credalens_paper.pipeline.combine_runs import combine, combine_all, pooled
from credalens_paper.pipeline.fill.table import statistics
from credalens_paper.results.records import Difference, Hardware, read_results
from reproduction.tests.pipeline.fake_engine import FakeEngine
from reproduction.tests.pipeline.small_runs import run
from reproduction.tests.tiny_preset import TINY

BAYESIAN = TINY.only(["BNNR", "BNNF"])
FIRST, LATER = replace(BAYESIAN, bnn_runs=1), replace(BAYESIAN, first_run=1)
TABLE, CURVES = "ablation BNNsVGG16EU", "OODEUTUVggRes"


@settings(derandomize=True, deadline=None)
@given(*2 * [st.lists(st.floats(-100, 100), min_size=1, max_size=8)])
def test_pooled_moments_are_those_of_all_values(one, other):
    parts = [statistics(values) for values in (one, other)]
    mean, std, n = pooled(*((part.mean, part.std, part.n) for part in parts))
    whole = statistics([*one, *other])
    assert n == whole.n
    assert mean == pytest.approx(whole.mean, abs=1e-9)
    assert std == pytest.approx(whole.std, abs=1e-6)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The same two entries in one go, its first runs, and the later ones."""
    folder = tmp_path_factory.mktemp("runs")
    presets = {"whole": BAYESIAN, "first": FIRST, "later": LATER}
    measured = {
        name: run(folder / name, TABLE, CURVES, engine=FakeEngine(), preset=preset).results
        for name, preset in presets.items()
    }
    return {name: {result.label: result for result in both} for name, both in measured.items()}


def approximately(value):
    """Every number of a record, to ten digits."""
    return pytest.approx(value, rel=1e-10, abs=1e-10)


def test_a_table_in_two_goes_is_the_table_in_one(results):
    combined, whole = combine(results["first"][TABLE], results["later"][TABLE]), results["whole"][TABLE]
    assert [cell.keys for cell in combined.cells] == [cell.keys for cell in whole.cells]
    for ours, expected in zip(combined.cells, whole.cells, strict=True):
        assert ours.ours.runs == expected.ours.runs
        assert (ours.ours.mean, ours.ours.std) == approximately((expected.ours.mean, expected.ours.std))
    for ours, expected in zip(combined.improvements, whole.improvements, strict=True):
        assert (ours.ours.n, ours.ours.wins, ours.ours.better) == (
            expected.ours.n,
            expected.ours.wins,
            expected.ours.better,
        )
        assert (ours.ours.mean, ours.ours.std) == approximately((expected.ours.mean, expected.ours.std))
    assert combined.status == whole.status == "measured"


def test_curves_in_two_goes_are_the_curves_in_one(results):
    combined, whole = combine(results["first"][CURVES], results["later"][CURVES]), results["whole"][CURVES]
    pairs = [pair for pair in zip(combined.panels, whole.panels, strict=True) if pair[1].series]
    assert len(pairs) == 8  # two backbones, two methods, two metrics
    for ours, expected in pairs:
        assert [line.name for line in ours.series] == [line.name for line in expected.series]
        for line, other in zip(ours.series, expected.series, strict=True):
            assert line.n == other.n
            assert line.mean == approximately(other.mean)
            for one, two in zip(line.std, other.std, strict=True):
                assert one == approximately(two)


def test_each_group_of_runs_keeps_its_networks_and_provenance(results):
    first, later = results["first"][TABLE], results["later"][TABLE]
    models = combine(first, later).models
    assert models == (*first.models, *later.models)
    assert {seeds for kind in models for seeds in kind.seeds} == {(seed,) for seed in range(TINY.bnn_runs)}


@pytest.mark.parametrize("label", [TABLE, CURVES])
def test_a_run_that_both_have_is_refused(results, label):
    with pytest.raises(ValueError, match=r"N = \d, .*\[\d.*\] is in both results"):
        combine(results["whole"][label], results["later"][label])


def test_other_networks_in_the_same_place_are_not_pooled(results):
    later = results["later"][TABLE]
    other = replace(later, cells=tuple(replace(cell, substitutes={"backbone": "resnet18"}) for cell in later.cells))
    with pytest.raises(ValueError, match=r"\(vgg16, .*'resnet18'"):
        combine(results["first"][TABLE], other)


@pytest.mark.parametrize("change", [{"few_corrupted": True}, {"schedule": "paper"}, {"severities": (1,)}])
def test_other_images_or_schedules_are_not_pooled(results, change):
    later = results["later"][CURVES]
    changed = replace(later.provenance, preset=replace(later.provenance.preset, **change))
    with pytest.raises(ValueError, match="Means over different networks or images say nothing"):
        combine(results["first"][CURVES], replace(later, provenance=changed))


def test_another_entry_is_refused(results):
    with pytest.raises(ValueError, match="are two entries"):
        combine(results["whole"][TABLE], results["later"][CURVES])


def test_what_one_go_has_not_measured_comes_from_the_other(results, tmp_path):
    focused = run(tmp_path, TABLE, engine=FakeEngine(), preset=TINY.only(["BNNF"])).results[0]
    rest = run(tmp_path / "rest", TABLE, engine=FakeEngine(), preset=TINY.only(["BNNR"])).results[0]
    combined = combine(focused, rest)
    assert [cell.ours for cell in combined.cells] == [cell.ours for cell in results["whole"][TABLE].cells]
    assert [entry.ours for entry in combined.improvements] == [
        entry.ours for entry in results["whole"][TABLE].improvements
    ]
    assert (focused.status, combined.status) == ("partly measured", "measured")


def test_runs_that_cancel_each_other_are_a_tie(results):
    result, later = results["first"][TABLE], results["later"][TABLE]
    thirds = Difference(0.1 + 0.2, None, 1, 1, "credal"), Difference(-0.3, None, 1, 0, "classical")
    first, second = (
        replace(one, improvements=tuple(replace(entry, ours=ours) for entry in one.improvements))
        for one, ours in zip((result, later), thirds, strict=True)
    )
    gains = {(entry.ours.mean, entry.ours.better) for entry in combine(first, second).improvements}
    assert gains == {(0.0, "equal")}


def test_a_line_that_was_missing_is_missing_no_more(results, tmp_path):
    assert "(8 parts: VGG16, BNNR: EDD; VGG16, BNNF: EDD; " in render_result(results["whole"][CURVES])
    distilled = run(tmp_path, CURVES, engine=FakeEngine(), preset=TINY.only(["EDD"])).results[0]
    panels = combine(results["whole"][CURVES], distilled).panels
    own = [panel for panel in panels if panel.keys.method != "DE"]
    assert all([line.name for line in panel.series] == ["Classical", "Credal", "EDD"] for panel in own)
    assert not any(panel.missing for panel in own)
    assert all(panel.missing.keys() == {"Classical", "Credal"} for panel in panels if panel.keys.method == "DE")


def test_a_part_of_another_preset_says_so(results, tmp_path):
    empty = run(tmp_path / "a", CURVES, engine=FakeEngine(), preset=TINY.only(["BNNF"])).results[0]
    other = replace(TINY, name="scratch", few_corrupted=True, image_sizes={"vgg16": 8}).only(["BNNR"])
    filled = run(tmp_path / "b", CURVES, engine=FakeEngine(), preset=other).results[0]
    panels = {panel.keys: panel for panel in combine(empty, filled).panels}
    chosen = [key for key in panels if (key.backbone, key.method) == ("vgg16", "BNNR")]
    assert {(key.metric, panels[key].title) for key in chosen} == {
        ("AUROC", "VGG16, BNNR (8 px)"),
        ("AUPRC", "VGG16, BNNR (8 px, 1 in 6)"),
    }
    assert {panels[key].note for key in chosen} == {
        "preset scratch; every 5th image of each corrupted set against all clean ones, so that one input in 6 is corrupted"
    }
    assert all(panel.note is None for key, panel in panels.items() if key.method == "BNNF")


def test_what_got_more_runs_is_written_with_its_picture(results, tmp_path):
    first, later = results["first"], results["later"].values()
    combined = combine_all(first.values(), later, tmp_path)
    written = {result.label: result for result in read_results(tmp_path / "smoke" / "results")}
    assert {label: json.dumps(to_json(result)) for label, result in written.items()} == {
        result.label: json.dumps(to_json(result)) for result in combined
    }
    assert (tmp_path / "smoke" / "figures" / f"{CURVES}.png").is_file()
    assert all("to which runs were added by `--add-runs`" in render_result(result) for result in combined)
    with pytest.raises(FileExistsError, match="name another --out"):
        combine_all(first.values(), later, tmp_path)


def test_nothing_is_written_where_nothing_or_not_all_can_be_added(results, tmp_path):
    first, later = results["first"], results["later"]
    with pytest.raises(ValueError, match=f"nothing to add: the other folders hold {CURVES}"):
        combine_all([first[TABLE]], [later[CURVES]], tmp_path)
    with pytest.raises(ValueError, match="would count twice"):
        combine_all(first.values(), [later[TABLE], first[CURVES]], tmp_path)
    assert not list(tmp_path.iterdir())


def test_every_group_of_runs_says_where_it_was_evaluated(results):
    result, later = results["first"][TABLE], results["later"][TABLE]
    elsewhere = tuple(replace(kind, evaluated=(Hardware("Abacus", 4, "Linux"),)) for kind in later.models)
    combined = combine(result, replace(later, models=elsewhere))
    here = [kind.evaluated for kind in combined.models if kind not in elsewhere]
    assert here == [(hardware(),)] * len(result.models)
    assert render_result(combined).count("; evaluated on Abacus (4 cores).") > 0
