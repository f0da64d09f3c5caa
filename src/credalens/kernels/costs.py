"""Decisions under costs, one row after the other: expectation bounds by greedy fills, and E-admissibility as a small game.

What the rules say, and why, is in ``core/costs.py``. Every row is a set {p : low <= p <= low + width, sum p = 1}, and ``room``
is the mass that the lower bounds leave. The least expectation of a linear functional starts from the lower bounds and
gives the room to the classes in rising order of their values; the order depends on the functional alone.
"""

import numpy as np

from credalens.kernels.simd.jit import inlined, kernel

EXACT = 1e-14  # a sum this close to one is left as it is
NOTHING = 1e-13  # a pivot, or what the two sides of a game differ by, that only rounding keeps from zero
STEPS = 20  # of a game for each action and class; games end after about as many steps as there are actions


@inlined
def _repair(below, above):
    """What lower and upper bounds are multiplied by, so that sums which miss one by rounding do not."""
    return (1.0 / below if below > 1.0 + EXACT else 1.0), (1.0 / above if above < 1.0 - EXACT else 1.0)


@inlined
def _widened(bottom, top, relative, least):
    """Two bounds, as far apart as rounding allows."""
    top = max(min(top, 1.0), bottom)
    return max(bottom - (relative * bottom + least), 0.0), min(top + (relative * top + least), 1.0)


@inlined
def _read_set(lower, upper, relative, least, low, width):
    """Write lower bounds and widths of a row, repaired and then widened by rounding, and return the room.

    Bounds of two classes are made such that each width is the room, without loops, which take longer than these few steps.
    """
    if lower.size == 2:
        shrink, grow = _repair(lower[0] + lower[1], upper[0] + upper[1])
        bottom, top = _widened(lower[0] * shrink, upper[0] * grow, relative, least)
        second_bottom, second_top = _widened(lower[1] * shrink, upper[1] * grow, relative, least)
        low[0], low[1] = max(bottom, 1.0 - second_top), max(second_bottom, 1.0 - top)
        width[0] = width[1] = max(1.0 - (low[0] + low[1]), 0.0)
        return width[0]
    below, above = 0.0, 0.0
    for k in range(lower.size):
        below += lower[k]
        above += upper[k]
    shrink, grow = _repair(below, above)
    total = 0.0
    for k in range(lower.size):
        bottom, top = _widened(lower[k] * shrink, upper[k] * grow, relative, least)
        low[k], width[k] = bottom, top - bottom
        total += bottom
    return max(1.0 - total, 0.0)


@inlined
def _least_expectation(values, order, low, width, room):
    """min_p sum_k values_k p_k over the set; ``order`` sorts the values."""
    if values.size == 2:
        return values[0] * low[0] + values[1] * low[1] + min(values[0], values[1]) * room
    total = 0.0
    for k in range(values.size):
        total += values[k] * low[k]
    for place in range(values.size):
        k = order[place]
        taken = min(room, width[k])
        total += values[k] * taken
        room -= taken
        if room <= 0.0:
            break
    return total


@kernel
def range_rows(lower, upper, relative, least, cheap, order, dear, opposite, out, memory, lowest):
    """Which actions remain whose lowest expected cost is at most the highest one of all others, for every row.

    ``cheap`` and the negative ``dear`` (actions, classes) are the costs at the least and at the most that rounding allows.
    """
    low, width = memory[0], memory[1]
    for i in range(lower.shape[0]):
        room = _read_set(lower[i], upper[i], relative, least, low, width)
        limit = np.inf
        for a in range(cheap.shape[0]):
            lowest[a] = _least_expectation(cheap[a], order[a], low, width, room)
            limit = min(limit, -_least_expectation(dear[a], opposite[a], low, width, room))
        for a in range(cheap.shape[0]):
            out[i, a] = lowest[a] <= limit


