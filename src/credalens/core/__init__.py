"""Numbers only: no framework, no file, no plot."""
