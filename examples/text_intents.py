"""
Text intents, and requests outside all of them
==============================================

An assistant sorts short requests into intents. Some requests fit none of them, and it should say so rather than
guess. Five naive Bayes classifiers, each trained on its own bootstrap of the sentences, are the members.

CLINC150 (Larson et al. 2019) is such a data set. Set ``CREDALENS_DATA`` to a folder that holds its ``data_full.json``
(or ``clinc150.json.gz``, the same compressed), and this script uses it; nothing is downloaded. Without it, the script
makes requests from a few templates.
"""

import gzip
import json
import os
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.utils import resample

from credalens import evaluate, wrap
from credalens.plots import plot_uncertainty_histograms

TEMPLATES = {
    "weather": ("will it {} in {}", ("rain", "snow", "be sunny", "be windy"), ("oslo", "rome", "lima", "the hills")),
    "alarm": (
        "set an alarm {} at {}",
        ("tomorrow", "on monday", "tonight", "each day"),
        ("six", "seven", "noon", "ten"),
    ),
    "translate": (
        "how do you say {} in {}",
        ("hello", "good night", "thanks", "water"),
        ("french", "thai", "greek", "dutch"),
    ),
    "transfer": ("send {} euros to {}", ("five", "ten", "forty", "ninety"), ("anna", "my landlord", "savings", "ben")),
    "recipe": ("how long do i {} the {}", ("bake", "fry", "boil", "rest"), ("bread", "rice", "eggs", "dough")),
    "oos": (
        "{} will {}",
        ("how long", "do you say", "how do i", "on monday"),
        ("anna rest", "my rice be thai", "ben bake", "it say ten"),
    ),
}


def written_requests() -> dict[str, list[tuple[str, str]]]:
    """A small stand-in with the keys of the real file."""
    rng = np.random.default_rng(0)
    rows = {
        intent: [(text.format(*words), intent) for words in product(a, b)] for intent, (text, a, b) in TEMPLATES.items()
    }
    parts: dict[str, list[tuple[str, str]]] = {"train": [], "test": [], "oos_test": rows.pop("oos")}
    for requests in rows.values():
        for place, row in enumerate(rng.permutation(len(requests))):
            parts["train" if place < 4 else "test"].append(requests[row])
    return parts


def read_requests() -> dict[str, list[tuple[str, str]]]:
    """CLINC150 where its folder is named, and the stand-in elsewhere."""
    folder = Path(os.environ.get("CREDALENS_DATA", "no folder"))
    for name, opened in (("data_full.json", open), ("clinc150.json.gz", gzip.open)):
        if (folder / name).is_file():
            with opened(folder / name, "rt", encoding="utf-8") as file:
                return json.load(file)
    return written_requests()


# %%
# The intents of the training sentences are the classes.
parts = read_requests()
(texts, intents), (test, test_intents), (outside, _) = (
    zip(*parts[name], strict=True) for name in ("train", "test", "oos_test")
)
names = sorted(set(intents))
labels = np.searchsorted(names, test_intents)
print(
    f"{len(names)} intents, {len(texts)} training sentences, {len(test)} to test, {len(outside)} outside of all intents"
)

# %%
# Members: the same pipeline on five bootstraps. Every member must know every intent, so the bootstrap is drawn within
# each.
members = []
for seed in range(5):
    some, some_intents = resample(texts, intents, stratify=intents, random_state=seed)
    pipeline = make_pipeline(CountVectorizer(ngram_range=(1, 2), binary=True), MultinomialNB(alpha=0.3))
    members.append(pipeline.fit(some, some_intents))
inside_probs, outside_probs = (np.stack([member.predict_proba(rows) for member in members]) for rows in (test, outside))
prediction, unknown = wrap(inside_probs), wrap(outside_probs)
print(f"accuracy {(prediction.predict() == labels).mean():.1%}")

# %%
# Which score finds the requests that fit no intent? ``evaluate`` compares all of them, and averaging too.
evaluation = evaluate(inside_probs, labels=labels, ood={"outside": outside_probs})
scores = sorted(evaluation.scores, key=lambda score: -score.ood["outside"].auroc)
for score in scores[:5]:
    print(f"{score.name:<24} AUROC {score.ood['outside'].auroc:.3f}")
print(f"recommended: {evaluation.recommended.score}; total and epistemic are credal, names with mean_ are of averaging")

figure, axes = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
plot_uncertainty_histograms(
    prediction.total,
    {"outside of all intents": unknown.total},
    id_name="known intents",
    measure="total uncertainty (bits)",
    ax=axes,
)
plt.show()
