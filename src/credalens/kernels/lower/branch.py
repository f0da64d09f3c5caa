"""Branch and bound for the lower entropy, where enumeration would have too many classes to flip.

Facts as in ``solve.py``. The search starts from the open classes in order of their chords' slopes, filled as a knapsack
(fact d). A node knows which classes are up, down or free and, once decided, which class is the one between its bounds (the
*split* class) and a range [a, b] for its value. The break class of the knapsack is sent up, sent down, or made the split
class with a value below or above the one found; (b) and (c) close every decision. A range is only ever cut at a value found
with all other classes at a bound, so the tree is finite.

The free classes of a node are a ring in order of slope, from which decisions take classes out and can be taken back.
"""

from collections import namedtuple
from typing import Any

import numpy as np

from credalens.kernels.lower.open_classes import DECADES, ROUNDING, middle
from credalens.kernels.lower.root import SLACK, chord_slope
from credalens.kernels.simd.jit import NOBODY, NONE, inlined, kernel
from credalens.kernels.simd.phi import phi

FREE, UP, DOWN, SPLIT = 0, 1, 2, 3
FEW = 96  # open classes up to which one pass without a cutoff is quickest
SLOPE_HALVINGS = 8
BRIEF = 32  # elements up to which plain insertion is quickest

Core = namedtuple("Core", "low high phi_low phi_high slope vertex")
"""The open classes in order of their slopes: bounds, phi of both, slopes, and their probabilities in the best vertex."""


@kernel
def _threshold_range(lower, upper, need):
    """A range that contains the value x of the class between its bounds, found by bisection on a logarithmic scale.

    The classes up or at x have u_k >= x, so sum_{u_k >= x} w_k >= R; every class with l_k > x is up, so
    sum_{l_k > x} w_k <= R. Both sums fall as x rises.
    """
    least, most, below, above = DECADES, 1.0, DECADES, 1.0
    for _ in range(SLOPE_HALVINGS):
        x, y, at_upper, at_lower = middle(below, most), middle(least, above), 0.0, 0.0
        for k in range(lower.size):
            width = upper[k] - lower[k]
            at_upper += width if upper[k] >= x else 0.0
            at_lower += width if lower[k] >= y else 0.0
        enough, forced = at_upper >= need - ROUNDING, at_lower > need + ROUNDING
        below, most = (x if enough else below), (most if enough else x)
        least, above = (y if forced else least), (above if forced else y)
    return (least if least > DECADES else 0.0), most


@kernel
def _sort(core, order, lower, m):
    """Shell sort of the slopes and ``order``, ties by lower bound: an order that no label can change."""
    gap = 1
    while m > BRIEF and gap < m // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, m):
            key, item = core.slope[i], order[i]
            j = i - gap
            while j >= 0 and (core.slope[j] > key or (core.slope[j] == key and lower[order[j]] < lower[item])):
                core.slope[j + gap], order[j + gap] = core.slope[j], order[j]
                j -= gap
            core.slope[j + gap], order[j + gap] = key, item
        gap //= 3


@inlined
def collect_core(lower, upper, phi_lower, phi_upper, core, order, out):
    """Sort the open classes into ``core``, write the others to ``out``; return (number, open mass, base entropy).

    A class whose upper bound is below the range of thresholds is down, one whose lower bound is above it is up. The base
    entropy has every open class down. ``out`` may be empty.
    """
    need, base = 1.0, 0.0
    for k in range(lower.size):
        need -= lower[k]
    least, most = _threshold_range(lower, upper, need)
    for k in range(lower.size):
        up = lower[k] > most
        need -= upper[k] - lower[k] if up else 0.0
        base += phi_upper[k] if up else phi_lower[k]
    for k in range(out.size):
        out[k] = upper[k] if lower[k] > most else lower[k]
    m = np.int64(0)  # not a literal, for which `_sort` would be compiled as well
    for k in range(lower.size):
        order[m] = k  # kept only if m moves on: no branch to guess
        m += (upper[k] >= least) & (lower[k] <= most) & (upper[k] > lower[k])
    for i in range(m):
        k = order[i]
        core.slope[i] = chord_slope(lower[k], upper[k], phi_lower[k], phi_upper[k])
    _sort(core, order, lower, m)
    for i in range(m):
        k = order[i]
        core.low[i], core.high[i], core.phi_low[i], core.phi_high[i] = lower[k], upper[k], phi_lower[k], phi_upper[k]
    return m, need, base


Ring = namedtuple("Ring", "state trail following previous")
"""The sides of all classes; those decided, in this order; and of free classes the next one and the one before, by slope.

Position m closes the ring, so that a node looks at free classes only.
"""


@inlined
def free_all(m, ring):
    """Every class free."""
    for i in range(m):
        ring.state[i] = FREE
    for i in range(m + 1):
        ring.following[i] = i + 1 if i < m else 0
        ring.previous[i] = i - 1 if i > 0 else m


@inlined
def dominates(core, i, j):
    """Fact c, with equal intervals ordered by position."""
    return (
        core.low[i] >= core.low[j]
        and core.high[i] >= core.high[j]
        and (i < j or core.low[i] > core.low[j] or core.high[i] > core.high[j])
    )


