"""Settings that hold for a while and are put back: the mean network, generators, dropout."""

import pytest
import torch
from torch import nn

from credalens.bayes import activate_dropout, mean_network, to_bayesian, use_generator

DROPOUTS = [nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout]


def modes(network):
    return [module.training for module in network.modules()]


@pytest.fixture
def network():
    torch.manual_seed(0)
    layers = (nn.Linear(4, 32), nn.BatchNorm1d(32), nn.Dropout(0.5), nn.Sequential(nn.AlphaDropout(0.2)))
    return nn.Sequential(*layers, nn.Linear(32, 3)).eval()


def test_only_dropout_layers_are_switched(network):
    statistics = network[1].running_mean.clone()
    with torch.no_grad(), activate_dropout(network):
        training = [type(module) for module in network.modules() if module.training]
        samples = torch.stack([network(torch.ones(2, 4)) for _ in range(5)])
    assert training == [nn.Dropout, nn.AlphaDropout]
    assert (samples.std(0) > 0).all()
    assert torch.equal(network[1].running_mean, statistics)
    assert not any(modes(network))


@pytest.mark.parametrize("kind", DROPOUTS)
def test_every_kind_of_dropout(kind):
    network = nn.Sequential(kind(0.5)).eval()
    with activate_dropout(network):
        assert network[0].training
        assert not network.training
    assert not network[0].training


def test_modes_come_back_as_they_were_also_after_an_error(network):
    network[2].train()
    before = modes(network)
    with pytest.raises(RuntimeError, match="on purpose"), activate_dropout(network):
        raise RuntimeError("on purpose")
    assert modes(network) == before


def test_holds_without_a_with_block_until_restored(network):
    switch = activate_dropout(network)
    assert network[2].training
    switch.restore()
    assert not any(modes(network))
    network.train()
    switch.restore()
    assert all(modes(network)), "a second restore must not do anything"


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("mask", [None, torch.tensor([[False, False, True]])])
def test_dropout_inside_torchs_fused_transformer(mask):
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, batch_first=True)
    encoder, x = nn.TransformerEncoder(block, 1).eval(), torch.randn(1, 3, 8)
    with torch.no_grad():
        deterministic = encoder(x, src_key_padding_mask=mask)
        with activate_dropout(encoder):
            assert not torch.equal(encoder(x, src_key_padding_mask=mask), encoder(x, src_key_padding_mask=mask))
        assert torch.equal(encoder(x, src_key_padding_mask=mask), deterministic)


def test_mean_network_ends_with_the_block():
    bnn, x = to_bayesian(nn.Linear(4, 3)), torch.ones(2, 4)
    with mean_network(bnn):
        assert torch.equal(bnn(x), bnn.mean(x))
        with mean_network(bnn):
            pass
        assert torch.equal(bnn(x), bnn.mean(x)), "an inner block must not end the outer one"
    assert not torch.equal(bnn(x), bnn(x))
    bnn.sample = False
    assert torch.equal(bnn(x), bnn.mean(x))


def test_generators_come_back_as_they_were():
    own = torch.Generator()
    bnn = to_bayesian(nn.Sequential(nn.Linear(4, 3)), generator=own)
    with use_generator(bnn, None):
        assert bnn[0].generator is None
    assert bnn[0].generator is own


def test_errors():
    with pytest.raises(ValueError, match="Linear has no dropout layers to activate"):
        activate_dropout(nn.Linear(2, 3))
    with pytest.raises(ValueError, match="no Bayesian layers; convert it with to_bayesian"):
        mean_network(nn.Linear(2, 3))
    for switch in (activate_dropout, mean_network):
        with pytest.raises(TypeError, match=r"Expected a torch\.nn\.Module, got list"):
            switch([nn.Linear(2, 3)])
