"""Guard: decisions with a promise, from predictions on calibration data to operation."""

from credalens.guard.compare_sets import SetQuality, compare_sets
from credalens.guard.conformal_sets import ConformalSets
from credalens.guard.covering_intervals import CoveringIntervals
from credalens.guard.drift import DriftAlarm

__all__ = ["ConformalSets", "CoveringIntervals", "DriftAlarm", "SetQuality", "compare_sets"]
