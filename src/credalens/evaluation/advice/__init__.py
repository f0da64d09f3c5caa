"""Advice from measurements: which score, which point prediction."""
