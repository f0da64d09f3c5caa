"""What is written for each row: the columns of a scored file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from credalens.prediction import CredalPrediction
from credalens.storage.formats.parquet import fixed_lists

__all__ = ["COLUMNS", "MEASURES", "score_columns", "sums_of", "table_of"]

MEASURES = (
    "total",
    "aleatoric",
    "epistemic",
    "aleatoric_bound",
    "classical_total",
    "classical_aleatoric",
    "classical_epistemic",
)
COLUMNS = ("label", "probability", "lower", "upper", "set", *MEASURES)
SUMS = b"credalens.sums"


def score_columns(prediction: CredalPrediction, rule: str, /) -> dict[str, NDArray]:
    """The columns of a prediction's rows.

    - ``label``: the class with the highest intersection probability; ``set``: the classes that ``rule`` leaves possible.
    - ``probability``, ``lower``, ``upper``: intersection probability and bounds of each class.
    - ``total``, ``aleatoric``, ``epistemic``, ``aleatoric_bound``: uncertainty of the credal set.
    - ``classical_total``, ``classical_aleatoric``, ``classical_epistemic``: of the averaged prediction.
    """
    classical = prediction.classical
    return {
        "label": prediction.predict().astype(np.int32),
        "probability": prediction.probability,
        "lower": prediction.lower,
        "upper": prediction.upper,
        "set": prediction.predict_set(rule),
        "total": prediction.total,
        "aleatoric": prediction.aleatoric,
        "epistemic": prediction.epistemic,
        "aleatoric_bound": prediction.aleatoric_bound,
        "classical_total": classical.total,
        "classical_aleatoric": classical.aleatoric,
        "classical_epistemic": classical.epistemic,
    }


def table_of(columns: dict[str, NDArray], /) -> pa.Table:
    """The columns as an Arrow table that also carries their sums, so that means need no second look at the rows."""
    sums = {name: float(columns[name].sum(dtype=np.float64)) for name in MEASURES}
    sums["set_size"] = int(columns["set"].sum())
    sums["determinate"] = int((columns["set"].sum(axis=-1) == 1).sum())
    table = pa.table({name: fixed_lists(column) for name, column in columns.items()})
    return table.replace_schema_metadata({SUMS: json.dumps(sums)})


def sums_of(metadata: dict[bytes, Any], /) -> dict[str, float]:
    """The sums that ``table_of`` attached."""
    return json.loads(metadata[SUMS])
