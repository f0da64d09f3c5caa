# mypy: ignore-errors
"""The root of the lower-entropy search, one thread a row: most rows are certified here, and need no search.

Without sorting: a class's place in the fractional knapsack is the width of all classes of smaller slope, C^2 additions.
Rows that rounding makes doubtful are left open, so that the search answers for them.
"""

import triton
import triton.language as tl

from credalens.device.nodes import SLACK, append_rows, dominates
from credalens.device.phi import phi

__all__ = ["close_at_root"]


@triton.jit
def _slopes(core_low, core_high, step, part, plane, m, most, ROWS: tl.constexpr):
    """Chord slopes and widths of the open classes, lane by lane."""
    for c in range(most):
        here = c < m
        low = tl.load(core_low + c * step, mask=here, other=0.0)
        high = tl.load(core_high + c * step, mask=here, other=1.0)
        tl.store(part + c * ROWS, (phi(high) - phi(low)) / (high - low), mask=here)
        tl.store(part + plane + c * ROWS, high - low, mask=here)


@triton.jit
def _break_class(part, plane, m, most, whole, ROWS: tl.constexpr):
    """(how many classes look like the break class, the last of them, its slope and width, mass and entropy before it)."""
    number = tl.zeros_like(m)
    at = tl.zeros_like(m)
    own = tl.zeros_like(whole)
    room = tl.zeros_like(whole)
    used = tl.zeros_like(whole)
    gained = tl.zeros_like(whole)
    for c in range(most):
        here = c < m
        slope = tl.load(part + c * ROWS, mask=here, other=0.0)
        width = tl.load(part + plane + c * ROWS, mask=here, other=0.0)
        before = tl.zeros_like(whole)
        for j in range(most):
            there = here & (j < m)
            other = tl.load(part + j * ROWS, mask=there, other=float("inf"))
            first = (other < slope) | ((other == slope) & (j < c))
            before += tl.where(first, tl.load(part + plane + j * ROWS, mask=there, other=0.0), 0.0)
        full = here & (before + width < whole)
        used += tl.where(full, width, 0.0)
        gained += tl.where(full, slope * width, 0.0)
        breaks = here & (before < whole) & (whole <= before + width)
        number += breaks.to(tl.int32)
        at = tl.where(breaks, c, at)
        own = tl.where(breaks, slope, own)
        room = tl.where(breaks, width, room)
    return number, at, own, room, used, gained


@triton.jit
def _neighbours(core_low, core_high, step, part, m, most, at, low_at, high_at, own, ROWS: tl.constexpr):
    """Slopes of the nearest classes that can trade mass with the break class: the last before, the first after."""
    sooner = tl.full((ROWS,), -float("inf"), tl.float64)
    later = tl.full((ROWS,), float("inf"), tl.float64)
    for c in range(most):
        here = (c < m) & (c != at)
        low = tl.load(core_low + c * step, mask=here, other=0.0)
        high = tl.load(core_high + c * step, mask=here, other=0.0)
        slope = tl.load(part + c * ROWS, mask=here, other=0.0)
        before = (slope < own) | ((slope == own) & (c < at))
        ahead = here & before & ~dominates(low, high, c, low_at, high_at, at)
        behind = here & ~before & ~dominates(low_at, high_at, at, low, high, c)
        sooner = tl.where(ahead, tl.maximum(sooner, slope), sooner)
        later = tl.where(behind, tl.minimum(later, slope), later)
    return sooner, later


@triton.jit(do_not_specialize=["items", "row_step", "class_step", "width"])
def close_at_root(
    chosen,
    items,
    core_low,
    core_high,
    size,
    need,
    base,
    value,
    bound,
    workspace,
    left,
    number_left,
    tolerance,
    row_step,
    class_step,
    width,
    EVERY: tl.constexpr,
    ROWS: tl.constexpr,
):
    """An entropy in bits that is attained and a lower bound, for the rows ``chosen`` (or the first ``items`` rows).

    Rows for which rounding leaves neither get an infinite gap. The rows with a gap above ``tolerance`` go to the list
    ``left``. ``workspace`` (programs, 2, width, ROWS) is scratch memory.
    """
    program = tl.program_id(0)
    step = tl.cast(class_step, tl.int64)
    lane = tl.arange(0, ROWS)
    plane = width * ROWS
    part = workspace + program.to(tl.int64) * (2 * plane) + lane
    for group in range(program, tl.cdiv(items, ROWS), tl.num_programs(0)):
        item = group * ROWS + lane
        present = item < items
        row = item.to(tl.int64) if EVERY else tl.load(chosen + item, mask=present, other=0)
        m = tl.load(size + row, mask=present, other=0)
        whole = tl.load(need + row, mask=present, other=0.0)
        start = tl.load(base + row, mask=present, other=0.0)
        live = present & (m > 0) & (whole > SLACK)
        m = tl.where(live, m, 0)
        most = tl.max(m, 0)
        lows = core_low + row * row_step
        highs = core_high + row * row_step
        _slopes(lows, highs, step, part, plane, m, most, ROWS)
        number, at, own, room, used, gained = _break_class(part, plane, m, most, whole, ROWS)

        found = live & (number == 1)
        low_at = tl.load(lows + at * step, mask=found, other=0.0)
        high_at = tl.load(highs + at * step, mask=found, other=0.0)
        sooner, later = _neighbours(lows, highs, step, part, m, most, at, low_at, high_at, own, ROWS)
        rest = whole - used
        found = found & (rest >= -SLACK * m) & (rest <= room + SLACK * m)
        rest = tl.minimum(tl.maximum(rest, 0.0), room)
        lowest = start + gained + own * rest
        reached = start + gained + (phi(low_at + rest) - phi(low_at))
        # Below x the mass goes to a slope of `later` or more; above x it comes from one of at most `sooner`.
        inner = (rest > 0.0) & (rest < room)
        below = tl.where(inner, rest * (later - own), 0.0)
        above = tl.where(inner, (room - rest) * (own - sooner), 0.0)
        floor = tl.minimum(reached, lowest + tl.minimum(below, above))
        tl.store(value + row, tl.where(found, reached, tl.where(live, float("inf"), start)), mask=present)
        tl.store(bound + row, tl.where(found, floor, tl.where(live, -float("inf"), start)), mask=present)
        append_rows(left, number_left, row, live & ~(found & (reached - floor <= tolerance)))
