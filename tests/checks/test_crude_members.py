"""Warnings about members that say little: they come when they should, never change their words, and name a remedy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from credalens.checks.doubtful_members import warn_crude_members, warn_single_member
from credalens.datasets import cifar10_ensemble


def bounds_of(probs):
    return (probs.amin(0), probs.amax(0)) if hasattr(probs, "amin") else (probs.min(axis=0), probs.max(axis=0))


def warnings_of(probs):
    """The words of all warnings about these members."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_crude_members(*bounds_of(probs))
    return [str(warning.message) for warning in caught]


def one_hot(members, rows, classes, seed=0):
    return np.eye(classes)[np.random.default_rng(seed).integers(0, classes, (members, rows))]


@given(st.integers(2, 6), st.integers(8, 600), st.integers(2, 5), st.floats(0, 0.004))
def test_one_hot_members_that_disagree(members, rows, classes, leftover):
    probs = one_hot(members, rows, classes)
    probs[:, :4] = np.eye(classes)[np.arange(members) % 2][:, None]  # disagree on four rows at least
    (words,) = warnings_of(probs * (1 - leftover) + leftover / classes)
    assert words.startswith("the members are nearly one-hot")
    assert "temperature" in words
    assert "probs.reshape(5, 4, *probs.shape[1:]).mean(1)" in words


def test_both_remedies_help_members_that_are_nearly_one_hot():
    logits = np.random.default_rng(0).normal(0, 20, (20, 300, 3))
    probs, cooler = (softmax(logits / temperature, axis=-1) for temperature in (1, 10))
    assert len(warnings_of(probs)) == 1
    assert warnings_of(cooler) == []
    assert warnings_of(probs.reshape(5, 4, *probs.shape[1:]).mean(1)) == []


@given(st.integers(2, 5), st.integers(1, 40), st.integers(0, 40), st.integers(0, 2**31 - 1))
def test_only_the_rows_as_a_set_decide(members, soft, hard, seed):
    rng = np.random.default_rng(seed)
    probs = np.concatenate([rng.dirichlet(np.ones(3), (members, soft)), one_hot(members, hard, 3, seed)], axis=1)
    shuffled = probs[rng.permutation(members)][:, rng.permutation(soft + hard)][..., rng.permutation(3)]
    assert warnings_of(shuffled) == warnings_of(probs)


@pytest.mark.parametrize("rows", [1, 300])
def test_members_that_are_the_same(rows):
    probs = np.random.default_rng(0).dirichlet(np.ones(4), rows)
    (words,) = warnings_of(np.stack([probs] * 3))
    assert words.startswith("all members predict the same, so epistemic uncertainty is zero. Train them")


def test_a_few_easy_rows_do_not_prove_that_members_are_the_same():
    easy = np.eye(3)[np.arange(300) % 3]
    assert warnings_of(np.stack([easy[:20]] * 2)) == []
    assert warnings_of(np.stack([np.eye(3)[np.zeros(300, int)]] * 2)) == []
    assert len(warnings_of(np.stack([easy] * 2))) == 1


def test_one_hard_input_is_no_reason():
    probs = np.full((2, 50, 2), 0.5) + np.array([0.1, -0.1])
    probs[1] = probs[0][:, ::-1]
    probs[:, 0] = np.eye(2)
    assert warnings_of(probs) == []
    assert warnings_of(probs[:, :1]) == []


def test_no_rows_no_warning():
    assert warnings_of(np.zeros((2, 0, 3))) == []


@pytest.mark.parametrize("name", ["cifar10", "svhn", "tiny_imagenet"])
def test_real_networks_are_not_crude(name):
    assert warnings_of(getattr(cifar10_ensemble(), name)) == []


def test_one_member_alone():
    with pytest.warns(UserWarning, match=r"there is a single member.* Give several"):
        warn_single_member(1)
    warn_single_member(2)


def test_tensors_and_any_batch_shape():
    torch = pytest.importorskip("torch")
    probs = torch.from_numpy(one_hot(4, 60, 3).reshape(4, 5, 12, 3))
    assert len(warnings_of(probs)) == 1


def test_the_warning_names_the_line_of_the_callers_caller():
    lower, upper = bounds_of(one_hot(4, 60, 3))

    def adapter():
        warn_crude_members(lower, upper, stacklevel=2)

    with pytest.warns(UserWarning, match="nearly one-hot") as caught:
        adapter()
    assert caught[0].filename == __file__
