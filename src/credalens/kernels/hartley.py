"""Generalized Hartley of interval credal sets: exact by enumeration for few classes, a certified bracket for many.

With F(u) = E[nu(A)], A drawn by tossing a coin of bias u for every class, and nu the lower probability,

    GH = 1/ln 2 * Int_0^1 (u - F(u)) / (u (-ln u)) du.

Interval credal sets are 2-monotone, which makes F convex, with F(0) = 0 and F(1) = 1. So a few values of F enclose the
integral: F lies below its chords and above their extensions. Each value needs one expectation,

    u - F(u) = (1 - u) D - E(D - W)_+ = u R - E(W - D)_+,   W = sum_k b_k w_k, b_k ~ Bernoulli(u),

with D = sum u_k - 1 and R = 1 - sum l_k, found by convolving the classes on a grid.
"""

import numpy as np

from credalens.kernels.simd.jit import kernel

MOST_NODES = 256
FIRST_NODES = np.int64(9)  # not plain numbers: for those Numba would compile a copy of their own
FIRST_CELLS = np.int64(64)
LN2 = np.log(2.0)
NOTHING = 1e-13  # room or rest below this is rounding, and the set a single distribution
EXPAND = 3.0  # how many standard deviations of grid noise a state may have moved
SURE = 1.0 / (1.0 - 1.0 / EXPAND**2)  # Chebyshev: it moved less with at least this inverse probability


@kernel
def hartley_exact_rows(lower, upper, weights, out, low, high):
    """log2 C - sum over A of weights[A] nu(A): every subset, its sums built by doubling in ``low`` and ``high``."""
    rows, classes = lower.shape
    for row in range(rows):
        low[0], high[0] = 0.0, 0.0
        size = 1
        for k in range(classes):
            a, b = lower[row, k], upper[row, k]
            for i in range(size):
                low[size + i] = low[i] + a
                high[size + i] = high[i] + b
            size *= 2
        missing = 1.0 - high[size - 1]
        if missing >= -NOTHING or 1.0 - low[size - 1] <= NOTHING:
            out[row] = 0.0
            continue
        total = 0.0
        for i in range(size):
            total += weights[i] * max(low[i], missing + high[i])
        out[row] = max(np.log2(classes) - total, 0.0)


@kernel
def _convolve(widths, bias, cell, cells, mass, spare):
    """Distribution of W on the grid; a width between two grid points is split so that its mean is kept.

    Splitting spreads the distribution, so the expectation of a convex function comes out too high, never too low.
    """
    mass[:cells], spare[:cells] = 0.0, 0.0
    mass[0] = 1.0
    reach = 1
    stay = 1.0 - bias
    for k in range(widths.size):
        steps = int(widths[k] / cell)
        if steps >= cells:
            for j in range(reach):
                mass[j] *= stay
            continue
        part = widths[k] / cell - steps
        near, far = bias * (1.0 - part), bias * part
        top = min(reach + steps + 1, cells)
        for j in range(steps):
            spare[j] = stay * mass[j]
        spare[steps] = stay * mass[steps] + near * mass[0]
        # Views instead of offsets, which could be negative and would keep the loop from being vectorised.
        at, out = mass[steps + 1 : top], spare[steps + 1 : top]
        one, two = mass[1 : top - steps], mass[: top - steps - 1]
        for j in range(out.size):
            out[j] = stay * at[j] + near * one[j] + far * two[j]
        mass, spare = spare, mass
        reach = top
    return mass, reach


@kernel
def _shortfall(widths, bias, target, cell, cells, noise, mass, spare):
    """Bracket of E(target - W)_+.

    The value on the grid is too high by at most E psi(W), where psi is the largest mean rise of a kink at ``target`` under
    mean-zero noise of this variance. W is only known up to the same noise, hence the widening by EXPAND.
    """
    mass, reach = _convolve(widths, bias, cell, cells, mass, spare)
    high, error, seen = 0.0, 0.0, 0.0
    for j in range(reach):
        distance = target - j * cell
        high += mass[j] * max(distance, 0.0)
        away = max(abs(distance) - EXPAND * noise, 0.0)
        error += mass[j] * 0.5 * (np.sqrt(noise * noise + away * away) - away)
        seen += mass[j]
    beyond = max(1.0 - seen, 0.0)
    away = max(cells * cell - target - EXPAND * noise, 0.0)
    # Hoeffding: the noise is a sum of independent terms, each at most one cell wide.
    spread = widths.size * cell * cell
    tail = np.exp(-2.0 * away * away / spread) * spread / (4.0 * away) if away > 0.0 else noise
    return high - SURE * (error + beyond * min(tail, 0.5 * noise)), high


@kernel
def _expectation(u, widths, squares, room, rest, cell, cells, noise, goal, mass, spare):
    """Bracket of F(u), from whichever of the two forms needs the shorter grid."""
    total = room + rest
    mirrored = room > rest
    bias, target = (1.0 - u, rest) if mirrored else (u, room)
    gap = target - bias * total
    floor = max(gap, 0.0)
    rise = 0.5 * (np.sqrt(u * (1.0 - u) * squares + gap * gap) - abs(gap))
    low, high = floor, floor + rise  # Jensen below, the variance bound above
    if rise > 0.01 * goal:
        a, b = _shortfall(widths, bias, target, cell, cells, noise, mass, spare)
        low, high = max(low, a), min(high, b)
    base = u - u * rest if mirrored else u - (1.0 - u) * room
    return max(base + low, 0.0), min(base + high, u)


