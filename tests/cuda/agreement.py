"""What the GPU path must agree on with the CPU path, whether its kernels run on a GPU or in Triton's interpreter.

``python -m tests.cuda.agreement`` (with the repository on the path) runs every check below in the interpreter.
"""

from __future__ import annotations

import math
import os
import sys
import time
from types import FunctionType, SimpleNamespace

import numpy as np
import torch
from scipy.optimize import brentq

from benchmarks.device import bandwidth
from credalens import CredalPrediction, prediction, wrap, wrap_logits
from credalens.cuda import GpuMembers, decomposition, gpu_members, launch, self_check
from tests.strategies import batch_of

UNABLE = 77  # the exit status where Triton's interpreter cannot run even a trivial kernel
EVERY = ("lower", "upper", "probability", "mean", "total")


def assert_agrees(ours: CredalPrediction, expected: CredalPrediction) -> None:
    """The same numbers up to the rounding of their dtype; lower entropies to 1e-9 bits where both are certified."""
    assert isinstance(ours._members, GpuMembers), "the CPU path did this"
    narrow = expected.lower.dtype == torch.float32
    for name in EVERY:
        one, other = getattr(ours, name), getattr(expected, name)
        assert (one.shape, one.dtype) == (other.shape, other.dtype), name
        # Near certainty an entropy of float32 carries the roundings of probabilities near one, of 6e-8 each.
        torch.testing.assert_close(one.cpu(), other, rtol=2e-6 if narrow else 1e-12, atol=4e-7 if narrow else 1e-12)
    slack = 4e-6 if narrow else 2e-9
    one, bound, other, floor = (x.cpu().double() for p in (ours, expected) for x in (p.aleatoric, p.aleatoric_bound))
    assert (bound <= other + slack).all()
    assert (floor <= one + slack).all()
    assert (bound <= one).all()
    assert (bound >= 0).all()
    settled = (one - bound <= slack) & (other - floor <= slack)
    assert ((one - other).abs()[settled] <= slack).all()
    assert ((ours.epistemic - (ours.total - ours.aleatoric)).abs().cpu() <= slack).all()


