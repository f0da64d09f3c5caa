"""Lower entropy: exact minimisation of a concave function over an interval credal set, with a certificate.

Let w = u - l and R = 1 - sum l. Facts, each one exchange argument (moving mass from a smaller to a larger probability
lowers entropy):

a. Some optimum is a vertex: every class down (at l_k) or up (at u_k), except at most one class at a value x between.
b. Threshold: a class that is up has u_k > x, a class that is down has l_k < x.
c. Dominance: if l_i >= l_j and u_i >= u_j, some optimum raises j only where i is up.
d. Chord bound: with phi replaced by its chord on each [l_k, u_k] the problem is a fractional knapsack, filled in
   order of the chords' slopes. Its solution is a vertex, hence feasible; its value bounds the optimum from below.

Branch and bound on (d). A node knows which classes are up, down or free and, once decided, which class is the one
between its bounds (the *split* class) and a range [a, b] for its value. The break class of the knapsack is sent up,
sent down, or made the split class with a value below or above the one found; (b) and (c) close every decision. A range
is only ever cut at a value found with all other classes at a bound, so the tree is finite.
"""

from __future__ import annotations

import numpy as np

from credalens.core.kernels.jit import kernel
from credalens.core.kernels.knapsack import FEW, HIGH, LOW, PHI_HIGH, PHI_LOW, SLOPE, VERTEX, collect_core
from credalens.core.kernels.phi import phi

__all__ = ["lower_entropy_rows"]

FREE, UP, DOWN, SPLIT = 0, 1, 2, 3
NONE, NOBODY = np.int64(0), np.int64(-1)  # not plain numbers: for those Numba would compile a copy of their own
SLACK = 1e-15  # mass below this is rounding

# Columns of a node on the stack: the decision (kind, class, range), what it starts from, and its lower bound.
KIND, CLASS, FROM, TO, BOUND, MARK, NEED, BASE, SPLIT_CLASS, A, B = range(11)


@kernel
def _make_workspace(classes):
    """(core, integers, stack): scratch memory that serves every row of a batch."""
    return np.empty((6, classes)), np.empty((5, classes + 1), np.int64), np.empty((12 * classes + 256, 11))


@kernel
def _free_all(m, state, following, previous):
    """Every class free: a ring in order of slope, closed by position m, so that a node looks at free classes only."""
    for i in range(m):
        state[i] = FREE
    for i in range(m + 1):
        following[i] = i + 1 if i < m else 0
        previous[i] = i - 1 if i > 0 else m


@kernel
def _dominates(core, i, j):
    """Fact c, with equal intervals ordered by position."""
    return (
        core[LOW, i] >= core[LOW, j]
        and core[HIGH, i] >= core[HIGH, j]
        and (i < j or core[LOW, i] > core[LOW, j] or core[HIGH, i] > core[HIGH, j])
    )


@kernel
def _decide(kind, f, start, stop, core, m, state, following, previous, trail, length, need, base):
    """Apply a decision and all it implies; return the new trail length, open mass and base entropy."""
    i = following[m]
    while i < m:
        up = kind != DOWN and _dominates(core, i, f)
        down = kind != UP and _dominates(core, f, i)
        if kind == SPLIT:
            up = up or core[LOW, i] >= stop
            down = down or core[HIGH, i] <= start
        new = UP if up else (DOWN if down else FREE)
        new = kind if i == f else new
        if new == UP:
            need -= core[HIGH, i] - core[LOW, i]
            base += core[PHI_HIGH, i] - core[PHI_LOW, i]
        if new != FREE:
            state[i] = new
            trail[length] = i
            length += 1
            following[previous[i]] = following[i]
            previous[following[i]] = previous[i]
        i = following[i]
    return length, need, base


@kernel
def _take_back(mark, state, following, previous, trail, length):
    """Undo decisions, last first, until the trail is as short as ``mark``."""
    while length > mark:
        length -= 1
        i = trail[length]
        state[i] = FREE
        following[previous[i]] = i
        previous[following[i]] = i
    return length


