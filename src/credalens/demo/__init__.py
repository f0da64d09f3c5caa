"""The main job on included examples: real networks, and small ones that are trained on digits."""

from credalens.demo.run import Demo, run_demo

__all__ = ["Demo", "run_demo"]
