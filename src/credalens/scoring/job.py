"""A scoring job: parts of tables into parts of an output folder, each of which any executor can score anywhere."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from credalens.core.options import OpenRows, collecting_open_rows, totals_of, warn_of_all
from credalens.scoring.join import PartRows, TableInput
from credalens.scoring.settings import Scorer, Totals
from credalens.storage.arrow_path import ArrowPath
from credalens.storage.formats.parquet import ParquetWriter
from credalens.storage.run_folder import RunFolder
from credalens.storage.source import Progress

FOOTERS: Final = 16  # parts of an object store that are looked at at a time
FOOTER: Final = "credalens.part"
MANIFEST: Final = "_credalens.json"
CODE_DIFFERS: Final = "credalens was another version, whose last digits may differ"
PHRASES: Final = {"version": CODE_DIFFERS, "kernels": CODE_DIFFERS}


@dataclass(frozen=True)
class PartReport:
    """The outcome of a part.

    :ivar error: what is wrong with the input, by file and row; empty where the part was scored.
    :ivar failure: what kept the machine from scoring it, a full disk for one; no fault of the part.
    :ivar open_rows: rows whose search ended before it was certified, as fields of `OpenRows`.
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


@dataclass(frozen=True)
class ScoringJob:
    """All that a worker needs to score a part: it can be sent to another machine."""

    input: TableInput
    target: ArrowPath
    scorer: Scorer

    @property
    def run(self) -> RunFolder:
        """The output folder."""
        return RunFolder(Path(self.target.path) if self.target.is_local else self.target, manifest=MANIFEST)

    def part_names(self) -> list[str]:
        """The names of all parts in the output."""
        return [part.name for part in self.input.parts]

    def identity(self, part: int, looked_up: Container[int], /) -> str:
        """A hash of the settings and of the files that a part is made from; it changes when one of them is written again."""
        state = self.input.state(part, looked_up)
        return hashlib.sha256(json.dumps([self.scorer.settings.as_dict(), state]).encode()).hexdigest()

    def finished_part(self, part: int, /) -> PartReport | None:
        """The report of a part that was scored earlier from these files with these settings; None where it was not."""
        try:
            with (self.target / self.input.parts[part].name).open() as file:
                footer = json.loads(pq.read_metadata(file).metadata[FOOTER.encode()])
            if footer["identity"] == self.identity(part, footer["looked_up"]):
                return PartReport(part, footer["rows"], sums=footer["sums"])
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):  # missing, damaged, of an older version
            pass
        return None

    def finished_parts(self) -> dict[int, PartReport]:
        """The parts that are there already, from their footers."""
        there = set(self.run.parts())
        candidates = [number for number, name in enumerate(self.part_names()) if name in there]
        with ThreadPoolExecutor(FOOTERS) as pool:
            reports = pool.map(self.finished_part, candidates)
            return {report.part: report for report in reports if report is not None}


class Executor(Protocol):
    """Scores parts of a job with ``score_part``, here or elsewhere, and reports each as soon as it is done."""

    def __call__(self, job: ScoringJob, parts: Sequence[int], /) -> Iterable[PartReport]:
        """The reports, in any order."""


def in_this_process(job: ScoringJob, parts: Sequence[int], /) -> Iterator[PartReport]:
    """The default executor: scores the parts in order."""
    return (score_part(job, part) for part in parts)


def run_job(
    job: ScoringJob, executor: Executor, progress: Progress | None, /, *, skip_bad: bool = False
) -> tuple[dict[int, PartReport], dict[int, PartReport]]:
    """Score the parts that are missing; returns the reports of those finished earlier, and of those scored now."""
    finished, of = job.finished_parts(), len(job.input.parts)
    missing = [part for part in range(of) if part not in finished]
    if progress:
        progress("parts", len(finished), of)
    scored: dict[int, PartReport] = {}
    for report in executor(job, missing) if missing else ():
        job.run.check_unchanged(job.scorer.settings.as_dict())
        if report.failure or (report.error and not skip_bad):
            complete = len(finished) + sum(not earlier.error for earlier in scored.values())
            advice = (
                f"{complete} of {of} parts are kept in {job.target}; the same command resumes from there, and "
                "--on-error skip leaves bad parts out."
            )
            raise OSError(f"{report.failure}. {advice}") if report.failure else ValueError(f"{report.error} {advice}")
        scored[report.part] = report
        if progress:
            progress("parts", len(finished) + len(scored), of)
    rows = sum(report.rows for report in scored.values())
    warn_of_all((OpenRows(**found) for report in scored.values() for found in report.open_rows), rows, stacklevel=3)
    return finished, scored


def score_part(job: ScoringJob, part: int, /) -> PartReport:
    """Score a part and write its output, which appears whole or not at all. Done twice, it gives the same bytes."""
    begin = time.perf_counter()
    report = partial(PartReport, part, worker=str(os.getpid()))
    if not job.scorer.settings.is_of_this_code():
        failure = f"{platform.node()} has another credalens than the machine that began this; install the same"
        return report(failure=failure)
    try:
        with collecting_open_rows() as collected:
            totals = _write_part(job, part)
    except ValueError as error:
        (job.run.path / job.input.parts[part].name).unlink(missing_ok=True)  # made before the input was changed
        return report(error=str(error))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        return report(failure=f"{reason} (scoring {job.input.path(part)})")
    open_rows = [asdict(total) for total in totals_of(collected)]
    return report(rows=totals.rows, sums=totals.sums, open_rows=open_rows, seconds=time.perf_counter() - begin)


def _write_part(job: ScoringJob, part: int) -> Totals:
    settings, rows, totals = job.scorer.settings, PartRows(job.input, part), Totals()
    with (
        job.run.writing(job.input.parts[part].name) as file,
        closing(ParquetWriter(file, settings.as_dict(), settings.id)) as writer,
    ):
        for chunk, columns in job.scorer.scored(rows, warn=part == 0):
            writer.write(columns, chunk.ids)
            totals += Totals.of(columns)
        identity = job.identity(part, rows.looked_up)
        writer.finish({FOOTER: json.dumps({"identity": identity, "looked_up": rows.looked_up, **asdict(totals)})})
    return totals
