r"""How a mean-field Gaussian layer is sampled: the noise that each estimator adds to the mean output.

For a linear map :math:`f(x; W, b)` (a dense layer or a convolution) with :math:`W \sim N(\mu, \sigma^2)`
elementwise, the output is :math:`f(x; \mu, \mu_b)` plus noise of mean zero. Both estimators give every single
output its exact distribution, and both cost one more application of the map.
"""

from collections.abc import Callable

import torch
from torch import Tensor

LinearMap = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""``(x, weight, bias) -> output``, linear in x and in (weight, bias)."""

Estimator = Callable[[LinearMap, Tensor, Tensor, Tensor | None, torch.Generator | None], Tensor]
"""``(linear_map, x, weight_std, bias_std, generator) -> noise`` of the shape of the output."""


def local_reparameterization(
    linear_map: LinearMap,
    x: Tensor,
    weight_std: Tensor,
    bias_std: Tensor | None,
    generator: torch.Generator | None,
    /,
) -> Tensor:
    r"""Sample the pre-activations instead of the weights (Kingma et al. 2015; Molchanov et al. 2017).

    .. math:: \delta = \sqrt{f(x^2; \sigma^2, \sigma_b^2)} \odot \varepsilon, \quad \varepsilon \sim N(0, I)

    Outputs are drawn independently of each other, also at the positions of a convolution.
    """
    if _computing_dtype(x) is torch.float16:
        return _in_single_precision(linear_map, x, weight_std, bias_std, generator)
    bias_variance = None if bias_std is None else bias_std.square()
    variance = linear_map(x.square(), weight_std.square(), bias_variance)
    # Fast convolutions may round a zero to below zero, and the slope of the root at zero is infinite.
    std = variance.clamp_min(torch.finfo(variance.dtype).tiny).sqrt()
    return std * _normal_like(std, generator)


def flipout(
    linear_map: LinearMap,
    x: Tensor,
    weight_std: Tensor,
    bias_std: Tensor | None,
    generator: torch.Generator | None,
    /,
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


def _computing_dtype(x: Tensor) -> torch.dtype:
    """The dtype a linear map of x runs in, which autocast may change."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


def _in_single_precision(
    linear_map: LinearMap,
    x: Tensor,
    weight_std: Tensor,
    bias_std: Tensor | None,
    generator: torch.Generator | None,
) -> Tensor:
    # Squares leave the range of float16: 300 overflows, and a standard deviation of 1e-4 vanishes.
    bias_std = None if bias_std is None else bias_std.float()
    with torch.autocast(x.device.type, enabled=False):
        return local_reparameterization(linear_map, x.float(), weight_std.float(), bias_std, generator)


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
