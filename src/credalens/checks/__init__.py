"""The only place that validates arrays and options and words errors: what was expected, what came, where, what to do."""