@kernel
def _fill(core, m, following, split, a, b, need, base):
    """Solve the fractional knapsack: (feasible, break class, its value, lower bound, entropy of the vertex)."""
    split_slope = np.inf
    if split >= 0:
        phi_a = phi(a)
        need -= a - core[LOW, split]
        base += phi_a - core[PHI_LOW, split]
        split_slope = (phi(b) - phi_a) / (b - a)
    if need < -SLACK:
        return False, -1, 0.0, np.inf, np.inf
    need = max(need, 0.0)
    i = following[m]
    while True:
        if split_slope <= (core[SLOPE, i] if i < m else np.inf) and split >= 0:
            if need <= b - a:
                x = a + need
                return True, split, x, base + split_slope * need, base + phi(x) - phi_a
            need -= b - a
            base += split_slope * (b - a)
            split_slope = np.inf
            split = -1
        if i == m:
            return need <= SLACK * m, -1, 0.0, base, base
        if need <= core[HIGH, i] - core[LOW, i]:
            x = core[LOW, i] + need
            return True, i, x, base + core[SLOPE, i] * need, base + phi(x) - core[PHI_LOW, i]
        need -= core[HIGH, i] - core[LOW, i]
        base += core[PHI_HIGH, i] - core[PHI_LOW, i]
        i = following[i]


@kernel
def _keep(core, m, state, split, a, b, at, x):
    """Write the vertex that `_fill` found: every class before the break in slope order is full."""
    pivot = np.inf if at < 0 else core[SLOPE, at]
    if split >= 0:
        split_slope = (phi(b) - phi(a)) / (b - a)
        core[VERTEX, split] = a
        if at != split and split_slope <= pivot:
            core[VERTEX, split] = b
        if at == split:
            pivot = split_slope
    for i in range(m):
        if state[i] == UP:
            core[VERTEX, i] = core[HIGH, i]
        elif state[i] == DOWN:
            core[VERTEX, i] = core[LOW, i]
        elif state[i] == FREE:
            full = at < 0 or (core[SLOPE, i] < pivot if at == split else i < at)
            core[VERTEX, i] = core[HIGH, i] if full else core[LOW, i]
    if at >= 0:
        core[VERTEX, at] = x


@kernel
def _push(stack, size, kind, f, start, stop, bound, mark, need, base, split, a, b):
    stack[size, KIND], stack[size, CLASS], stack[size, FROM], stack[size, TO] = kind, f, start, stop
    stack[size, BOUND], stack[size, MARK], stack[size, NEED], stack[size, BASE] = bound, mark, need, base
    stack[size, SPLIT_CLASS], stack[size, A], stack[size, B] = split, a, b
    return size + 1


@kernel
def _neighbours(core, m, following, previous, f):
    """Slopes of the nearest free classes that can trade mass with free class f: the last before it, the first after.

    A class that dominates f is up whenever f is raised, and one that f dominates is down unless f is up (fact c).
    """
    i, j = previous[f], following[f]
    while i < m and _dominates(core, i, f):
        i = previous[i]
    while j < m and _dominates(core, f, j):
        j = following[j]
    return (core[SLOPE, i] if i < m else -np.inf), (core[SLOPE, j] if j < m else np.inf)


@kernel
def _around(core, m, following, previous, slope):
    """The same for the split class, which stands where the slope of its present range puts it."""
    i = following[m]
    while i < m and core[SLOPE, i] < slope:
        i = following[i]
    before = previous[i]
    return (core[SLOPE, before] if before < m else -np.inf), (core[SLOPE, i] if i < m else np.inf)


