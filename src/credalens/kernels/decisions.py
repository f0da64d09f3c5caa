"""Set-valued decisions, one row after the other, and p-values: O(classes) a row, and a sort where E-admissibility asks often.

What the rules say, and why, is in ``core/decisions.py``; here are their closed forms.
"""

from collections import namedtuple

from credalens.kernels.buffers import last_vector, read_row, row_of
from credalens.kernels.simd.jit import inlined, kernel
from credalens.kernels.simd.vectors import (
    WIDTH,
    bits_of,
    choose,
    count,
    everywhere,
    larger,
    load,
    most_of,
    smaller,
    store,
    store_some,
    sum_of,
)

INTERVAL_DOMINANCE, MAXIMALITY, E_ADMISSIBILITY, GAMMA_MAXIMIN, GAMMA_MAXIMAX = range(5)
MANY = 64  # passes over a row that take about as long as sorting it
EXACT = 1e-14  # a sum this close to one is left as it is

Slack = namedtuple("Slack", "relative least of_sums")
"""What rounding explains: a part of what was rounded, at least so much, and so much where sums over all take part."""

RowFacts = namedtuple("RowFacts", "below above first_low second_low first_high second_high")
"""Sums of a row's lower and upper bounds, and the two largest of each; equal ones count twice."""


@inlined
def _top_two(first, second):
    """The two largest numbers from the two largest of every lane."""
    most = most_of(first)
    at_top = first == most
    following = most_of(choose(at_top, second, first))
    return most, (most if count(bits_of(at_top)) > 1 else following)


@inlined
def _facts(row, below, above):
    """`RowFacts`, after sums that miss one by rounding are repaired: sum(lower) <= 1 <= sum(upper), upper at most one."""
    shrink = 1.0 / below if below > 1.0 + EXACT else 1.0
    grow = 1.0 / above if above < 1.0 - EXACT else 1.0
    lows, highs = everywhere(0.0), everywhere(0.0)
    first_low, second_low, first_high, second_high = lows, lows, lows, lows
    for k in range(0, row.low.size, WIDTH):
        low = load(row.low, k) * shrink
        high = larger(smaller(load(row.high, k) * grow, everywhere(1.0)), low)
        store(row.low, k, low)
        store(row.high, k, high)
        lows, highs = lows + low, highs + high
        second_low, first_low = larger(smaller(low, first_low), second_low), larger(low, first_low)
        second_high, first_high = larger(smaller(high, first_high), second_high), larger(high, first_high)
    most_low, next_low = _top_two(first_low, second_low)
    most_high, next_high = _top_two(first_high, second_high)
    return RowFacts(sum_of(lows), sum_of(highs), most_low, next_low, most_high, next_high)


@inlined
def _remains(rule, low, high, facts, slack):
    """Which of a vector of classes remain, before E-admissibility asks for more."""
    if rule == INTERVAL_DOMINANCE:  # l_i <= u_j for every class i, up to rounding
        return facts.first_low - high <= slack.least + slack.relative * larger(everywhere(facts.first_low), high)
    if rule == GAMMA_MAXIMIN:
        return low == facts.first_low
    if rule == GAMMA_MAXIMAX:
        return high == facts.first_high
    # No other class i has l_i - u_j, l_i + S_l - l_j - 1 or u_i + 1 - S_u - u_j above zero; the largest others decide.
    low_i = choose(low < facts.first_low, facts.first_low, facts.second_low)
    high_i = choose(high < facts.first_high, facts.first_high, facts.second_high)
    alone = low_i - high <= slack.least + slack.relative * larger(low_i, high)
    j_gives = low_i + (facts.below - 1.0) - low <= slack.of_sums
    i_gives = high_i + (1.0 - facts.above) - high <= slack.of_sums * larger(facts.above, 1.0)
    return alone & j_gives & i_gives


@inlined
def _mass_below(high, t):
    """sum_j min(u_j, t)."""
    total = everywhere(0.0)
    for k in range(0, high.size, WIDTH):
        total = total + smaller(load(high, k), everywhere(t))
    return sum_of(total)


