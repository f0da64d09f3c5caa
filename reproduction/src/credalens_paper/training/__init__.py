"""Training: deep ensembles, Bayesian networks and ensemble distribution distillation."""
