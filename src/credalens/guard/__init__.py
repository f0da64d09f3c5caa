"""Guard: decisions with a promise, from predictions on calibration data to operation."""

from credalens.guard.compare_sets import SetQuality, compare_sets
from credalens.guard.conformal_sets import ConformalSets
from credalens.guard.covering_intervals import CoveringIntervals
from credalens.guard.decider import Guard
from credalens.guard.decisions import Decisions
from credalens.guard.drift import DriftAlarm

__all__ = ["ConformalSets", "CoveringIntervals", "Decisions", "DriftAlarm", "Guard", "SetQuality", "compare_sets"]
