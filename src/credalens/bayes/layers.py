r"""A dense layer or convolution with a Gaussian distribution over each of its weights. And how it is sampled.

For a linear map :math:`f(x; W, b)` (a dense layer or a convolution) with :math:`W \sim N(\mu, \sigma^2)`
elementwise, the output is :math:`f(x; \mu, \mu_b)` plus noise of mean zero. Both estimators give every single
output its exact distribution, and both cost one more application of the map.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from credalens.checks.options import check_choice

LinearMap = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""``(x, weight, bias) -> output``, linear in x and in (weight, bias)."""

Estimator = Callable[[LinearMap, Tensor, Tensor, Tensor | None, torch.Generator | None], Tensor]
"""``(linear_map, x, weight_std, bias_std, generator) -> noise`` of the shape of the output."""


def local_reparameterization(
    linear_map: LinearMap, x: Tensor, weight_std: Tensor, bias_std: Tensor | None, generator: torch.Generator | None, /
) -> Tensor:
    r"""Sample the pre-activations instead of the weights (Kingma et al. 2015; Molchanov et al. 2017).

    .. math:: \delta = \sqrt{f(x^2; \sigma^2, \sigma_b^2)} \odot \varepsilon, \quad \varepsilon \sim N(0, I)

    Outputs are drawn independently of each other, also at the positions of a convolution.
    """
    device = x.device.type
    if (torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype) is torch.float16:
        # Squares leave the range of float16: 300 overflows, and a standard deviation of 1e-4 vanishes.
        bias_std = None if bias_std is None else bias_std.float()
        with torch.autocast(device, enabled=False):
            return local_reparameterization(linear_map, x.float(), weight_std.float(), bias_std, generator)
    bias_variance = None if bias_std is None else bias_std.square()
    variance = linear_map(x.square(), weight_std.square(), bias_variance)
    # Fast convolutions may round a zero to below zero, and the slope of the root at zero is infinite.
    std = variance.clamp_min(torch.finfo(variance.dtype).tiny).sqrt()
    return std * _normal_like(std, generator)


def flipout(
    linear_map: LinearMap, x: Tensor, weight_std: Tensor, bias_std: Tensor | None, generator: torch.Generator | None, /
) -> Tensor:
    r"""Share one weight perturbation in the batch and flip its signs for each example (Wen et al. 2018).

    .. math:: \delta_n = f(x_n \odot s_n; \sigma \odot \varepsilon, \sigma_b \odot \varepsilon_b) \odot r_n

    with signs :math:`s_n, r_n` for each example n (dimension 0 of a batched x) and each input and output
    feature. Every example sees one sample of the weights, at all its positions; different examples are
    uncorrelated.
    """
    positions = weight_std.ndim - 2
    weight_noise = weight_std * _normal_like(weight_std, generator)
    bias_noise = None if bias_std is None else bias_std * _normal_like(bias_std, generator)
    noise = linear_map(x * _signs_for(x, positions, generator), weight_noise, bias_noise)
    return noise * _signs_for(noise, positions, generator)


ESTIMATORS: dict[str, Estimator] = {"reparameterization": local_reparameterization, "flipout": flipout}


def _normal_like(values: Tensor, generator: torch.Generator | None) -> Tensor:
    if generator is None:
        return torch.randn_like(values)
    return torch.empty_like(values).normal_(generator=generator)  # keeps channels_last


def _signs_for(values: Tensor, positions: int, generator: torch.Generator | None) -> Tensor:
    """A random sign for each example and feature, broadcast over the last ``positions`` dimensions."""
    features = values.ndim - 1 - positions
    shape = [1] * values.ndim
    shape[features] = values.shape[features]
    if features > 0:
        shape[0] = values.shape[0]
    even = torch.full(shape, 0.5, dtype=values.dtype, device=values.device)
    return 2 * torch.bernoulli(even, generator=generator) - 1


Convertible = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d
CONVERTIBLE = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
INITIAL_STD = 0.05


