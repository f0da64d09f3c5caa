"""One scoring job: parts of an input to parts of an output, each of which any executor can score anywhere."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import rounding
from credalens.checks.bad_rows import naming_bad_row
from credalens.checks.doubtful_members import warn_of_members
from credalens.core.open_rows import OpenRows, collecting_open_rows, totals_of, warn_of_all
from credalens.guard import Guard
from credalens.guard.signature import PredictionKind
from credalens.prediction import CredalPrediction, wrap, wrap_logits
from credalens.scoring.inputs import Chunk, FileInput
from credalens.scoring.join_tables import TableInput
from credalens.scoring.outputs import FileOutput, FolderOutput, ScoredChunk, error_reason
from credalens.scoring.settings import ScoringSettings, same_code, score_columns, sums_of, table_of
from credalens.storage.lock import Lock

FOOTERS: Final = 16  # parts of an object store that are looked at at a time


@dataclass(frozen=True)
class PartReport:
    """What became of a part.

    :ivar error: what is wrong with the input, by file and row; empty where the part was scored.
    :ivar failure: what kept the machine from scoring it, a full disk for one; no fault of the part.
    :ivar open_rows: rows whose search ended before it was certified, as fields of `OpenRows`.
    :ivar worker: the process that did it.
    :ivar retries: how often the work was begun before, by workers that were lost.
    """

    part: int
    rows: int = 0
    seconds: float = 0.0
    sums: dict[str, float] = field(default_factory=dict)
    error: str = ""
    failure: str = ""
    open_rows: list[dict[str, Any]] = field(default_factory=list)
    worker: str = ""
    retries: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class ScoringJob:
    """All that a worker needs to score a part: it can be sent to another machine."""

    input: FileInput | TableInput
    output: FileOutput | FolderOutput
    settings: ScoringSettings
    chunk_rows: int
    threads: int | None
    guard: Guard | None = None

    def part_names(self) -> list[str]:
        """The names of all parts in the output."""
        return [self.input.part_name(part) for part in range(self.input.parts)]

    def identity(self, part: int, tables_to_gather: Container[int], /) -> str:
        """A hash of the settings and of the files that a part is made from; it changes when one of them is written again."""
        state = self.input.state(part, tables_to_gather)
        return hashlib.sha256(json.dumps([self.settings.as_dict(), state]).encode()).hexdigest()

    def predict(self, values: NDArray, /) -> CredalPrediction:
        """The credal prediction of some rows, which a file may hold with fewer digits."""
        wrap_all = wrap_logits if self.settings.logits else wrap
        prediction = wrap_all(values, base=self.settings.base, threads=self.threads)
        return replace(prediction, _rounding=max(prediction._rounding, self._rounding))

    def finished_part(self, part: int, /) -> PartReport | None:
        """The report of a part that was scored earlier from these files with these settings; None where it was not."""
        footer = self.output.read_footer(self.input.part_name(part))
        if footer is None or footer.identity != self.identity(part, footer.scattered):
            return None
        return PartReport(part, footer.rows, sums=footer.sums)

    def finished_parts(self) -> dict[int, PartReport]:
        """The parts that are there already, from their footers."""
        there = set(self.output.run.parts())
        candidates = [part for part, name in enumerate(self.part_names()) if name in there]
        with ThreadPoolExecutor(FOOTERS) as pool:
            reports = pool.map(self.finished_part, candidates)
            return {report.part: report for report in reports if report is not None}

    def rehearse(self) -> None:
        """Score one row of certain members and forget it: kernels and libraries are loaded before the first part comes."""
        table_of(self.columns(self._certain_row()))

    def check_guard(self) -> None:
        """Refuse a guard that is for predictions of another kind, before anything is written."""
        if self.guard is not None:
            own = self.settings
            self.guard.check(PredictionKind(own.classes, own.members, 0.0, self._rounding), own.base)

    @property
    def _rounding(self) -> float:
        """Of the members' probabilities, by the dtype of the input."""
        return rounding(self.settings.dtype, logits=self.settings.logits)

    def columns(self, prediction: CredalPrediction, labels: NDArray | None = None, /) -> dict[str, NDArray]:
        """What is written about some rows."""
        return score_columns(prediction, self.settings.rule, self.settings.scores, labels, self.guard)

    def _certain_row(self) -> CredalPrediction:
        values = np.zeros((self.settings.members, 1, self.settings.classes), self.settings.dtype)
        values[..., 0] = 10 if self.settings.logits else 1
        return self.predict(values)


