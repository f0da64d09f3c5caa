"""Random numbers: each network has its own streams, which survive errors and checkpoints."""

import pytest
import torch

from credalens_paper.training.devices import Randomness, derived_seed, epoch_order

CPU = torch.device("cpu")


def draws(randomness):
    with randomness.active():
        hidden = torch.rand(3)
    return [*hidden.tolist(), *torch.rand(3, generator=randomness.generator).tolist()]


def test_randomness_goes_on_where_it_was_and_leaves_the_caller_alone():
    torch.manual_seed(5)
    expected = torch.rand(4)
    torch.manual_seed(5)
    one, other = Randomness(1, CPU), Randomness(2, CPU)
    apart = [draws(one), draws(one), draws(other)]
    assert torch.equal(torch.rand(4), expected)
    again, beside = Randomness(1, CPU), Randomness(2, CPU)
    interleaved = [draws(again), draws(beside), draws(again)]
    assert interleaved == [apart[0], apart[2], apart[1]]
    assert len({value for part in apart for value in part}) == 18  # no stream is another's


def test_randomness_survives_an_error():
    state, randomness = torch.get_rng_state(), Randomness(1, CPU)
    with pytest.raises(RuntimeError), randomness.active():
        torch.rand(1) @ torch.rand(2, 2)
    assert torch.equal(torch.get_rng_state(), state)


def test_randomness_comes_back():
    one, other = Randomness(1, CPU), Randomness(9, CPU)
    draws(one)
    other.restore({name: state.clone() for name, state in one.state().items()})
    assert draws(one) == draws(other)


def test_orders_are_permutations_of_their_own():
    orders = [epoch_order(seed, epoch, 100) for seed in range(3) for epoch in range(3)]
    assert all(sorted(order.tolist()) == list(range(100)) for order in orders)
    assert len({tuple(order.tolist()) for order in orders}) == 9
    assert torch.equal(epoch_order(1, 1, 100), orders[4])


def test_derived_seeds_fit_torch_and_differ():
    seeds = {derived_seed(a, b) for a in range(30) for b in range(30)}
    assert len(seeds) == 900
    assert max(seeds) < 2**63
