"""Other machines: the same work, spread over a Ray cluster. Ray is imported when it is asked for.

- ``score_folder_on_ray``: tables of predictions, part by part.
- ``credalens_paper.training.train_networks.train_models_on_ray``: one task for each member.
- ``credalens_paper.pipeline.engines.RayPool``: trains, predicts and evaluates what a reproduction misses.
"""

from credalens.engines.executor import score_folder_on_ray

__all__ = ["score_folder_on_ray"]
