"""Objectives: the losses of standard, Bayesian and distilled networks."""

import math

import pytest
import torch
from torch import nn

from credalens.bayes import kl, to_bayesian
from credalens_paper.training.devices import mixed
from credalens_paper.training.losses import cross_entropy, distillation, distillation_loss, evidence_bound
from credalens_paper.training.spec import Schedule
from reproduction.tests.training.tiny import network

CPU = torch.device("cpu")
ADAM = Schedule("adam", epochs=10, batch=4, rate=0.1, policy="steps", temperature=10, kl_warmup=2, kl_scale=0.5)
STEPS = ADAM.steps_per_epoch(100)


def test_the_standard_loss():
    logits = torch.tensor([[0.0, 0.0], [0.0, math.log(3)]])
    loss = cross_entropy(logits, torch.empty(0), torch.tensor([0, 1]), 0)
    assert loss.item() == pytest.approx((math.log(2) + math.log(4 / 3)) / 2)


def test_the_bayesian_loss_pays_its_share_of_the_divergence():
    model = to_bayesian(nn.Linear(2, 3))
    loss, logits, labels = evidence_bound(model, ADAM, 100), torch.zeros(4, 3), torch.zeros(4, dtype=torch.long)
    values = [loss(logits, torch.empty(0), labels, step).item() for step in (0, 1 * STEPS, 5 * STEPS)]
    divergence = kl(model).item()
    assert values == pytest.approx([math.log(3) + share * divergence / 100 for share in (0, 0.25, 0.5)])


def test_the_student_sees_what_the_teachers_see():
    teachers = [network().eval() for _ in range(2)]
    teachers[1][0].weight.data.mul_(-1)
    seen = []
    teachers[0].register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    loss = distillation(teachers, ADAM, 100, lambda: mixed("float32", CPU))
    x, student = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0)), torch.zeros(4, 3)
    student.requires_grad_()
    value = loss(student, x, torch.zeros(4, dtype=torch.long), 5 * STEPS)
    members = torch.stack([teacher(x) for teacher in teachers])
    torch.testing.assert_close(value, distillation_loss(student, members, temperature=ADAM.heat(5.0)))
    assert seen[0] is x
    value.backward()
    assert student.grad.abs().sum() > 0
    assert all(weight.grad is None for teacher in teachers for weight in teacher.parameters())
