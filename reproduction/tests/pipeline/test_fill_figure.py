"""What the figures of the paper choose and draw: the confused classes, inputs that show something, measured panels only."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from credalens_paper.experiments.cell_keys import EVERY
from credalens_paper.experiments.presets import get_preset
from credalens_paper.pages.result_page import render_result
from credalens_paper.pipeline.fill.figure import VISIBLE, _confused, _median
from credalens_paper.pipeline.job import Images
from credalens_paper.pipeline.measure_entries import reproduce
from credalens_paper.results.drawing import draw_severities
from credalens_paper.results.records import Line, Panel
from credalens_paper.results.store import Store
from reproduction.tests.pipeline.fake_engine import FakeEngine
from reproduction.tests.tiny_preset import TINY

pytestmark = pytest.mark.usefixtures("hurry")


def line(name, *mean):
    return Line(name, (1, 5), mean, (None, 0.1), (1, 2))


def test_only_measured_panels_are_drawn_and_rows_are_full():
    measured = [
        Panel(title=str(place), metric="ECE", series=(line("a", 0.1, 0.2), line("b", 0.2, 0.1))) for place in range(4)
    ]
    panels = [Panel(title="x", reason="no data"), *measured, Panel(title="y", reason="no data")]
    figure = draw_severities(panels)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["0", "1", "2", "3"]
    assert figure.axes[0].get_subplotspec().get_gridspec().ncols == 2


def test_the_pair_taken_for_each_other_most_often_counts_both_directions():
    labels = np.array([0, 0, 0, 1, 2, 3, 3, 3])
    predicted = np.array([1, 1, 0, 1, 3, 2, 2, 3])
    assert _confused(labels, predicted) == (2, 3)
    assert _confused(labels, labels) == (0, 1)


def test_the_input_of_median_score_among_the_wanted_ones_or_else_the_others():
    scores = np.array([5.0, 1.0, 3.0, 2.0, 4.0])
    wanted, nobody = np.array([True, False, True, False, True]), np.zeros(5, bool)
    assert _median(scores, wanted, ~nobody) == 4
    assert _median(scores, nobody, ~wanted) == 3
    assert _median(scores, nobody, nobody) == 2


def test_triangles_show_inputs_that_can_be_seen_and_say_what_stands_in_for_the_papers(tmp_path):
    result = reproduce(["OODEUTUDEFullRebuttal"], preset=TINY, out=tmp_path, engine=FakeEngine()).results[0]
    for panel in result.panels[1:3]:  # no right one of the two classes leaves a doubt here
        members = np.array(panel.members)
        np.testing.assert_allclose(members.sum(axis=-1), 1, atol=1e-6)
        assert (members[:, :2].max(axis=0) >= VISIBLE).all()
    assert "In place of the paper's: N = 2 for N = 5, digits for CIFAR-10" in render_result(result)


def test_panels_are_titled_by_the_backbone_that_was_measured(tmp_path):
    preset = replace(TINY, substitutes={**TINY.substitutes, "backbone": {"resnet50": "resnet18"}})
    preset = replace(preset, left_out={"efficientnet_b2": "no time", "vit_base": "no time"})
    result = reproduce(["entropy_plots_cifar10"], preset=preset, out=tmp_path, engine=FakeEngine()).results[0]
    assert [panel.title for panel in result.panels[:2]] == ["ResNet-18, classical EU", "ResNet-18, credal EU"]
    text = render_result(result)
    assert "ResNet-18 for ResNet-50" in text
    assert "| ResNet-18, credal EU    | textures |" in text
    assert "Not measured (8 parts: EffB2, classical EU;" in text


def test_class_names_are_kept_with_the_labels_for_when_the_images_are_gone(tmp_path):
    data = tmp_path / "data" / "cifar10" / "test"
    for label in range(10):
        (data / f"kind{label}").mkdir(parents=True)
        Image.fromarray(np.full((32, 32, 3), label, np.uint8)).save(data / f"kind{label}" / "0.png")
    store = Store(tmp_path / "out")
    images = Images(store, get_preset("fast"), tmp_path / "data")
    names = images.class_names("cifar10")
    assert Images(store, get_preset("fast"), None).class_names("cifar10") == tuple(map(str, range(10)))
    images.labels("cifar10")
    assert Images(store, get_preset("fast"), None).class_names("cifar10") == names
    assert names[3] == "kind3"


def test_a_set_that_is_not_there_asks_for_the_folder_or_for_the_set(tmp_path):
    store, fast = Store(tmp_path), get_preset("fast")
    assert str(Images(store, fast, None).reason("svhn")).startswith("no data folder given for SVHN; download ")
    assert str(Images(store, fast, None).reason("cifar10-c")).endswith("pass its folder as --data-folder")
    assert str(Images(store, fast, tmp_path).reason("svhn")).startswith("SVHN not found; download ")
    assert Images(store, fast, None).reason("digits", pixels=8) is None


def test_every_file_that_the_pages_of_results_link_to_is_there():
    folder = Path(__file__).parents[3] / "results"
    linked = [
        (page.parent / target).resolve()
        for page in folder.rglob("*.md")
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text())
    ]
    assert {".svg", ".json", ".md"} <= {path.suffix for path in linked}
    assert [path for path in linked if not path.is_file()] == []


def test_figures_of_corrupted_images_may_take_every_fifth_of_them(tmp_path):
    few = replace(TINY, few_corrupted=True)
    labels = ["ece_cifar10_full", "ProbabilityPlot"]
    lines, bars = reproduce(labels, preset=few, out=tmp_path, engine=FakeEngine()).results
    assert all(panel.series for panel in lines.panels)
    assert "every 5th image of each" in render_result(lines)
    assert {panel.title.partition(" (")[2] for panel in lines.panels} == {"8 px)"}
    first, *others = lines.panels
    noted = replace(lines, panels=(replace(first, note="at 64 px"), *others))
    assert f"- 1 part: {first.title}: at 64 px." in render_result(noted)
    for path in (tmp_path / "smoke" / "images").glob("digits-c.*.npy"):
        assert len(np.load(path)) == TINY.test_images // EVERY
    test, corrupted = bars.panels
    assert test.index == corrupted.index  # of the whole test set
    assert corrupted.index % EVERY == 0
    assert np.shape(corrupted.members) == np.shape(test.members)
