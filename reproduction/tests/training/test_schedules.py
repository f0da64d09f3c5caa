"""Schedules: the numbers of the paper's appendix, and curves of the right shape."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens_paper.training.spec import COLD, METHODS, SCHEDULES, Schedule, TrainSpec, schedule_for

CYCLE = Schedule("sgd", epochs=20, batch=512, rate=0.4, policy="one_cycle")
STUDENT = Schedule("adam", epochs=90, batch=128, rate=1.0, policy="distillation", temperature=10.0)


def spec(method="snn", schedule="paper", data="cifar10", backbone="resnet18"):
    teachers = (0, 1) if method.startswith("edd") else ()
    return TrainSpec(data, backbone, method, seed=0, schedule=schedule, classes=10, teachers=teachers)


@pytest.mark.parametrize(("method", "epochs"), [("snn", 100), ("bnnr", 150), ("bnnf", 150), ("edd_fair", 100)])
def test_the_paper_on_small_images(method, epochs):
    """Adam at 0.001, a tenth at epochs 80 and 120, batches of 128."""
    paper = schedule_for(spec(method))
    assert (paper.optimizer, paper.batch, paper.epochs) == ("adam", 128, epochs)
    rates = {epoch: paper.learning_rate(epoch) for epoch in (0, 79.99, 80, 119.99, 120, 149)}
    assert rates == pytest.approx({0: 1e-3, 79.99: 1e-3, 80: 1e-4, 119.99: 1e-4, 120: 1e-5, 149: 1e-5})


def test_the_student_of_the_original_paper_has_one_cycle():
    student = schedule_for(spec("edd"))
    assert (student.optimizer, student.batch, student.epochs) == ("adam", 128, 100)
    third = 100 / 3  # half of the cycle, which takes two thirds
    rates = [student.learning_rate(epoch) for epoch in (0, third, 2 * third, 100)]
    assert rates == pytest.approx([1e-3, 1e-2, 1e-3, 1e-6])


@pytest.mark.parametrize("method", ["edd", "edd_fair"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_both_students_cool_down(method, name):
    schedule = schedule_for(spec(method, name))
    assert schedule.heat(0) == 10
    assert schedule.heat(0.75 * schedule.cooled * schedule.epochs) == pytest.approx(5.5)
    assert schedule.heat(schedule.cooled * schedule.epochs) == pytest.approx(1)
    assert schedule.heat(schedule.epochs) == 1


def test_the_student_of_the_original_paper_is_cool_after_its_cycle():
    student = schedule_for(spec("edd"))
    assert [student.heat(epoch) for epoch in (100 / 3, 50, 200 / 3)] == pytest.approx([10, 5.5, 1])


def test_temperature_holds_then_falls_to_one():
    heat = [STUDENT.heat(epoch) for epoch in range(91)]
    assert heat[:31] == [10.0] * 31
    assert heat[60:] == [1.0] * 31
    assert [a - b for a, b in pairwise(heat[30:61])] == pytest.approx([0.3] * 30)


def test_the_rate_of_a_student_goes_up_back_and_out():
    rates = [STUDENT.learning_rate(epoch) for epoch in range(91)]
    assert [rates[k] for k in (0, 15, 30, 45, 60, 75, 90)] == pytest.approx([1, 5.5, 10, 5.5, 1, 0.5005, 1e-3])
    assert max(rates) == rates[30]
    assert rates[:31] == sorted(rates[:31])
    assert rates[30:] == sorted(rates[30:], reverse=True)
    assert STUDENT.learning_rate(1000) == 1e-3, "held after the end"


@settings(derandomize=True, deadline=None)
@given(st.floats(0, 1), st.integers(1, 1000))
def test_a_stretched_schedule_has_the_same_curves(share, factor):
    longer = STUDENT.lasting(90 * factor)
    assert longer.heat(share * longer.epochs) == pytest.approx(STUDENT.heat(share * 90))
    assert longer.learning_rate(share * longer.epochs) == pytest.approx(STUDENT.learning_rate(share * 90))


@pytest.mark.parametrize(
    ("data", "backbone", "epochs"),
    [
        ("cifar10", "resnet50", 15), ("cifar10", "efficientnet_b2", 15), ("cifar10", "vit_base", 25),
        ("cifar100", "resnet50", 20), ("cifar100", "efficientnet_b2", 20), ("cifar100", "vit_base", 25),
    ],
)  # fmt: skip
def test_the_paper_on_large_images(data, backbone, epochs):
    """0.001, and 0.0001 in the last five epochs."""
    paper = schedule_for(spec(data=data, backbone=backbone))
    assert (paper.optimizer, paper.epochs) == ("adam", epochs)
    assert [paper.learning_rate(epochs - 5.1), paper.learning_rate(epochs - 5)] == pytest.approx([1e-3, 1e-4])


def test_the_paper_on_imagenet():
    paper = schedule_for(spec(data="imagenet", backbone="resnet50"))
    assert (paper.optimizer, paper.epochs) == ("adam", 3)
    assert [paper.learning_rate(epoch) for epoch in (0, 2.9)] == [1e-6, 1e-6]


@settings(derandomize=True, deadline=None)
@given(st.floats(0, 20))
def test_one_cycle_rises_to_its_peak_and_falls_to_zero(epoch):
    peak = CYCLE.warmup * CYCLE.epochs
    expected = 0.04 + 0.36 * epoch / peak if epoch < peak else 0.4 * (20 - epoch) / (20 - peak)
    assert CYCLE.learning_rate(epoch) == pytest.approx(expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", ["cifar10", "digits"])
def test_fast_is_a_fraction_of_the_paper(method, data):
    fast, paper = (schedule_for(spec(method, name, data=data)) for name in ("fast", "paper"))
    assert fast.epochs <= 0.4 * paper.epochs
    assert fast.steps_per_epoch(50_000) <= paper.steps_per_epoch(50_000) or data == "digits"


@pytest.mark.parametrize("backbone", ["resnet50", "efficientnet_b2"])
def test_large_networks_see_small_images_more_often(backbone):
    network = spec(schedule="fast", backbone=backbone)
    assert [schedule_for(replace(network, image_size=size)).epochs for size in (64, 128)] == [20, 10]


@pytest.mark.parametrize(("data", "epochs"), [("cifar10", 3), ("cifar100", 4)])
def test_fine_tuning_is_short_and_slow_whatever_the_schedule(data, epochs):
    paper, fast = (
        schedule_for(spec(schedule=name, data=data, backbone="efficientnet_lite0")) for name in ("paper", "fast")
    )
    assert paper == fast
    assert fast.epochs == epochs
    assert fast.rate < schedule_for(spec(schedule="fast", data=data, backbone="resnet50")).rate


def test_fast_vgg_takes_longer_than_fast_resnet():
    vgg, resnet = (schedule_for(spec(schedule="fast", backbone=name)) for name in ("vgg16", "resnet18"))
    assert vgg.epochs > resnet.epochs
    assert vgg.rate == resnet.rate


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("backbone", ["vgg16", "vit_base"])
@pytest.mark.parametrize("data", ["cifar10", "digits", "imagenet"])
def test_smoke_is_a_few_steps(method, backbone, data):
    smoke = schedule_for(spec(method, "smoke", data, backbone))
    assert smoke.epochs * smoke.steps_per_epoch(10**6) == 16


def test_digits_are_not_mirrored():
    assert schedule_for(spec()).flip
    assert not schedule_for(spec(data="digits")).flip
    assert not schedule_for(spec(data="svhn")).flip


def test_kl_weight_rises_to_its_share_of_one_example():
    rising = replace(CYCLE, kl_scale=0.5, kl_warmup=4)
    assert [rising.kl_weight(epoch, 100) for epoch in (0, 1, 4, 20)] == [0, 0.00125, 0.005, 0.005]
    assert replace(CYCLE, kl_scale=1).kl_weight(0, 50_000) == 1 / 50_000
    assert schedule_for(spec("bnnr")).kl_weight(100, 50_000) == COLD / 50_000


def test_steps_are_full_batches():
    assert CYCLE.steps_per_epoch(50_000) == 97  # 97 * 512 = 49,664
    assert CYCLE.steps_per_epoch(511) == 1
    assert replace(CYCLE, most_steps=8).steps_per_epoch(50_000) == 8


def test_a_shorter_training_keeps_its_shape():
    paper = schedule_for(spec(), epochs=10)
    assert paper.epochs == 10
    assert [paper.learning_rate(epoch) for epoch in (7.9, 8, 9.9)] == pytest.approx([1e-3, 1e-4, 1e-4])
    assert replace(CYCLE, kl_warmup=4).lasting(5).kl_warmup == 1


def test_all_numbers_go_into_the_record():
    record = schedule_for(spec()).as_dict()
    assert record["milestones"] == [80, 120]
    assert Schedule(**{**record, "milestones": tuple(record["milestones"])}) == schedule_for(spec())


@pytest.mark.parametrize("wrong", [{"optimizer": "lion"}, {"policy": "cosine"}, {"epochs": 0}, {"batch": 0}])
def test_bad_numbers_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        replace(CYCLE, **wrong)


@pytest.mark.parametrize(("change", "message"), [
    ({"cooled": 0.0}, "cooled must be a share of the training"), ({"cooled": 1.5}, "cooled must be a share"),
    ({"limit": 0.0}, "limit must be a length above 0, or None, got 0.0"), ({"limit": float("nan")}, "limit must be"),
    *(({"temperature": bad}, "temperature must be a positive, finite") for bad in (0.0, -1.0, math.nan, math.inf)),
    ({"epochs": 0}, "epochs must be at least 1"), ({"views": 0}, "views must be at least 1"),
])  # fmt: skip
def test_a_schedule_that_cannot_be_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(schedule_for(spec("edd", "fast")), **change)
