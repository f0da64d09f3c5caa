"""Data sets in the layouts people have them: `load_images("cifar10", folder, split="train")`.

Original archives (whose pickles are read without running code), image folders, Hugging Face Parquet and packed
files; texts as features; small sets made here for trying things out; the official corrupted sets.
"""

from credalens_paper.data.catalog import DATA_SETS, has_texts, normalization
from credalens_paper.data.generated import digits_images, photo_images, texture_images
from credalens_paper.data.image_set import ImageSet, ImageSource
from credalens_paper.data.load import load_corrupted, load_images, open_images

__all__ = [
    "DATA_SETS",
    "ImageSet",
    "ImageSource",
    "digits_images",
    "has_texts",
    "load_corrupted",
    "load_images",
    "normalization",
    "open_images",
    "photo_images",
    "texture_images",
]
