# mypy: ignore-errors
"""Lower entropy on the GPU, one thread a row: the branch and bound of ``core/kernels/lower.py`` for 32 rows in step.

For rows with few open classes, which is nearly all of them. Decisions carry the depth at which they were made, so that
going back to a node is one comparison. The open classes and the stack of nodes lie in global memory, lane by lane, so
that the threads of a warp read side by side; a thread only ever reads what it wrote itself.
"""

import triton
import triton.language as tl

from credalens.device.nodes import DOWN, FEW, FREE, SLACK, SPLIT, UP, append_rows, dominates, pack_node, unpack_node
from credalens.device.phi import phi

__all__ = ["LANES", "search_lanes"]

LANES = 32  # rows of a program, one a thread: a thread's values must never lie with another


@triton.jit
def _sort_core(core_low, core_high, step, part, plane, m, most, ROWS: tl.constexpr):
    """Lower, upper, phi(lower) and slope of the open classes in order of their slopes; no decisions yet."""
    side = part + 4 * plane
    for c in range(most):
        here = c < m
        low = tl.load(core_low + c * step, mask=here, other=0.0)
        high = tl.load(core_high + c * step, mask=here, other=1.0)
        tl.store(side + c * ROWS, (phi(high) - phi(low)) / (high - low), mask=here)
    for c in range(most):
        here = c < m
        slope = tl.load(side + c * ROWS, mask=here, other=0.0)
        rank = tl.zeros_like(m)
        for j in range(most):
            other = tl.load(side + j * ROWS, mask=here & (j < m), other=float("inf"))
            rank += ((other < slope) | ((other == slope) & (j < c))).to(tl.int32)
        low = tl.load(core_low + c * step, mask=here, other=0.0)
        place = part + rank * ROWS
        tl.store(place, low, mask=here)
        tl.store(place + plane, tl.load(core_high + c * step, mask=here, other=0.0), mask=here)
        tl.store(place + 2 * plane, phi(low), mask=here)
        tl.store(place + 3 * plane, slope, mask=here)
    for c in range(most):
        tl.store(side + c * ROWS, tl.zeros_like(m).to(tl.float64))


@triton.jit
def _decide(part, plane, m, most, live, kind, f, a, b, depth, mass, entropy, ROWS: tl.constexpr):
    """Undo what later nodes decided, apply a node's decision and all it implies; (mass, entropy) with classes up.

    The last plane of the workspace holds 4 * depth + side for every class, and 0 for a free one.
    """
    side = part + 4 * plane
    low_f = tl.load(part + f * ROWS, mask=live, other=0.0)
    high_f = tl.load(part + plane + f * ROWS, mask=live, other=0.0)
    mine = 4 * (depth + 1)
    for c in range(most):
        here = live & (c < m)
        low = tl.load(part + c * ROWS, mask=here, other=0.0)
        high = tl.load(part + plane + c * ROWS, mask=here, other=0.0)
        slope = tl.load(part + 3 * plane + c * ROWS, mask=here, other=0.0)
        was = tl.load(side + c * ROWS, mask=here, other=0.0)
        mark = tl.where(was.to(tl.int32) >= mine, 0, was.to(tl.int32))
        up = (kind != DOWN) & dominates(low, high, c, low_f, high_f, f)
        up = (up | ((kind == SPLIT) & (low >= b))) & (c != f)
        down = (kind != UP) & dominates(low_f, high_f, f, low, high, c)
        down = (down | ((kind == SPLIT) & (high <= a))) & (c != f)
        new = tl.where(up, UP, tl.where(down, DOWN, tl.where(c == f, kind, FREE)))
        mark = tl.where((kind != FREE) & (mark == 0) & (new != FREE), mine + new, mark)
        now = mark.to(tl.float64)
        tl.store(side + c * ROWS, now, mask=here & (now != was))
        raised = here & ((mark & 3) == UP)
        mass -= tl.where(raised, high - low, 0.0)
        entropy += tl.where(raised, slope * (high - low), 0.0)
    return mass, entropy


@triton.jit
def _fill(part, plane, m, most, feasible, split, room, rise, steep, mass, entropy, ROWS: tl.constexpr):
    """The fractional knapsack: (break class or -1, its bounds and slope, mass left for it, entropy before it).

    The split class stands where the slope of its present range puts it.
    """
    at = tl.full((ROWS,), -1, tl.int32)
    low_at = tl.zeros_like(mass)
    high_at = tl.zeros_like(mass)
    own = tl.zeros_like(mass)
    due = split >= 0
    seeking = feasible
    for c in range(most):
        here = seeking & (c < m)
        slope = tl.load(part + 3 * plane + c * ROWS, mask=here, other=float("inf"))
        comes = here & due & (steep <= slope)
        breaks = comes & (mass <= room)
        at = tl.where(breaks, split, at)
        seeking = seeking & ~breaks
        comes = comes & ~breaks
        mass = tl.where(comes, mass - room, mass)
        entropy = tl.where(comes, entropy + rise, entropy)
        due = due & ~comes
        here = here & seeking
        here = here & (tl.load(part + 4 * plane + c * ROWS, mask=here, other=1.0) == 0.0)
        low = tl.load(part + c * ROWS, mask=here, other=0.0)
        high = tl.load(part + plane + c * ROWS, mask=here, other=0.0)
        breaks = here & (mass <= high - low)
        at = tl.where(breaks, c, at)
        low_at = tl.where(breaks, low, low_at)
        high_at = tl.where(breaks, high, high_at)
        own = tl.where(breaks, slope, own)
        seeking = seeking & ~breaks
        here = here & ~breaks
        mass = tl.where(here, mass - (high - low), mass)
        entropy = tl.where(here, entropy + slope * (high - low), entropy)
    comes = seeking & due
    breaks = comes & (mass <= room)
    at = tl.where(breaks, split, at)
    comes = comes & ~breaks
    mass = tl.where(comes, mass - room, mass)
    entropy = tl.where(comes, entropy + rise, entropy)
    return at, low_at, high_at, own, mass, entropy


