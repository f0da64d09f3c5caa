"""The job behind ``credalens score``: a file of member predictions in, a file of credal predictions out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from credalens.checks.bad_rows import naming_bad_row
from credalens.checks.options import check_threads
from credalens.prediction import wrap, wrap_logits
from credalens.scoring.columns import MEASURES, score_columns, table_of
from credalens.scoring.merge import merge_parts
from credalens.scoring.parts import Parts, open_parts
from credalens.scoring.plan import Plan, fingerprint, make_plan
from credalens.storage import Predictions, open_predictions
from credalens.storage.atomic import check_target
from credalens.storage.formats.suffixes import format_of

__all__ = ["OUTPUTS", "ScoreSummary", "score_file"]

OUTPUTS = (".parquet", ".npz")
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class ScoreSummary:
    """What a run wrote: how much of it, under which settings, and the means over all rows.

    :ivar resumed_rows: rows that an earlier, killed run had finished.
    :ivar means: mean of each uncertainty.
    :ivar mean_set_size: mean number of classes that the rule leaves possible.
    :ivar determinacy: share of rows where it leaves one.
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

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def score_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    /,
    *,
    logits: bool = False,
    base: float = 2,
    rule: str = "maximality",
    chunk_rows: int | None = None,
    threads: int | None = None,
    restart: bool = False,
    progress: Progress | None = None,
) -> ScoreSummary:
    """Score the member predictions in ``source`` (see ``open_predictions``) and write ``target``, .parquet or .npz.

    The columns are those of ``score_columns``. Rows are scored in chunks, so memory does not grow with the file.
    Finished chunks are kept in ``target``.parts until the whole output is written, which then appears at once: a run
    that was killed goes on where it stopped when it is started again with the same options; ``restart=True`` begins
    anew. While it is being written the output takes its size on disk twice. ``progress`` is called with what is being
    done and the rows done and to do.

    >>> import tempfile, numpy as np
    >>> folder = tempfile.mkdtemp()
    >>> np.save(f"{folder}/members.npy", [[[0.2, 0.8]], [[0.6, 0.4]]])
    >>> score_file(f"{folder}/members.npy", f"{folder}/scored.parquet").rows
    1
    """
    output = check_target(target)
    format_of(output, OUTPUTS)
    check_threads(threads)
    predictions = open_predictions(source, logits=logits)
    _check_not_the_source(output, predictions.path)
    plan = make_plan(predictions, base=base, rule=rule, chunk_rows=chunk_rows)
    report = progress or (lambda what, done, rows: None)
    with open_parts(output, plan, restart=restart) as parts:
        resumed = _score_missing(predictions, parts, output, threads, report)
        with _writing(output, parts):
            merge_parts(parts, output, lambda done: report("writing", done, plan.rows))
        summary = _summary(output, predictions, plan, parts.sums(), resumed)
        parts.remove()
    return summary


def _check_not_the_source(target: Path, source: Path) -> None:
    if target.exists() and target.samefile(source):
        raise ValueError(f"cannot write {target}: it is the file that is being scored; choose another name.")


def _score_missing(predictions: Predictions, parts: Parts, target: Path, threads: int | None, report: Progress) -> int:
    """Finish all parts; returns how many rows were there already."""
    plan, missing = parts.plan, parts.missing()
    todo = sum(stop - start for start, stop in map(plan.bounds, missing))
    resumed = done = plan.rows - todo
    report("scoring", done, plan.rows)
    for part in missing:
        start, stop = plan.bounds(part)
        table = _score_rows(predictions, parts, start, stop, threads)
        with _writing(target, parts):
            parts.write(part, table)
        report("scoring", done := done + stop - start, plan.rows)
    if fingerprint(predictions.path) != plan.input:
        parts.remove()
        raise ValueError(
            f"{predictions.path} was changed while it was being scored; nothing was written, run it again."
        )
    return resumed


def _score_rows(predictions: Predictions, parts: Parts, start: int, stop: int, threads: int | None) -> pa.Table:
    """One part. Input that is refused now is refused in every run, so the parts are of no use to anyone."""
    plan = parts.plan
    try:
        chunk = predictions.read(start, stop)
        with naming_bad_row(predictions.path, start):
            scored = (wrap_logits if plan.logits else wrap)(chunk, base=plan.base, threads=threads)
    except ValueError:
        parts.remove()
        raise
    return table_of(score_columns(scored, plan.rule))


@contextmanager
def _writing(target: Path, parts: Parts) -> Iterator[None]:
    """Word a disk's refusal, and say what is kept."""
    try:
        yield
    except OSError as error:
        finished = parts.plan.parts - len(parts.missing())
        reason = error.strerror or error
        if not finished:
            parts.remove()
            raise OSError(f"cannot write {target}: {reason}.") from error
        raise OSError(
            f"cannot write {target}: {reason}. {finished} of {parts.plan.parts} parts are kept in {parts.folder}; "
            "make room and run the same command again to go on from there."
        ) from error


def _summary(target: Path, predictions: Predictions, plan: Plan, sums: dict[str, float], resumed: int) -> ScoreSummary:
    return ScoreSummary(
        output=str(target),
        members=plan.members,
        rows=plan.rows,
        classes=plan.classes,
        dtype=plan.dtype,
        access=predictions.access,
        logits=plan.logits,
        base=plan.base,
        rule=plan.rule,
        resumed_rows=resumed,
        means={name: sums[name] / plan.rows for name in MEASURES},
        mean_set_size=sums["set_size"] / plan.rows,
        determinacy=sums["determinate"] / plan.rows,
    )