@kernel
def _search(core, m, integers, stack, need, base, best, reach, tolerance, max_nodes):
    """Depth-first branch and bound over the nodes whose bound is within ``reach`` of the root's.

    Returns (entropy, certified lower bound, nodes) and leaves the minimiser in core[VERTEX].
    """
    certified, cutoff = np.inf, np.inf
    nodes = 0
    state, trail, following, previous = integers[1], integers[2], integers[3], integers[4]
    _free_all(m, state, following, previous)
    length = NONE
    size = _push(stack, NONE, NONE, NOBODY, 0.0, 0.0, -np.inf, length, need, base, NOBODY, 0.0, 0.0)
    while size > 0 and nodes < max_nodes:
        size -= 1
        bound = stack[size, BOUND]
        if bound >= min(best - tolerance, cutoff):
            certified = min(certified, bound)
            continue
        length = _take_back(int(stack[size, MARK]), state, following, previous, trail, length)
        kind, f = int(stack[size, KIND]), int(stack[size, CLASS])
        need, base = stack[size, NEED], stack[size, BASE]
        split, a, b = int(stack[size, SPLIT_CLASS]), stack[size, A], stack[size, B]
        if kind == SPLIT:
            split, a, b = f, stack[size, FROM], stack[size, TO]
        if kind != FREE:
            length, need, base = _decide(kind, f, a, b, core, m, state, following, previous, trail, length, need, base)
        nodes += 1
        feasible, at, x, floor, value = _fill(core, m, following, split, a, b, need, base)
        if not feasible:
            continue
        if value < best:
            best = value
            _keep(core, m, state, split, a, b, at, x)
        bound = max(bound, floor)
        if nodes == 1:
            cutoff = bound + reach
        if at < 0 or bound >= min(best - tolerance, cutoff) or size + 4 > stack.shape[0]:
            certified = min(certified, bound)
            continue
        below, above = bound, bound
        start, stop = core[LOW, at], core[HIGH, at]
        if split < 0:
            own = core[SLOPE, at]
            before, after = _neighbours(core, m, following, previous, at)
        elif at == split:
            start, stop = a, b
            own = (phi(b) - phi(a)) / (b - a)
            before, after = _around(core, m, following, previous, own)
        if (split < 0 or at == split) and start < x < stop:
            # Below x its mass goes to a class of slope `after` or more; above x it comes from one of at most `before`.
            below = max(bound, floor + (x - start) * (after - own))
            above = max(bound, floor + (stop - x) * (own - before))
        limit = min(best - tolerance, cutoff)
        certified = min(certified, below if below >= limit else np.inf, above if above >= limit else np.inf)
        for choice in range(4):
            side, splits = choice % 2, choice < 2
            bound = above if side else below
            if bound >= limit or (splits and split >= 0 and at != split) or (not splits and at == split):
                continue
            kind = SPLIT if splits else (UP if side else DOWN)
            from_x, to_x = (x, stop) if side else (start, x)
            size = _push(stack, size, kind, at, from_x, to_x, bound, length, need, base, split, a, b)
    for i in range(size):
        certified = min(certified, stack[i, BOUND])
    return best, min(best, certified), nodes


@kernel
def lower_entropy_rows(lower, upper, phi_lower, phi_upper, tolerance, max_nodes, entropy, bound, distribution):
    """Lower entropy and its certified lower bound of every row, in bits; returns the number of nodes.

    If ``distribution`` has columns, the minimisers go there. If not, ``entropy`` and ``bound`` come with what is known
    already, a value that is attained and a lower bound: rows where they meet are left alone, and for the others the search
    has only to better the value or to certify it. It goes as far above the root's bound as a reach that grows until value
    and bound meet or the budget is spent: where many classes are open the near-optimal vertices are many and lie close to
    the bound, and a short reach finds one before the search is lost among deep nodes.
    """
    core, integers, stack = _make_workspace(lower.shape[1])
    order = integers[0]
    total = 0
    for row in range(lower.shape[0]):
        out = distribution[row]
        if out.size == 0 and bound[row] >= entropy[row] - tolerance:
            continue
        m, need, base = collect_core(lower[row], upper[row], phi_lower[row], phi_upper[row], core, order, out)
        value, floor, nodes = base, base, 0
        if m > 0 and need > SLACK:
            value, floor = (np.inf if out.size > 0 else entropy[row]), -np.inf
            reach = np.inf if m <= (FEW if out.size > 0 else 4 * FEW) else 0.0
            while nodes == 0 or (value - floor > tolerance and nodes < max_nodes):
                value, floor, spent = _search(
                    core, m, integers, stack, need, base, value, reach, tolerance, max_nodes - nodes
                )
                reach = 4.0 * reach if reach > 0.0 else (value - floor) / 64.0
                nodes += spent
            for i in range(min(m, out.size)):
                out[order[i]] = core[VERTEX, i]
        entropy[row], bound[row] = value, (floor if out.size > 0 else max(floor, bound[row]))
        total += nodes
    return total
