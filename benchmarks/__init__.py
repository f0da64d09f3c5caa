"""Speed as ratios, measured side by side in one run: `make bench`, or `python -m benchmarks --help`."""
