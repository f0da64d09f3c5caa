"""Speed guarded by counting: rows that need a search, nodes of the searches, rounds of water-filling.

Counts do not depend on the machine. Bounds are about a third above what was measured.
"""

from __future__ import annotations

import numpy as np
import pytest

from credalens.core.options import MAX_NODES, TOLERANCE
from credalens.datasets import cifar10_ensemble
from credalens.kernels.lower.solve import lower_entropy_rows


@pytest.fixture(scope="module")
def shipped():
    """Every tenth prediction of the five networks, known and unknown inputs alike."""
    ensemble = cifar10_ensemble()
    parts = [ensemble.cifar10, ensemble.svhn, ensemble.tiny_imagenet]
    members = np.concatenate([part[:, ::10] for part in parts], axis=1).astype(np.float64)
    return np.ascontiguousarray(members / members.sum(axis=-1, keepdims=True))


def peaked(rows, classes):
    """Predictions of five members that share most of their logits, one class ahead."""
    rng = np.random.default_rng(0)
    logits = 2.5 * rng.normal(size=(1, rows, classes)) + rng.normal(size=(5, rows, classes))
    logits[:, np.arange(rows), rng.integers(0, classes, rows)] += 8 * rng.random(rows) + np.log(classes)
    p = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def searched(members):
    """(share of rows left open by the root, nodes a row of the searches) ."""
    low, high = members.min(axis=0), members.max(axis=0)
    value, bound = np.full(len(low), np.inf), np.full(len(low), -np.inf)
    at_root = lower_entropy_rows(low, high, TOLERANCE, 0, value, bound, np.empty((len(low), 0)))
    assert at_root == 0
    share = float((bound < value - TOLERANCE).mean())
    nodes = lower_entropy_rows(low, high, TOLERANCE, MAX_NODES, value, bound, np.empty((len(low), 0)))
    return share, nodes / len(low)


def test_one_change_closes_most_real_predictions(shipped):
    share, nodes = searched(shipped)
    assert 0 < share < 0.12  # measured: 0.083
    assert nodes < 0.75  # measured: 0.54


@pytest.mark.parametrize(("classes", "share", "nodes"), [(100, 0.32, 3.0), (1000, 0.5, 8.0)])
def test_peaked_predictions_of_many_classes_need_few_nodes(classes, share, nodes):
    found_share, found_nodes = searched(peaked(300_000 // classes // 3, classes))
    assert found_share < share
    assert found_nodes < nodes


def test_a_row_that_is_known_is_not_searched_again():
    low, high = np.array([[0.1, 0.1, 0.2]]), np.array([[0.7, 0.6, 0.7]])
    value, bound = np.array([1.0]), np.array([1.0])
    nodes = lower_entropy_rows(low, high, TOLERANCE, MAX_NODES, value, bound, np.empty((1, 0)))
    assert nodes == 0
    assert value[0] == bound[0] == 1.0