@triton.jit
def _neighbours(part, plane, m, most, branch, breaks, at, low_at, high_at, own, ROWS: tl.constexpr):
    """Slopes of the nearest free classes that can trade mass with the break class: the last before, the first after."""
    before = tl.full((ROWS,), -float("inf"), tl.float64)
    after = tl.full((ROWS,), float("inf"), tl.float64)
    for c in range(most):
        here = branch & (c < m) & (c != at)
        here = here & (tl.load(part + 4 * plane + c * ROWS, mask=here, other=1.0) == 0.0)
        low = tl.load(part + c * ROWS, mask=here, other=0.0)
        high = tl.load(part + plane + c * ROWS, mask=here, other=0.0)
        slope = tl.load(part + 3 * plane + c * ROWS, mask=here, other=0.0)
        sooner = tl.where(breaks, slope < own, (c < at) & ~dominates(low, high, c, low_at, high_at, at))
        later = tl.where(breaks, slope >= own, (c > at) & ~dominates(low_at, high_at, at, low, high, c))
        before = tl.where(here & sooner, slope, before)
        after = tl.where(here & later & (after == float("inf")), slope, after)
    return before, after


@triton.jit
def _push(node, field, top, mask, word, bound, a, b, ROWS: tl.constexpr):
    """Lay a node on the stack of every row in ``mask``; return the new heights."""
    place = node + top * ROWS
    tl.store(place, word, mask=mask)
    tl.store(place + field, bound, mask=mask)
    tl.store(place + 2 * field, a, mask=mask)
    tl.store(place + 3 * field, b, mask=mask)
    return top + mask.to(tl.int32)


