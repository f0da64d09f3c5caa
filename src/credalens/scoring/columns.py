"""What is written for each row: the columns of a scored file, and their sums."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from credalens.prediction import CredalPrediction
from credalens.storage.formats.parquet import fixed_lists

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
    """The columns as an Arrow table."""
    return pa.table({name: fixed_lists(column) for name, column in columns.items()})


def sums_of(columns: dict[str, NDArray], /) -> dict[str, float]:
    """Sums over the rows, so that means over all parts need no second pass over them."""
    sums = {name: float(columns[name].sum(dtype=np.float64)) for name in MEASURES}
    sizes = columns["set"].sum(axis=-1)
    return sums | {"set_size": int(sizes.sum()), "determinate": int((sizes == 1).sum())}
