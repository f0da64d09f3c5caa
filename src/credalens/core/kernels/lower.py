"""Lower entropy: exact minimisation of a concave function over an interval credal set, with a certificate.

Let w = u - l and R = 1 - sum l. Facts, each one exchange argument (moving mass from a smaller to a larger probability
lowers entropy):

a. Some optimum is a vertex: every class down (at l_k) or up (at u_k), except at most one class at a value x between.
b. Threshold: a class that is up has u_k > x, a class that is down has l_k < x.
c. Dominance: if l_i >= l_j and u_i >= u_j, some optimum raises j only where i is up.
d. Chord bound: with phi replaced by its chord on each [l_k, u_k] the problem is a fractional knapsack, filled in
   order of the chords' slopes. Its solution is a vertex, hence feasible; its value bounds the optimum from below.

The solution of (d) is off by one class's concavity only, so that a better vertex flips few classes: it has them on the
other side. ``change.py`` says what a flip costs. A row is done as soon as its best vertex is certified:

1. by all vertices one change away and a bound of the others: ``lanes_lower.py`` (few classes), ``root.py`` (many);
2. by all sets of flips that might be better: ``flips.py`` (few), ``enumeration.py`` on the ``items.py`` (any number);
3. by branch and bound, where these sets are too many: ``branch.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from credalens.core.kernels.enumeration import cheapest_flips, flip_vertex, flips_workspace, write_vertex
from credalens.core.kernels.jit import kernel
from credalens.core.kernels.phi import phi
from credalens.core.kernels.root import break_at

__all__ = ["lower_entropy_rows"]

ROUNDING = 1e-14  # bits; of sums of entropies
MANY = 256  # classes; of fewer, most of those that might be flipped can be looked at
SHORT = 1.0 / 16.0  # of the cost of the knapsack's vertex: the best of a flat row is below


@kernel
def _enumerate(lower, upper, phi_lower, phi_upper, slope, known, tolerance, max_nodes, workspace, out):
    """(entropy, certified lower bound, nodes) of one row, by enumeration of flipped classes; the minimiser in ``out``.

    ``known`` is an entropy that is attained, or infinite. Then, or where too many classes might be flipped, vertices that
    cost only a share of the best one are looked for first: if there is one, little is left to do.
    """
    at, r, need, chord = break_at(lower, upper, phi_lower, phi_upper, slope)
    if out.size > 0:
        write_vertex(lower, upper, slope, at, r, out)
    if at < 0:
        return chord, chord, 0
    best = max(phi(lower[at] + r) - phi_lower[at] - slope[at] * r, 0.0)
    best = min(best, max(known - chord, 0.0))
    margin = max(tolerance - ROUNDING, 0.0)
    limit, floor, nodes = best - margin, 0.0, 0
    share = SHORT if lower.size > MANY and known == np.inf else 1.0
    while True:
        before, trial = best, min(share * limit, best - margin)
        best, bound, spent = cheapest_flips(
            lower, upper, phi_lower, phi_upper, slope, at, r, need, best, trial, margin, max_nodes - nodes, workspace
        )
        if best < before and out.size > 0:
            write_vertex(lower, upper, slope, at, 0.0, out)
            flip_vertex(lower, upper, workspace, out)
        floor, nodes = max(floor, bound), nodes + spent
        stuck = spent == 0 and trial <= 2.0 * max(tolerance, floor)
        if stuck or floor >= best - margin or nodes >= max_nodes:
            return chord + best, chord + floor, nodes
        share *= 4.0 if spent > 0 else 0.5


@kernel
def enumerate_rows(lower, upper, phi_lower, phi_upper, tolerance, max_nodes, entropy, bound, distribution, left):
    """(nodes, rows left open for which there is still a budget); the latter are listed in ``left``."""
    workspace, slope = flips_workspace(lower.shape[1]), np.empty(lower.shape[1])
    total, count = 0, 0
    for row in range(lower.shape[0]):
        low, high, phi_low, phi_high, out = lower[row], upper[row], phi_lower[row], phi_upper[row], distribution[row]
        known, floor = (np.inf, -np.inf) if out.size > 0 else (entropy[row], bound[row])
        if floor >= known - tolerance:
            continue
        value, found, nodes = _enumerate(
            low, high, phi_low, phi_high, slope, known, tolerance, max_nodes, workspace, out
        )
        entropy[row], bound[row] = value, max(floor, found)
        if bound[row] < value - tolerance and nodes < max_nodes:
            left[count] = row
            count += 1
        total += nodes
    return total, count


def lower_entropy_rows(*arguments: Any) -> int:
    """Lower entropy and its certified lower bound of every row, in bits; returns the number of nodes.

    Arguments: lower, upper, phi of both, tolerance, max_nodes; entropy, bound, distribution, which are written.

    If ``distribution`` has columns, the minimisers go there. If not, ``entropy`` and ``bound`` come with what is known
    already, a value that is attained and a lower bound: rows where they meet are left alone, and for the others the search
    has only to better the value or to certify it. Branch and bound is compiled only when a row needs it.
    """
    known, results = arguments[:6], arguments[6:]
    left = np.empty(len(results[0]), np.int64)
    nodes, count = enumerate_rows(*known, *results, left)
    if count > 0:
        from credalens.core.kernels.branch import branch_and_bound_rows

        nodes += branch_and_bound_rows(*known, left[:count], *results)
    return int(nodes)
