"""Every score of the catalogue against its formula, in every kind of array."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from credalens import (
    CredalPrediction,
    MemberSummary,
    credal_decision,
    generalized_hartley,
    maximum_mean_imprecision,
    wrap,
)
from credalens.core.scores import DEFAULT, SCORES
from tests import oracles
from tests.strategies import batch_of, ensembles

CREDAL = ["total", "epistemic", "aleatoric", "hartley", "imprecision", "entropy", "least_confidence", "set_size"]
AVERAGING = ["mean_total", "mean_epistemic", "mean_aleatoric", "mean_least_confidence", "mean_pairwise_kl"]
NAMES = [*CREDAL, *AVERAGING]


def pairwise_kl(members: np.ndarray) -> float:
    """The mean over all pairs, one after the other, with probabilities no smaller than a float32 can be."""
    p = np.maximum(members, 2.0**-126)
    pairs = [(members[n] * (np.log2(p[n]) - np.log2(p[m]))).sum() for n in range(len(p)) for m in range(len(p))]
    return float(np.mean(pairs))


def by_formula(members: np.ndarray) -> dict[str, float]:
    """All scores in bits of one input's members, from the words of the catalogue."""
    prediction, mean = wrap(members), members.mean(axis=0)
    low, high, star = prediction.lower, prediction.upper, prediction.probability
    top, bottom = oracles.upper_entropy(low, high)[0], oracles.lower_entropy(low, high)
    of_mean, of_each = float(oracles.entropy(mean)), float(oracles.entropy(members).mean())
    return {
        "total": top,
        "epistemic": top - bottom,
        "aleatoric": bottom,
        "hartley": oracles.generalized_hartley(low, high),
        "imprecision": oracles.maximum_mean_imprecision(low, high),
        "entropy": float(oracles.entropy(star)),
        "least_confidence": 1 - star.max(),
        "set_size": credal_decision(low, high, "maximality").sum(),
        "mean_total": of_mean,
        "mean_epistemic": of_mean - of_each,
        "mean_aleatoric": of_each,
        "mean_least_confidence": 1 - mean.max(),
        "mean_pairwise_kl": pairwise_kl(members),
    }


def test_the_catalogue_has_these_names():
    assert list(SCORES) == NAMES
    assert DEFAULT in SCORES
    assert all(name == score.name and score.averaged == name.startswith("mean_") for name, score in SCORES.items())
    assert len({score.label for score in SCORES.values()}) == len(SCORES)


@given(ensembles(max_classes=6, max_members=4))
def test_every_score_is_what_its_formula_says(members):
    prediction, expected = wrap(members), by_formula(members)
    for name in NAMES:
        assert abs(float(prediction.score(name)) - expected[name]) <= 1e-9 * max(1, abs(expected[name])), name


@given(ensembles(max_classes=6, max_members=4))
def test_no_score_is_negative_and_the_base_scales_only_information(members):
    bits, nats = wrap(members), wrap(members, base=math.e)
    for name, score in SCORES.items():
        ratio = math.log(2) if score.unit == "information" else 1.0
        assert bits.score(name) >= 0
        assert nats.score(name) == pytest.approx(ratio * bits.score(name), rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_scores_have_the_batch_shape_and_kind_of_the_members(name, dtype):
    torch = pytest.importorskip("torch")
    members = batch_of("peaked", 3, 6, 4).astype(dtype)
    expected = wrap(members).score(name)
    assert expected.shape == (6,)
    assert name == "set_size" or expected.dtype == dtype
    tensor = wrap(torch.from_numpy(members.reshape(3, 2, 3, 4))).score(name)
    assert isinstance(tensor, torch.Tensor)
    assert np.array_equal(tensor.numpy().reshape(-1), expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_summary_has_every_score_that_does_not_need_the_members(name):
    members = batch_of("peaked", 3, 6, 4)
    summarised = MemberSummary().update(members).prediction()
    if SCORES[name].needs_members:
        with pytest.raises(ValueError, match="needs the members"):
            summarised.score(name)
    else:
        assert np.allclose(summarised.score(name), wrap(members).score(name), rtol=0, atol=1e-12)


def test_an_unknown_score_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match="mean_pairwise_kl"):
        wrap(batch_of("flat", 2, 3, 4)).score("confidence")


def test_the_functions_and_the_scores_are_the_same():
    prediction = wrap(batch_of("flat", 4, 9, 5))
    bounds = prediction.lower, prediction.upper
    assert np.array_equal(prediction.score("hartley"), generalized_hartley(*bounds))
    assert np.array_equal(prediction.score("imprecision"), maximum_mean_imprecision(*bounds))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("members", [2, 3, 5])
@pytest.mark.parametrize("classes", [2, 3, 10, 16, 17, 100])
def test_disagreement_of_identical_members_is_zero_and_not_rounding(members, classes, dtype):
    rows = np.random.default_rng(classes).dirichlet(np.ones(classes), 100).astype(dtype)
    prediction = wrap(np.repeat(rows[None], members, axis=0))
    for name in ("epistemic", "hartley", "imprecision", "mean_epistemic", "mean_pairwise_kl"):
        assert not prediction.score(name).any(), name


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 10, 17])
def test_of_a_single_member_only_disagreement_may_be_rounding(classes, dtype):
    prediction = wrap(np.random.default_rng(classes).dirichlet(np.ones(classes), (1, 200)).astype(dtype))
    for name, score in SCORES.items():
        values = prediction.score(name)
        assert score.disagreement or not ((values > 0) & (values < 1e-6)).any(), name


def test_the_method_names_every_score():
    for name in NAMES:
        assert f'"{name}"' in (CredalPrediction.score.__doc__ or "")


def test_every_score_works_for_a_strict_array_library():
    strict = pytest.importorskip("array_api_strict")
    members = batch_of("peaked", 3, 6, 4)
    for name in NAMES:
        values = wrap(strict.asarray(members)).score(name)
        np.testing.assert_allclose(np.from_dlpack(values), wrap(members).score(name), rtol=1e-12, atol=1e-12)
