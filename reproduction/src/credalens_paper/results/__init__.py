"""What was measured: the store, result files as tables and figures."""
