"""The share of numbers that are not below others: by a table over their leading bits, then by halving."""

from __future__ import annotations

from credalens.kernels.simd.jit import kernel


@kernel
def shares_above(ordered, starts, first, shift, values, bits, shares):
    """Write (1 + number of ``ordered`` that are at least the value) / (1 + number of all) for each of ``values``.

    ``bits`` are the values' own as integers. Entry k of ``starts`` is the first place in ``ordered`` whose leading bits, those
    above ``shift`` counted from ``first``, are at least k.
    """
    last, total = len(starts) - 2, len(ordered) + 1
    for i in range(len(values)):
        key = min(max((bits[i] >> shift) - first, 0), last)
        low, high = starts[key], starts[key + 1]
        while low < high:
            middle = (low + high) // 2
            if ordered[middle] < values[i]:
                low = middle + 1
            else:
                high = middle
        shares[i] = (total - low) / total