def tensors(kinds: tuple[str, ...], shape: tuple[int, int, int], dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    """(members, rows of every kind, classes)."""
    count, each, classes = shape
    return torch.from_numpy(np.concatenate([batch_of(k, count, each, classes, seed) for k in kinds], axis=1)).to(dtype)


def check_few_classes() -> None:
    """Fewer classes than a row has room for, on every kind of ensemble."""
    kinds = ("flat", "peaked", "sparse", "rounded", "one_hot", "agreeing", "mixed", "tiny")
    double, single = torch.float64, torch.float32
    for classes, dtype in ((2, double), (3, single), (5, double), (8, single), (10, double)):
        p = tensors(kinds, (3, 1, classes), dtype, classes)
        assert_agrees(wrap(p, max_nodes=4), on_cpu(wrap, p))  # searches to their end are below


def check_many_classes() -> None:
    """A row over several threads, all of it in float32: several rows a program or one, classes by fours or not."""
    four = ("peaked", "agreeing", "one_hot", "tiny")
    for kinds, shape in (
        (four, (4, 1, 40)),
        (four, (9, 1, 33)),
        (("peaked",), (2, 1, 260)),
        (("peaked",), (2, 1, 516)),
    ):
        p = tensors(kinds, shape, torch.float32)
        assert_agrees(wrap(p, base=10), on_cpu(wrap, p, base=10))
    half = torch.full((2, 2, 36), 1 / 32).masked_fill(torch.arange(36) > 31, 0.0)  # sums to one in any dtype
    half[0, 1], half[0, 1, 5] = 0.0, 1.0
    assert_agrees(wrap(half.bfloat16()), on_cpu(wrap, half.bfloat16()))


def check_level_that_newton_steps_swing_around() -> None:
    """Three groups of equal classes, nearly: the mass is steep where a group begins to rise, and flat on both sides."""
    sizes = torch.tensor([8, 8, 24])
    masses = torch.tensor([[0.24, 0.04, 0.72], [0.19, 0.16, 0.65], [0.38, 0.08, 0.54]], dtype=torch.float64)
    p = (masses / sizes).repeat_interleave(sizes, 1)[:, None]
    p = p * (1 + 1e-3 * torch.randn(3, 2, 40, generator=torch.Generator().manual_seed(0)))
    p /= p.sum(-1, keepdim=True)
    for x in (p, p.float()):
        assert_agrees(wrap(x, max_nodes=2), on_cpu(wrap, x))  # the level is tested, not the search


def check_nearly_agreeing_members() -> None:
    """Members within a few digits of each other leave few classes open, and the level is theirs."""
    p = tensors(("peaked",), (1, 2, 36), torch.float32).repeat(3, 1, 1)
    p[1] *= 1 + 1e-6 * torch.randn(36, generator=torch.Generator().manual_seed(0))
    chunk = decomposition.Chunk(p, "probs", 1e-5)
    chunk.decompose(launch.result_arrays(p, 36))
    assert (chunk.size.tensor() <= 9).all()
    assert ((chunk.total.tensor() - on_cpu(wrap, p.double()).total).abs() <= 5e-7).all()


def check_no_entropy_is_negative() -> None:
    """A corner of the simplex has none, whatever rounding takes from the certificate."""
    p = torch.zeros(2, 3, 40)
    p[0, :, 0] = 1.0
    p[1, 0, :2], p[1, 1], p[1, 2, 1:3] = 0.5, 1 / 40, torch.tensor([0.25, 0.75])
    assert_agrees(wrap(p), on_cpu(wrap, p))
    assert (wrap(p).aleatoric == 0).all()


def check_a_program_a_row() -> None:
    """Rows that the root leaves open, few classes and many."""
    for kinds, classes in ((("flat", "mixed"), 8), (("peaked",), 36)):
        p = tensors(kinds, (3, 2, classes), torch.float64, 1)
        assert_agrees(wrap(p), on_cpu(wrap, p))


def check_slopes_that_nearly_tie() -> None:
    """Two classes (the last ones) whose slopes are that of the lower part of another (the second), but for their last bits.

    The first class is up in every optimum; the next two, flipped together, leave the second one within that part.
    """
    low = np.array([0.61765176, 0.05184808, 0.08204422, 0.08204422, 0.01264995, 0.01264995])
    high = np.array([0.73440833, 0.12882676, 0.09300408, 0.09300408, 0.13550665, 0.13550665])
    middle = low[1] + 1 - low.sum() - (high[0] - low[0])
    high[4:] = brentq(lambda x: _slope(low[4], x) - _slope(low[1], middle), 0.1, 0.2, xtol=1e-16)
    units = np.spacing(high[4]) * np.array([(0, 8), (8, 0), (0, 16), (4, 12), (-8, 8)])
    rows = [_members(low, high + np.append(np.zeros(4), pair)) for pair in units]
    p = torch.from_numpy(np.stack(rows, 1))
    assert_agrees(wrap(p), on_cpu(wrap, p))


def _slope(low: float, high: float) -> float:
    return (low * math.log2(low) - high * math.log2(high)) / (high - low)


def _members(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Distributions whose extremes are these bounds: every class is the first to get of the mass once, and the last."""
    members = []
    for k in range(len(low)):
        width = np.roll(high - low, -k)
        share = np.clip(1 - low.sum() - (np.cumsum(width) - width), 0, width)
        members.append(low + np.roll(share, k))
    return np.stack(members)


def check_root() -> None:
    """What the root certifies is right, its brackets contain the truth, and it lists exactly the rows it leaves open."""
    from credalens.cuda.counters import OPEN_ROWS  # where Triton is

    for kinds, shape in (
        (("peaked", "flat", "agreeing"), (5, 5, 6)),
        (("peaked", "flat", "agreeing", "tiny"), (4, 4, 70)),
    ):
        p = tensors(kinds, shape, torch.float64)
        chunk = decomposition.Chunk(p, "probs", 1e-9)
        chunk.decompose(launch.result_arrays(p, shape[-1]))
        chunk.allocate(2000)
        chunk.solve_roots(1e-12)
        value, bound = chunk.value.tensor(), chunk.bound.tensor()
        truth, is_open = on_cpu(wrap, p), value - bound > 1e-12
        assert (bound <= truth.aleatoric + 1e-12).all()
        assert (truth.aleatoric_bound <= value + 1e-12).all()
        lists = chunk.open_rows.tensor().view(-1, chunk.rows)
        lengths = chunk.counters.tensor()[OPEN_ROWS.value :].tolist()
        left = [x[:n] for x, n in zip(lists, lengths, strict=False)]
        assert sorted(torch.cat(left).tolist()) == is_open.nonzero().view(-1).tolist()
        assert 0 < is_open.sum() < 0.6 * len(is_open)


def check_float32_rounds_outwards() -> None:
    """In float64 a certificate from float32 work is no higher than the truth, which it misses by little."""
    every = ("peaked", "flat", "sparse", "rounded", "one_hot", "mixed", "tiny")
    noise = torch.Generator().manual_seed(0)
    for kinds, shape in ((every, (4, 1, 37)), (("peaked", "sparse", "tiny"), (3, 1, 68))):
        p = tensors(kinds, shape, torch.float32)
        alike = p[:1, :2] * (1 + 1e-7 * torch.randn(shape[0], 2, shape[2], generator=noise))  # within rounding
        p = torch.cat([p, alike], 1)
        chunk = decomposition.Chunk(p, "probs", 1e-5)
        chunk.decompose(launch.result_arrays(p, shape[-1]))
        chunk.allocate(2000)
        chunk.solve_roots(1e-12)
        chunk.branch(1e-12)
        truth, value, bound = on_cpu(wrap, p.double()), chunk.value.tensor(), chunk.bound.tensor()
        assert (bound <= truth.aleatoric).all()
        assert (bound >= truth.aleatoric_bound - 2e-6).all()
        assert ((chunk.total.tensor() - truth.total).abs() <= 5e-7).all()
        assert (value >= bound).all()


def check_budget() -> None:
    """What a spent budget leaves is bracketed, and the bracket contains the truth."""
    p = tensors(("flat",), (4, 3, 9), torch.float64)
    for nodes in (2, 5):
        assert_agrees(wrap(p, max_nodes=nodes), on_cpu(wrap, p))


def check_rows_too_hard_for_the_device() -> None:
    """They are settled by the CPU path, also where rows come in pieces and as logits."""
    p = tensors(("flat", "mixed", "peaked"), (4, 3, 9), torch.float64)
    gpu_members.NODES, decomposition.SCRATCH = 1, 16 * 9 * 4
    found = [wrap(p), wrap_logits(p.log().clamp_min(-50), base=3)]
    gpu_members.NODES, decomposition.SCRATCH = 2000, 2**31
    expected = [on_cpu(wrap, p), on_cpu(wrap_logits, p.log().clamp_min(-50), base=3)]
    for ours, other in zip(found, expected, strict=True):
        assert_agrees(ours, other)
        assert (ours.aleatoric - ours.aleatoric_bound <= 1e-9).all()


def check_logits_shapes_and_lazy_parts() -> None:
    """Batch axes, a member axis elsewhere, ruled-out classes, and what is computed when first asked for."""
    z = torch.randn(2, 3, 2, 4, generator=torch.Generator().manual_seed(0)) * 3
    z[0, 0, 0, 1] = -float("inf")
    for logits, options in ((z, {}), (z.movedim(0, 1), {"member_axis": 1}), (torch.cat([z[:, :1]] * 9, -1), {})):
        ours, expected = wrap_logits(logits, **options), on_cpu(wrap_logits, logits, **options)
        assert_agrees(ours, expected)
        for name in ("total", "aleatoric", "epistemic"):
            one, other = getattr(ours.classical, name), getattr(expected.classical, name)
            torch.testing.assert_close(one.cpu(), other, rtol=0, atol=1e-6)
        torch.testing.assert_close(ours.hull.lower_entropy().cpu(), expected.hull.lower_entropy())


def check_pieces() -> None:
    """Rows that do not fit into the scratch memory at once."""
    p = tensors(("peaked", "mixed"), (2, 3, 3), torch.float16)
    decomposition.SCRATCH = 16 * 3 * 4
    ours = wrap(p)
    decomposition.SCRATCH = 2**31
    assert_agrees(ours, on_cpu(wrap, p))


def check_refusals() -> None:
    """Bad rows raise what the CPU path raises."""
    for classes in (3, 40):
        good = tensors(("agreeing",), (2, 3, classes), torch.float64)
        for fault in (0.2, -0.9, float("nan"), float("inf")):
            bad = good.clone()
            bad[1, 2, 0] = fault
            if fault == -0.9:
                bad[1, 2, 1] += 1 - bad[1, 2].sum()
            assert message(wrap, bad) == message(lambda x: on_cpu(wrap, x), bad)
            if not np.isfinite(fault):
                assert message(wrap_logits, bad) == message(lambda x: on_cpu(wrap_logits, x), bad)


def check_self_check() -> None:
    """The kernels pass the probe that every number of classes begins with."""
    assert self_check.agrees_with_cpu(torch.device("cpu"), torch.float64, "probs", 3)


def message(function, x) -> str:
    try:
        function(x)
    except ValueError as error:
        return str(error)
    raise AssertionError("no error")


def check_bandwidth_counts_what_the_kernel_moves():
    p = tensors(("peaked",), (5, 3, 40), torch.float32)
    found = bandwidth(p)
    assert math.isclose(found["kernel_tb_s"] * found["kernel_ms"], 1e-9 * (5 + 4) * 4 * p[0].numel(), rel_tol=1e-9)
    assert math.isclose(found["kernel_over_copy"], found["kernel_tb_s"] / found["copy_tb_s"], rel_tol=1e-9)


def on_cpu(function, x, **options) -> CredalPrediction:
    """What the CPU path gives."""
    asked, prediction.gpu_tensor = prediction.gpu_tensor, lambda x: None
    try:
        return function(x.cpu(), **options)
    finally:
        prediction.gpu_tensor = asked


CHECKS = [check for name, check in globals().items() if name.startswith("check_")]


def exit_without_interpreter() -> None:
    """Say so where Triton's own interpreter does not go with this NumPy or Python."""
    from tests.cuda.trivial import check_interpreter

    try:
        check_interpreter()
    except Exception as error:  # its own, around any other
        print(f"Triton's interpreter cannot run a trivial kernel here: {error}", file=sys.stderr)
        sys.exit(UNABLE)


def patch_language_once() -> None:
    """Triton's interpreter patches its language again for every call of a device function, which takes half of the time."""
    from triton import language
    from triton.runtime import interpreter

    interpreter._patch_lang(FunctionType(patch_language_once.__code__, {"tl": language, "core": language.core}))
    interpreter._patch_lang = lambda function: SimpleNamespace(restore=lambda: None)


if __name__ == "__main__":
    assert os.environ.get("TRITON_INTERPRET") == "1"
    exit_without_interpreter()
    patch_language_once()
    gpu_members.agrees_with_cpu = lambda *_: True
    prediction.gpu_tensor = lambda x: x
    for check in CHECKS:
        begun = time.process_time()
        check()
        print(check.__name__, f"{time.process_time() - begun:.1f} s", file=sys.stderr)