@kernel
def _tabulate(row):
    """Upper bounds in order, and the sum of those before each, to the rows of scratch memory that decisions do not need."""
    ordered, sums = row.phi_low, row.phi_high
    for k in range(row.high.size):
        ordered[k] = row.high[k]
    gap = 1  # Shell sort
    while gap < ordered.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, ordered.size):
            key, j = ordered[i], i - gap
            while j >= 0 and ordered[j] > key:
                ordered[j + gap] = ordered[j]
                j -= gap
            ordered[j + gap] = key
        gap //= 3
    total = 0.0
    for k in range(ordered.size):
        sums[k] = total
        total += ordered[k]


@kernel
def _tabulated_mass(row, t):
    """sum_j min(u_j, t) from what `_tabulate` wrote; t is at most the largest upper bound and some rounding."""
    first, last = 0, row.high.size - 1  # of the bounds that may be the first one above t, or the largest
    while first < last:
        middle = (first + last) // 2
        if row.phi_low[middle] > t:
            last = middle
        else:
            first = middle + 1
    return row.phi_high[first] + smaller(row.phi_low[first], t) + (row.high.size - 1 - first) * t


@kernel
def _drop_inadmissible(row, facts, slack, out):
    """Keep class i if, raised to t = min(u_i, 1 - sum_{j != i} l_j), it leaves room: t + sum_{j != i} min(u_j, t) >= 1.

    sum_j min(u_j, t) grows with t, so that a level with room answers for all above it, and one that is short by more than
    rounding for all below it. In an unlucky order, or with many near-ties, that is not enough: then the bounds are sorted.
    """
    roomy, short, passes = 2.0, -1.0, 0
    most = slack.least + slack.relative * larger(facts.first_low, facts.first_high)
    for i in range(out.size):
        if not out[i]:
            continue
        low, high = row.low[i], row.high[i]
        reach = high + slack.least + slack.relative * larger(facts.first_low, high)
        t = smaller(reach, 1.0 - (facts.below - low) + slack.of_sums)
        if t <= short:
            out[i] = False
        if short < t < roomy:
            passes += 1
            if passes == MANY:
                _tabulate(row)
            mass = _mass_below(row.high, t) if passes < MANY else _tabulated_mass(row, t)
            out[i] = mass - smaller(high, t) + t >= 1.0 - slack.of_sums
            roomy = t if mass >= 1.0 - slack.of_sums else roomy
            short = t if mass + most < 1.0 - slack.of_sums else short


@kernel
def decide_rows(lower, upper, rule, relative, least, out, workspace):
    """Which classes of every row remain under a rule; bounds in float64 or float32, ``out`` boolean, a `row_workspace`."""
    row, slack = row_of(workspace), Slack(relative, least, larger(relative, least))
    last, lanes = last_vector(lower.shape[1])
    for i in range(lower.shape[0]):
        below, width = read_row(lower[i], upper[i], row)
        facts = _facts(row, below, below + width)
        for k in range(0, last, WIDTH):
            store(out[i], k, _remains(rule, load(row.low, k), load(row.high, k), facts, slack))
        remains = _remains(rule, load(row.low, last), load(row.high, last), facts, slack)
        store_some(out[i], last, remains, lanes)
        if rule == E_ADMISSIBILITY:
            _drop_inadmissible(row, facts, slack, out[i])


@kernel
def shares_above(ordered, starts, first, shift, values, bits, shares):
    """Write (1 + number of ``ordered`` that are at least the value) / (1 + number of all) for each of ``values``.

    ``bits`` are the values' own as integers. Entry k of ``starts`` is the first place in ``ordered`` whose leading bits, those
    above ``shift`` counted from ``first``, are at least k.
    """
    last, total = len(starts) - 2, len(ordered) + 1
    for i in range(len(values)):
        key = min(max((bits[i] >> shift) - first, 0), last)
        low, high = starts[key], starts[key + 1]
        while low < high:
            middle = (low + high) // 2
            if ordered[middle] < values[i]:
                low = middle + 1
            else:
                high = middle
        shares[i] = (total - low) / total
