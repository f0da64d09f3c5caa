"""Inputs for figures and what is read back from their axes, for tests."""

import numpy as np
from hypothesis import settings

law = settings(derandomize=True, deadline=None, max_examples=40)


def ensemble(count, classes, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(classes, 0.4), size=count)


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]
