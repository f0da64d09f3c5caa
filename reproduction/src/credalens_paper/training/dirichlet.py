r"""A Dirichlet over class distributions: what a network distilled from an ensemble predicts.

The network's logits z give the concentrations :math:`\alpha_k = e^{z_k}`, so that its softmax is the expected
class distribution and their sum :math:`\alpha_0` says how much the ensemble agrees. Classes are the last axis.
"""

import math

import torch
from torch import Tensor

from credalens.checks.arrays import check_classes
from credalens.checks.options import check_base
from credalens.core.classical import ClassicalUncertainty


def concentration(logits: Tensor, /) -> Tensor:
    r"""Concentrations :math:`\alpha = e^z` of a Dirichlet head (Malinin et al. 2019), at least float32.

    What underflows becomes the smallest positive number; what overflows (logits above 88 in float32) is refused.

    >>> concentration(torch.tensor([0.0, -1000.0]).double()).tolist()
    [1.0, 2.2250738585072014e-308]
    """
    dtype = torch.promote_types(logits.dtype, torch.float32)
    alpha = logits.to(dtype).exp().clamp_min(torch.finfo(dtype).tiny)
    return _check_alpha(alpha, "exp(logits)")


def expected_probability(alpha: Tensor, /) -> Tensor:
    r"""Mean of the Dirichlet, :math:`\bar p_k = \alpha_k / \alpha_0`.

    >>> expected_probability(torch.tensor([1.0, 3.0]))
    tensor([0.2500, 0.7500])
    """
    _check_alpha(alpha, "alpha")
    relative = alpha / alpha.amax(-1, keepdim=True)  # the sum of large concentrations may overflow
    return relative / relative.sum(-1, keepdim=True)


def dirichlet_uncertainty(alpha: Tensor, /, *, base: float = 2) -> ClassicalUncertainty:
    r"""Uncertainty of a Dirichlet-distributed class distribution, in closed form.

    .. math::
        \text{total} &= -\sum_k \bar p_k \log \bar p_k \\
        \text{aleatoric} &= \sum_k \bar p_k \, (\psi(\alpha_0 + 1) - \psi(\alpha_k + 1)) \\
        \text{epistemic} &= \text{total} - \text{aleatoric}

    the entropy of the expected distribution, the expected entropy, and the mutual information between the class
    and its distribution: the classical decomposition for infinitely many members. Computed in float64, as total
    and aleatoric nearly cancel for large concentrations.

    >>> uncertainty = dirichlet_uncertainty(torch.tensor([[1.0, 1.0], [1000.0, 1000.0]]))
    >>> uncertainty.total
    tensor([1., 1.])
    >>> uncertainty.epistemic
    tensor([0.2787, 0.0004])
    """
    scale = 1 / math.log(check_base(base))
    _check_alpha(alpha, "alpha")
    a = alpha.to(widest_float(alpha))
    p = a / a.sum(-1, keepdim=True)
    total = -torch.xlogy(p, p).sum(-1)
    aleatoric = (p * (torch.digamma(a.sum(-1, keepdim=True) + 1) - torch.digamma(a + 1))).sum(-1)
    epistemic = (total - aleatoric).clamp_min(0)  # rounding only: mutual information is not negative
    return ClassicalUncertainty(*((scale * h).to(alpha.dtype) for h in (total, aleatoric, epistemic)))


def widest_float(tensor: Tensor, /) -> torch.dtype:
    """float64, or float32 on Apple's GPUs, which have nothing wider."""
    return torch.float32 if tensor.device.type == "mps" else torch.float64


def _check_alpha(alpha: Tensor, name: str) -> Tensor:
    check_classes(alpha.shape[-1] if alpha.ndim else 0, name, tuple(alpha.shape))
    bad = ~((alpha > 0) & torch.isfinite(alpha))
    if bad.any():
        first = tuple(bad.nonzero()[0].tolist())
        raise ValueError(
            f"{name} must hold positive, finite concentrations; {int(bad.sum())} of {bad.numel()} are not, the first "
            f"is {alpha[first].item()} at index {first}. Did you pass logits, or has the network diverged?"
        )
    return alpha
