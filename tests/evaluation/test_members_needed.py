"""Metrics of fewer members: each size, each subset, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from credalens.evaluation.data_sets import open_sources
from credalens.evaluation.members_needed import members_needed, subset_sizes, subsets
from tests.evaluation.small_data import CLASSES, scores


def test_all_members_give_the_numbers_of_the_tables(found):
    needed = found.members_needed
    assert needed.sizes == [1, 2, 3, 4, 5]
    assert needed.subsets == [5, 5, 5, 5, 1]
    for one in found.ood:
        for measure, detector in one.detectors():
            for kind, metrics in detector.items():
                curve = needed.auroc.of(measure).of(kind)[one.name]
                assert curve.mean[-1] == metrics.auroc
                assert curve.std[-1] == 0
    assert needed.accuracy.credal.mean[-1] == found.calibration.credal.accuracy
    assert needed.nll.averaged.mean[-1] == found.calibration.averaged.nll


def test_fewer_members_by_hand(data, found):
    known, _, others = data
    pairs = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]
    values = []
    for pair in pairs:
        inside, outside = (scores(x[pair], "credal", "epistemic") for x in (known, others["flat"]))
        truth = np.repeat([0, 1], [len(inside), len(outside)])
        values.append(sk.roc_auc_score(truth, np.concatenate([inside, outside])))
    curve = found.members_needed.auroc.epistemic.credal["flat"]
    assert curve.mean[1] == pytest.approx(np.mean(values), abs=1e-12)
    assert curve.std[1] == pytest.approx(np.std(values), abs=1e-12)
    assert curve.mean[0] == 0.5  # one member cannot disagree
    assert found.members_needed.epistemic_auroc()["flat"].credal.mean == curve.mean[1:]


def test_subsets_use_every_size_once_and_members_evenly():
    for members in range(2, 60):
        sizes = subset_sizes(members)
        assert (sizes[0], sizes[-1]) == (1, members)
        assert sorted(set(sizes)) == sizes
        assert len(sizes) <= 7
        for size in sizes:
            chosen = subsets(members, size)
            assert all(len(set(one)) == size for one in chosen)
            assert len({frozenset(one) for one in chosen}) == len(chosen) <= 5
        assert len(subsets(members, members)) == 1


def test_large_data_sets_are_represented_by_evenly_spaced_rows(monkeypatch, data):
    known, labels, others = data
    monkeypatch.setattr("credalens.evaluation.members_needed.VALUES_A_SET", 30 * CLASSES)
    monkeypatch.setattr("credalens.evaluation.members_needed.FEWEST_ROWS", 10)
    inside, outside = open_sources("ID", known, others, logits=False)
    found = members_needed(inside, outside, labels)
    assert found.rows == {"ID": 30, "flat": 30, "mixed": 30}
    fewer = {"flat": others["flat"][:, ::3], "mixed": others["mixed"][:, ::2]}
    expected = members_needed(*open_sources("ID", known[:, ::4], fewer, logits=False), labels[::4])
    assert found.auroc.as_dict() == expected.auroc.as_dict()
    assert found.ece.as_dict() == expected.ece.as_dict()
