"""Optimisers: what decays, and a state that comes back exactly."""

import pytest
import torch

from credalens_paper.training.devices import placed
from credalens_paper.training.learner import load_optimizer, make_optimizer, optimizer_tensors
from credalens_paper.training.spec import Schedule
from reproduction.tests.training.tiny import network

CPU = torch.device("cpu")
SGD = Schedule("sgd", epochs=10, batch=4, rate=0.1, policy="one_cycle", weight_decay=0.5)
ADAM = Schedule("adam", epochs=10, batch=4, rate=0.1, policy="steps", temperature=10, kl_warmup=2, kl_scale=0.5)


def test_only_matrices_and_filters_decay():
    model = network()
    optimizer = make_optimizer(model, SGD, CPU)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    for name, weight in model.named_parameters():
        # No gradient: Nesterov's first step on the decay alone is rate * decay * (1 + momentum) of the weight.
        factor = 1 - 0.1 * 0.5 * 1.9 if weight.ndim > 1 else 1
        torch.testing.assert_close(weight, factor * before[name], msg=name)


def some_steps(model, optimizer, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(3):
        optimizer.zero_grad()
        x = torch.randn(4, 3, 8, 8, generator=generator).to(memory_format=torch.channels_last)
        model(x).logsumexp(-1).mean().backward()
        optimizer.step()


@pytest.mark.parametrize("schedule", [SGD, ADAM])
def test_an_optimizer_goes_on_exactly(schedule):
    model = placed(network(), CPU)
    optimizer = make_optimizer(model, schedule, CPU)
    some_steps(model, optimizer, 0)
    copy = placed(network(), CPU)
    copy.load_state_dict({name: value.contiguous() for name, value in model.state_dict().items()})
    other = make_optimizer(copy, schedule, CPU)
    load_optimizer(other, {name: value.contiguous() for name, value in optimizer_tensors(optimizer).items()})
    for weight, entries in other.state.items():
        assert all(value.stride() == weight.stride() for value in entries.values() if value.shape == weight.shape)
    for one, two in ((model, optimizer), (copy, other)):
        for group in two.param_groups:
            group["lr"] = 0.01
        some_steps(one, two, 1)
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), copy.parameters(), strict=True))
