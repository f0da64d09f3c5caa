"""Serve credal predictions over HTTP: the Open Inference Protocol v2, JSON and binary tensors.

>>> import numpy as np
>>> from credalens.serve import app
>>> def members(x):  # any model: (rows, features) to (members, rows, classes)
...     return np.stack([np.eye(3)[x[:, 0].astype(int)] * 0.7 + 0.1, np.full((len(x), 3), 1 / 3)])
>>> application = app(members)  # uvicorn my_module:application
"""

from credalens.checks.options import needing

with needing("starlette", part="credalens.serve", extra="serve"):
    from credalens.serve.app import app

from credalens.serve.limits import Limits
from credalens.serve.models.member_outputs import member_outputs
from credalens.serve.models.served import ServedModel, TensorSpec
from credalens.serve.observer import Answered, BatchDone, Observer
from credalens.serve.protocol.errors import RequestError
from credalens.serve.watching.log_lines import JsonFormatter, LogLines
from credalens.serve.watching.watch import Watch

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
