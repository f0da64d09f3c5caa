"""Fixtures for both packages; kernels for the GPU are read only where Triton, which CUDA builds of PyTorch bring, is installed."""

from importlib.util import find_spec
from pathlib import Path

pytest_plugins = ["tests.engines.cluster"]  # a Ray cluster, for whoever asks for it

CUDA = Path(__file__).parent / "src" / "credalens" / "cuda"

collect_ignore = (
    [] if find_spec("triton") else [path for path in CUDA.glob("*.py") if "import triton" in path.read_text()]
)
