"""Sampling: the distribution of the output, its gradients, and what sets the two estimators apart."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev

from credalens.bayes import BayesianLayer, to_bayesian, use_generator

ESTIMATORS = ("reparameterization", "flipout")
DRAWS = 2000
SIGMAS = 5  # a false alarm once in 1.7 million comparisons; all draws are seeded

LAYERS = {
    "linear": (lambda: nn.Linear(5, 4), (3, 5)),
    "linear without bias": (lambda: nn.Linear(5, 4, bias=False), (3, 5)),
    "linear on sequences": (lambda: nn.Linear(5, 2), (2, 3, 5)),
    "linear unbatched": (lambda: nn.Linear(5, 4), (5,)),
    "conv1d": (lambda: nn.Conv1d(2, 3, 3, stride=2, padding=1), (2, 2, 7)),
    "conv1d unbatched": (lambda: nn.Conv1d(2, 3, 3), (2, 5)),
    "conv2d": (lambda: nn.Conv2d(2, 3, 3, stride=2, padding=1, dilation=2, bias=False), (2, 2, 6, 6)),
    "conv2d grouped": (lambda: nn.Conv2d(4, 4, 2, groups=2), (2, 4, 3, 3)),
    "conv2d same": (lambda: nn.Conv2d(1, 2, 3, padding="same", dilation=2), (2, 1, 3, 3)),
    "conv2d reflect": (lambda: nn.Conv2d(1, 2, 3, padding=1, padding_mode="reflect"), (2, 1, 3, 3)),
    "conv2d circular": (lambda: nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), (2, 1, 3, 3)),
    "conv3d": (lambda: nn.Conv3d(1, 2, 2), (2, 1, 3, 2, 2)),
}


def bayesian(layer: nn.Module, estimator: str) -> BayesianLayer:
    """A layer in double precision whose standard deviations all differ."""
    layer = BayesianLayer(layer.double(), estimator=estimator, generator=torch.Generator().manual_seed(7))
    for rho in (layer.weight_rho, layer.bias_rho):
        if rho is not None:
            nn.init.uniform_(rho, -2.0, 0.5)
    return layer


def draw(layer: nn.Module, x: Tensor, draws: int = DRAWS) -> Tensor:
    with torch.no_grad():
        return torch.stack([layer(x) for _ in range(draws)])


def analytic_covariance(layer: BayesianLayer, x: Tensor) -> Tensor:
    """Var(J w) = J Var(w) J', with the Jacobian J of the plain layer with respect to its weights."""
    weights = dict(layer.mean.named_parameters())
    jacobians = jacrev(lambda w: functional_call(layer.mean, w, (x,)).flatten())(weights)
    stds = {"weight": layer.weight_std, "bias": layer.bias_std}
    scaled = [(jacobians[name] * stds[name]).flatten(1) for name in weights]
    return sum(s @ s.T for s in scaled).detach()


def assert_mean_zero(deviations: Tensor) -> None:
    """Every column averages to zero within its standard error."""
    error = deviations.std(0) / math.sqrt(len(deviations))
    assert (deviations.mean(0).abs() <= SIGMAS * error + 1e-12).all()


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", LAYERS)
def test_output_has_the_analytic_mean_and_variance(kind, estimator):
    make, shape = LAYERS[kind]
    layer, x = bayesian(make(), estimator), torch.randn(shape, dtype=torch.double)
    samples = draw(layer, x)
    mean, variance = layer.mean(x).detach(), analytic_covariance(layer, x).diagonal().reshape(samples.shape[1:])
    assert (variance > 0).all()
    assert ((samples.mean(0) - mean).abs() <= SIGMAS * (variance / DRAWS).sqrt()).all()
    # The variance of a Gaussian sample variance is 2 sigma^4 / (n - 1).
    assert ((samples.var(0) - variance).abs() <= SIGMAS * variance * math.sqrt(2 / (DRAWS - 1))).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_conv_moments_by_unfolding(estimator):
    layer = bayesian(nn.Conv2d(2, 3, 3, stride=2, padding=1), estimator)
    x = torch.randn(1, 2, 5, 5, dtype=torch.double)
    patches = nn.functional.unfold(x, 3, stride=2, padding=1)[0]
    mean = layer.mean.weight.flatten(1) @ patches + layer.mean.bias[:, None]
    variance = layer.weight_std.flatten(1).square() @ patches.square() + layer.bias_std.square()[:, None]
    samples = draw(layer, x)[:, 0].flatten(2)
    assert ((samples.mean(0) - mean).abs() <= SIGMAS * (variance / DRAWS).sqrt()).all()
    assert ((samples.var(0) - variance).abs() <= SIGMAS * variance * math.sqrt(2 / (DRAWS - 1))).all()


