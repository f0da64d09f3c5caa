"""The two calls of a user, ``score_file`` and ``score_folder``, and what they return."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from credalens.checks.options import check_choice, count_text
from credalens.core.options import collecting_open_rows, warn_of_all
from credalens.core.recalibration import Recalibration
from credalens.core.scores import SCORES
from credalens.scoring.settings import DEFAULT_SCORES, FIXED, GUARD, Scorer, ScoringSettings, Totals
from credalens.storage.atomic import atomic_file, check_file, check_no_input, naming_output, scratch_folder
from credalens.storage.formats.arrays import NpzWriter
from credalens.storage.formats.files import format_of
from credalens.storage.formats.parquet import ParquetWriter
from credalens.storage.predictions import open_predictions
from credalens.storage.source import Progress, RowWriter, Source

if TYPE_CHECKING:
    from credalens.guard import Guard
    from credalens.scoring.job import Executor, PartReport, ScoringJob
    from credalens.scoring.tables import ParquetTable, Sources
    from credalens.storage.arrow_path import ArrowPath

OUTPUTS: Final = (".parquet", ".npz")
ON_ERROR: Final = ("fail", "skip")
BLOCKS, BLOCK = 64, 1 << 16  # of a file, which tell it from another one


@dataclass(frozen=True)
class ScoreSummary:
    """The result of ``score_file``: the output, its settings, and the means over all rows.

    :ivar resumed_rows: rows of a folder that an earlier run had finished.
    :ivar mean_set_size: mean number of classes that the rule leaves possible.
    :ivar determinacy: share of rows where it leaves one.
    :ivar decisions: decision -> share of rows; None without a guard.
    """

    output: str
    members: int
    rows: int
    classes: int
    dtype: str
    access: str
    logits: bool
    base: float
    rule: str
    resumed_rows: int
    means: dict[str, float]
    mean_set_size: float
    determinacy: float
    decisions: dict[str, float] | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def of(cls, settings: ScoringSettings, totals: Totals, /, **facts: Any) -> ScoreSummary:
        """The means of one row at least."""
        rows, sums, decisions = totals.rows, totals.sums, None
        if settings.guard is not None:
            from credalens.guard.decisions import DECISIONS

            decisions = {name: sums[name] / rows for name in DECISIONS}
        kept = {name: getattr(settings, name) for name in ("members", "classes", "dtype", "logits", "base", "rule")}
        return cls(
            rows=rows, means={name: sums[name] / rows for name in settings.scores}, decisions=decisions,
            mean_set_size=sums["classes in sets"] / rows, determinacy=sums["determinate"] / rows, **kept, **facts,
        )  # fmt: skip


@dataclass(frozen=True)
class SkippedPart:
    """A part that ``score_folder(..., on_error="skip")`` left out, and what is wrong with it, by file and row."""

    part: str
    error: str


@dataclass(frozen=True)
class FolderSummary:
    """The result of ``score_folder``: the output, and how the work went.

    :ivar scores: rows, settings and means, as for a single file; ``resumed_rows`` were there before.
    :ivar rows_a_second: rows that one worker scored in a second, on average; None if nothing was left to score.
    :ivar repeated_ids: rows of the first of several tables that repeat an earlier id.
    :ivar left_out_rows: of tables after the first, by table: rows that the first does not have.
    :ivar retries: parts that were begun again, because a worker or its machine was lost.
    """

    scores: ScoreSummary
    parts: int
    resumed_parts: int
    skipped: tuple[SkippedPart, ...]
    workers: int
    rows_a_second: float | None
    retries: int
    repeated_ids: int
    left_out_rows: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, the scores among them."""
        fields = asdict(self)
        return {**fields.pop("scores"), **fields}


