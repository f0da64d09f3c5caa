"""phi(x) = -x log2 x, the summand of Shannon entropy in bits, with phi(0) = 0."""

import numpy as np
from numpy.typing import NDArray

from credalens.kernels.buffers import aligned_empty
from credalens.kernels.simd.jit import inlined, kernel
from credalens.kernels.simd.vectors import WIDTH, bits_to_float, float_to_bits, load, store, to_float

EXPONENT = np.int64(-1 << 52)
SQRT_HALF = np.int64(0x3FE6A09E667F3BCD)
TWO_OVER_LN2 = 2.0 / np.log(2.0)


@inlined
def phi(x):
    """-x log2 x for 0 <= x <= 1, of a number or a vector, without a branch so that loops over it are vectorised.

    With x = 2^e m and sqrt(1/2) <= m < sqrt(2): log2 x = e + 2/ln 2 * artanh(z), z = (m-1)/(m+1), and artanh(z) =
    z + z^3 s(z^2). The polynomial s, of the least error on this range, leaves 5e-18; the series 1/3 + y/5 + y^2/7 + ...
    needs three terms more. Zero gives e = -1023 and m = 1, and the product vanishes.
    """
    bits = float_to_bits(x)
    above = bits - SQRT_HALF
    exponent = to_float(above >> 52)
    m = bits_to_float(bits - (above & EXPONENT))
    z = (m - 1.0) / (m + 1.0)
    y = z * z
    s = y * 0.07308872752567037 + 0.0766580362081545
    s = s * y + 0.09091446454421954
    s = s * y + 0.1111110553856369
    s = s * y + 0.14285714313186199
    s = s * y + 0.19999999999949253
    s = s * y + 0.3333333333333335
    return -x * (exponent + TWO_OVER_LN2 * (z + z * y * s))


@kernel
def phi_into(x, out):
    """out[i] = phi(x[i])."""
    whole = x.size - x.size % WIDTH
    for i in range(0, whole, WIDTH):
        store(out, i, phi(load(x, i)))
    for i in range(whole, x.size):
        out[i] = phi(x[i])


def entropy_of(p: NDArray) -> NDArray[np.float64]:
    """Shannon entropy in bits along the last axis."""
    terms = np.empty(p.size)
    phi_into(np.ascontiguousarray(p, dtype=np.float64).reshape(-1), terms)
    return terms.reshape(p.shape).sum(axis=-1)


def phi_pair(lower: NDArray, upper: NDArray) -> tuple[NDArray, NDArray]:
    """phi of both bounds: all the logarithms that the two entropies share."""
    phi_lower, phi_upper = aligned_empty(lower.shape), aligned_empty(upper.shape)
    phi_into(lower.reshape(-1), phi_lower.reshape(-1))
    phi_into(upper.reshape(-1), phi_upper.reshape(-1))
    return phi_lower, phi_upper
