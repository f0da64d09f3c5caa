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
from credalens.core.kernels.knapsack import collect_core, threshold_range
from credalens.core.kernels.phi import phi

__all__ = ["TOLERANCE", "lower_entropy_rows"]

FREE, UP, DOWN, SPLIT = 0, 1, 2, 3
SLACK = 1e-15  # mass below this is rounding
FEW = 24  # open classes up to which one pass without a cutoff is quickest
TOLERANCE = 1e-12  # bits; a node that cannot improve by more than this is closed

# Columns of a node on the stack: the decision (kind, class, range), what it starts from, and its lower bound.
KIND, CLASS, FROM, TO, BOUND, MARK, NEED, BASE, SPLIT_CLASS, A, B = range(11)


@kernel
def _make_workspace(classes):
    """(core, integers, stack): scratch memory that serves every row of a batch."""
    return np.empty((7, classes)), np.empty((4, classes), np.int64), np.empty((12 * classes + 256, 11))


@kernel
def _dominates(low, high, i, j):
    """Fact c, with equal intervals ordered by position."""
    return low[i] >= low[j] and high[i] >= high[j] and (i < j or low[i] > low[j] or high[i] > high[j])


@kernel
def _decide(kind, f, start, stop, core, state, trail, length, need, base):
    """Apply a decision and all it implies; return the new trail length, open mass and base entropy."""
    low, high, phi_low, phi_high = core[0], core[1], core[2], core[3]
    for i in range(state.size):
        if state[i] != FREE:
            continue
        up = kind != DOWN and _dominates(low, high, i, f)
        down = kind != UP and _dominates(low, high, f, i)
        if kind == SPLIT:
            up = up or low[i] >= stop
            down = down or high[i] <= start
        if i == f:
            up, down = kind == UP, kind == DOWN
            if kind == SPLIT:
                state[i] = SPLIT
                trail[length] = i
                length += 1
        if up:
            state[i] = UP
            need -= high[i] - low[i]
            base += phi_high[i] - phi_low[i]
        elif down:
            state[i] = DOWN
        if up or down:
            trail[length] = i
            length += 1
    return length, need, base


@kernel
def _fill(core, state, split, a, b, need, base):
    """Solve the fractional knapsack: (feasible, break class, its value, lower bound, entropy of the vertex)."""
    low, high, phi_low, phi_high, slope = core[0], core[1], core[2], core[3], core[4]
    split_slope = np.inf
    if split >= 0:
        phi_a = phi(a)
        need -= a - low[split]
        base += phi_a - phi_low[split]
        split_slope = (phi(b) - phi_a) / (b - a)
    if need < -SLACK:
        return False, -1, 0.0, np.inf, np.inf
    need = max(need, 0.0)
    for i in range(state.size + 1):
        if split_slope <= (slope[i] if i < state.size else np.inf) and split >= 0:
            if need <= b - a:
                x = a + need
                return True, split, x, base + split_slope * need, base + phi(x) - phi_a
            need -= b - a
            base += split_slope * (b - a)
            split_slope = np.inf
            split = -1
        if i < state.size and state[i] == FREE:
            if need <= high[i] - low[i]:
                x = low[i] + need
                return True, i, x, base + slope[i] * need, base + phi(x) - phi_low[i]
            need -= high[i] - low[i]
            base += phi_high[i] - phi_low[i]
    return need <= SLACK * state.size, -1, 0.0, base, base


@kernel
def _keep(core, state, split, a, b, at, x):
    """Write the vertex that `_fill` found to core[5]: every class before the break in slope order is full."""
    low, high, slope, vertex = core[0], core[1], core[4], core[5]
    pivot = np.inf if at < 0 else slope[at]
    if split >= 0:
        split_slope = (phi(b) - phi(a)) / (b - a)
        vertex[split] = a
        if at != split and split_slope <= pivot:
            vertex[split] = b
        if at == split:
            pivot = split_slope
    for i in range(state.size):
        if state[i] == UP:
            vertex[i] = high[i]
        elif state[i] == DOWN:
            vertex[i] = low[i]
        elif state[i] == FREE:
            full = at < 0 or (slope[i] < pivot if at == split else i < at)
            vertex[i] = high[i] if full else low[i]
    if at >= 0:
        vertex[at] = x


@kernel
def _push(stack, size, kind, f, start, stop, bound, mark, need, base, split, a, b):
    node = stack[size]
    node[KIND], node[CLASS], node[FROM], node[TO], node[BOUND] = kind, f, start, stop, bound
    node[MARK], node[NEED], node[BASE], node[SPLIT_CLASS], node[A], node[B] = mark, need, base, split, a, b
    return size + 1