def score_file(
    source: str | os.PathLike[str], target: str | os.PathLike[str], /, *, logits: bool = False, base: float = 2,
    rule: str = "maximality", scores: Sequence[str] = DEFAULT_SCORES, guard: Guard | None = None,
    recalibration: Recalibration | None = None, chunk_rows: int | None = None, max_bytes: int | None = None,
    member_axis: int | None = None, threads: int | None = None, progress: Progress | None = None,
) -> ScoreSummary:  # fmt: skip
    """Score the member predictions in ``source`` (see ``open_predictions``) and write ``target``, .parquet or .npz.

    The columns are those of ``column_names``; ``scores`` names those of the catalogue (``CredalPrediction.score``) that are
    written, and ``guard`` adds its decision about every row. Members are recalibrated by ``recalibration``, or as those that
    the guard was fitted on. Rows are scored in chunks, so memory does not grow with the
    file. The output appears at once when all rows are scored; a run that was stopped leaves none, and begins anew when it is
    started again. ``max_bytes`` and ``member_axis`` are those of ``open_predictions``. ``progress`` is called with what is
    being done and the rows done and to do.

    >>> import tempfile, numpy as np
    >>> folder = tempfile.mkdtemp()
    >>> np.save(f"{folder}/members.npy", [[[0.2, 0.8], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]])
    >>> score_file(f"{folder}/members.npy", f"{folder}/scored.parquet").rows
    2
    """
    output = check_file(target)
    check_no_input([output], [source], doing="scored")
    suffix = format_of(output, OUTPUTS)
    predictions = open_predictions(source, logits=logits, max_bytes=max_bytes, member_axis=member_axis)
    members, rows, classes = predictions.shape
    scorer = Scorer.checked(
        guard, chunk_rows, threads, base=base, rule=rule, scores=scores, logits=logits, members=members,
        recalibration=recalibration,
        classes=classes, dtype=predictions.dtype, labels=predictions.has_labels,
    )  # fmt: skip
    report = progress or (lambda what, done, of: None)
    before, totals, readers = _fingerprint(predictions.path), Totals(), scorer.settings.for_readers(rows)
    with naming_output(output), scratch_folder(output) as scratch, atomic_file(output, scratch=scratch) as file:
        writer: RowWriter = NpzWriter(file, readers, scratch) if suffix == ".npz" else ParquetWriter(file, readers)
        with closing(writer), collecting_open_rows() as open_rows:
            report("scoring", 0, rows)
            rows_of_file = Source(str(source), predictions, logits, predictions.has_labels)
            for _, columns in scorer.scored(rows_of_file, warn=True):
                writer.write(columns)
                totals += Totals.of(columns)
                report("scoring", totals.rows, rows)
            writer.finish({})
        if _fingerprint(predictions.path) != before:
            raise ValueError(f"{source} was changed while it was being scored; nothing was written, run it again.")
    warn_of_all(open_rows, rows)
    return ScoreSummary.of(scorer.settings, totals, output=str(output), access=predictions.access, resumed_rows=0)