@inlined
def decide(kind, f, start, stop, core, m, ring, length, need, base):
    """Apply a decision and all it implies; return the new length of the trail, open mass and base entropy."""
    i = ring.following[m]
    while i < m:
        up = kind != DOWN and dominates(core, i, f)
        down = kind != UP and dominates(core, f, i)
        if kind == SPLIT:
            up = up or core.low[i] >= stop
            down = down or core.high[i] <= start
        side = UP if up else (DOWN if down else FREE)
        side = kind if i == f else side
        if side == UP:
            need -= core.high[i] - core.low[i]
            base += core.phi_high[i] - core.phi_low[i]
        if side != FREE:
            ring.state[i] = side
            ring.trail[length] = i
            length += 1
            ring.following[ring.previous[i]] = ring.following[i]
            ring.previous[ring.following[i]] = ring.previous[i]
        i = ring.following[i]
    return length, need, base


@inlined
def take_back(mark, ring, length):
    """Undo decisions, last first, until the trail is as short as ``mark``."""
    while length > mark:
        length -= 1
        i = ring.trail[length]
        ring.state[i] = FREE
        ring.following[ring.previous[i]] = i
        ring.previous[ring.following[i]] = i
    return length


@inlined
def neighbour_slopes(core, m, ring, f):
    """Slopes of the nearest free classes that can trade mass with free class f: the last before it, the first after.

    A class that dominates f is up whenever f is raised, and one that f dominates is down unless f is up (fact c).
    """
    i, j = ring.previous[f], ring.following[f]
    while i < m and dominates(core, i, f):
        i = ring.previous[i]
    while j < m and dominates(core, f, j):
        j = ring.following[j]
    return (core.slope[i] if i < m else -np.inf), (core.slope[j] if j < m else np.inf)


# Columns of a node on the stack: the decision (kind, class, range), what it starts from, and its lower bound.
KIND, CLASS, FROM, TO, BOUND, MARK, NEED, BASE, SPLIT_CLASS, A, B = range(11)
CLASSES_A_NODE = 100  # a node that looks at more of them counts for several

Filled = namedtuple("Filled", "feasible at x slope floor value stop split_full")
"""A solution of the knapsack: whether there is one; the break class or -1, its value and slope; a lower bound of the
entropy, and that of the vertex; the first free class that is not full, and whether the split class is."""


@kernel
def _fill(core, m, ring, split, a, b, need, base):
    """Solve the fractional knapsack of a node."""
    split_slope, phi_a, i = np.inf, 0.0, ring.following[m]
    waits = split >= 0  # the split class has not had its turn
    if waits:
        phi_a = phi(a)
        need -= a - core.low[split]
        base += phi_a - core.phi_low[split]
        split_slope = chord_slope(a, b, phi_a, phi(b))
    if need < -SLACK:
        return Filled(False, NOBODY, 0.0, 0.0, np.inf, np.inf, i, False)
    need = max(need, 0.0)
    while True:
        if waits and split_slope <= (core.slope[i] if i < m else np.inf):
            if need <= b - a:
                x = min(a + need, b)
                floor, value = base + split_slope * need, base + phi(x) - phi_a
                return Filled(True, split, x, split_slope, floor, value, i, False)
            need -= b - a
            base += split_slope * (b - a)
            waits = False
        if i == m:
            return Filled(need <= SLACK * m, NOBODY, 0.0, 0.0, base, base, i, split >= 0)
        slope = core.slope[i]
        if need <= core.high[i] - core.low[i]:
            x = min(core.low[i] + need, core.high[i])
            floor, value = base + slope * need, base + phi(x) - core.phi_low[i]
            return Filled(True, i, x, slope, floor, value, i, split >= 0 and not waits)
        need -= core.high[i] - core.low[i]
        base += core.phi_high[i] - core.phi_low[i]
        i = ring.following[i]


@kernel
def _push(stack, size, kind, f, start, stop, bound, mark, need, base, split, a, b):
    stack[size, KIND], stack[size, CLASS], stack[size, FROM], stack[size, TO] = kind, f, start, stop
    stack[size, BOUND], stack[size, MARK], stack[size, NEED], stack[size, BASE] = bound, mark, need, base
    stack[size, SPLIT_CLASS], stack[size, A], stack[size, B] = split, a, b
    return size + 1


