"""What the guard promises, measured: simulations and real predictions."""
