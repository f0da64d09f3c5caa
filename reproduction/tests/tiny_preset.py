"""The smoke preset with as little of everything as the tests need."""

from __future__ import annotations

from dataclasses import replace

from credalens_paper.experiments.presets import get_preset

_SMOKE = get_preset("smoke")
TINY = replace(
    _SMOKE,
    members=3,
    many_members=3,
    edd_runs=1,
    train_images=128,
    test_images=40,
    solver_samples=2,
    substitutes={**_SMOKE.substitutes, "N": {5: 2, 10: 2, 15: 2, 20: 3, 25: 3, 3: 2, 50: 5, 100: 5, 1000: 8}},
)
