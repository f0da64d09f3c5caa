"""Upper entropy of the convex hull of the members: max over mixture weights of H(sum_n a_n p_n)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.kernels.simd.jit import kernel
from credalens.kernels.simd.phi import phi

LN2 = np.log(2.0)
MANY = 64  # members, from which on the search starts with a few of them
FLAT = 1e-14  # bits; entropies closer than this are equal in floating point
SHORTEST = 1e-16
NEGLIGIBLE = 1e-12  # a weight below this would only shorten the Newton steps of the others
TINY = 1e-300  # keeps the logarithm of an unused class finite; a member that needs the class is then far the worst


def hull_workspace(members: int, classes: int, steps: int, /) -> tuple[NDArray[Any], ...]:
    """Scratch memory: weights, those on trial and gradient; which are in use; the Newton system of as many as can be."""
    used = min(members, max(MANY, classes) + steps)
    return np.empty((3, members)), np.empty(members, np.int64), np.empty((used, used + 2))


@kernel
def _copy(numbers, place):
    """place[:] = numbers, one by one: Numba would make an array, in case the two overlap."""
    for n in range(numbers.size):
        place[n] = numbers[n]


@kernel
def _mix(members, weights, q):
    """q = sum_n a_n p_n; returns its entropy."""
    entropy = 0.0
    for k in range(q.size):
        q[k] = 0.0
    for n in range(weights.size):
        if weights[n] > 0.0:
            for k in range(q.size):
                q[k] += weights[n] * members[n, k]
    for k in range(q.size):
        entropy += phi(q[k])
    return entropy


@kernel
def _gradient(members, q, gradient):
    """Cross-entropies CE(p_n, q), the gradient of the entropy up to a constant; returns the largest."""
    worst = -np.inf
    for n in range(gradient.size):
        total = 0.0
        for k in range(q.size):
            total -= members[n, k] * np.log2(max(q[k], TINY))
        gradient[n] = total
        worst = max(worst, total)
    return worst


@kernel
def _direction(members, q, gradient, active, count, system):
    """Newton step for the active weights under sum(step) = 0: (P diag(1/q) P' + ridge) step = gradient - level."""
    for i in range(count):
        for j in range(i + 1):
            total = 0.0
            for k in range(q.size):
                if q[k] > 0.0:
                    total += members[active[i], k] * members[active[j], k] / q[k]
            system[i, j] = system[j, i] = total
    trace = 0.0
    for i in range(count):
        trace += system[i, i]
    for i in range(count):
        system[i, i] += 1e-13 * trace
        system[i, count] = gradient[active[i]] * LN2
        system[i, count + 1] = 1.0
    for i in range(count):
        for j in range(i + 1, count):
            factor = system[j, i] / system[i, i]
            for c in range(i, count + 2):
                system[j, c] -= factor * system[i, c]
    for column in (count, count + 1):
        for i in range(count - 1, -1, -1):
            for j in range(i + 1, count):
                system[i, column] -= system[i, j] * system[j, column]
            system[i, column] /= system[i, i]
    level = system[:count, count].sum() / system[:count, count + 1].sum()
    for i in range(count):
        system[i, count] -= level * system[i, count + 1]


@kernel
def _line_search(members, weights, active, count, system, q, trial, gradient, entropy, worst):
    """Move along the step while weights stay non-negative: until the entropy rises or, where it is flat to the last
    digit, the certificate shrinks. Returns the new entropy and largest cross-entropy."""
    length = 1.0
    for i in range(count):
        if system[i, count] < 0.0:
            length = min(length, -weights[active[i]] / system[i, count])
    while length > SHORTEST:
        _copy(weights, trial)
        for i in range(count):
            trial[active[i]] = max(weights[active[i]] + length * system[i, count], 0.0)
        trial /= trial.sum()  # rounding aside, it is a distribution
        reached = _mix(members, trial, q)
        if reached > entropy - FLAT:
            bound = _gradient(members, q, gradient)
            if reached > entropy + FLAT or bound - reached < worst - entropy:
                _copy(trial, weights)
                return reached, bound
        length *= 0.5
    _mix(members, weights, q)
    return entropy, _gradient(members, q, gradient)


@kernel
def _toward(members, weights, n, q, trial, gradient, entropy, worst):
    """Line search from the mixture towards member n, by bisection on the slope over the logarithm of the step.

    The best step can be far below rounding: a class that only n knows raises its cross-entropy by p log2(1/q), however
    little weight n deserves. Returns the new entropy and largest cross-entropy.
    """
    low, high = np.log(TINY), 0.0
    for _ in range(80):
        t = np.exp(0.5 * (low + high))
        for m in range(weights.size):
            trial[m] = (1.0 - t) * weights[m]
        trial[n] += t
        _mix(members, trial, q)
        slope = 0.0
        for k in range(q.size):
            slope -= (members[n, k] - q[k]) * np.log2(max(q[k], TINY))
        if slope > 0.0:
            low = 0.5 * (low + high)
        else:
            high = 0.5 * (low + high)
    reached = _mix(members, trial, q)
    bound = _gradient(members, q, gradient)
    if reached > entropy + FLAT or bound - reached < worst - entropy:
        _copy(trial, weights)
        return reached, bound
    _mix(members, weights, q)
    return entropy, _gradient(members, q, gradient)


@kernel
def _first_weights(members, weights):
    """Equal weights: of all members if they are few, else of those that give some class the most, so that none has no mass.

    The best mixture needs no more members than there are classes, and a Newton step costs the cube of those in use.
    """
    count, classes = members.shape
    used = count if count <= MANY else 0
    for n in range(count):
        weights[n] = 1.0 if count <= MANY else 0.0
    for k in range(classes if count > MANY else 0):
        best = 0
        for n in range(1, count):
            best = n if members[n, k] > members[best, k] else best
        used += weights[best] == 0.0
        weights[best] = 1.0
    for n in range(count):
        weights[n] /= used


@kernel
def hull_upper_entropy_rows(members, tolerance, steps, entropy, gap, distribution, numbers, active, system):
    """Upper entropy, its certificate max_n CE(p_n, q) - H(q) >= 0 and the maximiser q of every row, in a `hull_workspace`.

    Active-set Newton in the mixture weights: concave, so the certificate bounds the distance to the optimum. When the
    weights in use are optimal among themselves, the member with the largest cross-entropy joins. At most ``steps`` of them.
    """
    count, rows, _ = members.shape
    weights, trial, gradient = numbers[0], numbers[1], numbers[2]
    for row in range(rows):
        p = members[:, row]
        q = distribution[row]
        _first_weights(p, weights)
        value = _mix(p, weights, q)
        worst = _gradient(p, q, gradient)
        for _ in range(steps):
            if worst - value <= tolerance:
                break
            used = 0
            for n in range(count):
                if weights[n] > NEGLIGIBLE:
                    active[used] = n
                    used += 1
            before, gap_before = value, worst - value
            if used > 1:
                _direction(p, q, gradient, active, used, system)
                value, worst = _line_search(p, weights, active, used, system, q, trial, gradient, value, worst)
            if worst - value > 0.5 * gap_before:
                value, worst = _toward(p, weights, gradient.argmax(), q, trial, gradient, value, worst)
                if value == before and worst - value >= gap_before:
                    break
        entropy[row], gap[row] = value, max(worst - value, 0.0)
