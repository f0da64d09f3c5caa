"""Largest subset of the widths whose sum stays below a half: the balanced partition that maximum mean imprecision asks for."""

from credalens.kernels.simd.jit import kernel

NEGLIGIBLE = 1e-15  # widths below this change no sum, and differences of widths below this are rounding
ROUNDING = 1e-13  # of a sum of many widths: a half that is reached exactly, as by two members, may look passed
DIFFERENCED = 4096  # classes; of more, moving the differences takes longer than a search


@kernel
def _difference(widths, scratch):
    """Between the halves that Karmarkar and Karp's rule makes: the two largest become their difference until one is left."""
    for k in range(widths.size):
        scratch[k] = widths[k]
    for first in range(1, widths.size):
        difference, k = scratch[first - 1] - scratch[first], first + 1
        while k < widths.size and scratch[k] > difference:
            scratch[k - 1] = scratch[k]
            k += 1
        scratch[k - 1] = difference
    return scratch[widths.size - 1]


@kernel
def _search(widths, left, taken, branch, room, goal, best, max_nodes):
    """Depth first over which widths to take, the largest first: (best sum, whether the search ended within its budget).

    ``taken[k]`` is the sum of those taken before width k, ``left[k]`` the sum of all from k on, and ``branch[k]`` is 0 while
    width k is taken and 1 while it is not. A node is given up where all that is left cannot pass the best sum. Where a width
    is not taken the ones that are equal to it are not either, since it could change places with them.
    """
    depth, nodes = 0, 0
    taken[0], branch[0] = 0.0, -1
    while depth >= 0 and best < goal:
        if branch[depth] == 1:
            depth -= 1
            continue
        branch[depth] += 1
        nodes += 1
        if nodes > max_nodes:
            return best, False
        total = taken[depth] + (widths[depth] if branch[depth] == 0 else 0.0)
        if total > room or total + left[depth + 1] <= best:
            continue
        best = max(best, total)
        if branch[depth] == 1:
            width = widths[depth]
            while depth + 1 < widths.size and widths[depth + 1] >= width - NEGLIGIBLE:
                depth += 1
                branch[depth] = 1
        if depth + 1 < widths.size:
            depth += 1
            taken[depth], branch[depth] = total, -1
    return best, True


@kernel
def imprecision_rows(widths, limit, max_nodes, low, high, left, taken, branch):
    """max_A min(w(A), w(A^c)), at most ``limit``, of rows of widths in falling order, as a bracket (low, high).

    ``left``, ``taken`` and ``branch`` are scratch memory of one more than the classes.
    """
    rows, classes = widths.shape
    for i in range(rows):
        used = 0
        while used < classes and widths[i, used] > NEGLIGIBLE:
            used += 1
        left[used] = 0.0
        for k in range(used - 1, -1, -1):
            left[k] = left[k + 1] + widths[i, k]
        half = 0.5 * left[0]
        room, goal = half + ROUNDING, min(limit[i], half) - ROUNDING
        best, ended = 0.0, True
        for k in range(used):  # greedily, from the largest down
            best += widths[i, k] if best + widths[i, k] <= room else 0.0
        if best < goal:
            k = 0  # no subset weighs more than the heaviest classes, as many as fit of the lightest
            while left[k] > room:
                k += 1
            goal = min(goal, left[0] - left[used - k] - ROUNDING)
            if used <= DIFFERENCED:
                best = max(best, half - 0.5 * _difference(widths[i, :used], taken))
        if best < goal:
            best, ended = _search(widths[i, :used], left, taken, branch, room, goal, best, max_nodes)
        low[i] = min(best, limit[i]) if best < goal else goal + ROUNDING
        high[i] = low[i] if ended else goal + ROUNDING
