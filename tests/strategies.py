"""Ensembles as they come: peaked and flat, with zeros, one-hots, ties, a single member, two classes, narrow floats."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

settings.register_profile(
    "credalens", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("credalens")

KINDS = ("flat", "peaked", "sparse", "rounded", "one_hot", "agreeing", "mixed", "tiny", "shared", "near")
OPEN_ROWS = "ignore:.* not certified after max_nodes"  # for tests that give the search of a row too little


def make_members(kind: str, members: int, classes: int, rng: np.random.Generator) -> np.ndarray:
    """One input's predictions (members, classes) of a kind; rows sum to one in float64."""
    if kind == "flat":
        p = rng.dirichlet(np.ones(classes), members)
    elif kind == "peaked":
        z = 2.5 * rng.normal(size=classes) + rng.normal(size=(members, classes))
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    elif kind == "sparse":
        p = rng.dirichlet(np.full(classes, 0.3), members) * (rng.random((members, classes)) < 0.5)
        p[p.sum(axis=1) == 0, 0] = 1.0
    elif kind == "rounded":
        p = rng.multinomial(10, rng.dirichlet(np.ones(classes)), members) / 10
    elif kind == "one_hot":
        p = np.eye(classes)[rng.integers(0, classes, members)]
    elif kind == "agreeing":
        p = np.repeat(rng.dirichlet(np.ones(classes), 1), members, axis=0)
    elif kind == "mixed":
        p = 0.6 * np.eye(classes)[rng.integers(0, classes, members)] + 0.4 * rng.dirichlet(np.ones(classes), members)
    elif kind == "shared":  # most classes agree but for rounding
        p = np.zeros((members, classes))
        p[:, : 1 + classes // 3] = rng.dirichlet(np.full(1 + classes // 3, 0.1), members)
        p = 0.5 * p + 0.5 * rng.dirichlet(np.full(classes, 5.0))
    elif kind == "near":  # intervals that are equal but for rounding
        p = np.stack([rng.permutation(np.resize([1, 1.1, 1.2, 1.3, 3], classes)) for _ in range(members)])
        p = p * (1 + 1e-15 * rng.normal(size=(members, classes)))
    else:
        p = rng.dirichlet(np.full(classes, 0.02), members) + 1e-300
    return p / p.sum(axis=1, keepdims=True)


@st.composite
def ensembles(
    draw: st.DrawFn, *, max_classes: int = 8, max_members: int = 6, kinds: tuple[str, ...] = KINDS
) -> np.ndarray:
    """(members, classes) for one input."""
    classes = draw(st.integers(2, max_classes))
    members = draw(st.integers(1, max_members))
    seed = draw(st.integers(0, 2**32 - 1))
    return make_members(draw(st.sampled_from(kinds)), members, classes, np.random.default_rng(seed))


def batch_of(kind: str, members: int, rows: int, classes: int, seed: int = 0) -> np.ndarray:
    """(members, rows, classes)."""
    rng = np.random.default_rng(seed)
    return np.stack([make_members(kind, members, classes, rng) for _ in range(rows)], axis=1)