@kernel
def extreme_rows(lower, upper, relative, least, sign, values, rounded, order, most, out, memory, extreme):
    """Which actions have the least extreme expected cost, for every row: sign times the least expectation of ``values``.

    What rounding of bounds and costs adds, at most ``most``, is found by the ``rounded`` values in a wider set. Actions are
    equal if their ranges of rounding meet, and what is lower than one of these is as well.
    """
    low, width = memory[0], memory[1]
    for i in range(lower.shape[0]):
        room = _read_set(lower[i], upper[i], 0.0, 0.0, low, width)
        first = second = np.inf
        for a in range(values.shape[0]):
            cost = sign * _least_expectation(values[a], order[a], low, width, room)
            extreme[0, a] = cost
            second = min(second, max(first, cost))
            first = min(first, cost)
        limit = first
        if second - first <= 2.0 * most:
            room = _read_set(lower[i], upper[i], relative, least, low, width)
            highest = np.inf
            for a in range(values.shape[0]):
                slack = abs(extreme[0, a] - sign * _least_expectation(rounded[a], order[a], low, width, room))
                highest = min(highest, extreme[0, a] + slack)
                extreme[1, a] = extreme[0, a] - slack
            for a in range(values.shape[0]):
                if extreme[1, a] <= highest:
                    limit = max(limit, extreme[0, a])
        for a in range(values.shape[0]):
            out[i, a] = extreme[0, a] <= limit


@inlined
def _write_point(low, width, room, point):
    """The intersection probability of the set."""
    total = 0.0
    for k in range(width.size):
        total += width[k]
    share = room / total if total > 0.0 else 0.0
    for k in range(width.size):
        point[k] = low[k] + share * width[k]


@inlined
def _expect(costs, point, out):
    """The expected cost of every action under a distribution."""
    for a in range(costs.shape[0]):
        total = 0.0
        for k in range(point.size):
            total += costs[a, k] * point[k]
        out[a] = total


@kernel
def line_rows(lower, upper, relative, least, first, last, out, memory):
    """Two classes: which actions remain, for every row: those where some p_1 is at least first[a], and some at most last[a]."""
    low, width = memory[0], memory[1]
    for i in range(lower.shape[0]):
        room = _read_set(lower[i], upper[i], relative, least, low, width)
        for a in range(first.size):
            out[i, a] = (low[1] + room >= first[a]) & (low[1] <= last[a])


@kernel
def maximal_rows(lower, upper, relative, least, costs, start, excess, orders, out, memory, expected):
    """Which of the actions from ``start`` on no other one beats everywhere in the set, for every row.

    ``excess`` (some actions, actions, classes) is what the one costs more than the other. An action that is not worse at the
    intersection probability, which lies in the set, is not beaten.
    """
    low, width, point = memory[0], memory[1], memory[2]
    for i in range(lower.shape[0]):
        room = _read_set(lower[i], upper[i], relative, least, low, width)
        _write_point(low, width, room, point)
        _expect(costs, point, expected)
        for a in range(excess.shape[0]):
            remains = True
            for b in range(excess.shape[1]):
                worse = expected[start + a] > expected[b]
                if worse and _least_expectation(excess[a, b], orders[a, b], low, width, room) > 0.0:
                    remains = False
                    break
            out[i, start + a] = remains


@kernel
def _sort(values, order):
    """Write to ``order`` what sorts the values."""
    for k in range(values.size):
        order[k] = k
    gap = 1  # Shell sort
    while gap < values.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, values.size):
            k, j = order[i], i - gap
            while j >= 0 and values[order[j]] > values[k]:
                order[j + gap] = order[j]
                j -= gap
            order[j + gap] = k
        gap //= 3


@kernel
def _least_vertex(values, order, low, width, room, vertex):
    """The vertex of the set with the least expectation of the values, and that expectation."""
    _sort(values, order)
    total = 0.0
    for place in range(values.size):
        k = order[place]
        taken = min(room, width[k])
        vertex[k] = low[k] + taken
        total += values[k] * vertex[k]
        room -= taken
    return total


