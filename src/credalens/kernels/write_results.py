"""Write entropies in bits to the result arrays, in the caller's unit and precision."""

from __future__ import annotations

from credalens.kernels.epistemic import epistemic_part
from credalens.kernels.simd.jit import inlined, kernel
from credalens.kernels.simd.vectors import choose

_epistemic_part = inlined(epistemic_part)


@inlined
def _unsigned(x):
    """x, and zero for what rounding puts below it, and for minus zero, which phi(1) is; NaN stays NaN."""
    return choose(x <= 0.0, 0.0, x)


@kernel
def write_results(entropies, scale, total, aleatoric, epistemic, bound):
    """All four results times ``scale`` from the rows of ``entropies`` in bits: highest, lowest, and a bound of the lowest."""
    highest, lowest, least = entropies[0], entropies[1], entropies[2]
    for i in range(highest.size):
        # In order: each of the three was rounded on its own way.
        low = _unsigned(lowest[i])
        high = choose(highest[i] < low, low, highest[i])
        total[i], aleatoric[i] = _unsigned(high) * scale, low * scale
        bound[i] = _unsigned(choose(least[i] > low, low, least[i])) * scale
        epistemic[i] = _epistemic_part(highest[i], lowest[i]) * scale
