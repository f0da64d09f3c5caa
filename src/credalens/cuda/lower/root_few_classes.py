# mypy: ignore-errors
"""``root.py`` for few classes: one thread a row, and loops over the classes.

Without sorting: a class's place in the fractional knapsack is the width of all classes of smaller slope, C^2 additions.
"""

import triton
import triton.language as tl

from credalens.cuda.counters import OPEN_ROWS
from credalens.cuda.lower.nodes import SLACK
from credalens.cuda.lower.single_flip import FAR, certificate, flip_bounds, flip_cost, trades
from credalens.cuda.phi import phi


@triton.jit
def _slopes(core_low, core_high, step, part, plane, m, most, ROWS: tl.constexpr):
    """Chord slopes, widths and phi of the lower bounds of the open classes, lane by lane."""
    for c in range(most):
        here = c < m
        low = tl.load(core_low + c * step, mask=here, other=0.0)
        high = tl.load(core_high + c * step, mask=here, other=1.0)
        phi_low = phi(low)
        tl.store(part + c * ROWS, (phi(high) - phi_low) / (high - low), mask=here)
        tl.store(part + plane + c * ROWS, high - low, mask=here)
        tl.store(part + 2 * plane + c * ROWS, phi_low, mask=here)


@triton.jit
def _break_class(part, plane, m, most, whole, ROWS: tl.constexpr):
    """(how many classes look like the break class, the last of them, its slope and width, mass and entropy before it)."""
    number = tl.zeros_like(m)
    at = tl.zeros_like(m)
    break_slope = tl.zeros_like(whole)
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
        break_slope = tl.where(breaks, slope, break_slope)
        room = tl.where(breaks, width, room)
    return number, at, break_slope, room, used, gained


@triton.jit
def _neighbours(core_low, core_high, step, part, m, most, at, low_f, high_f, slope_f, ROWS: tl.constexpr):
    """Least differences of slope to the classes before and after f: those that dominance lets trade with it, then all."""
    before = tl.full((ROWS,), FAR, tl.float64)
    after = before
    before_all = before
    after_all = before
    for c in range(most):
        other = (c < m) & (c != at)
        low = tl.load(core_low + c * step, mask=other, other=0.0)
        high = tl.load(core_high + c * step, mask=other, other=0.0)
        away = tl.load(part + c * ROWS, mask=other, other=FAR) - slope_f
        first = (away < 0.0) | ((away == 0.0) & (c < at))
        trade = other & trades(first, low, high, low_f, high_f)
        distance = tl.abs(away)
        before_all = tl.where(other & first, tl.minimum(before_all, distance), before_all)
        after_all = tl.where(other & ~first, tl.minimum(after_all, distance), after_all)
        before = tl.where(trade & first, tl.minimum(before, distance), before)
        after = tl.where(trade & ~first, tl.minimum(after, distance), after)
    return before, after, before_all, after_all


@triton.jit
def _one_flip(
    core_low,
    core_high,
    step,
    part,
    plane,
    m,
    most,
    at,
    low_f,
    high_f,
    phi_f,
    slope_f,
    r,
    q,
    near,
    best,
    ROWS: tl.constexpr,
):
    """(least cost of a vertex one class away, or ``best``; a lower bound of what any vertex costs)."""
    before, after, before_all, after_all = near
    least = tl.full((ROWS,), FAR, tl.float64)
    second = least
    if_down = least
    if_up = least
    for c in range(most):
        other = (c < m) & (c != at)
        low = tl.load(core_low + c * step, mask=other, other=0.0)
        high = tl.load(core_high + c * step, mask=other, other=0.0)
        slope = tl.load(part + c * ROWS, mask=other, other=FAR)
        away = slope - slope_f
        first = (away < 0.0) | ((away == 0.0) & (c < at))
        flip, down, up = flip_bounds(
            low, high, away, other, first, low_f, high_f, r, q, before, after, before_all, after_all
        )
        second = tl.minimum(second, tl.maximum(least, flip))
        least = tl.minimum(least, flip)
        if_down = tl.minimum(if_down, down)
        if_up = tl.minimum(if_up, up)
        phi_low = tl.load(part + 2 * plane + c * ROWS, mask=other, other=0.0)
        phi_high = phi_low + slope * (high - low)
        one = flip_cost(low, high, phi_low, phi_high, away, first, low_f, high_f, phi_f, slope_f, r, q)
        best = tl.where(flip < FAR, tl.minimum(best, one), best)
    best = tl.maximum(best, 0.0)
    return best, certificate(best, r, q, before, after, least, second, if_down, if_up)


