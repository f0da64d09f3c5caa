"""Scoring saved predictions of any size: a file into a file, tables into a folder, part by part, never half written."""

from credalens.checks.options import needing

with needing("pyarrow", part="credalens.scoring", extra="cli"):
    from credalens.scoring.score import FolderSummary, ScoreSummary, SkippedPart, score_file, score_folder
    from credalens.scoring.settings import DEFAULT_SCORES, column_names

__all__ = [
    "DEFAULT_SCORES",
    "FolderSummary",
    "ScoreSummary",
    "SkippedPart",
    "column_names",
    "score_file",
    "score_folder",
]
