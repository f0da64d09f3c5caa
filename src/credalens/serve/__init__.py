"""Serve credal predictions over HTTP: the Open Inference Protocol v2, JSON and binary tensors.

>>> import numpy as np
>>> from credalens.serve import app
>>> def members(x):  # any model: (rows, features) to (members, rows, classes)
...     return np.stack([np.eye(3)[x[:, 0].astype(int)] * 0.7 + 0.1, np.full((len(x), 3), 1 / 3)])
>>> application = app(members)  # uvicorn my_module:application
"""

from credalens.checks.options import needing

with needing("starlette", part="credalens.serve", extra="serve"):
    from credalens.serve.application import app

from credalens.serve.models import ServedModel, TensorSpec, member_outputs
from credalens.serve.observer import Answered, BatchDone, JsonFormatter, LogLines, Observer
from credalens.serve.protocol import RequestError
from credalens.serve.settings import Limits
from credalens.serve.watch import Watch

__all__ = [
    "Answered",
    "BatchDone",
    "JsonFormatter",
    "Limits",
    "LogLines",
    "Observer",
    "RequestError",
    "ServedModel",
    "TensorSpec",
    "Watch",
    "app",
    "member_outputs",
]
