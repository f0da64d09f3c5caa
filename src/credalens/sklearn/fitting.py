"""Train members: clones of one estimator that differ in their seeds and, with a bootstrap, in their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils import _safe_indexing, assert_all_finite, check_random_state, column_or_1d, indexable
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from credalens.checks.arrays import refuse_values
from credalens.checks.options import check_choice, check_count
from credalens.core.recalibration import Recalibration
from credalens.sklearn.committee import Committee

RESAMPLE = ("auto", "bootstrap", "reseed")
SEED_NAMES = ("random_state", "random_seed")  # the second is CatBoost's


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Rows to train on: X as it came, one label and (where given) one weight for each row, none of weight zero."""

    X: Any
    y: NDArray[Any]
    weights: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def rows(self, rows: NDArray[np.intp], /) -> TrainingData:
        """These rows, with repeats."""
        weights = {name: weight[rows] for name, weight in self.weights.items()}
        return TrainingData(_safe_indexing(self.X, rows), self.y[rows], weights)

    def bootstrap(self, rng: np.random.RandomState, /) -> NDArray[np.intp]:
        """As many rows, drawn with replacement within each class: every class keeps its number of rows."""
        codes = np.unique(self.y, return_inverse=True)[1]
        by_class = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        return np.sort(np.concatenate([rng.choice(rows, size=len(rows)) for rows in by_class]))


def read_training_data(X: Any, y: Any, fit_params: Mapping[str, Any], estimator: Any, /) -> TrainingData:
    """Check the labels and weights; X is checked by the members."""
    assert_all_finite(np.asarray(y), input_name="y")
    kind = type_of_target(y, input_name="y")
    if kind.startswith("multilabel") or kind.endswith("multioutput"):
        raise ValueError(
            f"CredalClassifier predicts one label for each row; y is {kind} with shape {np.shape(y)}. "
            "Train one CredalClassifier for each column of y."
        )
    check_classification_targets(y)
    X, y = indexable(X, np.asarray(column_or_1d(y, warn=True)))
    data = TrainingData(X, y, _read_weights(fit_params, y, estimator))
    counts = np.all([np.ones(len(y), dtype=bool), *(weight != 0 for weight in data.weights.values())], axis=0)
    data = data if counts.all() else data.rows(np.flatnonzero(counts))
    classes = np.unique(data.y)
    if len(classes) == 1:
        raise ValueError(
            f"CredalClassifier needs at least two classes; y has 1 class, {classes[0]!r}. Rows with sample_weight 0 do not "
            "count."
        )
    return data


def _read_weights(fit_params: Mapping[str, Any], y: NDArray[Any], estimator: Any) -> dict[str, NDArray[np.float64]]:
    weights = {}
    for name, values in fit_params.items():
        if name != "sample_weight" and not name.endswith("__sample_weight"):
            raise TypeError(f"fit takes sample_weight (or step__sample_weight for a pipeline); got {name!r}.")
        if values is None:
            continue
        weights[name] = weight = np.asarray(values, dtype=np.float64)
        if weight.shape != y.shape:
            raise ValueError(f"{name} must have shape {y.shape}, one number for each row; got shape {weight.shape}.")
        bad, remedy = ~((weight >= 0) & np.isfinite(weight)), "Give rows that shall not count weight 0."
        refuse_values(bad, weight, f"values of {name}", "negative or not finite", remedy)
        if not weight.any():
            raise ValueError(f"{name} is zero for every row; at least one row must count.")
    if "sample_weight" in weights and not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(
            f"the fit of {type(estimator).__name__} does not take sample_weight. For a pipeline name the step, as in "
            "fit(X, y, step__sample_weight=...)."
        )
    return weights


def fit_members(
    estimator: Any, data: TrainingData, /, *, n_members: int, resample: str, random_state: Any, n_jobs: int | None
) -> list[Any]:
    """Fit ``n_members`` clones, each with its own seed, which decides its rows (``"bootstrap"``) and its random states."""
    if check_choice(resample, RESAMPLE, "resample") == "auto":
        resample = "reseed" if getattr(estimator, "bootstrap", False) else "bootstrap"
    check_count(n_members, "n_members")
    if resample == "reseed" and not _random_states(estimator):
        raise ValueError(
            f"resample='reseed' needs an estimator with a random_state, and {type(estimator).__name__} has none: all members "
            "would be the same. Use resample='bootstrap'."
        )
    seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n_members)
    models = Parallel(n_jobs=n_jobs)(delayed(_fit_member)(estimator, data, resample, seed) for seed in seeds)
    if resample == "bootstrap":  # a member refuses bad values in rows that none drew: no failure depends on the seed
        undrawn = np.ones(len(data.y), dtype=bool)
        for seed in seeds:
            undrawn[data.bootstrap(np.random.RandomState(seed))] = False
        if undrawn.any():
            models[0].predict(_safe_indexing(data.X, np.flatnonzero(undrawn)))
    return list(models)


def fit_recalibration(
    train: Callable[[TrainingData], Committee], data: TrainingData, /, *, through: str, on: float, random_state: Any
) -> tuple[Recalibration, TrainingData]:
    """Temperatures from rows that their members were not trained on, and the rows on which the members are to be trained.

    These are all rows where ``on`` is a number of folds, and those that are not held out where it is a share.
    """
    codes = np.unique(data.y, return_inverse=True)[1]
    fewest = int(np.bincount(codes).min())
    if isinstance(on, float) and 0 < on < 1:
        held_out = StratifiedShuffleSplit(1, test_size=on, random_state=random_state)
        splits = [next(held_out.split(codes, codes))] if fewest > 1 else []
    else:
        folds = min(check_count(on, "recalibrate_on (folds, or a share below 1)", least=2), fewest)
        splits = (
            [*StratifiedKFold(folds, shuffle=True, random_state=random_state).split(codes, codes)] if folds > 1 else []
        )
    if not splits:
        raise ValueError(
            "a class has a single row, which members cannot both learn and be judged by: recalibrate=None leaves their "
            "probabilities as they come, or bring more rows of it."
        )
    probs, rows = [], []
    for others, judged in splits:
        part = data.rows(judged)
        probs.append(train(data.rows(others)).stack(part.X))
        rows.append(judged)
    order = np.concatenate(rows)
    weights = next((weight[order] for weight in data.weights.values()), None)
    fitted = Recalibration.fit(np.concatenate(probs, axis=1), codes[order], through=through, weights=weights)
    return fitted, (data.rows(splits[0][0]) if len(splits) == 1 else data)


def _fit_member(estimator: Any, data: TrainingData, resample: str, seed: int) -> Any:
    rng = np.random.RandomState(seed)
    data = data.rows(data.bootstrap(rng)) if resample == "bootstrap" else data
    member = clone(estimator, safe=False)
    if states := _random_states(member):
        member.set_params(**{name: rng.randint(np.iinfo(np.int32).max) for name in states})
    return member.fit(data.X, data.y, **data.weights)


def _random_states(estimator: Any) -> list[str]:
    """The names of all random states of an estimator and its parts, in a fixed order."""
    names = estimator.get_params() if hasattr(estimator, "get_params") else ()
    return sorted(name for name in names if name.rpartition("__")[2] in SEED_NAMES)
