"""to_bayesian: what it replaces, what it keeps, what it refuses."""

import copy
import io

import pytest
import torch
from torch import nn

from credalens.bayes import BayesianLayer, mean_network, to_bayesian

ESTIMATORS = ("reparameterization", "flipout")


class Residual(nn.Module):
    """Convolutions, normalisation, a layer used twice, containers in containers."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.blocks = nn.ModuleList([nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False)] * 2)
        self.heads = nn.ModuleDict({"main head": nn.Linear(4, 5)})

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.heads["main head"](x.mean((2, 3)))


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture
def x():
    return torch.randn(2, 3, 6, 6)


def layers(network):
    return [module for module in network.modules() if isinstance(module, BayesianLayer)]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_mean_network_is_the_given_network(x, estimator):
    network = Residual().eval()
    bnn = to_bayesian(network, estimator=estimator)
    with mean_network(bnn):
        assert torch.equal(bnn(x), network(x))
    assert bnn(x).shape == network(x).shape
    assert not torch.equal(bnn(x), bnn(x))


def test_the_given_network_is_not_touched(x):
    network = Residual()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    bnn = to_bayesian(network)
    bnn(x).sum().backward()
    assert not layers(network)
    assert all(parameter.grad is None for parameter in network.parameters())
    with torch.no_grad():
        for parameter in bnn.parameters():
            parameter.add_(1)
    assert all(torch.equal(before[name], network.state_dict()[name]) for name in network.state_dict())


def test_a_layer_used_twice_stays_one_layer(x):
    bnn = to_bayesian(Residual())
    assert len(layers(bnn)) == 3
    assert bnn.blocks[0] is bnn.blocks[1]
    assert isinstance(bnn.heads["main head"], BayesianLayer)


def test_every_linear_map_is_replaced_and_nothing_else():
    kinds = [nn.Linear(2, 3), nn.Conv1d(2, 3, 1), nn.Conv2d(2, 3, 1), nn.Conv3d(2, 3, 1)]
    others = [nn.BatchNorm1d(3), nn.LSTM(2, 3), nn.ConvTranspose2d(2, 3, 1), nn.Embedding(2, 3), nn.Dropout()]
    bnn = to_bayesian(nn.ModuleList([*kinds, *others]))
    assert [type(module.mean) for module in bnn[:4]] == [type(kind) for kind in kinds]
    assert [type(module) for module in bnn[4:]] == [type(other) for other in others]


def test_a_single_layer_can_be_the_network():
    assert isinstance(to_bayesian(nn.Linear(2, 3)), BayesianLayer)


def test_geometry_shapes_dtypes_and_options_are_kept():
    conv = nn.Conv2d(4, 6, (3, 5), stride=(2, 1), padding=(1, 2), dilation=2, groups=2, bias=False).double()
    bnn = to_bayesian(nn.Sequential(conv), estimator="flipout", prior_std=0.3, initial_std=0.2)
    mean = bnn[0].mean
    for name in ("stride", "padding", "dilation", "groups", "kernel_size", "padding_mode", "bias"):
        assert getattr(mean, name) == getattr(conv, name)
    assert bnn[0].weight_rho.shape == conv.weight.shape
    assert bnn[0].weight_rho.dtype is torch.double
    assert bnn[0].bias_rho is None
    assert (bnn[0].estimator, bnn[0].prior_std) == ("flipout", 0.3)
    torch.testing.assert_close(bnn[0].weight_std, torch.full_like(conv.weight, 0.2))


@pytest.mark.parametrize("std", [1e-8, 0.05, 1.0, 40.0])
def test_initial_std_is_the_standard_deviation(std):
    layer = to_bayesian(nn.Linear(2, 3).double(), initial_std=std)
    for _, actual in layer.gaussians():
        torch.testing.assert_close(actual, torch.full_like(actual, std), rtol=1e-9, atol=0)


def test_devices_and_frozen_weights_are_kept():
    network = nn.Sequential(nn.Linear(2, 3, device="meta"), nn.Linear(3, 4).requires_grad_(False))
    bnn = to_bayesian(network)
    assert {parameter.device.type for parameter in bnn[0].parameters()} == {"meta"}
    assert all(parameter.requires_grad for parameter in bnn[0].parameters())
    assert not any(parameter.requires_grad for parameter in bnn[1].parameters())


@pytest.mark.parametrize("training", [True, False])
def test_samples_in_training_and_evaluation_mode_alike(x, training):
    bnn = to_bayesian(Residual().train(training))
    assert all(module.training is training for module in bnn.modules())
    assert not torch.equal(bnn(x), bnn(x))


def test_state_dict_round_trip(x):
    source, target = to_bayesian(Residual().eval()), to_bayesian(Residual().eval(), initial_std=0.5)
    file = io.BytesIO()
    torch.save(source.state_dict(), file)
    file.seek(0)
    target.load_state_dict(torch.load(file, weights_only=True))
    torch.manual_seed(5)
    expected = source(x)
    torch.manual_seed(5)
    assert torch.equal(target(x), expected)


def test_copies_and_dtype_changes_keep_working(x):
    bnn = to_bayesian(Residual(), generator=torch.Generator().manual_seed(0))
    twin = copy.deepcopy(bnn)
    assert torch.equal(twin(x), bnn(x))
    assert bnn.double()(x.double()).dtype is torch.double


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("mask", [None, torch.tensor([[False, False, True], [False, True, True]])])
def test_transformer_encoders_sample_in_evaluation_mode(mask):
    block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(block, 2).eval()
    bnn, x = to_bayesian(encoder), torch.randn(2, 3, 8)
    with torch.no_grad():
        assert not torch.equal(bnn(x, src_key_padding_mask=mask), bnn(x, src_key_padding_mask=mask))
        with mean_network(bnn):
            torch.testing.assert_close(bnn(x)[0, :1], encoder(x)[0, :1])


def test_hidden_weights_of_attention_are_left_alone():
    bnn = to_bayesian(nn.TransformerDecoderLayer(8, 2, 16))
    assert len(layers(bnn)) == 2
    assert bnn(torch.randn(3, 2, 8), torch.randn(3, 2, 8)).shape == (3, 2, 8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior_std": 0.0}, "prior_std must be a positive"),
        ({"prior_std": -1.0}, "got -1.0"),
        ({"prior_std": float("nan")}, "prior_std"),
        ({"initial_std": float("inf")}, "initial_std"),
        ({"estimator": "dropout"}, "'reparameterization', 'flipout'; got 'dropout'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        to_bayesian(nn.Linear(2, 3), **options)
    with pytest.raises(ValueError, match=message):
        BayesianLayer(nn.Linear(2, 3), **options)


def test_what_is_no_plain_network():
    with pytest.raises(TypeError, match=r"Expected a torch\.nn\.Module, got function"):
        to_bayesian(lambda x: x)
    with pytest.raises(ValueError, match=r"Nothing to convert.*found BatchNorm1d, Sequential"):
        to_bayesian(nn.Sequential(nn.BatchNorm1d(3)))
    with pytest.raises(ValueError, match="Layer '0' is Bayesian already"):
        to_bayesian(to_bayesian(nn.Sequential(nn.Linear(2, 3))))
    with pytest.raises(ValueError, match=r"Layer '1' \(LazyLinear\) has no weights yet"):
        to_bayesian(nn.Sequential(nn.Linear(2, 3), nn.LazyLinear(3)))


def test_weights_that_cannot_be_means():
    normed = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(2, 3)), nn.Linear(3, 1))
    with pytest.raises(ValueError, match="Layer '0': the weight is computed from other parameters"):
        to_bayesian(normed)
    with pytest.raises(TypeError, match=r"Layer '0'.*complex64"):
        to_bayesian(nn.Sequential(nn.Linear(2, 3, dtype=torch.complex64)))
    with pytest.raises(TypeError, match="Linear, Conv1d, Conv2d, Conv3d, got ConvTranspose1d"):
        BayesianLayer(nn.ConvTranspose1d(2, 3, 1))
