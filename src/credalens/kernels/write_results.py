"""Entropies in bits to their places, in the caller's unit and precision."""

from __future__ import annotations

from credalens.kernels.epistemic import epistemic_part
from credalens.kernels.simd.jit import inlined, kernel
from credalens.kernels.simd.vectors import choose

__all__ = ["keep_rows"]

_epistemic_part = inlined(epistemic_part)


@inlined
def _unsigned(x):
    """x, and zero for minus zero, which phi(1) is."""
    return choose(x == 0.0, 0.0, x)


@kernel
def keep_rows(narrow, scale, total, aleatoric, epistemic, bound):
    """From highest and lowest entropy and its bound in bits, the rows of ``narrow``, all four results times ``scale``."""
    highest, lowest, least = narrow[0], narrow[1], narrow[2]
    for i in range(highest.size):
        total[i], aleatoric[i] = _unsigned(highest[i] * scale), _unsigned(lowest[i] * scale)
        bound[i] = _unsigned(least[i] * scale)
        epistemic[i] = _epistemic_part(highest[i], lowest[i]) * scale
