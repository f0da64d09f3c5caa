"""Measures of one run on one set."""
