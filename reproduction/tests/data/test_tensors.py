"""Images on the device: normalised, resized and augmented tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens_paper.data import DATA_SETS, augment, device_bytes, normalised, normalization, to_device_tensor
from reproduction.tests.data.image_files import some_images


@pytest.mark.parametrize("name", [*DATA_SETS, "digits", "cifar10-c"])
def test_every_set_has_statistics(name):
    mean, deviation = normalization(name)
    assert len(mean) == len(deviation) == 3
    assert all(0 < value < 1 for value in (*mean, *deviation))


def test_statistics_of_an_unknown_set_are_refused():
    with pytest.raises(ValueError, match="unknown data set 'mnist'"):
        normalization("mnist")


def test_tensors_are_normalised_and_channels_last():
    images, (mean, deviation) = some_images(3, 8), normalization("cifar10")
    tensor = to_device_tensor(images, "cpu", statistics=(mean, deviation))
    expected = (images / 255 - mean) / deviation
    np.testing.assert_allclose(tensor.permute(0, 2, 3, 1).numpy(), expected, atol=1e-5)
    assert tensor.shape == (3, 3, 8, 8)
    assert tensor.is_contiguous(memory_format=torch.channels_last)
    assert tensor.dtype == torch.float32
    half = to_device_tensor(images, statistics=(mean, deviation), dtype=torch.bfloat16)
    assert half.dtype == torch.bfloat16


def test_tensors_can_be_resized_on_the_device():
    images = some_images(2, 16)
    statistics = normalization("cifar10")
    large = to_device_tensor(images, statistics=statistics, size=56)
    assert large.shape == (2, 3, 56, 56)
    assert large.is_contiguous(memory_format=torch.channels_last)
    flat = to_device_tensor(np.full((1, 16, 16, 3), 99, np.uint8), statistics=statistics, size=8)
    torch.testing.assert_close(flat, flat[:, :, :1, :1].expand_as(flat))


def test_read_only_arrays_and_slices_become_tensors_without_a_warning(tmp_path):
    np.save(tmp_path / "x.npy", some_images(6, 8))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")[1:5]
    tensor = device_bytes(mapped)
    np.testing.assert_array_equal(tensor.permute(0, 2, 3, 1).numpy(), mapped)
    statistics = normalization("digits")
    torch.testing.assert_close(
        normalised(tensor, statistics=statistics), to_device_tensor(mapped, statistics=statistics)
    )


def test_only_bytes_become_tensors():
    with pytest.raises(ValueError, match=r"uint8 of shape \(n, h, w, 3\), got float64"):
        to_device_tensor(np.zeros((1, 8, 8, 3)), statistics=normalization("digits"))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.integers(0, 1000), st.integers(5, 12), st.integers(5, 12), st.integers(0, 4), st.booleans())
@settings(derandomize=True, deadline=None, max_examples=40)
def test_augmentation_is_a_random_crop_of_the_padded_image_or_of_its_mirror(seed, height, width, padding, flip):
    images = torch.rand(4, 3, height, width, generator=generator(seed))
    changed = augment(images, generator(seed), padding=padding, flip=flip)
    for image, got in zip(images, changed, strict=True):
        mirrored = [image, image.flip(-1)] if flip else [image]
        padded = [torch.nn.functional.pad(one[None], (padding,) * 4, mode="reflect")[0] for one in mirrored]
        crops = [
            one[:, top : top + height, left : left + width]
            for one in padded
            for top in range(2 * padding + 1)
            for left in range(2 * padding + 1)
        ]
        assert any(torch.equal(got, crop) for crop in crops)


def test_augmentation_reaches_every_shift_and_both_sides_equally():
    images = torch.arange(64.0).view(1, 1, 8, 8).expand(4000, 3, 8, 8)
    changed = augment(images, generator(), padding=2)
    middles = torch.stack([changed[:, 0, 4, 4], changed[:, 0, 4, 5]], dim=1)
    outcomes, counts = torch.unique(middles, dim=0, return_counts=True)
    assert len(outcomes) == 2 * 25
    assert counts.min() > 40
    assert ((middles[:, 1] > middles[:, 0]).float().mean() - 0.5).abs() < 0.03


def test_augmentation_depends_on_its_generator_alone():
    images = torch.rand(16, 3, 8, 8)
    first, again, other = (augment(images, generator(seed)) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    state = torch.get_rng_state()
    augment(images, generator())
    assert torch.equal(torch.get_rng_state(), state)


def test_augmentation_keeps_bytes_and_layout():
    images = device_bytes(some_images(3, 8))
    changed = augment(images, generator())
    assert changed.dtype == torch.uint8
    assert changed.is_contiguous(memory_format=torch.channels_last)


def test_too_much_padding_is_refused():
    with pytest.raises(ValueError, match="0 <= padding < 4, the smaller side; got 4"):
        augment(torch.zeros(1, 3, 4, 8), generator())
