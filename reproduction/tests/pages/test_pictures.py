"""Pictures of our own tables show their numbers, each in its place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from credalens.core.scores import SCORES
from credalens_paper.pages.pictures import PICTURES, DotPanel, draw_dots, draw_pictures
from credalens_paper.pages.write_pages import write_pages
from credalens_paper.results.records import read_results
from reproduction.tests.pages.made_up import cell, ranked, table

RESULTS = Path(__file__).parents[3] / "results"


def names(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def dots(ax):
    """The places of all dots, series by series: (x, row)."""
    return [[(float(x), round(float(y))) for x, y in points.get_offsets()] for points in ax.collections]


def legend(picture):
    return [text.get_text() for text in picture.legends[0].get_texts()]


def test_every_score_has_a_row_with_its_ranks():
    scores = {"total": (90, 90, 80), "mean_total": (80, 95, 85), "epistemic": (70, 70, 70)}
    picture = PICTURES["ScoreCatalogue"]([ranked(scores)])
    (ax,) = picture.axes
    assert names(ax) == [SCORES[name].label for name in ("mean_total", "total", "epistemic")]
    assert legend(picture) == ["near unknowns", "far unknown objects", "far pictures of another kind"]
    near, objects, other = ({row: rank for rank, row in series} for series in dots(ax))
    assert not any(panel.get_legend() for panel in picture.axes)
    assert (near, objects, other) == ({0: 1, 1: 2, 2: 3}, {0: 1, 1: 2, 2: 3}, {0: 2, 1: 1, 2: 3})
    strokes = [line.get_xdata()[0] for line in ax.lines]
    np.testing.assert_allclose(strokes, [4 / 3, 5 / 3, 3])


def test_wrong_labels_join_two_ends():
    keys = {"variant": "credal", "measure": "EU"}
    noise = table(
        "LabelNoise",
        *(cell(value, metric="mean", id_set=data, **keys) for value, data in ((0.3, "cifar10"), (0.8, "cifar10n"))),
        *(
            cell(value, metric="AUROC", id_set="cifar10", ood_set=name, **keys)
            for value, name in ((90, "a"), (80, "b"))
        ),
        cell(65.0, metric="AUROC", id_set="cifar10n", ood_set="a", **keys),
        cell(0.1, metric="mean", id_set="cifar10", variant="classical", measure="EU"),  # one end alone is left out
    )
    uncertainty, detection = PICTURES["LabelNoise"]([noise]).axes
    assert names(uncertainty) == names(detection) == ["credal EU"]
    assert dots(uncertainty) == [[(0.3, 0)], [(0.8, 0)]]
    assert dots(detection) == [[(90.0, 0)], [(65.0, 0)]]  # of the one set that both were measured on
    assert list(uncertainty.lines[0].get_xdata()) == [0.3, 0.8]


def test_guards_have_a_row_for_each_kind_of_network_beside_the_promise():
    shared = {"backbone": "vgg16", "method": "DE", "id_set": "cifar10"}
    cells = [
        cell(value, metric="false_alarms", variant="credal", measure=score, **shared)
        for score, value in {"total": 4.0, "epistemic": 6.0}.items()
    ]
    cells += [
        cell(value, metric="turned_away", variant="credal", measure="total", ood_set=name, **shared)
        for name, value in {"svhn": 50.0, "tiny-imagenet": 40.0}.items()
    ]
    cells += [cell(80.0, metric="halved_accepted", variant="credal", measure="epistemic", **shared)]
    cells += [cell(60.0, metric="halved_turned_away", variant="credal", measure="total", ood_set="svhn", **shared)]
    kept, turned, accepted, halved = PICTURES["GuardPromises"]([table("GuardPromises", *cells)]).axes
    assert names(kept) == names(turned) == names(accepted) == ["VGG16, CIFAR-10"]
    assert dots(kept) == [[(4.0, 0)], [(6.0, 0)]]
    assert dots(turned) == [[(45.0, 0)]]
    assert dots(accepted) == [[(80.0, 0)]]
    assert dots(halved) == [[(60.0, 0)]]
    assert [line.get_xdata()[0] for line in kept.lines] == [5.0]
    assert not turned.lines
    assert kept.get_xlim()[0] <= 0 < 10 <= kept.get_xlim()[1]


MODEL = {"backbone": "resnet18", "method": "DE", "id_set": "cifar100"}


def trimmed(label, ece, *, n=(1, 1), detection=True):
    """A table of ECEs of some sizes by variant, and AUROCs which are 80 and the size."""
    cells = [
        cell(value, metric="ECE", variant=variant, N=N, n=runs, **MODEL)
        for variant, values in ece.items()
        for N, runs, value in zip((5, 10), n, values, strict=True)
    ]
    keys = {"measure": "TU", "ood_set": "svhn", "metric": "AUROC"}
    cells += [cell(80.0 + N, variant=v, N=N, n=1, **keys, **MODEL) for v in ece for N in (5, 10) if detection]
    return table(label, *cells)


def drawn(ax):
    return [list(line.get_ydata()) for line in ax.lines]


def test_trims_are_lines_over_members_and_one_of_nobody_is_the_whole_set():
    ece = {"classical": (0.02, 0.01), "credal": (0.03, 0.06), "trim5": (0.5, 0.5), "trim10": (0.5, 0.02)}
    other = trimmed("TrimmedText", {"classical": (0.9, 0.9), "credal": (0.9, 0.9)})
    picture = PICTURES["TrimmedIntervals"]([other, trimmed("TrimmedIntervals", ece)])
    calibration, detection = picture.axes
    assert legend(picture) == ["Averaged", "Credal, all members", "Without 10 % at each end"]  # 5 % leave out nobody
    assert drawn(calibration) == [[0.02, 0.01], [0.03, 0.06], [0.03, 0.02]]
    assert drawn(detection) == [[85.0, 90.0]] * 3
    assert [text.get_text() for text in calibration.get_xticklabels()] == ["5\nn = 1", "10\nn = 1"]


def test_a_trim_that_was_not_measured_is_not_drawn_as_the_whole_set():
    ece = {"classical": (0.02, 0.01), "credal": (0.03, 0.06), "trim20": (0.04, None)}
    picture = PICTURES["TrimmedIntervals"]([trimmed("TrimmedIntervals", ece, detection=False)])
    (calibration,) = picture.axes  # there are no AUROCs to draw
    assert drawn(calibration) == [[0.02, 0.01], [0.03, 0.06], [0.03], [0.04]]


def test_means_over_other_networks_are_not_joined():
    ece = {"classical": (0.02, 0.01), "credal": (0.03, 0.06)}
    picture = PICTURES["TrimmedIntervals"]([trimmed("TrimmedIntervals", ece, n=(8, 1), detection=False)])
    assert drawn(picture.axes[0])[:4] == [[0.02], [0.01], [0.03], [0.06]]
    assert [text.get_text() for text in picture.axes[0].get_xticklabels()] == ["5\nn = 8", "10\nn = 1"]


@pytest.mark.parametrize("label", PICTURES)
def test_nothing_is_drawn_of_nothing(label):
    assert PICTURES[label]([]) is None
    assert draw_pictures([table(label)]) == {}


def test_a_series_looks_the_same_in_all_panels():
    panels = [DotPanel("T", "x", {"row": rows}) for rows in ({"a": [1.0], "b": [2.0]}, {"b": [3.0], "c": [4.0]})]
    picture = draw_dots(panels)
    (_, above), (below, _) = (ax.collections for ax in picture.axes)
    assert above.get_facecolor().tolist() == below.get_facecolor().tolist()
    assert legend(picture) == ["a", "b", "c"]


def test_equal_numbers_are_one_larger_dot():
    (ax,) = draw_dots([DotPanel("T", "x", {"row": {"a": [1.0, 1.0, 2.0], "b": [3.0]}})]).axes
    first, second = ax.collections
    assert first.get_offsets()[:, 0].tolist() == [1.0, 2.0]
    assert first.get_sizes()[0] == 2 * first.get_sizes()[1] == 2 * second.get_sizes()[0]


def test_pictures_lie_beside_their_pages(tmp_path):
    results = [result for result in read_results(RESULTS / "scratch") if result.label in ("LabelNoise", "NearOOD")]
    write_pages(results, tmp_path / "README.md")
    assert (tmp_path / "tables" / "LabelNoise.svg").is_file()
    assert "![LabelNoise](LabelNoise.svg)" in (tmp_path / "tables" / "LabelNoise.md").read_text()
    assert ".svg" not in (tmp_path / "tables" / "NearOOD.md").read_text()


def test_rows_of_many_series_are_higher_and_do_not_reach_into_each_other():
    def drawn(count):
        figure = draw_dots(
            [DotPanel("T", "x", {row: {f"s{n}": [1.0] for n in range(count)} for row in ("one", "two")})]
        )
        return figure.get_figheight(), [y for part in figure.axes[0].collections for _, y in part.get_offsets()]

    (low, few), (high, many) = drawn(4), drawn(6)
    assert high > low
    for places in (few, many):
        assert max(y for y in places if y < 0.5) < 0.5 < min(y for y in places if y > 0.5) - 0.1
