# mypy: ignore-errors
"""Branch and bound of the lower entropy, one program a row, as ``kernels/lower/branch.py``.

The open classes of the row lie in registers, sorted by slope; where the CPU loops over classes, this sums and scans along
them. Decisions carry the depth at which they were made, so that going back to a node is one comparison. They lie in
memory: Triton 3.6 cannot compile a ``while`` that carries a vector that is not read after it.
"""

import triton
import triton.language as tl

from credalens.cuda.counters import CURSOR, OPEN_ROWS
from credalens.cuda.lower.root import SLACK, chord_slope, nearest
from credalens.cuda.phi import phi

FREE, UP, DOWN, SPLIT = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)
FEW = tl.constexpr(96)  # open classes up to which one pass without a cutoff is quickest
CLASSES = tl.constexpr(8192)  # more than any class's position
LAST = tl.constexpr(0x7FFFFFFFFFFFFFFF)


@triton.jit
def dominates(low_i, high_i, i, low_j, high_j, j):
    """Fact c of ``kernels/lower/solve.py``, with equal intervals ordered by position."""
    return (low_i >= low_j) & (high_i >= high_j) & ((i < j) | (low_i > low_j) | (high_i > high_j))


@triton.jit
def pack_node(kind, f, split, depth):
    """Side, class, split class (-1 for none) and depth as one float64, exact below 2^53."""
    return (((depth.to(tl.int64) * CLASSES + split + 1) * CLASSES + f) * 4 + kind).to(tl.float64)


