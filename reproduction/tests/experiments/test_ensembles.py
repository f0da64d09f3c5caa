"""Which networks make up a run: distinct combinations, shared work, teachers, seeds."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens_paper.backbones import Pretrained
from credalens_paper.experiments.cell_keys import EVERY, CellKey, cells
from credalens_paper.experiments.ensembles import (
    EvaluationSet,
    distinct_combinations,
    ensembles,
    evaluation_sets,
)
from credalens_paper.experiments.presets import get_preset

FAST = get_preset("fast")


def cell(**keys):
    return CellKey(**{"metric": "ACC", "backbone": "resnet18", "id_set": "cifar10", **keys})


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 12), st.data(), st.integers(1, 20), st.integers(0, 3))
def test_combinations_are_distinct_of_the_right_size_and_as_many_as_there_can_be(members, data, count, seed):
    N = data.draw(st.integers(1, members))
    pool = data.draw(st.permutations(range(0, 3 * members, 3)))
    found = distinct_combinations(pool, N, count, seed=seed)
    assert len(found) == len(set(found)) == min(count, math.comb(members, N))
    assert all(
        len(set(choice)) == N and set(choice) <= set(pool) and list(choice) == sorted(choice) for choice in found
    )
    assert found == distinct_combinations(pool, N, count, seed=seed)


def test_the_fifteen_ensembles_of_five_use_every_one_of_fifteen_members_five_times():
    found = distinct_combinations(range(15), 5, 15)
    assert set(Counter(member for choice in found for member in choice).values()) == {5}


def test_more_members_than_were_trained_are_refused():
    with pytest.raises(ValueError, match=r"N = 5 needs at least 5 trained members, there are 3"):
        distinct_combinations(range(3), 5, 15)


def test_deep_ensembles_are_combinations_of_standard_networks():
    runs = ensembles(cell(method="DE", N=5), FAST, pool=FAST.members)
    assert len(runs) == len({run.key for run in runs}) == 15
    assert {(spec.method, spec.schedule, spec.classes) for run in runs for spec in run.specs} == {("snn", "fast", 10)}
    assert all(run.samples == 1 and len(run.specs) == run.N == 5 for run in runs)


def test_all_members_of_the_pool_at_once_are_one_run():
    assert len(ensembles(cell(method="DE", N=25), FAST, pool=25)) == 1


@pytest.mark.parametrize(("method", "spec_method"), [("BNNR", "bnnr"), ("BNNF", "bnnf")])
def test_a_bayesian_run_is_one_network_of_which_n_samples_are_drawn(method, spec_method):
    runs = ensembles(cell(method=method, N=10), FAST, pool=FAST.members)
    assert [run.seeds for run in runs] == [[0], [1], [2], [3], [4]]
    assert {(run.specs[0].method, run.samples) for run in runs} == {(spec_method, 10)}


@pytest.mark.parametrize("method", ["EDD", "EDD-Fair"])
def test_distilled_networks_learn_one_each_from_the_first_deep_ensembles(method):
    teachers = [tuple(run.seeds) for run in ensembles(cell(method="DE", N=5), FAST, pool=FAST.members)]
    students = ensembles(cell(method=method), FAST, pool=FAST.members)
    assert [run.specs[0].teachers for run in students] == teachers[: FAST.edd_runs]
    assert all(run.dirichlet for run in students)


def test_ensembles_of_different_sizes_or_networks_have_different_names():
    kinds = [("DE", 3), ("DE", 5), ("BNNR", 5), ("BNNR", 10), ("BNNF", 10)]
    runs = [run for method, N in kinds for run in ensembles(cell(method=method, N=N), FAST, pool=FAST.members)]
    assert len({run.key for run in runs}) == len(runs)


def test_pretrained_weights_belong_to_imagenet_and_to_fine_tuning_alone():
    full = get_preset("full")
    for backbone, id_set, expected in (
        ("resnet50", "imagenet", ("sha256-1", "/weights")),
        ("efficientnet_lite0", "cifar100", ("sha256-1", "/weights")),
        ("resnet50", "cifar10", (None, None)),
    ):
        large = cell(backbone=backbone, method="DE", N=5, id_set=id_set)
        weights = Pretrained(backbone, "/weights", "sha256-1")
        runs = ensembles(large, full, pool=full.members, pretrained=weights)
        assert {(spec.pretrained, spec.weights) for spec in runs[0].specs} == {expected}
    assert runs[0].specs[0].image_size == 224


def test_a_cell_without_a_model_has_no_runs():
    with pytest.raises(ValueError, match="names no model"):
        ensembles(CellKey(metric="time_ms", C=10), FAST, pool=15)


def test_cells_are_all_combinations_of_their_keys():
    found = cells(metric=("ACC", "ECE"), N=(3, 5), method="DE")
    assert {(one.metric, one.N, one.method) for one in found} == {(m, n, "DE") for m in ("ACC", "ECE") for n in (3, 5)}


def test_sets_are_named_for_files_and_substituted():
    smoke = get_preset("smoke")
    assert [one.key for one in evaluation_sets("svhn", smoke)] == ["textures"]
    assert EvaluationSet("digits-c", "contrast", 5) in evaluation_sets("cifar10-c", smoke)
    assert {one.severity for one in evaluation_sets("cifar10-c", smoke, severity=1)} == {1}
    assert len(evaluation_sets("cifar10-c", FAST, severity=3)) == 15


def test_every_fifth_image_of_corrupted_sets_is_taken_where_the_preset_says_so():
    few = replace(FAST, few_corrupted=True)
    [clean] = evaluation_sets("svhn", few)
    assert clean.rows == slice(None)
    assert {images.rows.step for images in evaluation_sets("cifar10-c", few)} == {EVERY}
    assert {images.rows.step for images in evaluation_sets("cifar10-c", FAST)} == {None}
    assert {images.preparation for images in evaluation_sets("cifar10-c", few, preparation="bgr")} == {"bgr"}


@pytest.mark.parametrize(("method", "N"), [("DE", 5), ("BNNR", 10), ("EDD", None)])
def test_later_runs_are_the_same_networks_without_the_first_ones(method, N):
    key = cell(method=method, N=N)
    later = ensembles(key, replace(FAST, first_run=2), pool=FAST.members)
    assert later == ensembles(key, FAST, pool=FAST.members)[2:]
    assert later


def test_runs_are_counted_from_zero():
    with pytest.raises(ValueError, match="runs are counted from 0, got first_run=-1"):
        replace(FAST, first_run=-1)