@kernel
def _search(core, m, ring, stack, need, base, best, reach, tolerance, max_nodes):
    """Depth-first branch and bound over the nodes whose bound is within ``reach`` of the root's.

    Returns (entropy, certified lower bound, nodes) and leaves the minimiser in core.vertex.
    """
    certified, cutoff = np.inf, np.inf
    nodes, cost, fresh = 0, 1 + m // CLASSES_A_NODE, True
    free_all(m, ring)
    length = NONE
    size = _push(stack, NONE, NONE, NOBODY, 0.0, 0.0, -np.inf, length, need, base, NOBODY, 0.0, 0.0)
    while size > 0 and nodes < max_nodes:
        size -= 1
        bound = stack[size, BOUND]
        if bound >= min(best - tolerance, cutoff):
            certified = min(certified, bound)
            continue
        length = take_back(int(stack[size, MARK]), ring, length)
        kind, f = int(stack[size, KIND]), int(stack[size, CLASS])
        need, base = stack[size, NEED], stack[size, BASE]
        split, a, b = int(stack[size, SPLIT_CLASS]), stack[size, A], stack[size, B]
        if kind == SPLIT:
            split, a, b = f, stack[size, FROM], stack[size, TO]
        if kind != FREE:
            length, need, base = decide(kind, f, a, b, core, m, ring, length, need, base)
        nodes += cost
        filled = _fill(core, m, ring, split, a, b, need, base)
        if not filled.feasible:
            continue
        if filled.value < best:
            best = filled.value
            for i in range(m):  # as they were filled: slopes of a tie, compared again, may come out another way
                full = ring.state[i] == UP or (ring.state[i] == FREE and i < filled.stop)
                core.vertex[i] = core.high[i] if full else core.low[i]
            if split >= 0:
                core.vertex[split] = b if filled.split_full else a
            if filled.at >= 0:
                core.vertex[filled.at] = filled.x
        at, x, floor = filled.at, filled.x, filled.floor
        bound = max(bound, floor)
        if fresh:
            cutoff, fresh = bound + reach, False
        if at < 0 or bound >= min(best - tolerance, cutoff) or size + 4 > stack.shape[0]:
            certified = min(certified, bound)
            continue
        below, above = bound, bound
        start, stop = core.low[at], core.high[at]
        if split < 0:
            before, after = neighbour_slopes(core, m, ring, at)
        elif at == split:
            start, stop = a, b
            i, j = ring.previous[filled.stop], filled.stop  # the split class stands between them
            before, after = (core.slope[i] if i < m else -np.inf), (core.slope[j] if j < m else np.inf)
        if (split < 0 or at == split) and start < x < stop:
            # Below x its mass goes to a class of slope `after` or more; above x it comes from one of at most `before`.
            below = max(bound, floor + (x - start) * (after - filled.slope))
            above = max(bound, floor + (stop - x) * (filled.slope - before))
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
def _deepen(core, m, ring, stack, need, base, value, floor, tolerance, max_nodes):
    """(entropy, certified lower bound, nodes): searches that go ever further above the root's bound.

    Where many classes are open the near-optimal vertices are many and lie close to the bound, and a short reach finds one
    before the search is lost among deep nodes.
    """
    reach, nodes = (np.inf if m <= FEW else 0.0), 0
    while nodes == 0 or (value - floor > tolerance and nodes < max_nodes):
        left = max_nodes - nodes
        value, certified, spent = _search(core, m, ring, stack, need, base, value, reach, tolerance, left)
        floor = max(floor, certified)
        reach = 4.0 * reach if reach > 0.0 else (value - floor) / 64.0
        nodes += spent
    return value, floor, nodes


@kernel
def search_rows(
    lower, upper, phi_lower, phi_upper, tolerance, max_nodes, rows, entropy, bound, distribution, scratch, vertex
):  # fmt: skip
    """As `branch_and_bound_rows`, with scratch memory and room for a vertex, which may be none."""
    floats, integers, stack = scratch
    core = Core(floats[0], floats[1], floats[2], floats[3], floats[4], floats[5])
    order, ring, total = integers[0], Ring(integers[1], integers[2], integers[3], integers[4]), 0
    for row in rows:
        m, need, base = collect_core(lower[row], upper[row], phi_lower[row], phi_upper[row], core, order, vertex)
        value, floor, nodes = base, base, 0
        if m > 0 and need > SLACK:
            value, floor = entropy[row], bound[row]
            value, floor, nodes = _deepen(core, m, ring, stack, need, base, value, floor, tolerance, max_nodes)
        if value < entropy[row] and vertex.size > 0:
            for k in range(vertex.size):
                distribution[row, k] = vertex[k]
            for i in range(m if nodes > 0 else 0):
                distribution[row, order[i]] = core.vertex[i]
        entropy[row], bound[row] = min(value, entropy[row]), max(floor, bound[row])
        total += nodes
    return total


def branch_and_bound_rows(
    lower: Any, upper: Any, phi_lower: Any, phi_upper: Any, tolerance: float, max_nodes: int,
    rows: Any, entropy: Any, bound: Any, distribution: Any,
) -> int:  # fmt: skip
    """Better the entropy of the given rows, or raise the bound, until they meet; returns the number of nodes.

    ``entropy`` and ``bound`` come with what is known. If ``distribution`` has columns it follows the entropy.
    """
    classes = lower.shape[1]
    scratch = np.empty((6, classes)), np.empty((5, classes + 1), np.int64), np.empty((12 * classes + 256, 11))
    results = (entropy, bound, distribution, scratch, np.empty(distribution.shape[1]))
    return int(search_rows(lower, upper, phi_lower, phi_upper, tolerance, max_nodes, rows, *results))
