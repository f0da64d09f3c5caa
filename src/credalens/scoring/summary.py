"""What a scoring job has done: means over all rows, parts, workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from credalens.checks.options import count_text
from credalens.guard.decisions import DECISIONS
from credalens.scoring.job import PartReport, ScoringJob
from credalens.scoring.parquet_folders import IdDifferences


@dataclass(frozen=True)
class ScoreSummary:
    """What ``score_file`` returns: what was written, under which settings, and the means over all rows.

    :ivar resumed_rows: rows that an earlier, killed run had finished.
    :ivar means: mean of each score.
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


@dataclass(frozen=True)
class SkippedPart:
    """A part that ``score_folder(..., on_error="skip")`` left out, and what is wrong with it, by file and row."""

    part: str
    error: str


@dataclass(frozen=True)
class FolderSummary:
    """What ``score_folder`` returns: what was written, and how the work went.

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


def summarise(
    job: ScoringJob, finished: Iterable[PartReport], scored: Iterable[PartReport], /, *, access: str
) -> ScoreSummary:
    """The means over the rows of all parts, of which ``finished`` were there before; at least one has a row."""
    resumed = list(finished)
    reports = sorted((*resumed, *scored), key=lambda report: report.part)  # one order, whoever finished first
    rows = _rows(reports)
    filled = [report for report in reports if report.rows]
    sums = {name: sum(report.sums[name] for report in filled) for name in filled[0].sums}
    return ScoreSummary(
        output=str(job.output),
        rows=rows,
        access=access,
        resumed_rows=_rows(resumed),
        means={name: sums[name] / rows for name in job.settings.scores},
        mean_set_size=sums["classes in sets"] / rows,
        determinacy=sums["determinate"] / rows,
        decisions={name: sums[name] / rows for name in DECISIONS} if job.guard else None,
        members=job.settings.members,
        classes=job.settings.classes,
        dtype=job.settings.dtype,
        logits=job.settings.logits,
        base=job.settings.base,
        rule=job.settings.rule,
    )


def summarise_folder(
    job: ScoringJob,
    finished: Mapping[int, PartReport],
    attempted: Mapping[int, PartReport],
    differences: IdDifferences,
    /,
) -> FolderSummary:
    """What became of all parts; an error where nothing was scored."""
    scored = [report for report in attempted.values() if not report.error]
    bad = sorted((report for report in attempted.values() if report.error), key=lambda report: report.part)
    if not _rows([*finished.values(), *scored]):
        why = f"{count_text(len(bad), 'part')} left out; the first: {bad[0].error}" if bad else "no part has a row."
        raise ValueError(f"{job.input}: nothing was scored, {why}")
    seconds = sum(report.seconds for report in scored)
    return FolderSummary(
        scores=summarise(job, finished.values(), scored, access="streamed"),
        parts=len(finished) + len(scored),
        resumed_parts=len(finished),
        skipped=tuple(SkippedPart(job.input.path(report.part), report.error) for report in bad),
        workers=len({report.worker for report in attempted.values()}),
        rows_a_second=_rows(scored) / seconds if seconds else None,
        retries=sum(report.retries for report in attempted.values()),
        repeated_ids=differences.repeated,
        left_out_rows=differences.left_out,
    )


def _rows(reports: Iterable[PartReport]) -> int:
    return sum(report.rows for report in reports)