@triton.jit(do_not_specialize=["tolerance", "rows", "row_step", "class_step", "width"])
def root_few_classes(
    core_low,
    core_high,
    size,
    need,
    base,
    value,
    bound,
    workspace,
    open_rows,
    counters,
    tolerance,
    rows,
    row_step,
    class_step,
    width,
    ROWS: tl.constexpr,
):
    """An entropy in bits that is attained and a lower bound, for every row; both infinite where rounding leaves neither.

    Rows with a gap above ``tolerance`` go to the list ``open_rows``. ``workspace`` (programs, 3, width, ROWS) is scratch
    memory.
    """
    program = tl.program_id(0)
    step = tl.cast(class_step, tl.int64)
    lane = tl.arange(0, ROWS)
    plane = width * ROWS
    part = workspace + program.to(tl.int64) * (3 * plane) + lane
    for group in range(program, tl.cdiv(rows, ROWS), tl.num_programs(0)):
        row = group * ROWS + lane
        present = row < rows
        m = tl.load(size + row, mask=present, other=0)
        whole = tl.load(need + row, mask=present, other=0.0)
        start = tl.load(base + row, mask=present, other=0.0)
        live = present & (m > 0) & (whole > SLACK)
        m = tl.where(live, m, 0)
        most = tl.max(m, 0)
        lows = core_low + tl.cast(row, tl.int64) * row_step
        highs = core_high + tl.cast(row, tl.int64) * row_step
        _slopes(lows, highs, step, part, plane, m, most, ROWS)
        number, at, slope_f, room, used, gained = _break_class(part, plane, m, most, whole, ROWS)

        has_break = live & (number == 1)
        low_f = tl.load(lows + at * step, mask=has_break, other=0.0)
        high_f = tl.load(highs + at * step, mask=has_break, other=0.0)
        phi_f = tl.load(part + 2 * plane + at * ROWS, mask=has_break, other=0.0)
        r = whole - used
        has_break = has_break & (r >= -SLACK * m) & (r <= room + SLACK * m)
        r = tl.where(has_break, tl.minimum(tl.maximum(r, 0.0), room), 0.0)
        q = tl.where(has_break, room - r, 0.0)
        chord = start + gained + slope_f * r
        best = tl.maximum(phi(low_f + r) - phi_f - slope_f * r, 0.0)
        near = _neighbours(lows, highs, step, part, m, most, at, low_f, high_f, slope_f, ROWS)
        floor = tl.minimum(best, tl.minimum(r * near[1], q * near[0]))
        unsure = has_break & (floor < best - tolerance)
        if tl.max(unsure.to(tl.int32), 0) > 0:
            m = tl.where(unsure, m, 0)
            better, least = _one_flip(
                lows, highs, step, part, plane, m, most, at, low_f, high_f, phi_f, slope_f, r, q, near, best, ROWS
            )
            best = tl.where(unsure, better, best)
            floor = tl.where(unsure, least, floor)
        tl.store(value + row, tl.where(has_break, chord + best, tl.where(live, float("inf"), start)), mask=present)
        tl.store(bound + row, tl.where(has_break, chord + floor, tl.where(live, -float("inf"), start)), mask=present)
        is_open = (live & ~(has_break & (best - floor <= tolerance))).to(tl.int32)
        place = tl.atomic_add(counters + OPEN_ROWS, tl.sum(is_open, 0)) + tl.cumsum(is_open, 0) - 1
        tl.store(open_rows + place, row, mask=is_open > 0)
