"""Every row is worked on once, whatever the number of threads; errors reach the caller and end the work."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from credalens.core.batches import CHUNK, ENOUGH, TURNS, chunk_rows, for_each_chunk

common = settings(derandomize=True, deadline=None)


@common
@example(1, 50_000, 4)
@example(2, 50_000, 4)
@given(st.integers(0, 5000), st.integers(1, 40_000), st.integers(1, 4))
def test_every_row_is_worked_on_once(rows, classes, threads):
    seen = np.zeros(rows, int)

    def work(start, stop):
        assert start < stop
        seen[start:stop] += 1

    for_each_chunk(work, rows, classes, threads=threads)
    assert (seen == 1).all()


@common
@given(st.integers(1, 10**7), st.integers(1, 40_000), st.integers(1, 64))
def test_chunks_fit_in_the_cache_and_give_every_thread_its_turns(rows, classes, workers):
    size = chunk_rows(rows, classes, workers)
    assert size == 1 or size * classes <= CHUNK
    if workers > 1 and size > 1:
        assert -(-rows // size) >= TURNS * workers


def test_the_calling_thread_works_and_little_work_starts_no_other():
    threads = set()
    for_each_chunk(lambda start, stop: threads.add(threading.get_ident()), 2 * ENOUGH - 1, 1, threads=8)
    assert threads == {threading.get_ident()}


def test_a_thread_that_waits_leaves_the_chunks_to_the_others():
    """One chunk is not done before all others are: only chunks handed out one by one let that end."""
    rest = threading.Semaphore(0)
    chunks = []

    def work(start, stop):
        chunks.append(start)
        if start > 0:
            rest.release()
            return
        for _ in range(2 * TURNS - 1):
            assert rest.acquire(timeout=300)

    for_each_chunk(work, 2 * TURNS * 64, CHUNK // 64, threads=2)
    assert sorted(chunks) == [64 * n for n in range(2 * TURNS)]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("bad", [0, 700, 9999])
def test_an_error_in_any_chunk_is_raised_and_ends_the_work(threads, bad):
    def work(start, stop):
        if start <= bad < stop:
            raise IndexError("this chunk")

    with pytest.raises(IndexError, match="this chunk"):
        for_each_chunk(work, 10_000, 100, threads=threads)


def test_no_chunk_is_begun_after_an_error():
    begun = []

    def work(start, stop):
        begun.append(start)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        for_each_chunk(work, 10_000, 100, threads=2)
    assert 1 <= len(begun) <= 2
