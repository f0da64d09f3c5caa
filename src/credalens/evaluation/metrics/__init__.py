"""Metrics: scores, probabilities and labels in, frozen results out."""
