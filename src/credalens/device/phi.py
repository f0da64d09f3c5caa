# mypy: ignore-errors
"""phi(x) = -x log2 x on the GPU, as in ``core/kernels/phi.py``, so that both paths give the same numbers."""

import triton
import triton.language as tl

__all__ = ["phi", "phi_single"]


@triton.jit
def phi(x):
    """-x log2 x of float64 values 0 <= x <= 1, with phi(0) = 0.

    With x = 2^e m and sqrt(1/2) <= m < sqrt(2): log2 x = e + 2/ln 2 * artanh((m-1)/(m+1)). Nine terms leave 5e-16. A division
    leaves its fast path for a numerator of zero, the commonest one here, so 1 / (m+1) is a cubic (good to 1.1e-4) and
    a step that raises its error to the fourth power.
    """
    bits = x.to(tl.int64, bitcast=True) + 2638147582215219  # those of 1 less those of sqrt(1/2)
    # The exponent as a float64 without a conversion: put it into the last bits of 2^52, then subtract that.
    exponent = ((bits >> 52) | 0x4330000000000000).to(tl.float64, bitcast=True) - 4503599627371519.0
    m = ((bits & 0x000FFFFFFFFFFFFF) + 4604544271217802189).to(tl.float64, bitcast=True)
    d = m + 1.0
    r = 1.97034285 + d * (-1.44853978 + d * (0.47094347 - d * 0.05713502))
    e = 1.0 - d * r
    r += r * e
    z = (m - 1.0) * (r + r * (e * e))
    y = z * z
    s = y * (1.0 / 17.0) + (1.0 / 15.0)
    s = s * y + (1.0 / 13.0)
    s = s * y + (1.0 / 11.0)
    s = s * y + (1.0 / 9.0)
    s = s * y + (1.0 / 7.0)
    s = s * y + (1.0 / 5.0)
    s = s * y + (1.0 / 3.0)
    return -x * (exponent + 2.8853900817779268 * (z + z * y * s))


@triton.jit
def phi_single(x):
    """-x log2 x of float32 values 0 <= x <= 1 as float64, to 6e-9 relatively: float32 wherever that loses no digits.

    As above, with z = (m-1)/(m+1) a sum of two float32: what the first leaves of m-1 is exact, and the second its quotient.
    The series beyond z is below 0.002, so that float32 does; its four coefficients leave 2e-12.
    """
    bits = x.to(tl.uint32, bitcast=True) + 4913933  # those of 1 less those of sqrt(1/2)
    exponent = ((bits >> 23).to(tl.uint64) | 0x4330000000000000).to(tl.float64, bitcast=True) - 4503599627370623.0
    m = ((bits & 0x007FFFFF) + 1060439283).to(tl.float32, bitcast=True)
    a = m - 1.0
    d = m + 1.0
    r = 1.97034285 + d * (-1.44853978 + d * (0.47094347 - d * 0.05713502))
    r = tl.fma(tl.fma(-d, r, 1.0), r, r)
    z = a * r
    rest = tl.fma(-z, a, tl.fma(z, -2.0, a)) * r
    y = z * z
    s = ((y * 0.11834401 + 0.14266033) * y + 0.20000217) * y + 0.33333333
    rest = tl.fma(z, y * s, rest)
    return -x.to(tl.float64) * (
        exponent + 2.8853900817779268 * z.to(tl.float64) + 2.8853900817779268 * rest.to(tl.float64)
    )
