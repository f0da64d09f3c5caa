"""Exact, certified credal uncertainty for classifiers you already have."""