@triton.jit
def unpack_node(word):
    """The inverse of ``pack_node``; zero is the root."""
    bits = word.to(tl.int64)
    kind = (bits & 3).to(tl.int32)
    f = ((bits // 4) & (CLASSES - 1)).to(tl.int32)
    split = ((bits // (4 * CLASSES)) & (CLASSES - 1)).to(tl.int32) - 1
    return kind, f, split, (bits // (4 * CLASSES * CLASSES)).to(tl.int32)


@triton.jit
def _order(low, high, inside, i, WIDTH: tl.constexpr):
    """Positions of the classes in order of their chords' slopes; the last bits of a slope give way to the position."""
    slope = chord_slope(low, high, phi(low), phi(high))
    bits = slope.to(tl.int64, bitcast=True)
    key = tl.where(inside, tl.where(bits < 0, bits ^ LAST, bits), LAST)
    return tl.sort((key & ~(WIDTH - 1)) | i.to(tl.int64)) & (WIDTH - 1)


@triton.jit
def _decide(marks, kind, f, a, b, depth, low, high, low_f, high_f, i):
    """Undo what later nodes decided, then apply a decision and all it implies. ``marks``: 4 * depth + side."""
    mine = 4 * (depth + 1)
    marks = tl.where(marks >= mine, FREE, marks)
    up = (kind != DOWN) & dominates(low, high, i, low_f, high_f, f)
    up = (up | ((kind == SPLIT) & (low >= b))) & (i != f)
    down = (kind != UP) & dominates(low_f, high_f, f, low, high, i)
    down = (down | ((kind == SPLIT) & (high <= a))) & (i != f)
    side = tl.where(up, UP, tl.where(down, DOWN, tl.where(i == f, kind, FREE)))
    return tl.where((kind != FREE) & (marks == FREE) & (side != FREE), mine + side, marks)


@triton.jit
def _push(stack, top, word, bound, a, b):
    """Lay a node on the stack; return the new height."""
    place = stack + 4 * top
    tl.store(place, word)
    tl.store(place + 1, bound)
    tl.store(place + 2, a)
    tl.store(place + 3, b)
    return top + 1


@triton.jit(do_not_specialize=["tolerance", "max_nodes", "rows", "row_step", "class_step", "height"])
def search_rows(
    open_rows, core_low, core_high, size, need, base, value, bound, workspace, stack, counters, tolerance,
    max_nodes, rows, row_step, class_step, height, WHICH: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Lower entropy in bits and its bound for the rows of list WHICH of ``open_rows``, with at most WIDTH open classes.

    ``value`` and ``bound`` hold what the root found: an entropy that is attained and a lower bound. A program takes the next
    row when it is done with one, so that no row waits for a long search.
    """
    program = tl.program_id(0).to(tl.int64)
    step = tl.cast(class_step, tl.int64)
    i = tl.arange(0, WIDTH)
    lows = workspace + program * (5 * WIDTH)
    highs, phis, slopes, sides = lows + WIDTH, lows + 2 * WIDTH, lows + 3 * WIDTH, lows + 4 * WIDTH
    stack += program * height * 4
    nothing = tl.full((), 0.0, tl.float64)
    infinity = tl.full((), float("inf"), tl.float64)
    chosen = open_rows + tl.cast(rows, tl.int64) * WHICH
    cursor = counters + CURSOR + WHICH
    items = tl.load(counters + OPEN_ROWS + WHICH)
    item = tl.atomic_add(cursor, 1)
    while item < items:
        row = tl.load(chosen + item)
        m = tl.load(size + row)
        inside = i < m
        core = tl.cast(row, tl.int64) * row_step
        low = tl.load(core_low + core + i * step, mask=inside, other=0.0).to(tl.float64)
        high = tl.load(core_high + core + i * step, mask=inside, other=1.0).to(tl.float64)
        order = _order(low, high, inside, i, WIDTH)
        low = tl.load(core_low + core + order * step, mask=inside, other=0.0).to(tl.float64)
        high = tl.load(core_high + core + order * step, mask=inside, other=0.0).to(tl.float64)
        width = high - low
        phi_low = phi(low)
        phi_high = phi(high)
        gain = phi_high - phi_low
        slope = tl.where(inside, chord_slope(low, tl.where(inside, high, 1.0), phi_low, phi_high), float("inf"))
        tl.debug_barrier()
        tl.store(lows + i, low)
        tl.store(highs + i, high)
        tl.store(phis + i, phi_low)
        tl.store(slopes + i, slope)
        tl.store(sides + i, tl.zeros_like(slope))
        tl.debug_barrier()

        whole = tl.load(need + row)
        start = tl.load(base + row)
        live = (m > 0) & (whole > SLACK)
        best = tl.load(value + row)
        certified = infinity
        cutoff = infinity
        reach = tl.where(m > FEW, nothing, infinity)
        fresh = live
        nodes = tl.full((), 0, tl.int32)
        top = tl.full((), 0, tl.int32)
        floor = -infinity
        a = nothing
        b = nothing
        word = nothing
        while live:
            kind, f, split, depth = unpack_node(word)
            marks = tl.load(sides + i).to(tl.int32)
            marks = _decide(marks, kind, f, a, b, depth, low, high, tl.load(lows + f), tl.load(highs + f), i)
            tl.store(sides + i, marks.to(tl.float64))
            free = inside & ((marks & 3) == FREE)
            is_up = (marks & 3) == UP
            mass = whole - tl.sum(tl.where(is_up, width, 0.0), 0)
            entropy = start + tl.sum(tl.where(is_up, gain, 0.0), 0)

            # The fractional knapsack, with the split class where the slope of its present range puts it.
            holds = split >= 0
            phi_a = phi(a)
            room = nothing
            rise = nothing
            steep = infinity
            if holds:
                room = b - a
                phi_b = phi(b)
                rise = phi_b - phi_a
                steep = chord_slope(a, b, phi_a, phi_b)
                mass -= a - tl.load(lows + split)
                entropy += phi_a - tl.load(phis + split)
            feasible = mass >= -SLACK
            mass = tl.maximum(mass, 0.0)
            # Its turn is a position: slopes that agree but for their last bits may stand in another order.
            turn = tl.min(tl.where(slope >= steep, i, WIDTH), 0)
            after = i >= turn
            filled = tl.cumsum(tl.where(free, width, 0.0), 0) + tl.where(after, room, 0.0)
            at = tl.min(tl.where(free & (mass <= filled), i, WIDTH), 0)
            has_break = at < WIDTH
            at = tl.minimum(at, WIDTH - 1)
            break_slope = tl.load(slopes + at)
            passed = holds & ((at >= turn) | (has_break == 0))  # the split class comes before the break class
            before = tl.sum(tl.where(free & ~after, width, 0.0), 0)
            breaks = passed & (mass <= before + room)
            full = free & tl.where(breaks, ~after, (i < at) | (has_break == 0))
            used = tl.sum(tl.where(full, width, 0.0), 0) + tl.where(passed & ~breaks, room, 0.0)
            entropy += tl.sum(tl.where(full, gain, 0.0), 0) + tl.where(passed & ~breaks, rise, 0.0)
            rest = mass - used
            feasible = feasible & (has_break | breaks | (rest <= m * SLACK))
            has_break = has_break | breaks
            at = tl.where(breaks, split, at)
            low_at = tl.load(lows + at)
            high_at = tl.load(highs + at)
            first = tl.where(breaks, a, low_at)
            last = tl.where(breaks, b, high_at)
            break_slope = tl.where(breaks, steep, break_slope)
            rest = tl.where(has_break, tl.minimum(tl.maximum(rest, 0.0), last - first), 0.0)
            x = first + rest
            phi_first = tl.where(breaks, phi_a, tl.load(phis + at))
            lowest = tl.where(has_break, entropy + break_slope * rest, entropy)
            reached = tl.where(has_break, entropy + (phi(x) - phi_first), entropy)
            nodes += 1
            if feasible:
                best = tl.minimum(best, reached)
                floor = tl.maximum(floor, lowest)
                cutoff = tl.where(fresh, floor + reach, cutoff)
                fresh = fresh & (nodes < 0)
                limit = tl.minimum(best - tolerance, cutoff)
                if (has_break == 0) | (floor >= limit) | (top + 4 > height):
                    certified = tl.minimum(certified, floor)
                else:
                    # Below x its mass goes to a class after it in order of slope; above x it comes from one before.
                    trade = ~dominates(low, high, i, low_at, high_at, at)
                    sooner = free & tl.where(breaks, ~after, trade & (i < at))
                    trade = ~dominates(low_at, high_at, at, low, high, i)
                    later = free & tl.where(breaks, after, trade & (i > at))
                    below = floor
                    above = floor
                    alone = (split < 0) | breaks
                    if alone & (first < x) & (x < last):
                        below = tl.maximum(floor, lowest + (x - first) * nearest(slope - break_slope, later))
                        above = tl.maximum(floor, lowest + (last - x) * nearest(break_slope - slope, sooner))
                    depth += 1
                    if below >= limit:
                        certified = tl.minimum(certified, below)
                    else:
                        if alone:
                            top = _push(stack, top, pack_node(SPLIT, at, at, depth), below, first, x)
                        if breaks == 0:
                            top = _push(stack, top, pack_node(DOWN, at, split, depth), below, a, b)
                    if above >= limit:
                        certified = tl.minimum(certified, above)
                    else:
                        if alone:
                            top = _push(stack, top, pack_node(SPLIT, at, at, depth), above, x, last)
                        if breaks == 0:
                            top = _push(stack, top, pack_node(UP, at, split, depth), above, a, b)
            tl.debug_barrier()

            # The next node that can still matter; without one, deepen the search or be done.
            waiting = live
            while waiting & (top > 0):
                top -= 1
                floor = tl.load(stack + 4 * top + 1)
                waiting = (nodes >= max_nodes) | (floor >= tl.minimum(best - tolerance, cutoff))
                if waiting:
                    certified = tl.minimum(certified, floor)
            if waiting:
                gap = best - tl.minimum(best, certified)
                live = (gap > tolerance) & (nodes < max_nodes) & (reach < float("inf"))
                if live:
                    reach = tl.where(reach > 0.0, 4.0 * reach, gap / 64.0)
                    certified = infinity
                    cutoff = infinity
                    fresh = live
                    word = nothing
                    floor = -infinity
            else:
                word = tl.load(stack + 4 * top)
                a = tl.load(stack + 4 * top + 2)
                b = tl.load(stack + 4 * top + 3)
        tl.store(value + row, best)
        tl.store(bound + row, tl.maximum(tl.load(bound + row), tl.minimum(best, certified)))
        item = tl.atomic_add(cursor, 1)
