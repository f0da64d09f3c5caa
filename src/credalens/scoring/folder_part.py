"""One part of the input to one part of the output: the unit of work that any engine can do anywhere."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Container, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from credalens.checks.bad_rows import naming_bad_row
from credalens.prediction import CredalPrediction, wrap, wrap_logits
from credalens.scoring.columns import SUMS, score_columns, sums_of, table_of
from credalens.scoring.folder_plan import FolderJob
from credalens.scoring.joined import Chunk

__all__ = ["PartReport", "finished_part", "rehearse", "score_part"]

PART, SCATTERED = b"credalens.part", b"credalens.scattered"


@dataclass(frozen=True)
class PartReport:
    """What became of a part.

    :ivar error: what is wrong with the input, by file and row; empty where the part was scored.
    :ivar failure: what kept the machine from scoring it, a full disk for one; no fault of the part.
    :ivar worker: the process that did it.
    :ivar retries: how often the work was begun before, by workers that were lost.
    """

    part: int
    rows: int = 0
    seconds: float = 0.0
    sums: dict[str, float] = field(default_factory=dict)
    error: str = ""
    failure: str = ""
    worker: str = ""
    retries: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def score_part(job: FolderJob, number: int, /) -> PartReport:
    """Score a part and write its output, which appears whole or not at all. Done twice, it gives the same bytes."""
    begin = time.perf_counter()
    made = partial(PartReport, number, worker=str(os.getpid()))
    if not job.fits_this_machine():
        return made(
            failure=f"{platform.node()} has another credalens than the machine that began this; install the same"
        )
    try:
        rows, sums = _write(job, number)
    except ValueError as error:
        job.output(number).remove()  # of an earlier run, before the input was changed
        return made(error=str(error))
    except OSError as error:
        return made(failure=f"cannot score {job.inputs.tables[0].part(number)} into {job.output(number)}: {error}")
    return made(rows=rows, sums=sums, seconds=time.perf_counter() - begin)


def finished_part(job: FolderJob, number: int, /) -> PartReport | None:
    """The report of a part that is there already, scored from these files with these settings; None where it is not."""
    try:
        with job.output(number).open() as file:
            about = pq.read_metadata(file)
    except (OSError, pa.ArrowInvalid):
        return None
    metadata = about.metadata or {}
    if SCATTERED not in metadata:
        return None
    if metadata.get(PART) != job.identity(number, json.loads(metadata[SCATTERED])).encode():
        return None
    return PartReport(number, about.num_rows, sums=sums_of(metadata))


def rehearse(job: FolderJob, /) -> None:
    """Score one row of certain members and forget it: kernels and libraries are loaded when the first part comes."""
    values = np.zeros((job.settings["members"], 1, job.settings["classes"]), job.settings["dtype"])
    values[..., 0] = 1
    table_of(score_columns(_predict(job, values), job.rule))


def _write(job: FolderJob, number: int) -> tuple[int, dict[str, float]]:
    rows, sums = 0, dict[str, float]()
    scattered = job.inputs.scattered(number)
    tables = _scored(job, number, scattered)
    first = next(tables)  # the input is looked at before anything is written
    about = {PART: job.identity(number, scattered), SCATTERED: json.dumps(scattered)}
    schema = first.schema.with_metadata({b"credalens": json.dumps(job.settings), **about})
    with job.output(number).writing() as file, pq.ParquetWriter(file, schema, use_dictionary=["label"]) as writer:
        for table in chain([first], tables):
            for name, value in sums_of(table.schema.metadata).items():
                sums[name] = sums.get(name, 0) + value
            writer.write_table(table.replace_schema_metadata(schema.metadata), row_group_size=max(1, len(table)))
            rows += len(table)
        writer.add_key_value_metadata({SUMS: json.dumps(sums)})
    return rows, sums


def _scored(job: FolderJob, number: int, scattered: Container[int]) -> Iterator[Any]:
    """The output of a part in chunks, each a table that carries its sums."""
    inputs = job.inputs
    path = inputs.tables[0].part(number)
    for chunk in inputs.chunks(number, job.chunk_rows, scattered):
        with naming_bad_row(path, chunk.start, row_name=partial(_name, job, chunk)):
            prediction = _predict(job, chunk.values)
        table = table_of(score_columns(prediction, job.rule))
        yield table if chunk.ids is None else table.add_column(0, str(inputs.id_column), chunk.ids)


def _predict(job: FolderJob, values: NDArray) -> CredalPrediction:
    return (wrap_logits if job.inputs.logits else wrap)(values, base=job.base, threads=job.threads)


def _name(job: FolderJob, chunk: Chunk, row: int, member: int) -> str:
    """A row and a member as the user knows them: by id where there are ids, by table where there are several."""
    own = "" if chunk.ids is None else f" (id {chunk.ids[row - chunk.start]})"
    table = f" (of {job.inputs.table_of(member)})" if len(job.inputs.tables) > 1 else ""
    return f"row {row}{own}, member {member}{table}"