@triton.jit(do_not_specialize=["max_nodes", "row_step", "class_step", "height", "width"])
def search_lanes(
    chosen,
    number,
    core_low,
    core_high,
    size,
    need,
    base,
    value,
    bound,
    workspace,
    stack,
    left,
    number_left,
    tolerance,
    max_nodes,
    row_step,
    class_step,
    height,
    width,
    ROWS: tl.constexpr,
):
    """Lower entropy in bits and its certified bound for the first ``number`` rows of ``chosen``.

    The rows that would need more than ``max_nodes`` nodes go to the list ``left``.

    ``workspace`` (programs, 5, width, ROWS) and ``stack`` (programs, 4, height, ROWS) are scratch memory.
    """
    program = tl.program_id(0)
    items = tl.load(number)
    step = tl.cast(class_step, tl.int64)
    lane = tl.arange(0, ROWS)
    plane = width * ROWS
    part = workspace + program.to(tl.int64) * (5 * plane) + lane
    field = height * ROWS
    node = stack + program.to(tl.int64) * (4 * field) + lane
    nothing = tl.zeros((ROWS,), tl.float64)
    infinity = tl.full((ROWS,), float("inf"), tl.float64)
    for group in range(program, tl.cdiv(items, ROWS), tl.num_programs(0)):
        item = group * ROWS + lane
        present = item < items
        row = tl.load(chosen + item, mask=present, other=0)
        m = tl.load(size + row, mask=present, other=0)
        whole = tl.load(need + row, mask=present, other=0.0)
        start = tl.load(base + row, mask=present, other=0.0)
        live = present & (m > 0) & (whole > SLACK)
        m = tl.where(live, m, 0)
        most = tl.max(m, 0)
        _sort_core(core_low + row * row_step, core_high + row * row_step, step, part, plane, m, most, ROWS)

        best = tl.where(live, infinity, start)
        certified = infinity
        cutoff = infinity
        reach = tl.where(m > FEW, nothing, infinity)
        fresh = present
        nodes = tl.zeros((ROWS,), tl.int32)
        top = tl.zeros((ROWS,), tl.int32)
        floor = -infinity
        a = nothing
        b = nothing
        word = nothing
        while tl.max(live.to(tl.int32), 0) > 0:
            kind, f, split, depth = unpack_node(word)
            holds = split >= 0
            phi_a = phi(a)
            room = tl.where(holds, b - a, 0.0)
            rise = tl.where(holds, phi(b) - phi_a, 0.0)
            steep = tl.where(holds, rise / tl.where(holds, room, 1.0), float("inf"))
            of_split = part + tl.maximum(split, 0) * ROWS
            mass = tl.where(holds, whole - (a - tl.load(of_split, mask=holds, other=0.0)), whole)
            entropy = tl.where(holds, start + (phi_a - tl.load(of_split + 2 * plane, mask=holds, other=0.0)), start)
            mass, entropy = _decide(part, plane, m, most, live, kind, f, a, b, depth, mass, entropy, ROWS)
            feasible = live & (mass >= -SLACK)
            mass = tl.maximum(mass, 0.0)
            at, low_at, high_at, own, mass, entropy = _fill(
                part, plane, m, most, feasible, split, room, rise, steep, mass, entropy, ROWS
            )
            found = at >= 0
            breaks = holds & (at == split)
            feasible = feasible & (found | (mass <= SLACK * m))

            first = tl.where(breaks, a, low_at)
            last = tl.where(breaks, b, high_at)
            own = tl.where(breaks, steep, own)
            of_at = part + tl.maximum(at, 0) * ROWS
            phi_first = tl.where(breaks, phi_a, tl.load(of_at + 2 * plane, mask=live & found, other=0.0))
            x = tl.where(found, first + mass, first)
            lowest = tl.where(found, entropy + own * mass, entropy)
            reached = tl.where(found, entropy + (phi(x) - phi_first), entropy)
            best = tl.where(feasible, tl.minimum(best, reached), best)
            floor = tl.maximum(floor, lowest)
            nodes += live.to(tl.int32)
            cutoff = tl.where(feasible & fresh, floor + reach, cutoff)
            fresh = fresh & ~live
            limit = tl.minimum(best - tolerance, cutoff)
            closed = ~found | (floor >= limit) | (top + 4 > height)
            certified = tl.where(feasible & closed, tl.minimum(certified, floor), certified)
            branch = feasible & ~closed

            if tl.max(branch.to(tl.int32), 0) > 0:
                # Below x its mass goes to a slope of `later` or more; above x it comes from one of at most `sooner`.
                sooner, later = _neighbours(part, plane, m, most, branch, breaks, at, low_at, high_at, own, ROWS)
                alone = ~holds | breaks
                sharp = alone & (first < x) & (x < last)
                below = tl.where(sharp, tl.maximum(floor, lowest + (x - first) * (later - own)), floor)
                above = tl.where(sharp, tl.maximum(floor, lowest + (last - x) * (own - sooner)), floor)
                certified = tl.where(branch & (below >= limit), tl.minimum(certified, below), certified)
                certified = tl.where(branch & (above >= limit), tl.minimum(certified, above), certified)
                depth += 1
                splits = pack_node(SPLIT, at, at, depth)
                down = branch & (below < limit)
                top = _push(node, field, top, down & alone, splits, below, first, x, ROWS)
                falls = pack_node(DOWN, at, split, depth)
                top = _push(node, field, top, down & ~breaks, falls, below, a, b, ROWS)
                up = branch & (above < limit)
                top = _push(node, field, top, up & alone, splits, above, x, last, ROWS)
                rises = pack_node(UP, at, split, depth)
                top = _push(node, field, top, up & ~breaks, rises, above, a, b, ROWS)

            # The next node of every row that has one; a row without either deepens its search or is done.
            waiting = live
            while tl.max(waiting.to(tl.int32), 0) > 0:
                empty = waiting & (top == 0)
                gap = best - tl.minimum(best, certified)
                deepen = empty & (gap > tolerance) & (nodes < max_nodes) & (reach < float("inf"))
                live = live & ~(empty & ~deepen)
                reach = tl.where(deepen, tl.where(reach > 0.0, 4.0 * reach, gap / 64.0), reach)
                certified = tl.where(deepen, infinity, certified)
                cutoff = tl.where(deepen, infinity, cutoff)
                fresh = fresh | deepen
                word = tl.where(deepen, 0.0, word)
                floor = tl.where(deepen, -infinity, floor)
                waiting = waiting & ~empty
                top = tl.where(waiting, top - 1, top)
                entry = node + top * ROWS
                edge = tl.load(entry + field, mask=waiting, other=0.0)
                drop = waiting & ((nodes >= max_nodes) | (edge >= tl.minimum(best - tolerance, cutoff)))
                certified = tl.where(drop, tl.minimum(certified, edge), certified)
                take = waiting & ~drop
                word = tl.where(take, tl.load(entry, mask=take, other=0.0), word)
                floor = tl.where(take, edge, floor)
                a = tl.where(take, tl.load(entry + 2 * field, mask=take, other=0.0), a)
                b = tl.where(take, tl.load(entry + 3 * field, mask=take, other=0.0), b)
                waiting = drop
        tl.store(value + row, best, mask=present)
        certified = tl.minimum(best, certified)
        tl.store(bound + row, certified, mask=present)
        append_rows(left, number_left, row, present & (best - certified > tolerance))
