"""
Dense prediction
================

Every pixel of an image is an input: members predict (height, width, classes), and the batch of the credal prediction
has the shape of the image. Five small classifiers, each with its own training pixels, label the pixels of an image as
ground, water or wood from three noisy colour channels. They were not trained on the shadow
in the corner.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neural_network import MLPClassifier

from credalens import wrap

rng = np.random.default_rng(0)
SIZE, NAMES = 96, ("ground", "water", "wood")
COLOURS = np.array([[0.55, 0.45, 0.30], [0.20, 0.35, 0.60], [0.25, 0.45, 0.25]])

# %%
# The scene: a river, a wood, and the shadow.
y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
river = np.abs(y - 0.5 - 0.2 * np.sin(5 * x)) < 0.09
wood = (x - 0.75) ** 2 + (y - 0.2) ** 2 < 0.05
truth = np.where(river, 1, np.where(wood, 2, 0))
shadow = (x > 0.06) & (x < 0.26) & (y > 0.75) & (y < 0.95)
image = COLOURS[truth] + rng.normal(0, 0.07, (SIZE, SIZE, 3))
image[shadow] = rng.normal((0.1, 0.1, 0.1), 0.05, (shadow.sum(), 3))

# %%
# Members learn from different pixels, with different starting weights.
members = []
for seed in range(5):
    rows = rng.choice(np.flatnonzero(~shadow), 400, replace=False)
    network = MLPClassifier((16,), learning_rate_init=0.02, tol=1e-3, random_state=seed)
    members.append(network.fit(image.reshape(-1, 3)[rows], truth.ravel()[rows]))
probs = np.stack([member.predict_proba(image.reshape(-1, 3)).reshape(SIZE, SIZE, 3) for member in members])

prediction = wrap(probs)
print(prediction)
print(f"accuracy outside of the shadow: {(prediction.predict() == truth)[~shadow].mean():.1%}")
for name in ("aleatoric", "epistemic"):
    values = prediction.score(name)
    print(
        f"{name} uncertainty in bits: {values[shadow].mean():.2f} in the shadow, {values[~shadow].mean():.2f} elsewhere"
    )

# %%
# The shadow is called wood. It does not stand out by aleatoric uncertainty, which is noise that no member can resolve,
# but by epistemic uncertainty: the members disagree about it.
figure, axes = plt.subplots(1, 4, figsize=(10, 2.9), layout="constrained")
axes[0].imshow(image.clip(0, 1))
axes[1].imshow(COLOURS[prediction.predict()])
shown = [
    axes[2].imshow(prediction.aleatoric, vmin=0, vmax=1.58),
    axes[3].imshow(prediction.epistemic, vmin=0, vmax=1.58),
]
for ax, title in zip(axes, ("image", "predicted class", "aleatoric", "epistemic"), strict=True):
    ax.set_title(title)
    ax.set_axis_off()
figure.colorbar(shown[1], ax=axes[2:], label="bits", shrink=0.85)
plt.show()
