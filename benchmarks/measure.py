"""The whole benchmark: every part in turn, and the goals beside what was measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from benchmarks import calls, decide, decomposition, device
from benchmarks.goals import compare_with_goals
from benchmarks.growth import measure_growth
from benchmarks.hard import measure_flat, measure_hartley
from benchmarks.memory import measure_memory
from benchmarks.predictions import MEMBERS
from benchmarks.provenance import provenance
from benchmarks.score import measure_score
from benchmarks.startup import measure_startup
from benchmarks.wrapper import measure_wrapper
from credalens.checks.options import check_choice

__all__ = ["PARTS", "measure_all"]

SLOW: Final = 1000  # classes at which the solver needs a minute a sample
PARTS: Final = (
    "decomposition", "calls", "decide", "growth", "flat", "hartley", "memory", "score", "startup", "wrapper", "device",
)  # fmt: skip
Job = tuple[str, Callable[[], Any]]


def measure_all(
    *,
    quick: bool = False,
    parts: Sequence[str] = (),
    step: Callable[[str, int, int], object] = lambda what, done, of: None,
) -> dict[str, Any]:
    """Everything as plain values, ready for JSON.

    ``step`` is called with the part that begins, how many parts are done, and of how many. ``quick`` leaves out what takes
    long: a thousand classes beside the solver, a file of a million rows, the first call on a fresh install, and the
    forward passes of five networks. ``parts`` names the sections to measure, such as "device"; none means all.
    """
    began = time.perf_counter()
    sections = {check_choice(part, PARTS, "part") for part in parts} or set(PARTS)
    measured: dict[str, Any] = {"members": MEMBERS, "provenance": provenance()}
    jobs = [(name, job) for name, job in _jobs(quick=quick) if name.partition("/")[0] in sections]
    for done, (name, job) in enumerate(jobs):
        step(name, done, len(jobs))
        _store(measured, name, job())
    step("done", len(jobs), len(jobs))
    measured["goals"] = [goal.as_json() for goal in compare_with_goals(measured)]
    measured["seconds"] = time.perf_counter() - began
    return measured


def _jobs(*, quick: bool) -> list[Job]:
    """(name, job), the name being "section" or "section/entry"."""
    classes = [c for c in decomposition.CLASSES if not (quick and c >= SLOW)]
    jobs: list[Job] = [(f"decomposition/{c}", partial(decomposition.measure_decomposition, c)) for c in classes]
    jobs += [(f"calls/{c}", partial(calls.measure_calls, c)) for c in calls.ROWS]
    jobs += [(f"decide/{c}", partial(decide.measure_decide, c)) for c in decide.ROWS]
    jobs += [
        ("growth", measure_growth),
        ("flat", measure_flat),
        ("hartley", measure_hartley),
        ("memory", measure_memory),
    ]
    if not quick:
        jobs += [("score", measure_score), ("startup", measure_startup)]
        jobs += [(f"wrapper/{name}", partial(measure_wrapper, name)) for name in ("cpu", "cuda")]
    return jobs + [(f"device/{c}", partial(device.measure_device, c)) for c in device.ROWS]


def _store(measured: dict[str, Any], name: str, value: Any) -> None:
    """Put a value under its section: a list for numbered entries, a dictionary for named ones."""
    section, _, entry = name.partition("/")
    if not entry:
        measured[section] = value
    elif entry.isdigit():
        measured.setdefault(section, []).append(value)
    else:
        measured.setdefault(section, {})[entry] = value