Executor = Callable[[ScoringJob, Sequence[int]], Iterable[PartReport]]
Progress = Callable[[str, int, int], None]


def in_this_process(job: ScoringJob, parts: Sequence[int], /) -> Iterator[PartReport]:
    """The default executor: scores the parts in order."""
    return (score_part(job, part) for part in parts)


def run_job(
    job: ScoringJob,
    executor: Executor,
    progress: Progress | None,
    lock: Lock,
    /,
    *,
    skip_bad: bool = False,
    completed: Callable[[int], None] = lambda part: None,
) -> tuple[dict[int, PartReport], dict[int, PartReport]]:
    """Score the parts that are missing; returns the reports of those finished earlier, and of those scored now.

    ``completed`` is called for each of both.
    """
    finished = job.finished_parts()
    for part in finished:
        completed(part)
    missing = [part for part in range(job.input.parts) if part not in finished]
    report_progress = _counting(job, progress or (lambda what, done, of: None))
    report_progress(finished.values())
    scored: dict[int, PartReport] = {}
    for report in executor(job, missing) if missing else ():
        lock.check()
        if report.failure or (report.error and not skip_bad):
            complete = len(finished) + sum(not earlier.error for earlier in scored.values())
            raise job.output.stopped(report.error, report.failure, complete, job.input.parts)
        scored[report.part] = report
        completed(report.part)
        report_progress([report])
    rows = sum(report.rows for report in scored.values())
    warn_of_all((OpenRows(**found) for report in scored.values() for found in report.open_rows), rows, stacklevel=3)
    return finished, scored


def _counting(job: ScoringJob, progress: Progress) -> Callable[[Iterable[PartReport]], None]:
    """Counts what is reported: rows where their number is known beforehand, else parts."""
    done = 0

    def report_progress(reports: Iterable[PartReport]) -> None:
        nonlocal done
        if job.settings.rows is None:
            progress("parts", done := done + len(list(reports)), job.input.parts)
        else:
            progress("scoring", done := done + sum(report.rows for report in reports), job.settings.rows)

    return report_progress


def score_part(job: ScoringJob, part: int, /) -> PartReport:
    """Score a part and write its output, which appears whole or not at all. Done twice, it gives the same bytes."""
    begin = time.perf_counter()
    report = partial(PartReport, part, worker=str(os.getpid()))
    if not same_code(job.settings):
        return report(
            failure=f"{platform.node()} has another credalens than the machine that began this; install the same"
        )
    name = job.input.part_name(part)
    try:
        tables_to_gather = job.input.tables_to_gather(part)
        chunks, identity = _scored_chunks(job, part, tables_to_gather), job.identity(part, tables_to_gather)
        with collecting_open_rows() as collected:
            footer = job.output.write_part(name, chunks, job.settings, identity, tables_to_gather)
    except ValueError as error:
        (job.output.run.path / name).unlink(missing_ok=True)  # of an earlier run, before the input was changed
        return report(error=str(error))
    except OSError as error:
        return report(failure=f"{error_reason(error)} (scoring {job.input.path(part)})")
    open_rows = [asdict(total) for total in totals_of(collected)]
    return report(rows=footer.rows, sums=footer.sums, open_rows=open_rows, seconds=time.perf_counter() - begin)


def _scored_chunks(job: ScoringJob, part: int, tables_to_gather: Container[int]) -> Iterator[ScoredChunk]:
    """The output of a part in chunks."""
    for chunk in job.input.chunks(part, job.chunk_rows, tables_to_gather):
        with naming_bad_row(job.input.path(part), chunk.start, row_name=partial(_row_name, job, chunk)):
            prediction = job.predict(chunk.values)
        if part == chunk.start == 0:
            warn_of_members(prediction)
        columns = job.columns(prediction, chunk.labels)
        table = table_of(columns)
        if chunk.ids is not None:
            table = table.add_column(0, str(job.settings.id), chunk.ids)
        yield table, sums_of(columns)


def _row_name(job: ScoringJob, chunk: Chunk, row: int, member: int) -> str:
    """A row and a member as the user knows them: the row by its id too, where there are ids."""
    row_id = "" if chunk.ids is None else f" (id {chunk.ids[row - chunk.start]})"
    return f"row {row}{row_id}, {job.input.member_name(member)}"
