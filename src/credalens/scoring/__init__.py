"""Scoring saved predictions of any size: in chunks, resumable, the output written whole or not at all."""

from credalens.scoring.columns import COLUMNS
from credalens.scoring.job import ScoreSummary, score_file

__all__ = ["COLUMNS", "ScoreSummary", "score_file"]
