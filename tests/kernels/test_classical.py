"""Entropy of the mean and mean entropy, compiled in one pass, are those of NumPy; bad rows are found."""

from __future__ import annotations

import numpy as np
import pytest

from credalens.kernels.members import classical_rows
from tests import oracles
from tests.strategies import KINDS, batch_of

ALLOWED = 1e-5


def classical(members):
    total, aleatoric = np.full((2, members.shape[1]), 777.0)
    good = classical_rows(members, 0, members.shape[1], ALLOWED, total, aleatoric, np.empty(len(members)))
    return good, total, aleatoric


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("classes", [*range(1, 26), 64, 100])
def test_entropies_are_those_of_numpy(classes, dtype):
    for number in (1, 2, 5):
        members = np.concatenate([batch_of(kind, number, 3, classes, seed=classes) for kind in KINDS], axis=1)
        p = members.astype(dtype)
        good, total, aleatoric = classical(p)
        q = p.astype(np.float64)
        q /= q.sum(axis=-1, keepdims=True)
        assert good
        np.testing.assert_allclose(total, oracles.entropy(q.mean(axis=0)), rtol=0, atol=1e-13)
        np.testing.assert_allclose(aleatoric, oracles.entropy(q).mean(axis=0), rtol=0, atol=1e-13)


@pytest.mark.parametrize("classes", [2, 8, 9, 17])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.5])
def test_one_bad_value_is_found_in_every_member_and_class(classes, value):
    members = batch_of("flat", 3, 3, classes)
    for n in range(3):
        for k in range(classes):
            bad = members.copy()
            bad[n, 2, k] = value
            assert not classical(bad)[0], (n, k)


@pytest.mark.parametrize("classes", [2, 8, 9, 17])
def test_a_negative_value_whose_row_sums_to_one_is_found(classes):
    members = batch_of("flat", 2, 2, classes)
    for k in range(classes):
        bad = members.copy()
        bad[1, 1, (k + 1) % classes] += bad[1, 1, k] + 1e-6
        bad[1, 1, k] = -1e-6
        assert not classical(bad)[0], k