@final
class BayesianLayer(nn.Module):
    r"""A mean-field Gaussian layer around a Linear or Conv1d/2d/3d, whose weights become the means.

    .. math:: W \sim N(\mu, \sigma^2), \quad \sigma = \log(1 + e^\rho)

    and the same for the bias; the prior is N(0, prior_std²). The given layer is kept as ``.mean``, with its
    stride, padding, dilation and groups; the parameters ``weight_rho`` and ``bias_rho`` are new. Calling the
    layer draws a sample, in training and in evaluation mode alike; with ``.sample`` set to False it is the
    given layer. Draws come from ``.generator``, or from torch's global one where that is None. The options
    are not part of the state dict. Cost: two applications of the layer.

    >>> layer = BayesianLayer(nn.Linear(3, 2), estimator="flipout")
    >>> layer(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    >>> sorted(layer.state_dict())
    ['bias_rho', 'mean.bias', 'mean.weight', 'weight_rho']
    """

    def __init__(
        self,
        layer: nn.Module,
        /,
        *,
        estimator: str = "reparameterization",
        prior_std: float = 1.0,
        initial_std: float = INITIAL_STD,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        check_choice(estimator, ESTIMATORS, "estimator")
        for name, std in (("prior_std", prior_std), ("initial_std", initial_std)):
            if not (std > 0 and math.isfinite(std)):
                raise ValueError(f"{name} must be a positive, finite standard deviation, got {std!r}.")
        if not isinstance(layer, CONVERTIBLE) or type(layer) not in CONVERTIBLE:
            names = ", ".join(kind.__name__ for kind in CONVERTIBLE)
            raise TypeError(f"Expected one of the layers {names}, got {type(layer).__name__}.")
        check_weights(layer, type(layer).__name__)
        self.mean = layer
        self.weight_rho = _rho_like(self.mean.weight, initial_std)
        self.bias_rho = None if self.mean.bias is None else _rho_like(self.mean.bias, initial_std)
        self.estimator, self.prior_std = estimator, prior_std
        self.sample, self.generator = True, generator
        self.training = layer.training

    def forward(self, x: Tensor) -> Tensor:
        """One sample of the output, or the mean output where ``sample`` is False."""
        mean: Tensor = self.mean(x)
        if not self.sample:
            return mean
        noise = ESTIMATORS[self.estimator](self._linear_map, x, self.weight_std, self.bias_std, self.generator)
        return mean + noise.to(mean.dtype)

    @property
    def weight_std(self) -> Tensor:
        """Standard deviations of the weights."""
        return functional.softplus(self.weight_rho)

    @property
    def bias_std(self) -> Tensor | None:
        """Standard deviations of the bias, None for a layer without one."""
        return None if self.bias_rho is None else functional.softplus(self.bias_rho)

    def gaussians(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The (mean, standard deviation) of the weights and, where there is one, of the bias."""
        yield self.mean.weight, self.weight_std
        bias, std = self.mean.bias, self.bias_std
        if bias is not None and std is not None:
            yield bias, std

    def extra_repr(self) -> str:
        """The options, for printing."""
        return f"estimator={self.estimator!r}, prior_std={self.prior_std}, sample={self.sample}"

    def _linear_map(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if isinstance(self.mean, nn.Linear):
            return functional.linear(x, weight, bias)
        # The one place in torch that knows every padding mode. torch.func.functional_call would do as well,
        # but it swaps the parameters of the layer while it runs, which is not safe with threads.
        return self.mean._conv_forward(x, weight, bias)


def check_weights(layer: Convertible, where: str) -> None:
    """Refuse weights that cannot be the means of real Gaussians, such as those computed by weight_norm."""
    for name, weight in (("weight", layer.weight), ("bias", layer.bias)):
        if weight is not None and not isinstance(weight, nn.Parameter):
            raise ValueError(
                f"{where}: the {name} is computed from other parameters (weight_norm, spectral_norm or "
                "pruning). Remove that first, for example with parametrize.remove_parametrizations."
            )
    if not layer.weight.is_floating_point():
        raise TypeError(f"{where}: expected real floating-point weights, got {layer.weight.dtype}.")


def _rho_like(mean: Tensor, std: float) -> nn.Parameter:
    """The parameter whose softplus is ``std``, trainable where the mean is."""
    rho = std + math.log(-math.expm1(-std))
    return nn.Parameter(torch.full_like(mean, rho), requires_grad=mean.requires_grad)
