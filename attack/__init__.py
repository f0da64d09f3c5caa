"""Seeded campaigns that try to make the library wrong: ``python -m attack``, or ``make attack``."""