@kernel
def _is_best_somewhere(excess, low, width, room, point, order, vertex, mixed, inverse, amounts, column):
    """Whether some p in the set has sum_k excess_bk p_k <= 0 for all b: the value of the game min_p max_b is not above zero.

    The simplex method on: minimise t, where t - sum_j w_j (excess_b . v_j) - s_b = 0 for all b, sum_j w_j = 1, and w, s >= 0.
    The v_j are points of the set: the intersection probability first, then whichever vertex is the best answer to the weights
    of the rows, which are the dual solution. Both sides certify the sign: t is attained by a point of the set, and no point
    attains less than the best answer to any weights. ``inverse`` is that of the basis; its row ``worst`` belongs to t.
    """
    rows, classes = excess.shape
    last = rows  # the equation sum w = 1
    # The basis is t, w_0 and all s_b but that of the worst row; entry b of the basis is s_b, or whatever replaced it.
    worst = 0
    for b in range(rows):
        total = 0.0
        for k in range(classes):
            total += excess[b, k] * point[k]
        column[b] = total
        if total > column[worst]:
            worst = b
    for i in range(rows + 1):
        for j in range(rows + 1):
            inverse[i, j] = 0.0
    for b in range(rows):
        inverse[b, worst] = 1.0
        if b != worst:
            inverse[b, b] = -1.0
        inverse[b, last] = column[worst] - (column[b] if b != worst else 0.0)
        amounts[b] = inverse[b, last]
    inverse[last, last] = amounts[last] = 1.0
    for _ in range(STEPS * (rows + classes)):
        if amounts[worst] <= 0.0:
            return True
        entering = 0
        for b in range(rows):
            if inverse[worst, b] < inverse[worst, entering]:
                entering = b
        if inverse[worst, entering] < -NOTHING:  # s_b enters
            for i in range(rows + 1):
                column[i] = -inverse[i, entering]
        else:
            for k in range(classes):
                mixed[k] = 0.0
            for b in range(rows):
                weight = max(inverse[worst, b], 0.0)
                if weight > 0.0:
                    for k in range(classes):
                        mixed[k] += weight * excess[b, k]
            bound = _least_vertex(mixed, order, low, width, room, vertex)
            if bound > 0.0:
                return False
            if bound >= amounts[worst] - NOTHING:
                return True  # a tie
            for i in range(rows + 1):
                column[i] = inverse[i, last]
            for b in range(rows):
                total = 0.0
                for k in range(classes):
                    total += excess[b, k] * vertex[k]
                for i in range(rows + 1):
                    column[i] -= inverse[i, b] * total
        leaving, most = -1, 0.0
        for i in range(rows + 1):
            if i != worst and column[i] > NOTHING:
                ratio = max(amounts[i], 0.0) / column[i]
                if leaving < 0 or ratio < most or (ratio == most and column[i] > column[leaving]):
                    leaving, most = i, ratio
        if leaving < 0:
            return True
        pivot = 1.0 / column[leaving]
        for j in range(rows + 1):
            inverse[leaving, j] *= pivot
        amounts[leaving] *= pivot
        for i in range(rows + 1):
            if i != leaving and column[i] != 0.0:
                for j in range(rows + 1):
                    inverse[i, j] -= column[i] * inverse[leaving, j]
                amounts[i] -= column[i] * amounts[leaving]
    return True


@kernel
def admissible_rows(lower, upper, relative, least, costs, rounding, out, memory, games, excess, inverse, order):
    """Keep of the maximal actions of every row those that are best for some distribution in the set.

    Where two are left, both are: neither beats the other everywhere. An action that beats all maximal ones beats all.
    """
    low, width, point, vertex, mixed = memory[0], memory[1], memory[2], memory[3], memory[4]
    expected, left = games[0], games[1]
    actions, classes = costs.shape
    for i in range(lower.shape[0]):
        count = 0
        for a in range(actions):
            count += out[i, a]
        if count <= 2:
            continue
        room = _read_set(lower[i], upper[i], relative, least, low, width)
        _write_point(low, width, room, point)
        _expect(costs, point, expected)
        lowest = expected[0]
        for a in range(actions):
            lowest = min(lowest, expected[a])
            left[a] = out[i, a]  # the maximal ones, while those that are not admissible go
        for a in range(actions):
            if not out[i, a] or expected[a] <= lowest:
                continue
            others = 0
            for b in range(actions):
                if b == a or left[b] == 0.0:
                    continue
                size = 0.0
                for k in range(classes):
                    excess[others, k] = costs[a, k] - costs[b, k] - (rounding[a, k] + rounding[b, k])
                    if low[k] + width[k] > 0.0:
                        size = max(size, abs(excess[others, k]))
                if size > 0.0:
                    for k in range(classes):
                        excess[others, k] /= size
                    others += 1
            out[i, a] = _is_best_somewhere(
                excess[:others], low, width, room, point, order, vertex, mixed, inverse, games[2], games[3]
            )


@kernel
def narrow_rows(points, costs, rounding, relative, out, expected):
    """Keep of the actions left in every row those whose expected cost under a distribution is least, up to rounding."""
    for i in range(points.shape[0]):
        _expect(costs, points[i], expected)
        best = -1
        for a in range(costs.shape[0]):
            if out[i, a] and (best < 0 or expected[a] < expected[best]):
                best = a
        for a in range(costs.shape[0]):
            total = 0.0
            for k in range(points.shape[1]):
                excess = costs[a, k] - costs[best, k]
                slack = relative * abs(excess) + rounding[a, k] + rounding[best, k]
                total += (excess - slack) * points[i, k]
            out[i, a] &= total <= 0.0
