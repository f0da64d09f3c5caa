"""The two calls of a user: ``score_file`` and ``score_folder``. Both run one job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from credalens.checks.options import check_choice, check_threads
from credalens.core.scores import SCORES
from credalens.guard import Guard
from credalens.scoring.inputs import FileInput, fingerprint
from credalens.scoring.job import Executor, Progress, ScoringJob, in_this_process, run_job
from credalens.scoring.join_tables import TableInput
from credalens.scoring.outputs import FileOutput, FolderOutput
from credalens.scoring.parquet_folders import JOINS, ParquetTable, columns_of_all, compare_ids, open_table
from credalens.scoring.settings import DEFAULT_SCORES, FIXED, GUARD, make_settings, rows_at_a_time
from credalens.scoring.summary import FolderSummary, ScoreSummary, summarise, summarise_folder
from credalens.storage import open_predictions
from credalens.storage.arrow_path import ArrowPath, arrow_path
from credalens.storage.atomic import check_file, check_no_input
from credalens.storage.formats.files import format_of

OUTPUTS = (".parquet", ".npz")
ON_ERROR = ("fail", "skip")
Sources = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def score_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    /,
    *,
    logits: bool = False,
    base: float = 2,
    rule: str = "maximality",
    scores: Sequence[str] = DEFAULT_SCORES,
    guard: Guard | None = None,
    chunk_rows: int | None = None,
    max_bytes: int | None = None,
    member_axis: int | None = None,
    threads: int | None = None,
    restart: bool = False,
    executor: Executor = in_this_process,
    progress: Progress | None = None,
) -> ScoreSummary:
    """Score the member predictions in ``source`` (see ``open_predictions``) and write ``target``, .parquet or .npz.

    The columns are those of ``column_names``; ``scores`` names those of the catalogue (``CredalPrediction.score``) that are
    written, and ``guard`` adds its decision about every row. Rows are scored in chunks, so memory does not grow with the
    file.
    Finished chunks are kept in ``target``.parts until the whole output is written, which then appears at once. A run
    that was killed resumes if it is started again with the same options; ``restart=True`` begins
    anew. While it is being written the output takes its size on disk twice. ``max_bytes`` and ``member_axis`` are
    those of ``open_predictions``. ``progress`` is called with what is being done and the rows done and to do.

    >>> import tempfile, numpy as np
    >>> folder = tempfile.mkdtemp()
    >>> np.save(f"{folder}/members.npy", [[[0.2, 0.8], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]])
    >>> score_file(f"{folder}/members.npy", f"{folder}/scored.parquet").rows
    2
    """
    file = check_file(target)
    check_no_input([file], [source], doing="scored")
    format_of(file, OUTPUTS)
    check_threads(threads)
    predictions = open_predictions(source, logits=logits, max_bytes=max_bytes, member_axis=member_axis)
    members, rows, classes = predictions.shape
    part_rows = min(rows_at_a_time(members, classes, chunk_rows), rows)
    content = fingerprint(predictions.path)
    settings = make_settings(
        base=base,
        rule=rule,
        scores=scores,
        labels=predictions.has_labels,
        guard=guard and guard.digest,
        logits=logits,
        members=members,
        classes=classes,
        dtype=predictions.dtype,
        input=content,
        rows=rows,
        chunk_rows=part_rows,
        member_axis=predictions.member_axis,
    )
    parts, output = FileInput(predictions, content, part_rows), FileOutput.at(file)
    job = ScoringJob(parts, output, settings, part_rows, threads, guard)
    job.check_guard()
    names = job.part_names()
    with output.open_run(settings, names, restart=restart) as lock:
        with output.merging(names, settings) as merger:
            finished, scored = run_job(job, executor, progress, lock, completed=merger.add)
            _check_unchanged(job)
            for written in merger.finish():
                if progress:
                    progress("writing", written, rows)
            lock.check()
        output.run.clear()
    return summarise(job, finished.values(), scored.values(), access=predictions.access)


def score_folder(
    sources: Sources,
    target: str | os.PathLike[str],
    /,
    *,
    logits: bool = False,
    base: float = 2,
    rule: str = "maximality",
    scores: Sequence[str] = DEFAULT_SCORES,
    guard: Guard | None = None,
    id_column: str | None = None,
    chunk_rows: int | None = None,
    max_bytes: int | None = None,
    threads: int | None = None,
    on_error: str = "fail",
    join: str = "exact",
    restart: bool = False,
    filesystem: Any = None,
    executor: Executor = in_this_process,
    progress: Progress | None = None,
) -> FolderSummary:
    """Score a table of member predictions, a folder of Parquet files, into a folder with one part for each of its parts.

    The columns of members are found as by ``open_predictions``, and those of the output are those of ``column_names``,
    with the labels of the first source; ``scores`` and ``guard`` as in ``score_file``. Several sources are tables of one
    model each with the same row ids, in the column ``id_column`` ("id" by default), which the output has too; they are
    joined part by part where parts line up, and elsewhere by looking up ids. Every table must have the same ids, each once;
    with ``join="first"`` the rows are those of the first table, whose ids may repeat, and the summary counts them and the
    rows of others that were left out. Paths may be URIs (s3://bucket/folder), or belong to the ``filesystem`` of Arrow that
    is given. ``max_bytes`` is that of ``open_predictions``, for each file.

    A part appears whole or not at all, so the same call resumes after a kill. A part that is damaged or holds a bad row
    is named by file and row: ``on_error="fail"`` stops there, ``"skip"`` leaves it out and continues. ``executor`` scores
    the parts; ``credalens.engines.score_folder_on_ray`` is this function with parts spread over a cluster.

    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalens.storage import save_predictions
    >>> with TemporaryDirectory() as folder:
    ...     source, target = Path(folder, "in"), Path(folder, "out")
    ...     source.mkdir()
    ...     for part in ("a.parquet", "b.parquet"):
    ...         save_predictions(source / part, np.random.default_rng(0).dirichlet([1, 1, 1, 1], (5, 20)))
    ...     summary = score_folder(source, target)
    >>> summary.parts, summary.scores.rows
    (2, 40)
    """
    check_threads(threads)
    check_choice(on_error, ON_ERROR, "on_error")
    check_choice(join, JOINS, "join")
    tables, path = _open_tables(sources, filesystem), arrow_path(target, filesystem)
    _check_apart(path, tables)
    row_ids = _check_id(id_column or ("id" if len(tables) > 1 else None))
    columns = columns_of_all(tables, logits=logits, id_column=row_ids)
    members, classes = sum(table.members for table in columns), columns[0].classes
    settings = make_settings(
        base=base,
        rule=rule,
        scores=scores,
        labels=columns[0].label is not None,
        guard=guard and guard.digest,
        logits=logits,
        members=members,
        classes=classes,
        dtype=columns[0].dtype,
        id=row_ids,
    )
    differences = compare_ids(tables, row_ids, join)
    parts, output = TableInput(tables, columns, row_ids, logits, max_bytes), FolderOutput.at(path)
    job = ScoringJob(parts, output, settings, rows_at_a_time(members, classes, chunk_rows), threads, guard)
    job.check_guard()
    with output.open_run(settings, job.part_names(), restart=restart) as lock:
        finished, attempted = run_job(job, executor, progress, lock, skip_bad=on_error == "skip")
        output.run.remove_partial_files()
    return summarise_folder(job, finished, attempted, differences)


def _check_unchanged(job: ScoringJob) -> None:
    path = Path(job.input.path(0))
    if fingerprint(path) != job.settings.input:
        job.output.run.clear()
        raise ValueError(f"{path} was changed while it was being scored; nothing was written, run it again.")


def _open_tables(sources: Sources, filesystem: Any) -> tuple[ParquetTable, ...]:
    paths = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    if not paths:
        raise ValueError("name at least one folder of predictions.")
    return tuple(open_table(path, filesystem) for path in paths)


def _check_apart(target: ArrowPath, tables: Sequence[ParquetTable]) -> None:
    """Refuse to write into the input, or around it: the next run would take its output for input."""
    output = f"{target.resolve()}/"
    for table in tables:
        source = f"{table.source.resolve()}/"
        parts = (table.path(part).resolve() for part in range(len(table.parts)))  # links may lead anywhere
        nested = output.startswith(source) or any(f"{path}/".startswith(output) for path in (source, *parts))
        if nested and target.filesystem == table.folder.filesystem:
            raise ValueError(f"cannot write {target}: the input is in {table}; name another folder.")


def _check_id(name: str | None) -> str | None:
    if name in (*FIXED, *SCORES, *GUARD):
        raise ValueError(f"the row ids cannot be in {name!r}, which is a column of the output; rename it in the input.")
    return name