@pytest.mark.parametrize(
    ("plain", "shape"), [(nn.Conv1d(1, 2, 2), (2, 1, 4)), (nn.Linear(3, 2), (2, 4, 3))], ids=["conv", "sequences"]
)
def test_flipout_draws_one_weight_for_all_positions_of_an_example(plain, shape):
    """The covariance is that of a shared weight sample within an example, and zero between the two examples."""
    layer, x = bayesian(plain, "flipout"), torch.randn(shape, dtype=torch.double)
    expected = analytic_covariance(layer, x)
    half = len(expected) // 2
    expected[:half, half:] = expected[half:, :half] = 0
    deviations = (draw(layer, x) - layer.mean(x).detach()).flatten(1)
    assert_mean_zero((deviations[:, :, None] * deviations[:, None, :] - expected).flatten(1))
    assert expected.fill_diagonal_(0).abs().max() > 0.1


def test_local_reparameterization_draws_every_position_on_its_own():
    layer, x = bayesian(nn.Conv1d(1, 2, 2), "reparameterization"), torch.randn(1, 1, 4, dtype=torch.double)
    correlations = torch.corrcoef(draw(layer, x).flatten(1).T).fill_diagonal_(0)
    assert correlations.abs().max() <= SIGMAS / math.sqrt(DRAWS)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_gradients_are_unbiased(estimator):
    """E[sum cos(y)] = sum cos(m) exp(-v / 2) for y ~ N(m, v); its central differences are the truth."""
    layer, x = bayesian(nn.Linear(3, 2), estimator), torch.randn(4, 3, dtype=torch.double)
    parameters = list(layer.parameters())

    def expected_loss(flat: Tensor) -> Tensor:
        sizes = [p.numel() for p in parameters]
        shaped = [part.reshape(p.shape) for part, p in zip(flat.split(sizes), parameters, strict=True)]
        values = dict(zip([name for name, _ in layer.named_parameters()], shaped, strict=True))
        mean = x @ values["mean.weight"].T + values["mean.bias"]
        std = {name: nn.functional.softplus(values[name]) for name in ("weight_rho", "bias_rho")}
        variance = x.square() @ std["weight_rho"].square().T + std["bias_rho"].square()
        return (mean.cos() * (-variance / 2).exp()).sum()

    point = torch.cat([p.detach().flatten() for p in parameters])
    steps = 1e-5 * torch.eye(len(point), dtype=torch.double)
    truth = torch.stack([(expected_loss(point + h) - expected_loss(point - h)) / 2e-5 for h in steps])
    gradients = [
        torch.cat([g.flatten() for g in torch.autograd.grad(layer(x).cos().sum(), parameters)]) for _ in range(DRAWS)
    ]
    assert truth.abs().min() > 1e-3
    assert_mean_zero(torch.stack(gradients) - truth)


def test_estimators_agree_in_expectation():
    network = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 3)).double()
    x = torch.randn(2, 3, dtype=torch.double)
    probabilities = []
    for estimator in ESTIMATORS:
        bnn = to_bayesian(network, estimator=estimator, initial_std=0.7)
        probabilities.append(draw(bnn, x).softmax(-1).flatten(1))
    assert probabilities[0].std(0).min() > 0.05
    assert_mean_zero(probabilities[0] - probabilities[1])


