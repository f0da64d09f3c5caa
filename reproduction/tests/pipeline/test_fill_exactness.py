"""What exactness changes: both forms of PIA and both solvers against slow truths, stored once, from what is at hand."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.metrics import roc_auc_score

from credalens.core.intervals import ProbabilityIntervals, approximate_intervals
from credalens_paper.experiments.own_entries import EXACTNESS
from credalens_paper.experiments.presets import get_preset
from credalens_paper.measures.exactness import (
    Solved,
    empty_sets,
    printed_intervals,
    reduce_rows,
    reduction_effect,
    solve,
    solver_effect,
    solver_errors,
)
from credalens_paper.pages.result_page import render_result
from credalens_paper.pipeline.fill import table as reproduce_exactness
from credalens_paper.pipeline.measure_entries import reproduce
from reproduction.tests.data.image_files import draw_images
from reproduction.tests.pipeline.fake_engine import FakeEngine

SMOKE = replace(get_preset("smoke"), test_images=40, solver_samples=3)
pytestmark = pytest.mark.usefixtures("hurry")


def bounds(seed, rows=6, members=3, classes=5, sharpness=0.5, agreement=20):
    """Intervals of members that agree more or less, as those of an ensemble do."""
    rng = np.random.default_rng(seed)
    centres = rng.dirichlet(np.full(classes, sharpness), rows)
    drawn = np.stack([[rng.dirichlet(agreement * centre + 0.05) for centre in centres] for _ in range(members)])
    return drawn.min(0), drawn.max(0)


def printed_slowly(lower, upper, J):
    """Line by line as the algorithm is printed, for one input."""
    alpha = (1 - lower.sum()) / (upper - lower).sum()
    order = sorted(range(len(lower)), key=lambda k: -(lower[k] + alpha * (upper[k] - lower[k])))
    low, high = [lower[k] for k in order[: J - 1]], [upper[k] for k in order[: J - 1]]
    low.append(max(1 - sum(upper[k] for k in order[J - 1 :]), sum(low)))
    high.append(min(1 - sum(lower[k] for k in order[J - 1 :]), sum(high)))
    return low, high


@given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from([3, 20, 200]))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_the_printed_algorithm_line_by_line_and_its_empty_sets_by_linear_programs(seed, J, agreement):
    lower, upper = bounds(seed, agreement=agreement)
    low, high = printed_intervals(lower, upper, J)
    for row, empty in enumerate(empty_sets(low, high)):
        np.testing.assert_allclose((low[row], high[row]), printed_slowly(lower[row], upper[row], J), atol=1e-12)
        limits = list(zip(low[row], high[row], strict=True))
        crossed = any(least > most for least, most in limits)
        assert empty == (crossed or not linprog(np.zeros(J), A_eq=np.ones((1, J)), b_eq=[1], bounds=limits).success)


def test_the_sound_form_is_never_empty_where_the_printed_one_nearly_always_is():
    lower, upper = bounds(1, rows=200, classes=100, sharpness=0.05, agreement=200)
    assert empty_sets(*printed_intervals(lower, upper, 20)).mean() > 0.8
    assert not empty_sets(*approximate_intervals(lower, upper, 20)).any()


def entropy(p):
    return -np.sum(np.where(p > 0, p * np.log2(np.where(p > 0, p, 1)), 0), axis=-1)


def test_uncertainty_of_the_printed_sets_is_that_of_their_vertices_and_nan_where_they_are_empty():
    lower, upper = bounds(3, rows=60, classes=6)
    reduced, (low, high) = reduce_rows((lower, upper), 3), printed_intervals(lower, upper, 3)
    assert 0 < reduced.empty.sum() < 60
    assert np.isnan(reduced.printed[reduced.empty]).all()
    grid = np.linspace(0, 1, 201)
    for row in np.flatnonzero(~reduced.empty):
        intervals = ProbabilityIntervals(low[row], high[row])
        lowest = entropy(intervals.vertices()).min()
        a, b = (low[row, k] + grid * (high[row, k] - low[row, k]) for k in (0, 1))
        points = np.stack(np.broadcast_arrays(a[:, None], b[None], 1 - a[:, None] - b[None]), axis=-1)
        inside = (points[..., 2] >= low[row, 2]) & (points[..., 2] <= high[row, 2])
        if inside.any():
            assert reduced.printed[row] == pytest.approx(entropy(points[inside]).max() - lowest, abs=2e-2)


def test_keeping_more_classes_approaches_the_measure_without_reduction():
    intervals = bounds(5, rows=80, classes=8)
    errors = [np.abs(reduce_rows(intervals, J).sound - reduce_rows(intervals, J).exact).mean() for J in (2, 4, 7)]
    assert errors[0] > errors[1] > errors[2]


def test_detection_on_what_the_printed_algorithm_leaves_and_nothing_where_it_leaves_nothing():
    inside, outside = (reduce_rows(bounds(seed, rows=60, classes=6, sharpness=s), 3) for seed, s in ((0, 0.3), (1, 1)))
    found = reduction_effect(inside, outside)
    labels = np.r_[np.zeros((~inside.empty).sum()), np.ones((~outside.empty).sum())]
    scores = np.r_[inside.printed[~inside.empty], outside.printed[~outside.empty]]
    assert found.left_printed_auroc == pytest.approx(100 * roc_auc_score(labels, scores))
    assert found.inside_empty == inside.empty.mean()
    nothing = replace(outside, empty=np.ones(60, bool))
    assert reduction_effect(inside, nothing).left_sound_auroc is None


def test_errors_of_a_solver_by_hand():
    exact = np.array([[2.0, 1.0], [2.0, 1.0], [2.0, 1.0], [2.0, 1.0]])
    local = np.array([[2.0, 1.0005], [2.0, 1.005], [1.75, 1.05], [2.0, 1.5]])
    found = solver_errors(Solved(exact, local, 2.0))
    assert found.wrong == (0.75, 0.5, 0.25)
    assert found.largest_error == 0.5
    assert found.largest_upper_error == 0.25
    assert found.mean_error == pytest.approx(0.5555 / 4)
    assert found.ms_per_input == 500


def test_the_effect_of_a_solver_is_the_difference_of_two_aurocs():
    rng = np.random.default_rng(0)
    inside, outside = (solve(bounds(seed, rows=40, sharpness=s), 30, rng) for seed, s in ((0, 0.3), (1, 1.0)))
    found = solver_effect(inside, outside)
    labels = np.r_[np.zeros(30), np.ones(30)]
    aurocs = {
        name: 100 * roc_auc_score(labels, np.r_[a[:, 0] - a[:, 1], b[:, 0] - b[:, 1]])
        for name, a, b in (("exact", inside.exact, outside.exact), ("SLSQP", inside.local, outside.local))
    }
    assert found.exact_eu_auroc == pytest.approx(aurocs["exact"])
    assert found.difference == pytest.approx(aurocs["exact"] - aurocs["SLSQP"])
    assert found.low <= found.difference <= found.high


def test_fewer_inputs_of_more_classes_are_solved():
    fast = get_preset("fast")
    assert [EXACTNESS.samples(classes, fast) for classes in (10, 100, 100_000)] == [2000, 200, 1]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """(the folder of a run, its result)."""
    folder = tmp_path_factory.mktemp("stored")
    return folder, reproduce(["Exactness"], preset=SMOKE, out=folder, engine=FakeEngine()).results[0]


def test_a_second_run_solves_nothing_and_other_predictions_are_solved_again(stored, tmp_path, monkeypatch):
    folder, first = stored
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    with monkeypatch.context() as patch:
        patch.setattr(reproduce_exactness, "solve", lambda *_: pytest.fail("solved again"))
        patch.setattr(reproduce_exactness, "reduce_rows", lambda *_, **__: pytest.fail("reduced again"))
        again = reproduce(["Exactness"], preset=SMOKE, out=tmp_path, engine=FakeEngine()).results[0]
    assert again.parts == first.parts
    shutil.rmtree(tmp_path / "smoke" / "predictions")

    class Other(FakeEngine):
        def predict(self, network, spec, images, **options):
            return super().predict(network, spec, 255 - images, **options)

    changed = reproduce(["Exactness"], preset=SMOKE, out=tmp_path, engine=Other()).results[0]
    for old, new in zip(first.parts, changed.parts, strict=True):
        assert old.reduction[0].J != new.reduction[0].J


def test_every_model_has_its_runs_its_sets_and_its_classes_kept(stored):
    _, result = stored
    assert [part.keys.backbone for part in result.parts] == ["vgg16", "resnet18", "resnet50"]
    for part in result.parts:
        assert len(part.solver) == len(part.reduction) == SMOKE.runs
        for run in part.solver:
            assert list(run.sets) == ["digits", "textures", "photos"]
            assert {errors.samples for errors in run.sets.values()} == {4 * SMOKE.solver_samples}
    assert list(result.parts[0].reduction[0].J) == ["2", "3", "5", "8"]
    assert list(result.parts[2].reduction[0].J) == ["3", "5"]
    text = render_result(result)
    assert text.count("| ResNet-18 DE, N = 3, digits") == 3 + 2 + 2 * 4
    assert "> 0.01 bit" in text
    assert f"3 x {4 * SMOKE.solver_samples}" in text


def test_what_is_stored_is_shown_without_the_images_and_the_rest_is_named_without_any_training(tmp_path):
    """Predictions of five of six members are left: ensembles without the sixth are measured, the others are named."""
    data, out = tmp_path / "data", tmp_path / "out"
    for name, split, count in (("cifar10", "train", 2), ("cifar10", "test", 3), ("svhn", "test", 3)):
        draw_images(data / name / split, classes=10, count=count)
    kept = {"ood_set": {"tiny-imagenet": "textures"}}
    preset = replace(get_preset("fast"), members=6, runs=6, substitutes=kept, solver_samples=2).only(["DE", "vgg16"])
    reproduce(["OODMainTU"], preset=preset, out=out, engine=FakeEngine(), data_folder=data)
    (gone,) = (out / "fast" / "predictions").glob("*-seed5-*")
    shutil.rmtree(gone)
    shutil.rmtree(out / "fast" / "evaluations")
    engine = FakeEngine()
    table, own = reproduce(["OODMainTU", "Exactness"], preset=preset, out=out, engine=engine).results
    assert (engine.trainings, engine.predictions) == ([], [])
    for cell in table.cells:
        if (cell.keys.backbone, cell.keys.method) == ("vgg16", "DE"):
            assert cell.ours.n == 1
            assert list(cell.missing) == ["5 of 6 runs"]
        else:
            assert cell.ours is None
    assert table.status == own.status == "partly measured"
    assert [(kind.method, kind.runs) for kind in table.models] == [("DE", 1)]
    assert len(own.parts[0].solver) == 1
    runs = "- Runs that were not measured ({}: VGG16 DE CIFAR-10 N = 5: 5 of 6 runs): "
    assert runs.format("8 cells") in render_result(table)
    assert runs.format("1 part") in render_result(own)
