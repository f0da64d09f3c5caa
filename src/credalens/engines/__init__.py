"""Other machines: the same work, spread over a Ray cluster. Ray is imported when it is asked for."""

from credalens.engines.ray_scoring import score_folder_on_ray

__all__ = ["score_folder_on_ray"]
