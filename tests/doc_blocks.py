"""Code in documents: run as it stands, and every number in a comment beside an expression checked."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np

from credalens import MemberSummary

DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+")


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def run_block(code: str, names: dict[str, Any]) -> int:
    """Run a block in ``names``; returns how many of its comments were checked."""
    lines, checked = code.splitlines(), 0
    for node in ast.parse(code).body:
        if not isinstance(node, ast.Expr):
            exec(compile(ast.Module([node], []), "block", "exec"), names)  # noqa: S102 - our own page
            continue
        value = eval(compile(ast.Expression(node.value), "block", "eval"), names)  # noqa: S307
        assert node.end_lineno
        checked += check_comment(value, lines[node.end_lineno - 1].partition("  #")[2])
    return checked


def check_comment(value: Any, comment: str) -> bool:
    """Compare decimals, or a list of truths, with the value; a comment of words alone says nothing to check."""
    shown, truths = DECIMAL.findall(comment), comment.partition("[")[2].partition("]")[0].split()
    if shown:
        digits = min(len(number.partition(".")[2]) for number in shown)
        np.testing.assert_allclose(flat(value), [float(number) for number in shown], atol=0.6 * 10.0**-digits)
    elif set(truths) & {"True", "False"}:
        assert np.asarray(value).tolist() == [truth == "True" for truth in truths]
    return bool(shown or truths)


def flat(value: Any) -> list[float]:
    parts = value if isinstance(value, tuple) else (value,)
    return np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in parts]).tolist()


def stand_ins() -> dict[str, Any]:
    """Something for every name that documents leave to the reader."""
    import torch
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    def network(*last: nn.Module) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(9, 4), *last).eval()

    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), size=(5, 6))
    sharp, labels = rng.dirichlet([60, 2, 2], size=(5, 60)), np.zeros(60, int)
    images, (x, y) = torch.rand(6, 1, 3, 3), load_iris(return_X_y=True)
    other = MemberSummary()
    other.update(probs[:2])
    rows = [lambda inputs, row=row: row for row in probs[2:]]
    return {
        "model_a": network(), "model_b": network(), "model_c": network(), "network": network(), "model": network(nn.Dropout()),
        "dropout_network": network(nn.Dropout()), "images": images, "loader": DataLoader(TensorDataset(images), 3),
        "fitted_random_forest": (forest := RandomForestClassifier(10, random_state=0).fit(x, y)), "X": x, "y": y, "x": images,
        "X_calibration": x, "y_calibration": y, "fitted_models": [forest, GaussianNB().fit(x, y)],
        "pipeline": make_pipeline(forest), "gradient_boosting": GaussianNB(), "estimator": GaussianNB(), "X_new": x,
        "probs": probs, "labels": np.arange(6) % 4, "other_machine": other, "members": rows, "members_one_by_one": rows,
        "logits": np.log(probs), "jax_members": [lambda inputs, row=row: np.log(row) for row in probs], "x_ood": images,
        "calibration_probs": sharp, "calibration_labels": labels, "new_probs": sharp,
    }  # fmt: skip
