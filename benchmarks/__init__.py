"""Speed as ratios, measured side by side in one run: ``credalens bench``, or ``make bench``."""
