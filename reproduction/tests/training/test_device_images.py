"""Images on the device: crops and flips against a slow twin, bytes against floats, resident against host."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from credalens_paper.training.devices import DeviceImages, Normalization, TrainingData, crop_and_flip
from reproduction.tests.training.tiny import STATISTICS, blobs

CPU = torch.device("cpu")
laws = settings(derandomize=True, deadline=None, max_examples=50)


def all_crops(image, padding):
    """Every shift of a padded image, plain and mirrored, one by one."""
    padded = functional.pad(image.permute(2, 0, 1)[None].float(), (padding,) * 4, mode="reflect")[0].permute(1, 2, 0)
    size = image.shape[0]
    cuts = [padded[i : i + size, j : j + size] for i in range(2 * padding + 1) for j in range(2 * padding + 1)]
    return torch.stack([*cuts, *(cut.flip(1) for cut in cuts)])


@laws
@given(st.integers(0, 10**6), st.integers(0, 3), st.booleans())
def test_augmentation_is_a_reflected_crop_of_the_chosen_image(seed, padding, flip):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (5, 4, 4, 3), generator=generator, dtype=torch.uint8)
    chosen = torch.randint(0, 5, (6,), generator=generator)
    result = crop_and_flip(images, chosen, generator, padding=padding, flip=flip)
    assert result.dtype == torch.uint8
    for row, index in zip(result, chosen, strict=True):
        crops = all_crops(images[index], padding)
        allowed = crops if flip else crops[: len(crops) // 2]
        assert (allowed == row).all(dim=(1, 2, 3)).any()


def test_every_shift_and_both_directions_are_equally_likely():
    image = torch.arange(48).reshape(1, 4, 4, 3)
    many = crop_and_flip(
        image, torch.zeros(9000, dtype=torch.long), torch.Generator().manual_seed(0), padding=1, flip=True
    )
    counts = torch.stack([(many == crop).all(dim=(1, 2, 3)).sum() for crop in all_crops(image[0], 1)]).numpy()
    assert counts.sum() == 9000  # no two of the 18 are equal, and nothing else came
    assert abs(counts - 500).max() < 5 * np.sqrt(500)


def test_no_padding_and_no_flip_leave_the_images_alone():
    images = torch.arange(96).reshape(2, 4, 4, 3)
    same = crop_and_flip(images, torch.tensor([1, 0]), torch.Generator(), padding=0, flip=False)
    assert torch.equal(same, images.flip(0))


@pytest.mark.parametrize("size", [None, 8, 16, 5])
def test_normalisation_is_that_of_the_resized_image(size):
    images = blobs(4).images
    scaled = (torch.from_numpy(images / 255 - STATISTICS["mean"]) / torch.tensor(STATISTICS["std"])).permute(0, 3, 1, 2)
    if size is not None:
        scaled = functional.interpolate(scaled, (size, size), mode="bilinear", antialias=True)
    ours = Normalization(STATISTICS["mean"], STATISTICS["std"], CPU)(torch.from_numpy(images), size=size)
    torch.testing.assert_close(ours, scaled.float(), rtol=1e-5, atol=1e-5)


def test_normalised_images_are_channels_last():
    x = Normalization(STATISTICS["mean"], STATISTICS["std"], CPU)(torch.from_numpy(blobs(4).images))
    assert x.shape == (4, 3, 8, 8)
    assert x.is_contiguous(memory_format=torch.channels_last)


def test_batches_are_shifted_by_up_to_an_eighth_of_the_image():
    data, chosen = blobs(2), torch.zeros(200, dtype=torch.long)
    generator = torch.Generator().manual_seed(0)
    x, labels = DeviceImages(data, CPU).batch(chosen, generator, padding=0.125, flip=False, size=8)
    crops = all_crops(torch.from_numpy(data.images[0]), 1)[:9]
    expected = Normalization(STATISTICS["mean"], STATISTICS["std"], CPU)(crops)
    found = (x[:, None] == expected[None]).all(dim=(2, 3, 4))
    assert found.any(1).all()
    assert found.any(0).all()
    assert (labels == int(data.labels[0])).all()


def test_images_on_the_host_give_the_same_batches():
    data, order = blobs(20), torch.randperm(20, generator=torch.Generator().manual_seed(1))
    options = {"padding": 0.125, "flip": True, "size": 8}
    resident, host = (DeviceImages(data, CPU, resident=choice) for choice in (True, False))
    for images in (resident, host):
        assert torch.equal(images.order(order), order)
    one, other = (images.batch(order[:7], torch.Generator().manual_seed(2), **options) for images in (resident, host))
    assert torch.equal(one[0], other[0])
    assert torch.equal(one[1], other[1])
    assert one[1].tolist() == data.labels[order[:7]].tolist()


def test_memory_maps_are_read_batch_by_batch(tmp_path):
    data = blobs(20)
    np.save(tmp_path / "images.npy", data.images)
    mapped = TrainingData(np.load(tmp_path / "images.npy", mmap_mode="r"), data.labels, **STATISTICS)
    images = DeviceImages(mapped, CPU)
    assert not images.resident
    chosen = torch.tensor([3, 4])
    x, _ = images.batch(chosen, torch.Generator(), padding=0, flip=False, size=8)
    expected, _ = DeviceImages(data, CPU).batch(chosen, torch.Generator(), padding=0, flip=False, size=8)
    assert torch.equal(x, expected)


def test_the_fingerprint_tells_sets_apart():
    data = blobs()
    other_image, other_label = data.images.copy(), data.labels.copy()
    other_image[-1, 0, 0, 0] ^= 1
    other_label[7] = (other_label[7] + 1) % 3
    prints = [
        data.fingerprint(),
        TrainingData(other_image, data.labels, **STATISTICS).fingerprint(),
        TrainingData(data.images, other_label, **STATISTICS).fingerprint(),
        TrainingData(data.images, data.labels, (0.5, 0.4, 0.31), STATISTICS["std"]).fingerprint(),
        TrainingData(data.images[:-1], data.labels[:-1], **STATISTICS).fingerprint(),
    ]
    assert len({str(one) for one in prints}) == 5
    assert blobs().fingerprint() == prints[0]


GOOD = {"images": np.zeros((2, 4, 4, 3), np.uint8), "labels": np.array([0, 1]), **STATISTICS}


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"images": np.zeros((2, 4, 4, 3))}, TypeError, "uint8, 0 to 255, got float64"),
        ({"images": [[0]]}, TypeError, "got list"),
        ({"images": np.zeros((2, 3, 4, 4), np.uint8)}, ValueError, r"got \(2, 3, 4, 4\)"),
        ({"images": np.zeros((0, 4, 4, 3), np.uint8), "labels": np.zeros(0, np.int64)}, ValueError, "n > 0"),
        ({"labels": np.array([0, 1, 2])}, ValueError, r"of shape \(2,\), got int64 of shape \(3,\)"),
        ({"labels": np.array([0, 1], np.uint8)}, ValueError, "int64"),
        ({"labels": [0, 1]}, ValueError, "got list"),
        ({"labels": np.array([0, -1])}, ValueError, "first is -1 at index 1"),
        ({"mean": (0.5, 0.5)}, ValueError, "mean must be three"),
        ({"std": (0.5, np.nan, 0.5)}, ValueError, "std must be three finite"),
        ({"std": (0.5, 0.0, 0.5)}, ValueError, "std must be positive"),
    ],
)
def test_bad_training_data_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        TrainingData(**{**GOOD, **wrong})
