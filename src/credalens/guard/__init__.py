"""Guard: decisions with a promise, from predictions on calibration data to operation."""
