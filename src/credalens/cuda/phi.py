# mypy: ignore-errors
"""phi(x) = -x log2 x on the GPU, as in ``kernels/simd/phi.py``, so that both paths give the same numbers."""

import triton
import triton.language as tl


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
def phi_parts(x):
    """-x log2 x of float32 values 0 <= x <= 1 in two parts: x times its exponent, exact in float64, and the rest in float32.

    With x = 2^e m as above the first is times 2^23, for e stays where its bits are, and the rest is -x log2 m. A polynomial in
    m - 1, which is exact, gives log2 m to 1.4e-7 relatively.
    """
    bits = x.to(tl.int32, bitcast=True)
    exponent = (bits - 1060439283) & -8388608  # less the bits of sqrt(1/2), but none of the last 23
    a = (bits - exponent).to(tl.float32, bitcast=True) - 1.0
    s = a * 0.12583661 - 0.20726955
    s = s * a + 0.21571566
    s = s * a - 0.23894486
    s = s * a + 0.28791624
    s = s * a - 0.36070368
    s = s * a + 0.48091063
    s = s * a - 0.72134733
    s = s * a + 1.44269502
    return -x.to(tl.float64) * exponent.to(tl.float64), -x * (a * s)