@kernel
def _linear(a, b, at_a, at_b, u, tail0, tail1):
    """Integral over [u_a, u_b] of the line through (u_a, at_a), (u_b, at_b) against du / (u (-ln u))."""
    slope = (at_b - at_a) / (u[b] - u[a])
    one_minus = at_a - slope * u[a]
    return one_minus * (tail0[a] - tail0[b]) + (one_minus + slope) * (tail1[b] - tail1[a])


@kernel
def _cell_bracket(i, nodes, at, low, high, u, tail0, tail1):
    """Bracket of the integral of u - F over cell i: F lies below its chord and above its neighbours' extended chords."""
    a, b = at[i], at[i + 1]
    middle = (a + b) // 2
    x = u[middle]
    below = _linear(a, b, u[a] - high[i], u[b] - high[i + 1], u, tail0, tail1)
    from_left = low[i]  # F increases
    if i > 0:
        from_left += (x - u[a]) / (u[a] - u[at[i - 1]]) * (low[i] - high[i - 1])
    next_u, next_high = (u[at[i + 2]], high[i + 2]) if i + 2 < nodes else (1.0, 1.0)
    from_right = low[i + 1] - (u[b] - x) / (next_u - u[b]) * (next_high - low[i + 1])
    from_left, from_right = max(from_left, low[i]), max(from_right, low[i])
    above = _linear(a, middle, u[a] - low[i], x - from_left, u, tail0, tail1)
    above += _linear(middle, b, x - from_right, u[b] - low[i + 1], u, tail0, tail1)
    return below, max(above, below)


@kernel
def _integrate(widths, squares, room, rest, cells, margin, noise, goal, u, tail0, tail1, work):
    """Bracket of the integral on one grid: halve the worst cell until the bracket is as narrow as asked for.

    Stops early where the grid, not the number of nodes, keeps the bracket wide.
    """
    grid, brackets, at = work
    mass, spare, low, high = grid[0], grid[1], brackets[0], brackets[1]
    cell = min(room, rest) / cells
    extended = cells + margin
    last = u.size - 1
    nodes = FIRST_NODES
    for i in range(nodes):
        at[i] = i * last // (FIRST_NODES - 1)
        low[i], high[i] = _expectation(u[at[i]], widths, squares, room, rest, cell, extended, noise, goal, mass, spare)
    while True:
        below = (u[last] - high[nodes - 1]) / (1.0 - u[last]) * tail0[last]
        above = tail1[0] + room * tail0[last]
        worst, place = 0.0, -1
        for i in range(nodes - 1):
            a, b = _cell_bracket(i, nodes, at, low, high, u, tail0, tail1)
            below += a
            above += b
            if b - a > worst and at[i + 1] - at[i] > 2:
                worst, place = b - a, i
        if above - below <= goal or place < 0 or nodes >= MOST_NODES:
            return below, above
        i = place
        if _linear(at[i], at[i + 1], high[i] - low[i], high[i + 1] - low[i + 1], u, tail0, tail1) > 0.5 * worst:
            return below, above
        for j in range(nodes, place + 1, -1):
            at[j], low[j], high[j] = at[j - 1], low[j - 1], high[j - 1]
        at[i + 1] = (at[i] + at[i + 2]) // 2
        low[i + 1], high[i + 1] = _expectation(
            u[at[i + 1]], widths, squares, room, rest, cell, extended, noise, goal, mass, spare
        )
        nodes += 1


@kernel
def _bracket_row(widths, room, rest, goal, most_cells, u, tail0, tail1, work):
    """Bracket of the integral: choose the grid by what its noise will cost, refine it while that is too much."""
    squares = 0.0
    for k in range(widths.size):
        squares += widths[k] * widths[k]
    share = room / (room + rest)
    weight = 1.0 / (share * -np.log(share)) / (room + rest)
    cells, margin = FIRST_CELLS, work[0].shape[1] - most_cells
    below, above = 0.0, np.inf
    while True:
        # The variance that splitting adds at most: sum of r_k (cell - r_k), r_k what a width exceeds its grid point by.
        cell, noise = min(room, rest) / cells, 0.0
        for k in range(widths.size):
            part = widths[k] - cell * np.floor(widths[k] / cell)
            noise += max(part * (cell - part), 0.0)  # rounding can put a width on the wrong side of its grid point
        if SURE * 4.0 * noise * weight <= 0.3 * goal or 2 * cells > most_cells:
            a, b = _integrate(widths, squares, room, rest, cells, margin, np.sqrt(noise), goal, u, tail0, tail1, work)
            below, above = max(below, a), min(above, b)
            if above - below <= goal or 2 * cells > most_cells:
                return below, above
        cells *= 2


@kernel
def hartley_certified_rows(widths, room, rest, goal, most_cells, u, tail0, tail1, grid, found, at, low, high):
    """Certified (low, high) of the generalized Hartley measure in bits for rows of sorted widths, D and R.

    Scratch: ``grid`` (2, most_cells and a margin for what noise carries beyond the target), ``found`` (2, MOST_NODES + 1)
    and ``at`` (MOST_NODES + 1).
    """
    most = np.log2(widths.shape[1])
    for row in range(widths.shape[0]):
        low[row], high[row] = 0.0, 0.0
        if room[row] > NOTHING and rest[row] > NOTHING:
            work = (grid, found, at)
            a, b = _bracket_row(widths[row], room[row], rest[row], goal * LN2, most_cells, u, tail0, tail1, work)
            high[row] = min(b / LN2, most)
            low[row] = min(max(a / LN2, 0.0), high[row])  # where both are log2 C, rounding may have swapped them
