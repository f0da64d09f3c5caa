"""Kernels for the GPU are read only where Triton is installed; CUDA builds of PyTorch bring it."""

from importlib.util import find_spec

KERNELS = ("bounds", "finish", "lanes", "narrow", "nodes", "phi", "search")

collect_ignore = [] if find_spec("triton") else [f"src/credalens/device/{name}.py" for name in KERNELS]
