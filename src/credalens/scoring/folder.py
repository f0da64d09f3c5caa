"""A folder of member predictions in, a folder of credal predictions out: part by part, by any engine, resumable."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from credalens.checks.options import check_choice, check_threads
from credalens.scoring.columns import COLUMNS, MEASURES
from credalens.scoring.folder_output import check_apart, finished_parts, prepare_output
from credalens.scoring.folder_part import PartReport, score_part
from credalens.scoring.folder_plan import FolderJob, make_folder_job
from credalens.scoring.job import Progress, ScoreSummary
from credalens.scoring.places import place_of
from credalens.scoring.tables import Table, open_table

__all__ = ["FolderSummary", "SkippedPart", "one_by_one", "score_folder"]

ON_ERROR = ("fail", "skip")
Spread = Callable[[FolderJob, Sequence[int]], Iterable[PartReport]]


@dataclass(frozen=True)
class SkippedPart:
    """A part that was left out, and what is wrong with it, by file and row."""

    part: str
    error: str


@dataclass(frozen=True)
class FolderSummary:
    """What a run over a folder wrote, and how the work went.

    :ivar scores: rows, settings and means, as for a single file; ``resumed_rows`` were there before.
    :ivar rows_a_second: rows that one worker scored in a second, on average; None where nothing was left to score.
    :ivar retries: parts that were begun again, because a worker or its machine was lost.
    """

    scores: ScoreSummary
    parts: int
    resumed_parts: int
    skipped: tuple[SkippedPart, ...]
    workers: int
    rows_a_second: float | None
    retries: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, the scores among them."""
        mine = asdict(self)
        return {**mine.pop("scores"), **mine}


def one_by_one(job: FolderJob, numbers: Sequence[int], /) -> Iterator[PartReport]:
    """The parts in order, in this process."""
    return (score_part(job, number) for number in numbers)


def score_folder(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    /,
    *,
    logits: bool = False,
    base: float = 2,
    rule: str = "maximality",
    id_column: str | None = None,
    chunk_rows: int | None = None,
    threads: int | None = None,
    on_error: str = "fail",
    restart: bool = False,
    filesystem: Any = None,
    spread: Spread = one_by_one,
    progress: Progress | None = None,
) -> FolderSummary:
    """Score a table of member predictions, a folder of Parquet files, into a folder with one part for each of its parts.

    The columns of members are found as by ``open_predictions``, and those of the output are those of ``score_columns``.
    Several sources are tables of one model each with the same row ids, in the column ``id_column`` ("id" by default),
    which the output has too; they are joined part by part where parts line up, and elsewhere by looking up ids. Paths
    may be URIs (s3://bucket/folder), or belong to the ``filesystem`` of Arrow that is given.

    A part appears whole or not at all, so the same call goes on after a kill. A part that is damaged or holds a bad row
    is named by file and row: ``on_error="fail"`` stops there, ``"skip"`` leaves it out and goes on. ``spread`` does the
    work on parts; ``credalens.engines.score_folder_on_ray`` is this function with parts spread over a cluster.

    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credalens.storage import save_predictions
    >>> with TemporaryDirectory() as folder:
    ...     source, target = Path(folder, "in"), Path(folder, "out")
    ...     source.mkdir()
    ...     for part in ("a.parquet", "b.parquet"):
    ...         save_predictions(source / part, np.full((5, 20, 4), 0.25))
    ...     summary = score_folder(source, target)
    >>> summary.parts, summary.scores.rows
    (2, 40)
    """
    check_threads(threads)
    check_choice(on_error, ON_ERROR, "on_error")
    given = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    tables, place = _open_all(given, filesystem), place_of(target, filesystem)
    check_apart(place, tables)
    job = make_folder_job(
        tables,
        place,
        logits=logits,
        base=base,
        rule=rule,
        id_column=_check_id(id_column or ("id" if len(tables) > 1 else None)),
        chunk_rows=chunk_rows,
        threads=threads,
    )
    prepare_output(job, restart=restart)
    found = finished_parts(job)
    made = _score_missing(job, found, spread, on_error, progress or (lambda what, done, of: None))
    place.sweep()
    return _summary(job, found, made)


def _open_all(sources: Sequence[str | os.PathLike[str]], filesystem: Any) -> list[Table]:
    if not sources:
        raise ValueError("name at least one folder of predictions.")
    return [open_table(source, filesystem) for source in sources]


def _check_id(name: str | None) -> str | None:
    if name in COLUMNS:
        raise ValueError(f"the row ids cannot be in {name!r}, which is a column of the output; rename it in the input.")
    return name


def _score_missing(
    job: FolderJob, found: dict[int, PartReport], spread: Spread, on_error: str, report: Progress
) -> dict[int, PartReport]:
    missing = [number for number in range(job.parts) if number not in found]
    report("parts", len(found), job.parts)
    made: dict[int, PartReport] = {}
    for one in spread(job, missing) if missing else ():
        if one.failure:
            raise OSError(f"{one.failure}. {_kept(job, found, made)}")
        if one.error and on_error == "fail":
            raise ValueError(f"{one.error} {_kept(job, found, made)}")
        made[one.part] = one
        report("parts", len(found) + len(made), job.parts)
    return made


def _kept(job: FolderJob, found: dict[int, PartReport], made: dict[int, PartReport]) -> str:
    done = len(found) + sum(not one.error for one in made.values())
    return (
        f"{done} of {job.parts} parts are kept in {job.target}; the same command goes on from there, and --on-error skip "
        "leaves bad parts out."
    )


def _summary(job: FolderJob, found: dict[int, PartReport], made: dict[int, PartReport]) -> FolderSummary:
    scored = {number: one for number, one in made.items() if not one.error}
    skipped = [
        SkippedPart(str(job.inputs.tables[0].part(n)), made[n].error) for n in sorted(made.keys() - scored.keys())
    ]
    rows = sum(one.rows for one in scored.values())
    seconds = sum(one.seconds for one in scored.values())
    return FolderSummary(
        scores=_scores(job, [*found.values(), *scored.values()], sum(one.rows for one in found.values()), skipped),
        parts=len(found) + len(scored),
        resumed_parts=len(found),
        skipped=tuple(skipped),
        workers=len({one.worker for one in made.values()}),
        rows_a_second=rows / seconds if seconds else None,
        retries=sum(one.retries for one in made.values()),
    )


def _scores(job: FolderJob, parts: list[PartReport], resumed: int, skipped: list[SkippedPart]) -> ScoreSummary:
    rows = sum(one.rows for one in parts)
    if not rows:
        why = (
            f"all {len(skipped)} parts were left out; the first: {skipped[0].error}"
            if skipped
            else "no part has a row."
        )
        raise ValueError(f"{job.inputs.tables[0]}: nothing was scored, {why}")
    every = sorted((one for one in parts if one.rows), key=lambda one: one.part)  # one order, whoever finished first
    sums = {name: sum(one.sums[name] for one in every) for name in every[0].sums}
    settings = {name: job.settings[name] for name in ("members", "classes", "dtype", "logits", "base", "rule")}
    return ScoreSummary(
        output=str(job.target),
        rows=rows,
        access="streamed",
        resumed_rows=resumed,
        means={name: sums[name] / rows for name in MEASURES},
        mean_set_size=sums["set_size"] / rows,
        determinacy=sums["determinate"] / rows,
        **settings,
    )