@kernel
def _search(core, state, trail, stack, need, base, best, cutoff, tolerance, max_nodes):
    """Depth-first branch and bound over the nodes whose bound is below ``cutoff``.

    Returns (entropy, certified lower bound, nodes) and leaves the minimiser in core[5].
    """
    low, high = core[0], core[1]
    certified = np.inf
    nodes = 0
    state[:] = FREE
    size = _push(stack, 0, FREE, -1, 0.0, 0.0, -np.inf, 0, need, base, -1, 0.0, 0.0)
    length = 0
    while size > 0 and nodes < max_nodes:
        size -= 1
        node = stack[size]
        bound = node[BOUND]
        if bound >= min(best - tolerance, cutoff):
            certified = min(certified, bound)
            continue
        mark = int(node[MARK])
        while length > mark:
            length -= 1
            state[trail[length]] = FREE
        kind, f = int(node[KIND]), int(node[CLASS])
        need, base = node[NEED], node[BASE]
        split, a, b = int(node[SPLIT_CLASS]), node[A], node[B]
        if kind == SPLIT:
            split, a, b = f, node[FROM], node[TO]
        if kind != FREE:
            length, need, base = _decide(kind, f, a, b, core, state, trail, length, need, base)
        nodes += 1
        feasible, at, x, floor, value = _fill(core, state, split, a, b, need, base)
        if not feasible:
            continue
        if value < best:
            best = value
            _keep(core, state, split, a, b, at, x)
        bound = max(bound, floor)
        if at < 0 or bound >= min(best - tolerance, cutoff) or size + 4 > stack.shape[0]:
            certified = min(certified, bound)
            continue
        if at == split:
            size = _push(stack, size, SPLIT, at, a, x, bound, length, need, base, split, a, b)
            size = _push(stack, size, SPLIT, at, x, b, bound, length, need, base, split, a, b)
            continue
        if split < 0:
            size = _push(stack, size, SPLIT, at, low[at], x, bound, length, need, base, split, a, b)
            size = _push(stack, size, SPLIT, at, x, high[at], bound, length, need, base, split, a, b)
        near, far = (UP, DOWN) if 2.0 * x > low[at] + high[at] else (DOWN, UP)
        size = _push(stack, size, far, at, 0.0, 0.0, bound, length, need, base, split, a, b)
        size = _push(stack, size, near, at, 0.0, 0.0, bound, length, need, base, split, a, b)
    for i in range(size):
        certified = min(certified, stack[i, BOUND])
    return best, min(best, certified), nodes


@kernel
def _settled(core, f):
    """Whether class f is comparable (fact c) with every other: then the knapsack's vertex is the optimum.

    All before f dominate it and all after f are dominated. If f were down, those after it would be too, and those before
    it cannot take all the mass; if f were up, those before it would be too, and the mass would not suffice.
    """
    low, high = core[0], core[1]
    for i in range(f):
        if low[i] < low[f] or high[i] < high[f]:
            return False
    for i in range(f + 1, low.size):
        if low[i] > low[f] or high[i] > high[f]:
            return False
    return True


@kernel
def _deepen(core, state, trail, stack, need, base, tolerance, max_nodes):
    """Search below a cutoff that rises from the root's bound, until value and bound meet or the budget is spent.

    Where many classes are open the near-optimal vertices are many and lie close to the bound: a low cutoff finds one
    before the search is lost among deep nodes.
    """
    state[:] = FREE
    _, at, x, bound, best = _fill(core, state, -1, 0.0, 0.0, need, base)
    _keep(core, state, -1, 0.0, 0.0, at, x)
    nodes = 1
    if at < 0 or best - bound <= tolerance:
        return best, bound, nodes
    if _settled(core, at):
        return best, best, nodes
    root, reach = bound, (best - bound) / (256.0 if state.size > FEW else 1.0)
    while best - bound > tolerance and nodes < max_nodes:
        cutoff = root + reach
        best, bound, spent = _search(core, state, trail, stack, need, base, best, cutoff, tolerance, max_nodes - nodes)
        nodes += spent
        reach *= 4.0
    return best, bound, nodes


@kernel
def _lower_entropy_row(lower, upper, phi_lower, phi_upper, tolerance, max_nodes, space, out):
    """(entropy in bits, certified lower bound, nodes) of one interval system; the minimiser goes to ``out``."""
    core, integers, stack = space
    order, state, trail = integers[0], integers[1], integers[2]
    need = 1.0 - lower.sum()
    least, most = threshold_range(lower, upper, need) if lower.size > FEW else (0.0, 1.0)
    m, need, base = collect_core(lower, upper, phi_lower, phi_upper, least, most, need, core, order, out)
    if m == 0 or need <= SLACK:
        for i in range(m):
            out[order[i]] = core[0, i]
        return base, base, 0
    value, bound, nodes = _deepen(core[:, :m], state[:m], trail, stack, need, base, tolerance, max_nodes)
    for i in range(m):
        out[order[i]] = core[5, i]
    return value, bound, nodes


@kernel
def lower_entropy_rows(lower, upper, phi_lower, phi_upper, tolerance, max_nodes, entropy, bound, distribution):
    """Lower entropy, its certified lower bound and the minimiser of every row."""
    space = _make_workspace(lower.shape[1])
    for row in range(lower.shape[0]):
        entropy[row], bound[row], _ = _lower_entropy_row(
            lower[row],
            upper[row],
            phi_lower[row],
            phi_upper[row],
            tolerance,
            max_nodes,
            space,
            distribution[row],
        )
