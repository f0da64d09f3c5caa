"""Saved predictions: members' probabilities or logits in .npy, .npz, Parquet or safetensors, read by rows.

A file of any size takes the memory of the rows being read, nothing is ever unpickled, and a file that is written
appears whole or not at all.
"""

from credalens.storage.atomic import atomic_file
from credalens.storage.predictions import Predictions, open_predictions, read_labels, save_predictions

__all__ = ["Predictions", "atomic_file", "open_predictions", "read_labels", "save_predictions"]
