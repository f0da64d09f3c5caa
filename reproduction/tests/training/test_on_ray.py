"""Training on Ray: the networks of one machine to the bit, all of them, whatever is lost on the way."""

from __future__ import annotations

import json
import threading

import pytest
import torch

from credalens.cli import main
from credalens_paper.ray_tasks import Request, for_each, network_request
from credalens_paper.training.network_folder import load_model
from credalens_paper.training.train_networks import train_models, train_models_on_ray
from reproduction.tests.training.tiny import assert_equal_weights, blobs, build, member
from tests.engines.quiet import RAY_WARNINGS
from tests.engines.waiting import PATIENCE, wait_until

pytest.importorskip("ray", reason="Ray is not installed: pip install 'credalens[ray]'")
pytestmark = RAY_WARNINGS

DATA = blobs()
SPECS = [member(seed=0), member(seed=1), member(method="bnnf"), member(method="edd", teachers=(0, 1))]


@pytest.fixture(autouse=True)
def _one_thread():
    """As many threads as the machines of the cluster have CPUs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def train_on_ray(specs, folder, **options):
    return train_models_on_ray(specs, DATA, folder, build=build, device="cpu", **options)


def assert_same(specs, folder, expected) -> None:
    for spec in specs:
        one, other = (load_model(spec, place, build=build, device="cpu") for place in (folder, expected))
        assert_equal_weights(one, other)


def test_the_same_networks_as_on_one_machine(tmp_path, machine):
    train_models(SPECS, DATA, tmp_path / "local", build=build, device="cpu", progress=False)
    heard = []
    results = train_on_ray(SPECS, tmp_path / "ray", done=heard.append)
    assert [result.spec for result in results] == SPECS
    assert all(result.trained for result in results)
    assert heard[-1].item == SPECS[-1]  # the student, after its teachers
    assert {one.retries for one in heard} == {0}
    assert_same(SPECS, tmp_path / "ray", tmp_path / "local")
    again = train_on_ray([*SPECS, member(seed=2)], tmp_path / "ray")
    assert [result.trained for result in again] == [False] * 4 + [True]


def test_a_machine_lost_at_work_costs_no_member(tmp_path, doomed):
    specs, epochs = [member(seed=seed) for seed in range(2)], 60
    train_models(specs, DATA, tmp_path / "local", build=build, device="cpu", progress=False, epochs=epochs)
    found, heard = [], []
    options = {"epochs": epochs, "checkpoint_every": 0.05, "done": heard.append}
    job = threading.Thread(target=lambda: found.extend(train_on_ray(specs, tmp_path / "ray", **options)), daemon=True)
    job.start()
    wait_until(lambda: any((tmp_path / "ray").glob("*/checkpoint.safetensors")))
    doomed()
    assert len(heard) < 2
    job.join(PATIENCE)
    assert len(found) == 2
    assert_same(specs, tmp_path / "ray", tmp_path / "local")
    assert sum(one.retries for one in heard) >= 1


def explosive(name, *, seed, **shape):
    """The network of one seed gives nothing but NaN."""
    network = build(name, seed=seed, **shape)
    if name == "explosive":
        torch.nn.init.constant_(network[-1].bias, float("nan"))
    return network


def test_one_that_diverges_does_not_stop_the_others(tmp_path, machine):
    specs = [member(backbone="explosive"), member(seed=5)]
    with pytest.raises(FloatingPointError, match=specs[0].key):
        train_models_on_ray(specs, DATA, tmp_path, build=explosive, device="cpu")
    assert (tmp_path / specs[1].key / "model.safetensors").is_file()


def test_what_cannot_be_is_refused_at_once(tmp_path, machine):
    with pytest.raises(ValueError, match="is asked for 2 times"):
        train_on_ray([member(), member()], tmp_path)
    with pytest.raises(ValueError, match=r" 99 CPUs and 0 GPUs; the largest has 1 CPUs"):
        train_on_ray([member()], tmp_path, cpus=99)
    with pytest.raises(ValueError, match=r"no machine of the cluster has 1 CPUs and 1 GPUs"):
        train_models_on_ray([member()], DATA, tmp_path, build=build, device="cuda")
    with pytest.raises(ValueError, match="at least 1 CPU"):
        Request(cpus=0)
    assert not list(tmp_path.iterdir())


def test_a_member_asks_for_what_it_will_use(machine):
    assert network_request() == Request(cpus=1)
    assert network_request("cpu", cpus=3) == Request(cpus=3)
    assert network_request("cuda:0") == Request(cpus=1, gpus=1)
    assert network_request("cuda", cpus=4, gpus=0.2) == Request(4, 0.2)
    torch.set_num_threads(2)
    assert network_request() == Request(cpus=2)


def test_the_command_trains_and_predicts_on_ray(tmp_path, machine, capsys):
    tiny = ["--data", "digits", "--width", "0.0625", "--schedule", "smoke", "--device", "cpu", "--members", "2"]
    summaries = []
    for engine in ("ray", "local"):
        with pytest.raises(SystemExit) as left:
            main(["train", *tiny, "--out", str(tmp_path / engine), "--json", "--engine", engine])
        assert left.value.code == 0
        summaries.append(json.loads(capsys.readouterr().out))
    assert (summaries[0].pop("workers"), summaries[0].pop("retries")) == (1, 0)
    accuracies = [[row["test_accuracy"] for row in summary["networks"]] for summary in summaries]
    assert accuracies[0] == accuracies[1]
    assert summaries[0]["test_accuracy"] == summaries[1]["test_accuracy"]


def die(item: int) -> None:
    import os

    os._exit(1)


def test_a_task_that_kills_every_worker_is_given_up(machine):
    with pytest.raises(RuntimeError, match="Ray gave up on a task after all its retries"):
        for_each(die, [0], Request(max_retries=0))
    assert for_each(abs, [], Request()) == []
