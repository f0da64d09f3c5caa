"""Where a result comes from: versions, commit, machine, time."""

from __future__ import annotations

import datetime
import platform
from typing import Any

import numpy as np
import safetensors
import torch

from credalens import __version__
from credalens.storage.provenance import commit
from credalens_paper.training.devices import device_name


def provenance(device: torch.device, /, **more: Any) -> dict[str, Any]:
    """Versions, commit, time and the name of the device, for the records of a training.

    >>> record = provenance(torch.device("cpu"), seed=3, device="what kind")
    >>> record["seed"], record["device"]
    (3, 'cpu')
    """
    return {
        "credalens": __version__,
        "commit": commit(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "safetensors": safetensors.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "system": platform.system(),
        "threads": torch.get_num_threads(),
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **more,
        "device": device_name(device),
    }
