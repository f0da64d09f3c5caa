"""Scoring saved predictions of any size: files in chunks, folders part by part, resumable, never half written."""

from credalens.scoring.columns import COLUMNS
from credalens.scoring.folder import FolderSummary, SkippedPart, score_folder
from credalens.scoring.job import ScoreSummary, score_file

__all__ = ["COLUMNS", "FolderSummary", "ScoreSummary", "SkippedPart", "score_file", "score_folder"]
