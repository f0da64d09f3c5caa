"""Compiled inner loops, one idea a file. Each has a slow, obvious twin in ``tests/oracles.py``.

Everything here works on float64 and trusts its input; validation happens once, at the border.
"""
