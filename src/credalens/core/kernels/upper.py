"""Upper entropy by water-filling: the level t with sum_k clip(t, l_k, u_k) = 1."""

from __future__ import annotations

from credalens.core.kernels.jit import kernel
from credalens.core.kernels.phi import phi

__all__ = ["upper_entropy_rows", "water_level"]


@kernel
def _excess(lower, upper, t):
    """sum_k clip(t, l_k, u_k) - 1, and the number of classes that move with t."""
    total = -1.0
    moving = 0
    for k in range(lower.size):
        low, high = lower[k], upper[k]
        total += min(max(t, low), high)
        moving += (low < t) & (t < high)
    return total, moving


@kernel
def water_level(lower, upper):
    """The root t of s(t) = sum clip(t, l, u) - 1: Newton, kept inside a bracket.

    s is monotone and piecewise linear, so a Newton step that stays on its piece lands on the root; each other step
    shrinks the bracket. Where no class moves the bracket is halved.
    """
    low, high = lower.min(), upper.max()
    t = 1.0 / lower.size
    for _ in range(200):
        if not low < t < high:
            t = 0.5 * (low + high)
        excess, moving = _excess(lower, upper, t)
        if excess == 0.0:
            break
        if excess > 0.0:
            high = t
        else:
            low = t
        step = t - excess / moving if moving > 0 else 0.5 * (low + high)
        if step == t or high - low <= 1e-17:
            break
        t = step
    return t


@kernel
def _upper_entropy_row(lower, upper, phi_lower, phi_upper):
    """(entropy in bits, level t) of the flattest distribution between the bounds. Uses one new logarithm."""
    t = water_level(lower, upper)
    entropy = 0.0
    moving = 0
    for k in range(lower.size):
        if lower[k] >= t:
            entropy += phi_lower[k]
        elif upper[k] <= t:
            entropy += phi_upper[k]
        else:
            moving += 1
    return entropy + moving * phi(t), t


@kernel
def _water_fill_row(lower, upper, t, out):
    """out_k = clip(t, l_k, u_k), the maximiser."""
    for k in range(lower.size):
        out[k] = min(max(t, lower[k]), upper[k])


@kernel
def upper_entropy_rows(lower, upper, phi_lower, phi_upper, entropy, distribution):
    """Upper entropy of every row and, if ``distribution`` has rows, the maximiser."""
    for row in range(lower.shape[0]):
        entropy[row], t = _upper_entropy_row(lower[row], upper[row], phi_lower[row], phi_upper[row])
        if distribution.shape[0] > 0:
            _water_fill_row(lower[row], upper[row], t, distribution[row])
