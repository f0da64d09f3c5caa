"""Decisions with a promise: accept or abstain, sets of classes, intervals and drift alarms, each fitted on calibration data."""

from credalens.guard.conformal_sets import ConformalSets, SetQuality, compare_sets
from credalens.guard.covering_intervals import CoveringIntervals
from credalens.guard.decider import Guard
from credalens.guard.decisions import Decisions
from credalens.guard.drift import DriftAlarm

__all__ = ["ConformalSets", "CoveringIntervals", "Decisions", "DriftAlarm", "Guard", "SetQuality", "compare_sets"]
