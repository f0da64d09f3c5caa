"""Steps of a training: schedule, teachers, first weights and averages."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from credalens.bayes import BayesianLayer
from credalens_paper.training.devices import DeviceImages, mixed
from credalens_paper.training.learner import Learner, Tally
from credalens_paper.training.losses import distillation
from credalens_paper.training.network_folder import make_network
from credalens_paper.training.spec import Schedule, schedule_for
from credalens_paper.training.train_networks import Job, Setting
from reproduction.tests.training.tiny import SPEC, blobs, build, network

CPU = torch.device("cpu")
ADAM = Schedule("adam", epochs=10, batch=4, rate=0.1, policy="steps", temperature=10, kl_warmup=2, kl_scale=0.5)


def test_teachers_are_asked_once_about_each_batch_that_comes_back():
    asked, seen = [], []

    def teacher(images):
        asked.append(images)
        return images.mean((2, 3))

    def keep(logits, images, labels, step):
        seen.append(images)
        return objective(logits, images, labels, step)

    schedule = replace(ADAM, epochs=5, batch=64, views=2)
    learner = Learner(replace(SPEC, method="edd", teachers=(0, 1)), schedule, network(), DeviceImages(blobs(128), CPU))
    objective = distillation([teacher], schedule, 128, lambda: mixed("float32", CPU))
    learner._objective = keep
    while not learner.finished:
        learner.advance()
    assert len(seen) == 10
    assert all(torch.equal(one, other) for one, other in zip(seen, seen[4:], strict=False))
    assert len({float(images.sum()) for images in seen}) == len(asked) == 4
    assert all(one is other for one, other in zip(asked, seen, strict=False))


def test_steps_follow_the_schedule():
    frozen = replace(ADAM, epochs=2, batch=64, rate=1e-3, milestones=(1,) * 30)  # 1e-33 in the second epoch
    learner = Learner(SPEC, frozen, network(), DeviceImages(blobs(256), CPU))
    weight = learner.model[0].weight
    seen = [weight.detach().clone()]
    while not learner.finished:
        learner.advance()
        seen.append(weight.detach().clone())
    moved = [not torch.equal(one, other) for one, other in pairwise(seen)]
    assert moved == [True] * 4 + [False] * 4
    assert [record.learning_rate for record in learner.history] == pytest.approx([1e-3, 1e-33])


def test_bayesian_weights_start_where_the_schedule_says(tmp_path):
    spec = replace(SPEC, method="bnnr")
    setting = Setting(tmp_path, build, CPU, {"precision": "float32", "compile": False}, True, None, {})
    job = Job(spec, setting)
    job.start(DeviceImages(blobs(64), CPU))
    learner = job.learner
    assert isinstance(learner.model[0], BayesianLayer)
    torch.testing.assert_close(learner.model[0].weight_std, torch.full((8, 3, 3, 3), schedule_for(spec).initial_std))
    assert torch.equal(learner.model[0].mean.weight, make_network(SPEC, build, CPU)[0].weight)


def test_counting_finds_the_first_loss_that_is_no_number():
    tally, logits, labels = Tally(CPU), torch.eye(3), torch.tensor([0, 1, 0])
    for step, loss in enumerate([1.0, 2.5]):
        tally.add(torch.tensor(loss), logits, labels, step)
    assert tally.read() == (3.5, 4, -1)
    for step, loss in enumerate([math.inf, math.nan, 1.0], start=2):
        tally.add(torch.tensor(loss), logits, labels, step)
    assert tally.read()[2] == 2
    tally.clear()
    assert tally.read() == (0, 0, -1)