def _fingerprint(path: Path) -> str:
    """A hash of a file's size, time of change and 64 blocks spread over it: cheap, and changed by any ordinary edit."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        digest = hashlib.sha256(f"{status.st_size} {status.st_mtime_ns}".encode())
        for number in range(BLOCKS):
            file.seek(max(0, status.st_size - BLOCK) * number // (BLOCKS - 1))
            digest.update(file.read(BLOCK))
    return digest.hexdigest()


def score_folder(
    sources: Sources, target: str | os.PathLike[str], /, *, logits: bool = False, base: float = 2,
    rule: str = "maximality", scores: Sequence[str] = DEFAULT_SCORES, guard: Guard | None = None,
    recalibration: Recalibration | None = None, id_column: str | None = None, chunk_rows: int | None = None,
    max_bytes: int | None = None, threads: int | None = None, on_error: str = "fail", join: str = "exact",
    restart: bool = False,
    filesystem: Any = None, executor: Executor | None = None, progress: Progress | None = None,
) -> FolderSummary:  # fmt: skip
    """Score a table of member predictions, a folder of Parquet files, into a folder with one part for each of its files.

    The columns of members are found as by ``open_predictions``, and those of the output are those of ``column_names``,
    with the labels of the first source; ``scores``, ``guard`` and ``recalibration`` as in ``score_file``. Several sources are
    tables of one model each with the same row ids, in the column ``id_column`` ("id" by default), which the output has too;
    they are joined part by part where parts line up, and elsewhere by looking up ids. Every table must have the same ids, each
    once; with ``join="first"`` the rows are those of the first table, whose ids may repeat, and the summary counts them and
    the rows of others that were left out. A source may be a single file; the row groups of a large one are parts of their own.
    Paths may be URIs (s3://bucket/folder), or belong to the ``filesystem`` of Arrow that is given. ``max_bytes`` is that of
    ``open_predictions``, for each file.

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
    from credalens.scoring.job import PHRASES, ScoringJob, in_this_process, run_job
    from credalens.scoring.join import JOINS, TableInput, compare_ids
    from credalens.scoring.tables import columns_of_all, open_tables, parts_of
    from credalens.storage.arrow_path import arrow_path

    check_choice(on_error, ON_ERROR, "on_error")
    check_choice(join, JOINS, "join")
    tables, path = open_tables(sources, filesystem), arrow_path(target, filesystem)
    _check_apart(path, tables)
    row_ids = id_column or ("id" if len(tables) > 1 else None)
    if row_ids in (*FIXED, *SCORES, *GUARD):
        raise ValueError(
            f"the row ids cannot be in {row_ids!r}, which is a column of the output; rename it in the input."
        )
    columns = columns_of_all(tables, logits=logits, id_column=row_ids)
    scorer = Scorer.checked(
        guard, chunk_rows, threads, base=base, rule=rule, scores=scores, logits=logits, id=row_ids,
        recalibration=recalibration,
        members=sum(table.members for table in columns), classes=columns[0].classes, dtype=columns[0].dtype,
        labels=columns[0].label is not None,
    )  # fmt: skip
    repeated, left_out = compare_ids(tables, row_ids, join)
    parts = parts_of(tables[0], columns[0])
    job = ScoringJob(TableInput(tables, columns, parts, row_ids, logits, max_bytes), path, scorer)
    with job.run.open_run(scorer.settings.as_dict(), parts=job.part_names(), restart=restart, phrases=PHRASES):
        finished, attempted = run_job(job, executor or in_this_process, progress, skip_bad=on_error == "skip")
        job.run.remove_partial_files()
    return _summary(job, finished.values(), attempted.values(), repeated, left_out)


def _check_apart(target: ArrowPath, tables: Sequence[ParquetTable]) -> None:
    """Refuse to write into the input, or around it: the next run would take its output for input."""
    output = f"{target.resolve()}/"
    for table in tables:
        source = f"{table.source.resolve()}/"
        files = (table.path(file).resolve() for file in range(len(table.files)))  # links may lead anywhere
        nested = output.startswith(source) or any(f"{path}/".startswith(output) for path in (source, *files))
        if nested and target.filesystem == table.folder.filesystem:
            raise ValueError(f"cannot write {target}: the input is in {table}; name another folder.")


def _summary(
    job: ScoringJob, finished: Collection[PartReport], attempted: Collection[PartReport], repeated: int,
    left_out: dict[str, int],
) -> FolderSummary:  # fmt: skip
    """Describe what became of all parts; an error where nothing was scored."""
    reports = sorted((*finished, *attempted), key=lambda report: report.part)  # one order, whoever finished first
    bad, totals = [report for report in reports if report.error], Totals()
    for report in reports:
        totals += Totals(report.rows, report.sums)
    if not totals.rows:
        why = f"{count_text(len(bad), 'part')} left out; the first: {bad[0].error}" if bad else "no part has a row."
        raise ValueError(f"{job.input}: nothing was scored, {why}")
    resumed, seconds = sum(report.rows for report in finished), sum(report.seconds for report in reports)
    facts = {"output": str(job.target), "access": "streamed", "resumed_rows": resumed}
    return FolderSummary(
        scores=ScoreSummary.of(job.scorer.settings, totals, **facts),
        parts=len(reports) - len(bad),
        resumed_parts=len(finished),
        skipped=tuple(SkippedPart(str(job.input.path(report.part)), report.error) for report in bad),
        workers=len({report.worker for report in attempted}),
        rows_a_second=(totals.rows - resumed) / seconds if seconds else None,
        retries=sum(report.retries for report in attempted),
        repeated_ids=repeated,
        left_out_rows=left_out,
    )
