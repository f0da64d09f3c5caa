"""Corruptions: slow twins of each algorithm, determinism, and damage that grows with severity."""

from __future__ import annotations

import colorsys
import io
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import ndimage

from credalens_paper.corruptions import CORRUPTIONS, SEVERITIES, corrupt, digital, weather

RANDOM = set(CORRUPTIONS) - {
    "defocus_blur",
    "zoom_blur",
    "brightness",
    "contrast",
    "pixelate",
    "jpeg_compression",
}


def pictures(count: int, height: int = 32, width: int = 32, seed: int = 0) -> np.ndarray:
    """Coloured noise at three scales with a hard-edged box: smooth parts, detail and edges."""
    rng = np.random.default_rng(seed)
    scales = [rng.normal(size=(count, height, width, 3)) for _ in range(3)]
    layers = [ndimage.gaussian_filter(x, (0, s, s, 0)) for x, s in zip(scales, (6, 3, 1.2), strict=True)]
    mixed = sum(layer / layer.std() for layer in layers)
    for picture, top, left in zip(mixed, *rng.integers(0, (height // 2, width // 2), (count, 2)).T, strict=True):
        picture[top : top + height // 3, left : left + width // 3] += 2
    return np.clip(118 + 24 * mixed, 0, 255).astype(np.uint8)


IMAGES = pictures(200)
UNIT = IMAGES.astype(np.float32) / 255


def test_the_fifteen_corruptions_have_their_published_names():
    assert len(CORRUPTIONS) == 15
    assert CORRUPTIONS[0] == "gaussian_noise"
    assert {"glass_blur", "elastic_transform", "jpeg_compression"} < set(CORRUPTIONS)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_every_corruption_keeps_shape_and_input_and_is_deterministic(name):
    images = IMAGES[:8].copy()
    once, again = corrupt(images, name, 3, seed=1), corrupt(images, name, 3, seed=1)
    assert once.shape == images.shape
    assert once.dtype == np.uint8
    np.testing.assert_array_equal(once, again)
    np.testing.assert_array_equal(images, IMAGES[:8])
    assert (once != images).any()


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_seeds_matter_exactly_where_there_is_chance(name):
    first, second = corrupt(IMAGES[:4], name, 4, seed=0), corrupt(IMAGES[:4], name, 4, seed=1)
    assert (first != second).any() == (name in RANDOM)


@given(st.sampled_from(CORRUPTIONS), st.sampled_from(SEVERITIES), st.integers(1, 5))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_an_image_is_corrupted_alike_however_many_follow_it(name, severity, kept):
    np.testing.assert_array_equal(corrupt(IMAGES[:kept], name, severity), corrupt(IMAGES[:6], name, severity)[:kept])


@pytest.mark.parametrize("name", sorted(RANDOM))
def test_equal_images_get_their_own_draws_within_and_across_chunks(name):
    equal = np.repeat(IMAGES[:1, :8, :8], 502, axis=0)
    corrupted = corrupt(equal, name, 5)
    assert (corrupted[0] != corrupted[1]).any()
    assert (corrupted[:2] != corrupted[500:]).any()


@pytest.mark.parametrize("shape", [(8, 8), (16, 16), (24, 40)])
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_other_sizes_work_too(name, shape):
    images = pictures(2, *shape)
    assert corrupt(images, name, 5).shape == images.shape


def squared_error(name: str, severity: int) -> float:
    return float(np.mean((corrupt(IMAGES, name, severity).astype(float) - IMAGES) ** 2))


@pytest.mark.parametrize("name", [n for n in CORRUPTIONS if n not in ("glass_blur", "frost", "elastic_transform")])
def test_squared_error_grows_with_severity(name):
    damage = [squared_error(name, severity) for severity in SEVERITIES]
    # motion blur 3 and 4 differ only in the length of a tail that has almost no weight
    assert all(worse >= 0.98 * better for better, worse in pairwise(damage)), damage
    assert damage[-1] > 1.5 * damage[0] > 0


def test_glass_blur_does_more_damage_in_two_rounds_than_in_one():
    damage = [squared_error("glass_blur", severity) for severity in SEVERITIES]
    assert min(damage[3:]) > 1.3 * max(damage[:3])


def test_frost_hides_more_of_the_picture_with_severity():
    """It also dims the picture, so that the squared error may fall while what is left of it fades."""
    kept = []
    for severity in SEVERITIES:
        frosted = corrupt(IMAGES, "frost", severity)
        kept.append(np.mean([np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(IMAGES, frosted, strict=True)]))
    assert all(less < more for more, less in pairwise(kept)), kept


def test_elastic_transform_bends_more_and_shears_less_with_severity():
    """On a ramp an affine map leaves no second difference; what is left is bending."""
    ramp = np.broadcast_to(np.linspace(0, 1, 64, dtype=np.float32)[:, None, None], (40, 64, 64, 3))
    bends = []
    for severity in SEVERITIES:
        bent = digital.elastic_transform(ramp, severity, np.random.default_rng(0))[:, 16:48, 16:48]
        bends.append(np.mean(np.diff(bent, 2, axis=2) ** 2))
    assert bends[0] < 1e-9
    assert all(more > less for less, more in pairwise(bends)), bends
    assert squared_error("elastic_transform", 5) < squared_error("elastic_transform", 1)


def test_noise_has_the_stated_moments():
    grey = np.full((40, 32, 32, 3), 128, np.uint8)
    value = 128 / 255
    for severity, scale in zip(SEVERITIES, (0.04, 0.06, 0.08, 0.09, 0.10), strict=True):
        assert (corrupt(grey, "gaussian_noise", severity) / 255).std() == pytest.approx(scale, rel=0.02)
    for severity, photons in zip(SEVERITIES, (500, 250, 100, 75, 50), strict=True):
        assert (corrupt(grey, "shot_noise", severity) / 255).var() == pytest.approx(value / photons, rel=0.05)
    for severity, share in zip(SEVERITIES, (0.01, 0.02, 0.03, 0.05, 0.07), strict=True):
        noisy = corrupt(grey, "impulse_noise", severity)
        assert (noisy == 0).mean() == pytest.approx(share / 2, rel=0.1)
        assert (noisy == 255).mean() == pytest.approx(share / 2, rel=0.1)
        assert np.isin(noisy, (0, 128, 255)).all()


@pytest.mark.parametrize(("severity", "radius", "softness"), [(1, 0.3, 0.4), (4, 1, 0.2), (5, 1.5, 0.1)])
def test_defocus_blur_is_the_convolution_with_a_soft_disk(severity, radius, softness):
    grid = np.arange(-8, 9)
    disk = (grid[:, None] ** 2 + grid**2 <= radius**2).astype(float)
    edge = np.exp(-(np.arange(-1, 2) ** 2) / (2 * softness**2))
    edge /= edge.sum()
    kernel = ndimage.convolve(disk / disk.sum(), np.outer(edge, edge), mode="constant")
    truth = ndimage.convolve(UNIT[0, :, :, 1].astype(float), kernel, mode="mirror")
    ours = digital.defocus_blur(UNIT[:1], severity, np.random.default_rng(0))[0, :, :, 1]
    np.testing.assert_allclose(ours, truth, atol=1e-6)


def test_glass_displacement_is_the_published_loop_over_pixels():
    """In the loop later pixels only read earlier ones that are still untouched, so one gather does it."""
    displaced = digital._displace(UNIT[:1], np.random.default_rng(5))
    steps = np.random.default_rng(5).integers(0, 2, (1, 32, 32, 2), dtype=np.int8)
    looped = UNIT[0].copy()
    for row in range(31, 1, -1):
        for column in range(31, 1, -1):
            down, right = steps[0, row, column]
            looped[row, column] = looped[row - down, column - right]
    np.testing.assert_array_equal(displaced[0], looped)


@pytest.mark.parametrize("angle", [-45.0, -100.0, 0.0, 17.0, 45.0])
def test_motion_blur_is_a_weighted_walk_along_the_direction(angle):
    radius, sigma = 6, 1.5
    weights = np.exp(-(np.arange(2 * radius + 1) ** 2) / (2 * sigma**2))
    weights /= weights.sum()
    truth = np.zeros_like(UNIT[0], dtype=float)
    for row in range(32):
        for column in range(32):
            for step, weight in enumerate(weights):
                y = row + int(np.ceil(step * np.sin(np.deg2rad(angle)) - 0.5))
                x = column + int(np.ceil(step * np.cos(np.deg2rad(angle)) - 0.5))
                truth[row, column] += weight * UNIT[0, min(max(y, 0), 31), min(max(x, 0), 31)]
    ours = digital.draw_trails(UNIT[:1], np.deg2rad([angle]), radius=radius, sigma=sigma)[0]
    np.testing.assert_allclose(ours, truth, atol=1e-4)


@pytest.mark.parametrize(("severity", "stop"), [(1, 1.06), (3, 1.16), (5, 1.26)])
def test_zoom_blur_is_the_mean_of_zoomed_images(severity, stop):
    image = UNIT[3].astype(np.float64)
    factors = np.arange(1, stop, 0.01)
    total = image.copy()
    for factor in factors:
        kept = int(np.ceil(32 / factor))
        top = (32 - kept) // 2
        zoomed = ndimage.zoom(image[top : top + kept, top : top + kept], (factor, factor, 1), order=1)
        trim = (len(zoomed) - 32) // 2
        total += zoomed[trim : trim + 32, trim : trim + 32]
    ours = digital.zoom_blur(UNIT[3:4], severity, np.random.default_rng(0))[0]
    np.testing.assert_allclose(ours, total / (len(factors) + 1), atol=1e-5)


def test_brightness_raises_the_value_of_the_hsv_colour():
    pixels = np.concatenate([UNIT[0, :3].reshape(-1, 3), np.zeros((1, 3)), np.ones((1, 3))]).astype(np.float32)
    truth = []
    for hue, saturation, value in (colorsys.rgb_to_hsv(*pixel) for pixel in pixels.tolist()):
        truth.append(colorsys.hsv_to_rgb(hue, saturation, min(value + 0.2, 1)))
    ours = weather.brightness(pixels[None, None], 4, np.random.default_rng(0))
    np.testing.assert_allclose(ours[0, 0], truth, atol=1e-5)


def test_contrast_keeps_the_mean_and_scales_the_deviation():
    low = corrupt(IMAGES, "contrast", 3).astype(float)
    np.testing.assert_allclose(low.mean((1, 2)), IMAGES.mean((1, 2)), atol=1)
    assert low.std((1, 2)).mean() == pytest.approx(0.4 * IMAGES.std((1, 2)).mean(), rel=0.02)


@pytest.mark.parametrize(("fold", "mode"), [(digital.mirror, "mirror"), (digital.reflect, "reflect")])
def test_bilinear_sampling_agrees_with_scipy_far_beyond_the_border(fold, mode):
    rng = np.random.default_rng(2)
    rows, columns = rng.uniform(-40, 60, (2, 1, 9, 11))
    ours = digital.bilinear(UNIT[:1], rows, columns, fold)[0, :, :, 2]
    truth = ndimage.map_coordinates(UNIT[0, :, :, 2], [rows[0], columns[0]], order=1, mode=mode)
    np.testing.assert_allclose(ours, truth, atol=1e-5)


def test_jpeg_and_pixelate_are_what_pillow_does():
    picture = Image.fromarray(IMAGES[7])
    stored = io.BytesIO()
    picture.save(stored, "JPEG", quality=50)
    np.testing.assert_array_equal(corrupt(IMAGES[7:8], "jpeg_compression", 4)[0], np.asarray(Image.open(stored)))
    coarse = picture.resize((24, 24), Image.Resampling.BOX).resize((32, 32), Image.Resampling.BOX)
    np.testing.assert_array_equal(corrupt(IMAGES[7:8], "pixelate", 4)[0], np.asarray(coarse))


def test_fog_cannot_outshine_the_picture():
    foggy = corrupt(IMAGES, "fog", 5)
    assert (foggy.max((1, 2, 3)) <= IMAGES.max((1, 2, 3))).all()


def test_plasma_fills_the_unit_interval_and_wraps_around():
    clouds = weather.plasma(20, 32, decay=2, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(clouds.min((1, 2)), 0)
    np.testing.assert_array_equal(clouds.max((1, 2)), 1)
    seam = np.abs(clouds[:, 0] - clouds[:, -1]).mean()
    inside = np.abs(np.diff(clouds, axis=1)).mean()
    assert seam < 1.5 * inside


def test_frost_textures_are_five_different_constants():
    frost = weather.frost_textures()
    assert frost.shape == (5, 256, 256, 3)
    assert frost.min() >= 0
    assert frost.max() <= 1
    assert all(np.abs(frost[0] - other).mean() > 0.05 for other in frost[1:])
    assert (frost[..., 2] >= frost[..., 0]).all()  # ice is blue


def test_snow_only_adds_light():
    snowy = corrupt(IMAGES, "snow", 2).astype(int)
    assert (snowy >= IMAGES.astype(int)).all()


def test_no_image_in_no_image_out():
    assert corrupt(IMAGES[:0], "fog", 1).shape == (0, 32, 32, 3)


@pytest.mark.parametrize("severity", [0, 6, 2.5])
def test_a_severity_out_of_range_is_refused(severity):
    with pytest.raises(ValueError, match=r"severity is one of \(1, 2, 3, 4, 5\), got"):
        corrupt(IMAGES, "fog", severity)


def test_an_unknown_name_lists_the_names():
    with pytest.raises(ValueError, match=r"'rain'; there are gaussian_noise, shot_noise"):
        corrupt(IMAGES, "rain", 1)


@pytest.mark.parametrize(
    ("images", "problem"),
    [
        (UNIT, r"uint8 of shape \(n, h, w, 3\), got float32"),
        (IMAGES[0], r"got uint8 of shape \(32, 32, 3\)"),
        (IMAGES.transpose(0, 3, 1, 2), r"got uint8 of shape \(200, 3, 32, 32\)"),
        (IMAGES[:, :4], "at least 8 pixels"),
        ([[0, 1]], "got int64 of shape"),
    ],
)
def test_wrong_images_are_refused(images, problem):
    with pytest.raises(ValueError, match=problem):
        corrupt(images, "fog", 1)


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="seed must not be negative, got -1"):
        corrupt(IMAGES, "fog", 1, seed=-1)
