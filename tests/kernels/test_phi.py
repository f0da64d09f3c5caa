"""phi(x) = -x log2 x against decimal arithmetic: two units in the last place, everywhere from zero to one."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens.kernels.simd.phi import phi_into

LAST_PLACES = Decimal(2) * Decimal(2) ** -52


def phi(values):
    out = np.empty(len(values))
    phi_into(np.asarray(values, np.float64), out)
    return out


def exact(x):
    with localcontext(prec=40):
        return -Decimal(x) * Decimal(x).ln() / Decimal(2).ln() if x > 0 else Decimal(0)


def assert_exact(values):
    for x, found in zip(values, phi(values), strict=True):
        assert abs(Decimal(float(found)) - exact(float(x))) <= LAST_PLACES * exact(float(x)), x


@settings(derandomize=True, deadline=None)
@given(st.lists(st.floats(1e-290, 1), min_size=1, max_size=20))
def test_any_probability(values):
    assert_exact(values)


def test_around_the_square_root_of_a_half_and_powers_of_two():
    """Where the mantissa changes sides, and where the logarithm is nearly an integer."""
    places = np.array([1.0, 0.5, 2.0**-0.5, 2.0**-1.5, 2.0**-20, 2.0**-20.5])
    assert_exact(np.clip(np.concatenate([np.nextafter(places, 0), places, np.nextafter(places, 2)]), 0, 1))


def test_next_to_one():
    assert_exact(1 - 2.0 ** -np.arange(1, 53))


@pytest.mark.parametrize("x", [0.0, 1.0])
def test_nothing_is_uncertain_at_zero_and_one(x):
    assert phi([x])[0] == 0.0
