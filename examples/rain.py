"""
Three weather services on the simplex
=====================================

Three services predict rain, sun or clouds for tomorrow, and disagree. Averaging hides that; a credal set keeps it.
With three classes everything can be drawn: a distribution is a point of a triangle, and a credal set a polygon in it.
"""

import matplotlib.pyplot as plt

from credalens import lower_entropy, upper_entropy, wrap
from credalens.plots import plot_simplex, plot_simplex_panel

services = [[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]]
weather = ("rain", "sun", "clouds")
prediction = wrap(services)
for name, low, high, point in zip(weather, prediction.lower, prediction.upper, prediction.probability, strict=True):
    print(f"{name:<7} between {low:.2f} and {high:.2f}, intersection probability {point:.4f}")

# %%
# The intervals of the three classes bound the credal set. It holds every distribution whose probabilities lie between
# what some service said, also those that no single one said. The intersection probability is equally deep in all
# three intervals.
figure, axes = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
plot_simplex(services, labels=weather, ax=axes)
plt.show()

# %%
# Uncertainty is read off the set: its most uncertain distribution gives total, its most certain one aleatoric
# uncertainty, and the difference is epistemic. Both ends come with the distribution that attains them.
most, p_most = upper_entropy(prediction.lower, prediction.upper, return_distribution=True)
least, p_least = lower_entropy(prediction.lower, prediction.upper, return_distribution=True)
print(f"total     {most:.3f} bits at {p_most.round(3)}")
print(f"aleatoric {least:.3f} bits at {p_least.round(3)}")
print(f"epistemic {prediction.epistemic:.3f} bits")
print(
    "classes that remain possible:",
    [name for name, kept in zip(weather, prediction.predict_set(), strict=True) if kept],
)

# %%
# Two ways to be unsure look alike in the average and differ here. Services that agree on a coin toss have a small set
# in the middle: all uncertainty is aleatoric. Services that are each sure of something else have a large one: most of
# it is epistemic.
toss = [[0.46, 0.49, 0.05], [0.49, 0.46, 0.05], [0.475, 0.475, 0.05]]
dispute = [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.475, 0.475, 0.05]]
for name, members in (("agree on a coin toss", toss), ("sure of different things", dispute)):
    case = wrap(members)
    measures = (f"{measure} {case.score(measure):.2f}" for measure in ("total", "aleatoric", "epistemic"))
    print(f"{name}: {', '.join(measures)}; mean {case.mean.round(3)}")

figure = plt.figure(figsize=(7.2, 3.9), layout="constrained")
plot_simplex_panel({"agree on a coin toss": toss, "sure of different things": dispute}, labels=weather, figure=figure)
plt.show()
