"""The extra ``sklearn``: a forest made credal."""

from __future__ import annotations

from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from credalens.sklearn import CredalClassifier

if __name__ == "__main__":
    x, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(10, random_state=0).fit(x, y)
    prediction = CredalClassifier.from_fitted(forest).credal_predict(x)
    assert prediction.lower.shape == (150, 3)
    assert (prediction.predict() == y).mean() > 0.9
