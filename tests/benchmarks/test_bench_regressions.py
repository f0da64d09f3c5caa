"""Guards against slow-downs that do not depend on the machine: ratios of processor time, bytes, generated code."""

from __future__ import annotations

import re
import time

import numba
import numpy as np
import pytest

from benchmarks.contenders import classical_numpy
from benchmarks.memory import measure_memory
from benchmarks.predictions import predictions_for
from credalens.core.hartley import generalized_hartley
from credalens.core.intervals import probability_intervals
from credalens.prediction import wrap

WIDE = 4  # times the goal


def processor_seconds(*jobs, repeats=25):
    """The least processor time of each job in this thread: time lost to other processes does not count."""
    for job in jobs:
        job()
    best = [float("inf")] * len(jobs)
    for _ in range(repeats):
        for i, job in enumerate(jobs):
            start = time.thread_time()
            job()
            best[i] = min(best[i], time.thread_time() - start)
    return best


@pytest.mark.parametrize(("classes", "goal"), [(10, 1.0), (100, 1.0), (1000, 2.0)])
def test_wrap_costs_about_as_much_as_averaging(classes, goal):
    probs, _ = predictions_for(5, 20_000 // classes if classes > 10 else 4000, classes)
    ours, classical = processor_seconds(lambda: wrap(probs, threads=1), lambda: classical_numpy(probs))
    assert ours / classical < WIDE * goal


def test_hartley_costs_at_most_some_hundred_decompositions():
    """At 100 classes: the goal is 1 ms, some 250 times an averaged sample; a loop that is not vectorised takes 500."""
    probs, _ = predictions_for(5, 20, 100)
    lower, upper = probability_intervals(probs)
    many = np.tile(probs, (1, 100, 1))
    ours, classical = processor_seconds(
        lambda: generalized_hartley(lower, upper, threads=1), lambda: classical_numpy(many), repeats=5
    )
    assert (ours / 20) / (classical / 2000) < WIDE * 250


def test_the_convolution_is_vectorised():
    from credalens.kernels.hartley import _convolve
    from credalens.kernels.simd.jit import OPTIONS

    own = numba.njit(**{key: value for key, value in OPTIONS.items() if key != "pipeline_class"})(_convolve.py_func)
    array = numba.float64[::1]
    signature = (array, numba.float64, numba.float64, numba.int64, array, array)
    own.compile(signature)
    code = own.inspect_llvm(signature)
    assert re.search(r"fmul [a-z ]*<\d+ x double>", code)


def test_wrap_takes_little_more_memory_than_its_outputs():
    assert measure_memory(rows=200_000)["peak_over_outputs"] < 1.2
