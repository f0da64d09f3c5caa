"""Specs: one key for each network, the same for ever, and no spec that cannot be trained."""

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens_paper.training.spec import DISTILLED, METHODS, SCHEDULES, TrainSpec

names = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
plain = st.builds(
    TrainSpec,
    data=names,
    backbone=names,
    method=st.sampled_from(["snn", "bnnr", "bnnf"]),
    seed=st.integers(0, 3),
    schedule=st.sampled_from(SCHEDULES),
    classes=st.integers(2, 4),
    width=st.floats(0.01, 2),
    image_size=st.integers(8, 10),
    pretrained=st.none() | st.text(max_size=5),
)
distilled = st.builds(
    lambda spec, method, teachers: replace(spec, method=method, teachers=tuple(teachers)),
    plain,
    st.sampled_from(DISTILLED),
    st.lists(st.integers(0, 9), min_size=2, max_size=4, unique=True),
)
specs = plain | distilled
laws = settings(derandomize=True, deadline=None, max_examples=80)

CIFAR = TrainSpec("cifar10", "resnet18", "snn", seed=0, schedule="fast", classes=10)


@laws
@given(specs, specs)
def test_keys_are_equal_where_specs_are(one, other):
    assert (one.key == other.key) == (one == other)


@laws
@given(specs)
def test_a_spec_survives_json(spec):
    back = TrainSpec(**json.loads(json.dumps(spec.as_dict())))
    assert back == spec
    assert back.key == spec.key
    assert hash(back) == hash(spec)


@laws
@given(specs)
def test_keys_are_folder_names_that_say_what_they_hold(spec):
    assert "/" not in spec.key
    for part in (spec.data, spec.backbone, spec.method, spec.schedule, f"seed{spec.seed}"):
        assert part in spec.key


def test_every_field_changes_the_key():
    other = {
        "data": "svhn", "backbone": "vgg16", "method": "bnnr", "seed": 1, "schedule": "paper", "classes": 11,
        "width": 0.5, "image_size": 33, "pretrained": "weights",
    }  # fmt: skip
    assert set(other) | {"teachers", "weights"} == {field.name for field in fields(TrainSpec)}
    assert len({CIFAR.key, *(replace(CIFAR, **{name: value}).key for name, value in other.items())}) == 10
    students = [replace(CIFAR, method="edd", teachers=teachers) for teachers in ((0, 1), (1, 0), (0, 1, 2))]
    assert len({student.key for student in students}) == 3


def test_where_weights_lie_is_no_part_of_a_spec():
    here, there = (replace(CIFAR, pretrained="sha256-12", weights=folder) for folder in ("/here", "/there"))
    assert here == there
    assert here.key == there.key != CIFAR.key
    assert "here" not in f"{here} {json.dumps(here.as_dict())}"
    assert replace(here, seed=1).weights == "/here"


def test_keys_stay_what_they_were():
    # Trained networks are found by these names: a new field with a default must not change them.
    assert CIFAR.key == "cifar10-resnet18-snn-fast-seed0-552f89c5"
    student = TrainSpec("cifar10", "vgg16", "edd", 3, "paper", 10, width=0.5, teachers=(0, 1, 2))
    assert student.key == "cifar10-vgg16-w0.5-edd-paper-seed3-a25ab2f8"


def test_whole_widths_and_lists_of_teachers_are_the_same_network():
    assert replace(CIFAR, width=1) == CIFAR
    assert replace(CIFAR, width=1).key == CIFAR.key
    assert replace(CIFAR, method="edd", teachers=[0, 1]) == replace(CIFAR, method="edd", teachers=(0, 1))


def test_teachers_are_the_standard_networks_of_the_same_setting():
    student = replace(CIFAR, method="edd_fair", seed=7, width=0.5, teachers=(4, 2))
    assert [teacher.seed for teacher in student.teacher_specs()] == [4, 2]
    assert student.teacher_specs()[0] == replace(CIFAR, seed=4, width=0.5)


@pytest.mark.parametrize("method", METHODS)
def test_kinds_of_methods(method):
    spec = replace(CIFAR, method=method, teachers=(0, 1) if method.startswith("edd") else ())
    assert spec.bayesian == method.startswith("bnn")
    assert spec.distilled == method.startswith("edd")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "swag"}, "method must be one of"),
        ({"schedule": "slow"}, "schedule must be one of"),
        ({"data": "../cifar10"}, "folder name"),
        ({"backbone": ""}, "folder name"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"seed": 1.0}, "seed must be a whole number"),
        ({"seed": True}, "seed must be a whole number"),
        ({"classes": 1}, "classes must be a whole number of at least 2"),
        ({"width": 0}, "width multiplies"),
        ({"width": float("nan")}, "width multiplies"),
        ({"image_size": 0}, "image_size must be"),
        ({"method": "edd"}, "at least two teachers"),
        ({"method": "edd", "teachers": (1, 1)}, "at least two teachers"),
        ({"method": "edd", "teachers": (1, 2, 1)}, "different seeds"),
        ({"teachers": (1, 2)}, "snn has no teachers"),
    ],
)
def test_what_cannot_be_trained_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        replace(CIFAR, **wrong)
