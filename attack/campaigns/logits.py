"""Logits of any size."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

import credalens
from attack.case import Case, expect_close

FIELDS = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic")


def attack(case: Case) -> None:
    """wrap_logits of tiny, huge, shifted, tied and ruled-out logits against a softmax in extended precision."""
    shape = case.between(1, 6), case.between(1, 5), case.between(2, case.choose(5, 50))
    case.count(shape[1])
    z = (case.rng.normal(size=shape) * case.choose(1e-9, 1.0, 30.0, 1e4)).astype(case.choose("float64", "float32"))
    z = _changed(case, z)
    p = _softmax(z)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="these logits are probabilities")  # a few rows may look like them
        result, wanted = credalens.wrap_logits(z), credalens.wrap(p.astype(np.float64))
    tolerance = 1e-11 if z.dtype == np.float64 else 2.0**-20
    expect_close("lower", result.lower, p.min(axis=0), tolerance=tolerance)
    expect_close("upper", result.upper, p.max(axis=0), tolerance=tolerance)
    for field in FIELDS:
        expect_close(field, getattr(result, field), getattr(wanted, field), tolerance=tolerance)


def _changed(case: Case, z: NDArray) -> NDArray:
    kind = case.between(0, 4)
    if kind == 0:
        return z + z.dtype.type(case.choose(1e3, -1e5, 1e30))
    if kind == 1:
        return np.round(z)
    if kind == 2:  # ruled out, but never all classes of a row
        ruled_out = case.rng.random(z.shape) < 0.4
        ruled_out[..., 0] = False
        return np.where(ruled_out, -np.inf, z)
    if kind == 3:
        return np.zeros_like(z)
    return z


def _softmax(z: NDArray) -> NDArray:
    wide = z.astype(np.longdouble)
    e = np.exp(wide - wide.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
