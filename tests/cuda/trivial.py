"""A kernel that every interpreter of Triton should be able to run: Triton 3.6 cannot where NumPy is 2.5 or later."""

import torch
import triton
import triton.language as tl


@triton.jit
def count(to, n):
    total = tl.zeros((4,), tl.int32)
    for _ in range(n):
        total += 1
    tl.store(to + tl.arange(0, 4), total)


def check_interpreter() -> None:
    found = torch.zeros(4, dtype=torch.int32)
    count[(1,)](found, 3)
    if found.tolist() != [3] * 4:
        raise ArithmeticError(f"counted {found.tolist()} instead of 3")
