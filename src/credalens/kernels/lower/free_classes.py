"""The free classes of a node of the branch and bound: a ring in order of slope, from which decisions take classes out.

Each decision closes all that follows from it by facts (b) and (c) of ``solve.py``, and can be taken back.
"""

from __future__ import annotations

import numpy as np

from credalens.kernels.simd.jit import inlined

__all__ = ["DOWN", "FREE", "SPLIT", "UP", "decide", "free_all", "neighbour_slopes", "slopes_around", "take_back"]

FREE, UP, DOWN, SPLIT = 0, 1, 2, 3


@inlined
def free_all(m, state, following, previous):
    """Every class free: a ring in order of slope, closed by position m, so that a node looks at free classes only."""
    for i in range(m):
        state[i] = FREE
    for i in range(m + 1):
        following[i] = i + 1 if i < m else 0
        previous[i] = i - 1 if i > 0 else m


@inlined
def dominates(core, i, j):
    """Fact c, with equal intervals ordered by position."""
    return (
        core.low[i] >= core.low[j]
        and core.high[i] >= core.high[j]
        and (i < j or core.low[i] > core.low[j] or core.high[i] > core.high[j])
    )


@inlined
def decide(kind, f, start, stop, core, m, state, following, previous, trail, length, need, base):
    """Apply a decision and all it implies; return the new trail length, open mass and base entropy."""
    i = following[m]
    while i < m:
        up = kind != DOWN and dominates(core, i, f)
        down = kind != UP and dominates(core, f, i)
        if kind == SPLIT:
            up = up or core.low[i] >= stop
            down = down or core.high[i] <= start
        new = UP if up else (DOWN if down else FREE)
        new = kind if i == f else new
        if new == UP:
            need -= core.high[i] - core.low[i]
            base += core.phi_high[i] - core.phi_low[i]
        if new != FREE:
            state[i] = new
            trail[length] = i
            length += 1
            following[previous[i]] = following[i]
            previous[following[i]] = previous[i]
        i = following[i]
    return length, need, base


@inlined
def take_back(mark, state, following, previous, trail, length):
    """Undo decisions, last first, until the trail is as short as ``mark``."""
    while length > mark:
        length -= 1
        i = trail[length]
        state[i] = FREE
        following[previous[i]] = i
        previous[following[i]] = i
    return length


@inlined
def neighbour_slopes(core, m, following, previous, f):
    """Slopes of the nearest free classes that can trade mass with free class f: the last before it, the first after.

    A class that dominates f is up whenever f is raised, and one that f dominates is down unless f is up (fact c).
    """
    i, j = previous[f], following[f]
    while i < m and dominates(core, i, f):
        i = previous[i]
    while j < m and dominates(core, f, j):
        j = following[j]
    return (core.slope[i] if i < m else -np.inf), (core.slope[j] if j < m else np.inf)


@inlined
def slopes_around(core, m, previous, i):
    """The same for the split class, which stands before free class i."""
    before = previous[i]
    return (core.slope[before] if before < m else -np.inf), (core.slope[i] if i < m else np.inf)
