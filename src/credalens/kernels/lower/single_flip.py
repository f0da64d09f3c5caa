"""What it costs to leave the vertex that the chord bound finds: the test that ends most searches before they begin.

Notation and facts as in ``lower.py``. The knapsack fills the classes in order of slope; f is its break class, lambda its
slope, r = x - l_f the mass it takes, q = u_f - x what it leaves. Against the chord bound a vertex costs

    sum over flipped classes of d_k = w_k |s_k - lambda|,  plus  g_j(y) = phi(y) - chord with slope lambda

for the one class j at a value y between its bounds; no term is negative. So a vertex that costs less than the best one
seen flips a set of classes whose d_k sum to less. The vertex found costs g_f(x). Any other

- has j = f, and then flips one class (value known exactly) or two or more (cost at least the two least d), or
- has f down (or up): then another class takes r (gives q) alone, value known exactly; or some class i is flipped and
  what that leaves of r (of q) is moved at the least slope difference there is.

If all of these cost as much as the best value seen, the row is done: about nine rows in ten of real predictions with ten
classes. Nothing here branches, and all of it takes numbers (for loops over
rows) or vectors of classes.
"""

from __future__ import annotations

from credalens.kernels.simd.jit import inlined
from credalens.kernels.simd.phi import phi
from credalens.kernels.simd.vectors import choose

__all__ = ["FAR", "SLACK", "certificate", "change", "changed", "larger", "precedes", "smaller", "trades"]

FAR = 1e300  # a slope no class has
SLACK = 1e-15  # mass below this is rounding


@inlined
def smaller(x, y):
    """The smaller of two."""
    return choose(x < y, x, y)


@inlined
def larger(x, y):
    """The larger of two."""
    return choose(x > y, x, y)


@inlined
def precedes(away, k, at):
    """Whether class k, whose slope is ``away`` from that of class f at position ``at``, stands before f; ties by position."""
    return (away < 0.0) | ((away == 0.0) & (k < at))


@inlined
def trades(first, bottom, top, low_f, high_f):
    """Whether dominance (fact c) lets a class trade mass with f; ``first``: it stands before f in order of slope."""
    below = (bottom < low_f) | (top < high_f)
    above = (bottom > low_f) | (top > high_f)
    return choose(first, below, above)


@inlined
def change(bottom, top, away, other, first, f, near):
    """Bounds on the cost of vertices that differ in this class, FAR where impossible:
    this class alone differs, f between its bounds or not; this class is flipped; f is down, or up, and it is flipped too.

    ``away`` is its slope less lambda, ``other`` whether it is a class with a width and not f. ``f`` holds l, u, phi(l),
    lambda, r and q of f, ``near`` the least slope differences before and after f: those that may trade, then all.
    """
    low_f, high_f, _, _, r, q = f
    before, after, before_all, after_all = near
    w = top - bottom
    trade = other & trades(first, bottom, top, low_f, high_f)
    cost = w * abs(away)
    y = low_f + r + choose(first, w, -w)
    move = choose(first, q, r)
    alone = choose((y >= low_f) & (y <= high_f), cost, FAR)
    alone = smaller(alone, choose(move <= w, move * abs(away), FAR))

    # Where f is at a bound and this class flipped, others take or give what that leaves.
    short = move - w
    closest, back = choose(first, before, after), choose(first, after_all, before_all)
    rest = cost + abs(short) * choose(short > 0.0, closest, back)
    rest = choose(trade, rest, FAR)
    far = cost + choose(first, (r + w) * after, (q + w) * before)
    far = choose(other, far, FAR)
    down, up = choose(first, far, rest), choose(first, rest, far)
    return choose(trade, alone, FAR), choose(trade, cost, FAR), down, up


@inlined
def changed(bottom, top, phi_bottom, phi_top, away, first, f):
    """The least cost of a vertex in which only this class differs, which may trade with f."""
    low_f, high_f, phi_f, slope_f, r, q = f
    w = top - bottom
    # f stays between its bounds and this class changes sides.
    y = low_f + r + choose(first, w, -w)
    value = w * abs(away) + phi(y) - phi_f - slope_f * (y - low_f)
    value = choose((y >= low_f) & (y <= high_f), value, FAR)
    # f goes to a bound and this class alone takes r or gives q.
    move = choose(first, -q, r)
    end, phi_end = choose(first, top, bottom), choose(first, phi_top, phi_bottom)
    takes = phi(end + move) - phi_end - slope_f * move
    return smaller(value, choose(abs(move) <= w, takes, FAR))


@inlined
def certificate(best, r, q, before, after, least, second, if_down, if_up):
    """A lower bound of what any vertex costs, given the best cost seen and the least of what `change` found."""
    down, up = r * after, q * before
    either = down if down < up else up
    flips = least + second
    flips = flips if flips > either else either
    down = down if down > if_down else if_down
    up = up if up > if_up else if_up
    bound = down if down < up else up
    bound = bound if bound < flips else flips
    return bound if bound < best else best
