"""Credal predictions from scikit-learn classifiers: train a few, or wrap the ones you have.

>>> from sklearn.datasets import load_iris
>>> from sklearn.ensemble import RandomForestClassifier
>>> from credalens.sklearn import CredalClassifier
>>> X, y = load_iris(return_X_y=True)
>>> forest = RandomForestClassifier(10, min_samples_leaf=5, random_state=0).fit(X, y)
>>> credal = CredalClassifier.from_fitted(forest)
>>> lower, upper = credal.predict_interval(X[:1])
>>> lower.shape, credal.predict_uncertainty(X).epistemic.shape
((1, 3), (150,))
"""

from credalens.checks.options import needing

with needing("sklearn", part="credalens.sklearn", extra="sklearn"):
    from credalens.sklearn.classifier import CredalClassifier, CredalUncertainty

__all__ = ["CredalClassifier", "CredalUncertainty"]
