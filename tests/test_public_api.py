"""The public names, their parameters and what they return: a contract that changes only on purpose."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import numpy as np
import pytest

import credalens

BUDGET = ", max_nodes, tolerance, threads"
SIGNATURES = {
    "wrap": "probs, *, member_axis, class_axis, base, trim, recalibration" + BUDGET,
    "wrap_logits": "logits, *, member_axis, class_axis, base, trim, recalibration" + BUDGET,
    "probability_intervals": "probs, *, member_axis, threads",
    "intersection_probability": "lower, upper",
    "approximate_intervals": "lower, upper, classes",
    "upper_entropy": "lower, upper, *, base, return_distribution, threads",
    "lower_entropy": "lower, upper, *, base, return_distribution, return_bounds" + BUDGET,
    "generalized_hartley": "lower, upper, *, base, return_bounds, tolerance, threads",
    "maximum_mean_imprecision": "lower, upper, *, return_bounds, threads",
    "classical_uncertainty": "probs, *, member_axis, base, threads",
    "credal_decision": "lower, upper, rule, *, costs",
    "set_utility": "size, correct, /, *, reward",
    "evaluate": "members, ood, *, labels, logits, recalibration, base, bins, false_alarm_rate, level, replicates, seed, "
    "id_name, class_names, groups, images, full_paths, threads, progress",
    "ProbabilityIntervals": "lower, upper",
    "ConvexHull": "probs, member_axis",
    "ClassicalUncertainty": "total, aleatoric, epistemic",
}
MEMBERS = np.random.default_rng(0).dirichlet(np.ones(4), (5, 6))
BATCH, CLASSES = (6,), (6, 4)


def parameters(function: object) -> str:
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty, default=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))[1:-1]


def test_names():
    assert sorted(credalens.__all__) == sorted(
        [*SIGNATURES, "CredalPrediction", "MemberSummary", "Recalibration", "__version__"]
    )
    assert all(hasattr(credalens, name) for name in credalens.__all__)


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters(name):
    assert parameters(getattr(credalens, name)) == SIGNATURES[name]


@pytest.mark.parametrize("make", [credalens.wrap, lambda p: credalens.MemberSummary().update(p).prediction()])
def test_a_prediction_has_its_arrays(make):
    prediction = make(MEMBERS)
    for name in ("lower", "upper", "probability", "mean"):
        assert getattr(prediction, name).shape == CLASSES
    for name in ("total", "aleatoric", "epistemic", "aleatoric_bound", "hartley"):
        assert getattr(prediction, name).shape == BATCH
    assert [bound.shape for bound in prediction.hartley_bounds] == [BATCH, BATCH]
    for name in ("total", "aleatoric", "epistemic"):
        assert getattr(prediction.classical, name).shape == BATCH
    assert isinstance(prediction.intervals, credalens.ProbabilityIntervals)
    assert prediction.predict().shape == BATCH
    assert prediction.predict_set("maximality").dtype == bool
    assert prediction.predict_set("maximality", costs=np.eye(3, 4)).shape == (*BATCH, 3)


def test_predict_is_the_class_of_highest_intersection_probability():
    prediction = credalens.wrap(MEMBERS)
    np.testing.assert_array_equal(prediction.predict(), prediction.probability.argmax(-1))


def test_intervals_of_a_prediction_are_those_of_the_function():
    for ours, expected in zip(credalens.wrap(MEMBERS).intervals, credalens.probability_intervals(MEMBERS), strict=True):
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize(
    "result",
    [
        credalens.wrap(MEMBERS),
        credalens.probability_intervals(MEMBERS),
        credalens.classical_uncertainty(MEMBERS),
        credalens.ConvexHull(MEMBERS),
    ],
    ids=lambda result: type(result).__name__,
)
def test_results_are_frozen(result):
    name = dataclasses.fields(result)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(result, name, None)


def test_the_hull_has_its_methods():
    hull = credalens.ConvexHull(MEMBERS)
    for value in (hull.upper_entropy(), hull.lower_entropy(), hull.generalized_hartley(), hull.lower_probability([0])):
        assert value.shape == BATCH
    assert hull.lower_probabilities().shape == hull.mobius().shape == (6, 16)
    assert hull.permutation_vertices().shape == (6, 24, 4)


def test_parts_are_imported_by_name():
    for name in ("datasets", "evaluation", "storage"):
        assert inspect.ismodule(getattr(credalens, name))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        credalens.nothing  # noqa: B018


EVALUATION = ("evaluate", "ood", "labelled", "thresholds", "intervals", "single_inputs")
PLOTS = ("axes", "one_input", "series")


@pytest.mark.parametrize(
    "name",
    [
        "storage.saved",
        "theme",
        *(f"evaluation.{name}" for name in EVALUATION),
        *(f"plots.{x}" for x in PLOTS),
    ],
)
def test_modules_keep_their_examples(name):
    """Which pytest runs, as --doctest-modules is set."""
    assert ">>> " in (Path(credalens.__path__[0]) / f"{name.replace('.', '/')}.py").read_text()


def test_a_wrapped_network_adds_few_names_to_a_module():
    pytest.importorskip("torch")
    from torch import nn

    from credalens.torch import CredalWrapper

    methods = {"predict", "predict_batch", "decide", "summarise"}
    facts = {"each_member", "n_members", "vectorised_bytes"}
    assert {name for name in set(dir(CredalWrapper)) - set(dir(nn.Module)) if name[0] != "_"} == methods | facts
