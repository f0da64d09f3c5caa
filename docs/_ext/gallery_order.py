"""In which order the gallery shows its examples."""

from pathlib import Path

ORDER = (
    "rain",
    "torch_ensemble",
    "mc_dropout",
    "bayesian_network",
    "random_forest",
    "gradient_boosting",
    "text_intents",
    "dense_prediction",
    "recalibrated_members",
    "guard_in_use",
    "costs_and_groups",
    "drifting_stream",
    "served_networks",
    "members_one_at_a_time",
    "saved_predictions",
)


class ReadingOrder:
    """The place of an example in `ORDER`."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> int:
        """Raise for an example that has no place yet."""
        return ORDER.index(Path(filename).stem)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(ORDER)}>"
