"""E_1 and Ein against SciPy, their law and a known bracket."""

from __future__ import annotations

import numpy as np
from scipy.special import exp1

from credalens.core.hartley import exponential_integrals

S = np.concatenate([np.geomspace(1e-6, 40.0, 4001), [np.nextafter(1.0, 0), 1.0, np.nextafter(1.0, 2)]])


def test_e1_is_scipys():
    np.testing.assert_allclose(exponential_integrals(S)[0], exp1(S), rtol=4e-15)


def test_the_two_differ_by_the_logarithm():
    e1, ein = exponential_integrals(S)
    np.testing.assert_allclose(ein - e1, np.log(S) + np.euler_gamma, rtol=0, atol=1e-14)


def test_ein_begins_as_its_series():
    small = np.geomspace(1e-8, 1e-5, 50)
    np.testing.assert_allclose(exponential_integrals(small)[1], small - small**2 / 4 + small**3 / 18, rtol=1e-15)


def test_derivative_of_e1():
    step = 1e-4 * S
    slope = (exponential_integrals(S + step)[0] - exponential_integrals(S - step)[0]) / (2 * step)
    np.testing.assert_allclose(slope, -np.exp(-S) / S, rtol=1e-5)


def test_known_bracket():
    # exp(-s) ln(1 + 2/s) / 2 < E_1(s) < exp(-s) ln(1 + 1/s) (Abramowitz and Stegun, 5.1.20)
    e1 = exponential_integrals(S)[0]
    assert (np.exp(-S) * np.log1p(2 / S) / 2 < e1).all()
    assert (e1 < np.exp(-S) * np.log1p(1 / S)).all()
