"""The main job on an embedded example: five small networks on digits, and four kinds of images that are no digits."""

from credalens.demo.run import Demo, run_demo

__all__ = ["Demo", "run_demo"]
