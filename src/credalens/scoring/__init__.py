"""Scoring saved predictions of any size: one job, part by part, resumable, by any executor, never half written."""

from credalens.checks.options import needing

with needing("pyarrow", part="credalens.scoring", extra="cli"):
    from credalens.scoring.score import score_file, score_folder
    from credalens.scoring.settings import DEFAULT_SCORES, column_names
    from credalens.scoring.summary import FolderSummary, ScoreSummary, SkippedPart

__all__ = [
    "DEFAULT_SCORES",
    "FolderSummary",
    "ScoreSummary",
    "SkippedPart",
    "column_names",
    "score_file",
    "score_folder",
]
