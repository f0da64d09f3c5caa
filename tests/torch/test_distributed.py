"""Members spread over four real processes: every one of them gets what one process with all members gets."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from credalens import MemberSummary, wrap
from tests.strategies import batch_of

RANKS = 4
RUN = """
import datetime, os, sys, traceback
import numpy as np
import torch
import torch.distributed as dist
from credalens import MemberSummary

folder, ranks = sys.argv[1], int(sys.argv[2])
members = torch.from_numpy(np.load(f"{folder}/members.npy"))
FIELDS = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic")


def run(rank):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=300))
    own, results = members[rank::ranks], {}

    def record(name, summary):
        prediction = summary.prediction()
        results.update({f"{name}.{field}": np.asarray(getattr(prediction, field)) for field in FIELDS})
        results[f"{name}.classical"] = np.asarray(prediction.classical.epistemic)
        results[f"{name}.count"] = summary.count

    summary = MemberSummary().update(own)
    record("all", summary.all_reduce())
    results["before.count"] = summary.count
    record("float32", MemberSummary().update(own.float()).all_reduce())
    record("numpy", MemberSummary().update(own.numpy()).all_reduce())
    record("some", (MemberSummary() if rank == 1 else summary).all_reduce(group=None))
    record("mixed", MemberSummary().update(own.float() if rank % 2 else own).all_reduce())
    record("some float32", (MemberSummary() if rank == 1 else MemberSummary().update(own.float())).all_reduce())
    results["nobody.count"] = MemberSummary().all_reduce().count
    pair = dist.new_group([0, 1])
    if rank < 2:
        record("pair", summary.all_reduce(pair))
    try:
        MemberSummary().update(own[..., :1, :] if rank == 2 else own).all_reduce()
    except ValueError as error:
        results["error"] = str(error)
    record("again", summary.all_reduce())  # nobody was left waiting
    np.savez(f"{folder}/rank-{rank}.npz", **results)
    dist.destroy_process_group()


torch.set_num_threads(1)
MemberSummary().update(members).prediction()  # loads the kernels once, before the processes part
for rank in range(ranks):
    if os.fork() == 0:
        try:
            run(rank)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
sys.exit(any([os.wait()[1] for _ in range(ranks)]))
"""


@pytest.fixture(scope="module")
def members():
    return batch_of("peaked", 6, 5, 4)


@pytest.fixture(scope="module")
def results(tmp_path_factory, members):
    folder = tmp_path_factory.mktemp("ranks")
    np.save(folder / "members.npy", members)
    command = [sys.executable, "-c", RUN, str(folder), str(RANKS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [np.load(folder / f"rank-{rank}.npz", allow_pickle=False) for rank in range(RANKS)]


def assert_is_prediction_of(results, name, members, dtype=np.float64):
    expected = wrap(members)
    assert results[f"{name}.count"] == len(members)
    for field in ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic"):
        got = results[f"{name}.{field}"]
        assert got.dtype == dtype
        np.testing.assert_allclose(got, getattr(expected, field), rtol=0, atol=20 * np.finfo(dtype).eps, err_msg=field)
    atol = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(results[f"{name}.classical"], expected.classical.epistemic, rtol=0, atol=atol)


def test_four_ranks_give_the_result_of_one(results, members):
    for rank in results:
        assert_is_prediction_of(rank, "all", members)
        assert_is_prediction_of(rank, "numpy", members)
        assert_is_prediction_of(rank, "float32", members, np.float32)


def test_the_summary_itself_stays_as_it_was(results):
    assert [int(rank["before.count"]) for rank in results] == [2, 2, 1, 1]


def test_a_rank_without_members_takes_part(results, members):
    without = np.delete(members, [1, 5], axis=0)
    for rank in results:
        assert_is_prediction_of(rank, "some", without)


def test_ranks_of_two_precisions_all_get_the_wider_and_one_without_members_that_of_the_others(results, members):
    rounded = members.copy()
    for n in (1, 3, 5):  # of the ranks 1 and 3
        single = members[n].astype(np.float32).astype(np.float64)
        rounded[n] = single / single.sum(-1, keepdims=True)
    for rank in results:
        assert_is_prediction_of(rank, "mixed", rounded)
        assert_is_prediction_of(rank, "some float32", np.delete(members, [1, 5], axis=0), np.float32)


def test_ranks_without_any_members_stay_empty(results):
    assert [int(rank["nobody.count"]) for rank in results] == [0] * RANKS


def test_a_group_of_some_ranks(results, members):
    for rank in results[:2]:
        assert_is_prediction_of(rank, "pair", members[[0, 4, 1, 5]])


def test_different_inputs_are_an_error_in_every_rank_and_nobody_waits(results, members):
    for n, rank in enumerate(results):
        shape = (1, 4) if n == 2 else (5, 4)
        assert f"this one has shape {shape}" in str(rank["error"])
        assert "(5, 4) and (1, 4)" in str(rank["error"])
        assert_is_prediction_of(rank, "again", members)


def test_without_a_process_group_the_error_says_what_to_call(members):
    assert not torch.distributed.is_initialized()
    with pytest.raises(RuntimeError, match="init_process_group"):
        MemberSummary().update(members).all_reduce()
