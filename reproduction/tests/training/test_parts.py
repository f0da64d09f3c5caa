"""The parts of a step: random numbers, optimisers, objectives, devices, counting."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import nn

from credalens.bayes import BayesianLayer, kl, to_bayesian
from credalens_paper.training.devices import fast_math, find_device, find_precision, mixed, named_device, placed
from credalens_paper.training.images import DeviceImages
from credalens_paper.training.jobs import Job, Setting
from credalens_paper.training.learner import Learner
from credalens_paper.training.networks import make_network
from credalens_paper.training.objectives import cross_entropy, distillation, distillation_loss, evidence_bound
from credalens_paper.training.optimizers import load_optimizer, make_optimizer, optimizer_tensors, set_learning_rate
from credalens_paper.training.randomness import Randomness, derived_seed, epoch_order
from credalens_paper.training.schedules import Schedule, schedule_for
from credalens_paper.training.tally import Tally
from reproduction.tests.training.tiny import SPEC, blobs, build

CPU = torch.device("cpu")
SGD = Schedule("sgd", epochs=10, batch=4, rate=0.1, policy="one_cycle", weight_decay=0.5)
ADAM = Schedule("adam", epochs=10, batch=4, rate=0.1, policy="steps", temperature=10, kl_warmup=2, kl_scale=0.5)
STEPS = ADAM.steps_per_epoch(100)


def network():
    return build("convnet", classes=3, width=1.0, image_size=8, pretrained=None, seed=0)


def draws(randomness):
    with randomness.active():
        hidden = torch.rand(3)
    return [*hidden.tolist(), *torch.rand(3, generator=randomness.generator).tolist()]


def test_randomness_goes_on_where_it_was_and_leaves_the_caller_alone():
    torch.manual_seed(5)
    expected = torch.rand(4)
    torch.manual_seed(5)
    one, other = Randomness(1, CPU), Randomness(2, CPU)
    apart = [draws(one), draws(one), draws(other)]
    assert torch.equal(torch.rand(4), expected)
    again, beside = Randomness(1, CPU), Randomness(2, CPU)
    interleaved = [draws(again), draws(beside), draws(again)]
    assert interleaved == [apart[0], apart[2], apart[1]]
    assert len({value for part in apart for value in part}) == 18  # no stream is another's


def test_randomness_survives_an_error():
    state, randomness = torch.get_rng_state(), Randomness(1, CPU)
    with pytest.raises(RuntimeError), randomness.active():
        torch.rand(1) @ torch.rand(2, 2)
    assert torch.equal(torch.get_rng_state(), state)


def test_randomness_comes_back():
    one, other = Randomness(1, CPU), Randomness(9, CPU)
    draws(one)
    other.restore({name: state.clone() for name, state in one.state().items()})
    assert draws(one) == draws(other)


def test_orders_are_permutations_of_their_own():
    orders = [epoch_order(seed, epoch, 100) for seed in range(3) for epoch in range(3)]
    assert all(sorted(order.tolist()) == list(range(100)) for order in orders)
    assert len({tuple(order.tolist()) for order in orders}) == 9
    assert torch.equal(epoch_order(1, 1, 100), orders[4])


def test_derived_seeds_fit_torch_and_differ():
    seeds = {derived_seed(a, b) for a in range(30) for b in range(30)}
    assert len(seeds) == 900
    assert max(seeds) < 2**63


def test_only_matrices_and_filters_decay():
    model = network()
    optimizer = make_optimizer(model, SGD, CPU)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    for name, weight in model.named_parameters():
        # No gradient: Nesterov's first step on the decay alone is rate * decay * (1 + momentum) of the weight.
        factor = 1 - 0.1 * 0.5 * 1.9 if weight.ndim > 1 else 1
        torch.testing.assert_close(weight, factor * before[name], msg=name)


def some_steps(model, optimizer, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(3):
        optimizer.zero_grad()
        x = torch.randn(4, 3, 8, 8, generator=generator).to(memory_format=torch.channels_last)
        model(x).logsumexp(-1).mean().backward()
        optimizer.step()


@pytest.mark.parametrize("schedule", [SGD, ADAM])
def test_an_optimizer_goes_on_exactly(schedule):
    model = placed(network(), CPU)
    optimizer = make_optimizer(model, schedule, CPU)
    some_steps(model, optimizer, 0)
    copy = placed(network(), CPU)
    copy.load_state_dict({name: value.contiguous() for name, value in model.state_dict().items()})
    other = make_optimizer(copy, schedule, CPU)
    load_optimizer(other, {name: value.contiguous() for name, value in optimizer_tensors(optimizer).items()})
    for weight, entries in other.state.items():
        assert all(value.stride() == weight.stride() for value in entries.values() if value.shape == weight.shape)
    for one, two in ((model, optimizer), (copy, other)):
        set_learning_rate(two, 0.01)
        some_steps(one, two, 1)
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), copy.parameters(), strict=True))


def test_every_weight_group_gets_the_learning_rate():
    optimizer = make_optimizer(network(), ADAM, CPU)
    set_learning_rate(optimizer, 0.25)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.25]


def test_the_standard_loss():
    logits = torch.tensor([[0.0, 0.0], [0.0, math.log(3)]])
    loss = cross_entropy(logits, torch.empty(0), torch.tensor([0, 1]), 0)
    assert loss.item() == pytest.approx((math.log(2) + math.log(4 / 3)) / 2)


def test_the_bayesian_loss_pays_its_share_of_the_divergence():
    model = to_bayesian(nn.Linear(2, 3))
    loss, logits, labels = evidence_bound(model, ADAM, 100), torch.zeros(4, 3), torch.zeros(4, dtype=torch.long)
    values = [loss(logits, torch.empty(0), labels, step).item() for step in (0, 1 * STEPS, 5 * STEPS)]
    divergence = kl(model).item()
    assert values == pytest.approx([math.log(3) + share * divergence / 100 for share in (0, 0.25, 0.5)])


def test_the_student_sees_what_the_teachers_see():
    teachers = [network().eval() for _ in range(2)]
    teachers[1][0].weight.data.mul_(-1)
    seen = []
    teachers[0].register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    loss = distillation(teachers, ADAM, 100, lambda: mixed("float32", CPU))
    x, student = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0)), torch.zeros(4, 3)
    student.requires_grad_()
    value = loss(student, x, torch.zeros(4, dtype=torch.long), 5 * STEPS)
    members = torch.stack([teacher(x) for teacher in teachers])
    torch.testing.assert_close(value, distillation_loss(student, members, temperature=ADAM.heat(5.0)))
    assert seen[0] is x
    value.backward()
    assert student.grad.abs().sum() > 0
    assert all(weight.grad is None for teacher in teachers for weight in teacher.parameters())


def test_teachers_are_asked_once_about_each_batch_that_comes_back():
    asked, seen = [], []

    def teacher(images):
        asked.append(images)
        return images.mean((2, 3))

    def keep(logits, images, labels, step):
        seen.append(images)
        return objective(logits, images, labels, step)

    schedule = replace(ADAM, epochs=5, batch=64, views=2)
    learner = Learner(replace(SPEC, method="edd", teachers=(0, 1)), schedule, network(), DeviceImages(blobs(128), CPU))
    objective = distillation([teacher], schedule, 128, lambda: mixed("float32", CPU))
    learner._objective = keep
    while not learner.finished:
        learner.advance()
    assert len(seen) == 10
    assert all(torch.equal(one, other) for one, other in zip(seen, seen[4:], strict=False))
    assert len({float(images.sum()) for images in seen}) == len(asked) == 4
    assert all(one is other for one, other in zip(asked, seen, strict=False))


def test_steps_follow_the_schedule():
    frozen = replace(ADAM, epochs=2, batch=64, rate=1e-3, milestones=(1,) * 30)  # 1e-33 in the second epoch
    learner = Learner(SPEC, frozen, network(), DeviceImages(blobs(256), CPU))
    weight = learner.model[0].weight
    seen = [weight.detach().clone()]
    while not learner.finished:
        learner.advance()
        seen.append(weight.detach().clone())
    moved = [not torch.equal(one, other) for one, other in pairwise(seen)]
    assert moved == [True] * 4 + [False] * 4
    assert [record.learning_rate for record in learner.history] == pytest.approx([1e-3, 1e-33])


def test_bayesian_weights_start_where_the_schedule_says(tmp_path):
    spec = replace(SPEC, method="bnnr")
    setting = Setting(tmp_path, build, CPU, "float32", False, None, {})
    job = Job(spec, setting)
    job.start(DeviceImages(blobs(64), CPU))
    learner = job.learner
    assert isinstance(learner.model[0], BayesianLayer)
    torch.testing.assert_close(learner.model[0].weight_std, torch.full((8, 3, 3, 3), schedule_for(spec).initial_std))
    assert torch.equal(learner.model[0].mean.weight, make_network(SPEC, build, CPU)[0].weight)


def test_counting_finds_the_first_loss_that_is_no_number():
    tally, logits, labels = Tally(CPU), torch.eye(3), torch.tensor([0, 1, 0])
    for step, loss in enumerate([1.0, 2.5]):
        tally.add(torch.tensor(loss), logits, labels, step)
    assert tally.read() == (3.5, 4, -1)
    for step, loss in enumerate([math.inf, math.nan, 1.0], start=2):
        tally.add(torch.tensor(loss), logits, labels, step)
    assert tally.read()[2] == 2
    tally.clear()
    assert tally.read() == (0, 0, -1)


def test_devices_and_precisions():
    assert find_device("cpu") == CPU
    assert find_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert find_precision("auto", CPU) == "float32"
    assert find_precision("bfloat16", CPU) == "bfloat16"
    with pytest.raises(ValueError, match="precision must be one of"):
        find_precision("float16", CPU)
    with pytest.raises(ValueError, match=r"cuda:99.*device='cpu'"):
        find_device("cuda:99")
    for name in ("foo", "", "cuda:-1"):
        with pytest.raises(ValueError, match=f"device must be 'cpu', 'cuda', .* got '{name}'"):
            find_device(name)
    with pytest.raises(ValueError, match="device='meta' was asked for and this torch cannot compute there"):
        find_device("meta")


def test_a_device_can_be_named_that_only_other_machines_have():
    assert named_device("cuda:99") == torch.device("cuda", 99)
    with pytest.raises(ValueError, match="device must be 'cpu', 'cuda'"):
        named_device("foo")


def test_mixed_precision_is_bfloat16_where_asked_for():
    layer, x = nn.Linear(2, 2), torch.ones(1, 2)
    with mixed("bfloat16", CPU):
        assert layer(x).dtype == torch.bfloat16
    with mixed("float32", CPU):
        assert layer(x).dtype == torch.float32


def test_fast_math_changes_nothing_on_the_cpu():
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark
    with fast_math(CPU):
        assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark) == before
