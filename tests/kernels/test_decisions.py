"""Compiled decisions are those of the closed forms in NumPy, for every position of a class, and stay in their memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens.core.decisions import RULES
from credalens.kernels.buffers import row_workspace
from credalens.kernels.decisions import decide_rows
from tests.strategies import KINDS, batch_of

RELATIVE, LEAST = 4 * 2.0**-53, 1e-12


def largest_other(x):
    second, first = np.partition(x, -2, axis=-1)[:, -2:].T[..., None]
    return np.where(x < first, first, second)


def undominated(low, high):
    largest = low.max(axis=-1, keepdims=True)
    return largest - high <= LEAST + RELATIVE * np.maximum(largest, high)


def maximal(low, high):
    low_i, high_i = largest_other(low), largest_other(high)
    below, above = low.sum(axis=-1, keepdims=True), high.sum(axis=-1, keepdims=True)
    keep = low_i - high <= LEAST + RELATIVE * np.maximum(low_i, high)
    keep &= low_i + (below - 1) - low <= LEAST
    return keep & (high_i + (1 - above) - high <= LEAST * np.maximum(above, 1))


def admissible(low, high):
    keep = maximal(low, high)
    slack = LEAST + RELATIVE * np.maximum(low.max(axis=-1, keepdims=True), high)
    top = np.minimum(high + slack, 1 - (low.sum(axis=-1, keepdims=True) - low) + LEAST)
    for i in range(low.shape[-1]):
        t = top[:, i]
        room = np.minimum(high, t[:, None]).sum(axis=-1) - np.minimum(high[:, i], t) + t
        keep[:, i] &= room >= 1 - LEAST
    return keep


TWINS = {
    "interval_dominance": undominated,
    "maximality": maximal,
    "e_admissibility": admissible,
    "gamma_maximin": lambda low, high: low == low.max(axis=-1, keepdims=True),
    "gamma_maximax": lambda low, high: high == high.max(axis=-1, keepdims=True),
}


def decided(low, high, rule):
    """The mask, from the middle of a larger one that must stay as it is."""
    buffer = np.full(low.size + 64, 7, np.int8)
    inside = buffer[32:-32].view(np.bool_).reshape(low.shape)
    decide_rows(low, high, RULES.index(rule), RELATIVE, LEAST, inside, row_workspace(low.shape[1]))
    assert (buffer[:32] == 7).all()
    assert (buffer[-32:] == 7).all()
    return inside


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("classes", [*range(2, 26), 40, 63, 64, 65, 100])
def test_the_closed_forms(rule, classes):
    members = np.concatenate([batch_of(kind, 3, 12, classes, seed=classes) for kind in KINDS], axis=1)
    low, high = members.min(axis=0), members.max(axis=0)
    np.testing.assert_array_equal(decided(low, high, rule), TWINS[rule](low, high))


@settings(derandomize=True, deadline=None)
@given(st.sampled_from(RULES), st.integers(2, 4), st.integers(2, 20), st.integers(3, 12), st.integers(0, 2**32 - 1))
def test_ties(rule, members, classes, parts, seed):
    """Probabilities in a few parts, where many classes are equal."""
    p = np.random.default_rng(seed).multinomial(parts, np.full(classes, 1 / classes), (members, 20)) / parts
    low, high = p.min(axis=0), p.max(axis=0)
    np.testing.assert_array_equal(decided(low, high, rule), TWINS[rule](low, high))


def in_an_unlucky_order(classes, levels):
    """Upper bounds that fall, or rise, so that each class asks for a level that none before has answered for."""
    high = levels(np.arange(classes) / classes)
    high *= 1.2 / high.sum()
    return np.zeros((2, classes)), np.stack([high, high[::-1]])


@pytest.mark.parametrize("classes", [100, 500, 1003])
@pytest.mark.parametrize(
    "levels",
    [lambda x: 1 + x, lambda x: 1 + 3e-10 * x, lambda x: 1 + np.floor(20 * x), lambda x: np.where(x < 0.9, 1, 2 - x)],
)
def test_an_unlucky_order_of_the_classes(classes, levels):
    low, high = in_an_unlucky_order(classes, levels)
    np.testing.assert_array_equal(decided(low, high, "e_admissibility"), admissible(low, high))
    low = low + 0.3 * high
    np.testing.assert_array_equal(decided(low, high, "e_admissibility"), admissible(low, high))


@pytest.mark.parametrize("rule", RULES)
def test_bounds_in_float32_are_read_as_they_are(rule):
    members = batch_of("flat", 4, 50, 13).astype(np.float32)
    low, high = members.min(axis=0), members.max(axis=0)
    np.testing.assert_array_equal(
        decided(low, high, rule), decided(low.astype(np.float64), high.astype(np.float64), rule)
    )


@pytest.mark.parametrize("rule", RULES)
def test_sums_that_miss_one_are_repaired(rule):
    """Lower bounds that sum to a little more than one, upper bounds to a little less: one distribution, and its mode."""
    p = np.array([[0.2, 0.5, 0.3]])
    for factor in (1 - 1e-7, 1 + 1e-7):
        np.testing.assert_array_equal(decided(p * factor, p * factor, rule), [[False, True, False]])
