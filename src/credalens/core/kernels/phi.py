"""phi(x) = -x log2 x, the summand of Shannon entropy in bits, with phi(0) = 0."""

from __future__ import annotations

import numpy as np

from credalens.core.kernels.jit import bits_to_float, float_to_bits, inlined, kernel

__all__ = ["phi", "phi_into"]

MANTISSA = np.int64(0x000FFFFFFFFFFFFF)
ONE = np.int64(0x3FF0000000000000)
SQRT2 = np.sqrt(2.0)
TWO_OVER_LN2 = 2.0 / np.log(2.0)


@inlined
def phi(x):
    """-x log2 x for 0 <= x <= 1, without a branch so that loops over it are vectorised.

    With x = 2^e m and sqrt(1/2) < m <= sqrt(2): log2 x = e + 2/ln 2 * artanh((m-1)/(m+1)). Eleven terms of the series
    leave 3e-17. Zero gives e = -1023 and m = 1, and the product vanishes.
    """
    bits = float_to_bits(x)
    exponent = np.float64((bits >> 52) - 1023)
    m = bits_to_float((bits & MANTISSA) | ONE)
    high = m > SQRT2
    m = 0.5 * m if high else m
    exponent = exponent + 1.0 if high else exponent
    z = (m - 1.0) / (m + 1.0)
    y = z * z
    s = 1.0 / 21.0
    s = s * y + 1.0 / 19.0
    s = s * y + 1.0 / 17.0
    s = s * y + 1.0 / 15.0
    s = s * y + 1.0 / 13.0
    s = s * y + 1.0 / 11.0
    s = s * y + 1.0 / 9.0
    s = s * y + 1.0 / 7.0
    s = s * y + 1.0 / 5.0
    s = s * y + 1.0 / 3.0
    return -x * (exponent + TWO_OVER_LN2 * (z + z * y * s))


@kernel
def phi_into(x, out):
    """out[i] = phi(x[i])."""
    for i in range(x.size):
        out[i] = phi(x[i])
