"""Backbones: parameter counts of the full networks, and on narrow ones shapes, gradients, seeds and local weights."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from credalens_paper.backbones import IMAGE, build_backbone

LARGE = ("resnet50", "efficientnet_b2", "vit_base")


def narrow(name: str, classes: int = 7, **options):
    return build_backbone(name, classes=classes, **{"width": 0.1, "image_size": 16, "seed": 0} | options)


def parameters(network: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def settled(network: torch.nn.Module, images: torch.Tensor) -> torch.nn.Module:
    """In evaluation mode, with the batch statistics of the images: a fresh network mutes its input."""
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    with torch.random.fork_rng():
        torch.manual_seed(0)  # EfficientNet leaves out blocks at random
        network(images)
    return network.eval()


@pytest.fixture(scope="module")
def images():
    return torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("name", "classes", "count"),
    [
        ("vgg16", 10, 14_728_266),
        ("vgg16", 100, 14_728_266 + 90 * 513),
        ("resnet18", 10, 11_173_962),
        ("resnet50", 1000, 25_557_032),
        ("efficientnet_b2", 1000, 9_109_994),
        ("vit_base", 1000, 86_567_656),
        ("efficientnet_lite0", 1000, 4_652_008),
    ],
)
def test_full_networks_have_the_published_number_of_parameters(name, classes, count):
    with torch.device("meta"):
        assert parameters(build_backbone(name, classes=classes)) == count


@pytest.mark.parametrize("size", [8, 16, 32])
@pytest.mark.parametrize("name", IMAGE)
def test_networks_give_plain_logits_at_any_size(name, size):
    network = narrow(name, image_size=size)
    logits = network(torch.randn(2, 3, size, size))
    assert type(logits) is torch.Tensor
    assert logits.shape == (2, 7)
    assert torch.isfinite(logits).all()


def test_the_network_for_texts_takes_rows_of_as_many_features_as_its_size():
    network = build_backbone("mlp", classes=7, width=0.25, image_size=24, seed=0)
    assert network(torch.randn(2, 24)).shape == (2, 7)
    assert parameters(network) == 24 * 32 + 32 + 32 * 7 + 7


@pytest.mark.parametrize(("size", "patch"), [(224, 16), (64, 4), (32, 4), (8, 4)])
def test_patches_are_a_fourteenth_of_the_image_and_at_least_four_pixels(size, patch):
    assert narrow("vit_base", image_size=size).network.config.patch_size == patch


@pytest.mark.parametrize("name", IMAGE)
def test_gradients_reach_every_parameter(name, images):
    network = narrow(name)
    labels = torch.tensor([0, 1, 2, 3])
    torch.nn.functional.cross_entropy(network(images), labels).backward()
    for parameter in network.parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()
    assert all(head.grad.abs().max() > 1e-4 for head in list(network.parameters())[-2:])
    assert next(network.parameters()).grad.abs().max() > 1e-6


@pytest.mark.parametrize("name", IMAGE)
def test_networks_are_in_training_mode_and_see_the_images(name, images):
    network, images = narrow(name).double(), images.double()  # batch statistics of few pixels multiply rounding errors
    assert network.training
    settled(network, images)
    assert not torch.allclose(network(images), network(images.flip(0)))
    torch.testing.assert_close(network(images), network(images.flip(0)).flip(0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", IMAGE)
def test_channels_last_changes_nothing_but_the_layout(name, images):
    images = images.double()
    network = settled(narrow(name).double(), images)
    expected = network(images)
    last = network.to(memory_format=torch.channels_last)(images.to(memory_format=torch.channels_last))
    torch.testing.assert_close(last, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", IMAGE)
def test_width_multiplies_the_channels(name):
    with torch.device("meta"):
        sizes = [parameters(build_backbone(name, classes=10, width=width)) for width in (0.25, 0.5, 1.0)]
    # Weights grow with the square of the width; heads, norms and embeddings linearly.
    assert 2.5 < sizes[1] / sizes[0] < 4.2
    assert 2.5 < sizes[2] / sizes[1] < 4.2


@pytest.mark.parametrize("name", IMAGE)
def test_a_seed_fixes_the_weights_and_leaves_the_global_state_alone(name):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first, again, other = (narrow(name, seed=seed).state_dict() for seed in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)


def test_without_a_seed_the_global_state_decides():
    torch.manual_seed(9)
    first = narrow("vgg16", seed=None).state_dict()
    second = narrow("vgg16", seed=None).state_dict()
    assert any(not torch.equal(first[key], second[key]) for key in first)


def test_vgg16_and_resnet18_reduce_32_pixels_as_published():
    vgg = build_backbone("vgg16", classes=10, width=0.05)
    assert vgg[:-3](torch.zeros(1, 3, 32, 32)).shape[2:] == (1, 1)
    resnet = build_backbone("resnet18", classes=10, width=0.05)
    assert resnet[:3](torch.zeros(1, 3, 32, 32)).shape[2:] == (32, 32)
    assert resnet[:-3](torch.zeros(1, 3, 32, 32)).shape[2:] == (4, 4)


def test_efficientnet_running_statistics_do_not_become_the_last_batch(images):
    network = narrow("efficientnet_b2")
    norms = [m for m in network.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert norms
    assert {norm.momentum for norm in norms} == {0.1}


@pytest.fixture(scope="module", params=LARGE)
def stored(request, images, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    network = settled(narrow(request.param), images)
    network.network.save_pretrained(folder)
    return request.param, folder, network


def test_weights_come_back_from_a_local_folder(stored, images):
    name, folder, network = stored
    loaded = narrow(name, pretrained=folder, seed=1)
    assert loaded.training
    stored_state, state = network.state_dict(), loaded.state_dict()
    assert state.keys() == stored_state.keys()
    assert all(torch.equal(state[key], stored_state[key]) for key in state)
    # In float64: networks that never learnt multiply the rounding of float32, which depends on where tensors lie in memory.
    ours, theirs = (one.eval().double()(images.double()) for one in (loaded, copy.deepcopy(network)))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_head_for_other_classes_is_drawn_from_the_seed_and_the_body_kept(stored, capfd):
    name, folder, network = stored
    old, *new = (network.state_dict(), *(load(name, folder, seed) for seed in (1, 1, 2)))
    for key, weight in old.items():
        if "classifier" in key:
            assert all(other[key].shape == (3, *weight.shape[1:]) for other in new)
            assert torch.equal(new[0][key], new[1][key])
            assert key.endswith("bias") or not torch.equal(new[0][key], new[2][key])
        else:
            assert all(torch.equal(other[key], weight) for other in new)
    assert "MISMATCH" not in capfd.readouterr().err


def load(name, folder, seed):
    return narrow(name, classes=3, pretrained=str(folder), seed=seed).state_dict()


def test_weights_of_another_width_are_refused(stored):
    name, folder, _ = stored
    with pytest.raises(ValueError, match=f"does not fit {name}"):
        narrow(name, width=0.5, pretrained=folder)


def test_weights_of_another_family_are_refused(stored):
    name, folder, _ = stored
    other = LARGE[LARGE.index(name) - 1]
    with pytest.raises(ValueError, match=rf"{folder} holds a '\w+' network; {other} is a"):
        narrow(other, pretrained=folder)


def test_a_body_with_missing_weights_is_refused(stored, tmp_path):
    name, folder, _ = stored
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    gone = next(key for key in weights if not key.startswith("classifier") and key.endswith("weight"))
    kept = {key: value for key, value in weights.items() if key != gone}
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=rf"lacks 1 weight of {name} .*: {gone}"):
        narrow(name, pretrained=tmp_path)


@pytest.mark.parametrize("present", [(), ("config.json",)])
def test_a_folder_without_weights_says_what_belongs_there(tmp_path, present):
    for file in present:
        (tmp_path / file).write_text(json.dumps({"model_type": "resnet"}))
    with pytest.raises(FileNotFoundError, match=r"config.json and model.safetensors"):
        build_backbone("resnet50", classes=10, pretrained=tmp_path)


@pytest.mark.parametrize("text", ["resnet", "[]", ""])
def test_a_configuration_that_is_none_is_named(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ValueError, match=rf"{tmp_path}/config.json is not a JSON object"):
        build_backbone("resnet50", classes=10, pretrained=tmp_path)


def test_weights_are_checked_without_torch():
    code = (
        "import sys; from credalens_paper.backbones import check_pretrained\n"
        "try: check_pretrained('nowhere', 'resnet50')\n"
        "except FileNotFoundError: sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_name_lists_the_names():
    with pytest.raises(ValueError, match=r"'vgg19'; there are vgg16, resnet18, resnet50"):
        build_backbone("vgg19", classes=10)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"classes": 0}, "at least one class, got classes=0"),
        ({"width": 0.0}, "must be positive, got 0.0"),
        ({"width": float("nan")}, "must be positive, got nan"),
        ({"image_size": 4}, "at least 8 pixels wide.*got image_size=4"),
        ({"pretrained": "somewhere"}, "resnet18 starts at random"),
    ],
)
def test_impossible_options_are_refused(options, problem):
    with pytest.raises(ValueError, match=problem):
        build_backbone("resnet18", **{"classes": 10} | options)


def test_the_cifar_networks_do_not_load_transformers():
    code = (
        "import sys; from credalens_paper.backbones import build_backbone; "
        "build_backbone('resnet18', classes=2, width=0.1); sys.exit('transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
