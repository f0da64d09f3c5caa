"""Kernels for the GPU are read only where Triton is installed; CUDA builds of PyTorch bring it."""

from importlib.util import find_spec
from pathlib import Path

DEVICE = Path(__file__).parent / "src" / "credalens" / "device"

collect_ignore = (
    [] if find_spec("triton") else [path for path in DEVICE.glob("*.py") if "import triton" in path.read_text()]
)