def test_flipout_decorrelates_the_examples_of_a_batch():
    layer, row = bayesian(nn.Linear(4, 3), "flipout"), torch.randn(1, 4, dtype=torch.double)
    batch = row.expand(5, 4)
    for output in range(3):
        correlations = torch.corrcoef(draw(layer, batch)[..., output].T).fill_diagonal_(0)
        assert correlations.abs().max() <= SIGMAS / math.sqrt(DRAWS)


def test_flipout_gradients_vary_less_than_those_of_one_shared_sample():
    layer, x = bayesian(nn.Linear(4, 3), "flipout"), torch.randn(32, 4, dtype=torch.double)
    labels = torch.arange(32) % 3
    weights = list(layer.mean.parameters())

    def shared(x: Tensor) -> Tensor:
        drawn = [torch.normal(mean, std.detach()) - mean.detach() + mean for mean, std in layer.gaussians()]
        return nn.functional.linear(x, *drawn)

    def total_variance(forward) -> float:
        losses = (nn.functional.cross_entropy(forward(x), labels) for _ in range(300))
        gradients = [torch.cat([g.flatten() for g in torch.autograd.grad(loss, weights)]) for loss in losses]
        return torch.stack(gradients).var(0).sum().item()

    assert total_variance(layer) < total_variance(shared) / 4


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_generator_makes_draws_repeatable(estimator):
    bnn = to_bayesian(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(18, 3)), estimator=estimator)
    x = torch.randn(2, 1, 5, 5)
    with use_generator(bnn, torch.Generator().manual_seed(3)):
        first, second = bnn(x), bnn(x)
    before = torch.get_rng_state()
    with use_generator(bnn, torch.Generator().manual_seed(3)):
        again = bnn(x)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert torch.equal(before, torch.get_rng_state()), "the global generator was used"


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_gradients_stay_finite_where_the_variance_vanishes(estimator):
    layer = BayesianLayer(nn.Linear(3, 2, bias=False), estimator=estimator)
    x = torch.zeros(2, 3, requires_grad=True)
    layer(x).sum().backward()
    assert all(torch.isfinite(tensor.grad).all() for tensor in (x, *layer.parameters()))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_keeps_dtype_and_moments(estimator, dtype):
    layer = BayesianLayer(nn.Linear(64, 8), estimator=estimator, initial_std=1e-4)
    layer.generator = torch.Generator().manual_seed(0)
    x = torch.full((1, 64), 300.0)  # x² overflows float16, std² underflows it
    nn.init.zeros_(layer.mean.weight)
    with torch.autocast("cpu", dtype=dtype):
        samples = draw(layer, x, 400)
    assert samples.dtype is dtype
    expected = 1e-4 * 300.0 * math.sqrt(64)
    assert samples.double().std(0) == pytest.approx(torch.full((1, 8), expected).numpy(), rel=SIGMAS / math.sqrt(800))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_networks_train(estimator, dtype):
    layer = BayesianLayer(nn.Conv2d(2, 3, 3).to(dtype), estimator=estimator)
    out = layer(torch.randn(2, 2, 5, 5, dtype=dtype))
    out.float().sum().backward()
    assert out.dtype is dtype
    assert all(torch.isfinite(p.grad).all() and p.grad.abs().max() > 0 for p in layer.parameters())


@pytest.mark.parametrize("generator", [None, torch.Generator()])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_channels_last_stays_channels_last(estimator, generator):
    plain = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    layer = BayesianLayer(plain, estimator=estimator, generator=generator)
    out = layer(torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last))
    assert layer.weight_rho.is_contiguous(memory_format=torch.channels_last)
    assert out.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_many_samples_in_one_vectorised_pass(estimator):
    bnn = to_bayesian(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), estimator=estimator)
    x = torch.randn(5, 3)
    samples = torch.func.vmap(lambda _: bnn(x), randomness="different")(torch.arange(6))
    assert samples.shape == (6, 5, 2)
    assert (samples.std(0) > 0).all()
