"""Holm's correction: how sure one may be of the best of several comparisons."""

from __future__ import annotations

from collections.abc import Mapping


def holm(p_values: Mapping[str, float], /) -> dict[str, float]:
    r"""Adjusted p-values: one below 0.05 is wrong in at most 5 % of all families of comparisons.

    .. math:: \tilde p_{(i)} = \min\big(1, \max_{j \le i} (m - j + 1)\, p_{(j)}\big), \quad p_{(1)} \le \ldots \le p_{(m)}

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    adjusted, largest = {}, 0.0
    for place, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        largest = max(largest, (len(p_values) - place) * p_values[name])
        adjusted[name] = min(1.0, largest)
    return {name: adjusted[name] for name in p_values}
