"""Inputs for figures and what is read back from their axes, for tests."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

law = settings(derandomize=True, deadline=None, max_examples=20)


def ensemble(count, classes, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(classes, 0.4), size=count)


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@st.composite
def members(draw, classes=3):
    """Small ensembles with zeros, one-hots and ties, down to one member."""
    weights = st.lists(st.integers(0, 6), min_size=classes, max_size=classes).filter(any)
    counts = np.array(draw(st.lists(weights, min_size=1, max_size=8)), dtype=float)
    return counts / counts.sum(axis=1, keepdims=True)
