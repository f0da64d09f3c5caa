"""How many people chose each class of a test image: CIFAR-10H."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens_paper.data.generated import digits_images

FILE: Final = "cifar10h_counts.npy"
DOWNLOAD: Final = (
    f"{FILE[:-4].replace('_', '-')}.npy from the repository of 'Human uncertainty makes classification more robust' (Peterson "
    f"et al., ICCV 2019) and save it as {FILE}"
)
SHAPE: Final = (10_000, 10)
ANSWERS, SHARP = 50, 0.9


def load_human_counts(name: str, folder: str | Path | None, /) -> NDArray[np.int64]:
    """Counts (images, classes) for the test images of CIFAR-10; answers to the digits are drawn here, most of them right.

    >>> int(load_human_counts("digits", None).sum(axis=-1).min())
    50
    """
    if name == "digits":
        labels, rng = digits_images().labels, np.random.default_rng(5)
        right = SHARP + (1 - SHARP) * rng.random((len(labels), 1))
        return rng.multinomial(ANSWERS, right * np.eye(10)[labels] + (1 - right) / 10).astype(np.int64)
    path = Path(folder or ".") / FILE
    if name != "cifar10" or folder is None or not path.is_file():
        raise FileNotFoundError(f"no {FILE} in {folder or 'the data folder, as none was given'}; download {DOWNLOAD}")
    counts = np.load(path, allow_pickle=False)
    if counts.shape != SHAPE or counts.dtype.kind not in "iu" or counts.min() < 0 or not counts.sum(axis=-1).all():
        raise ValueError(
            f"{path} must hold how often each of ten classes was chosen for 10,000 images, got {counts.dtype} of shape "
            f"{counts.shape}"
        )
    return np.asarray(counts, np.int64)
