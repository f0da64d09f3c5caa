"""Kernels for the GPU are read only where Triton is installed; CUDA builds of PyTorch bring it."""

from importlib.util import find_spec
from pathlib import Path

CUDA = Path(__file__).parent / "src" / "credalens" / "cuda"

collect_ignore = (
    [] if find_spec("triton") else [path for path in CUDA.glob("*.py") if "import triton" in path.read_text()]
)
