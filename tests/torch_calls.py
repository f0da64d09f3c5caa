"""Which of torch's operations are called."""

from torch.utils._python_dispatch import TorchDispatchMode


class TorchCalls(TorchDispatchMode):
    """Within, the names of torch's operations are kept in the order in which they are called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function).split(".")[1])
        return function(*args, **(kwargs or {}))
