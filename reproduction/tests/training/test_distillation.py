"""Distillation: the loss finds the Dirichlet that the members came from."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Dirichlet

from credalens_paper.training.losses import concentration, dirichlet_uncertainty, distillation_loss

laws = settings(derandomize=True, deadline=None, max_examples=100)
temperatures = st.floats(0.5, 20)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def random_case(seed, members=4, classes=3):
    generator = torch.Generator().manual_seed(seed)
    options = {"generator": generator, "dtype": torch.double}
    return torch.randn(5, classes, **options), 3 * torch.randn(members, 5, classes, **options)


@laws
@given(st.integers(0, 10**6), temperatures)
def test_loss_is_the_dirichlet_likelihood_of_the_heated_members(seed, temperature):
    student, members = random_case(seed)
    smoothed = 0.99 * (members / temperature).softmax(-1) + 0.01 / 3
    expected = -Dirichlet((student / temperature).exp()).log_prob(smoothed).mean()
    loss = distillation_loss(student, members, temperature=temperature, smoothing=0.01)
    torch.testing.assert_close(loss, expected)


@laws
@given(st.integers(0, 10**6), temperatures)
def test_heating_is_dividing_all_logits(seed, temperature):
    student, members = random_case(seed)
    loss = distillation_loss(student, members, temperature=temperature)
    torch.testing.assert_close(loss, distillation_loss(student / temperature, members / temperature))


def test_gradients_are_those_of_finite_differences():
    student, members = random_case(0)
    assert torch.autograd.gradcheck(
        lambda z: distillation_loss(z, members, temperature=2.0), student.requires_grad_(True)
    )


def gradients(student, members, **options):
    """Of each example's own loss: the mean has divided them by their number."""
    logits = student.clone().requires_grad_(True)
    loss = distillation_loss(logits, members, **options)
    loss.backward()
    return loss.detach(), len(student) * logits.grad


@laws
@given(st.integers(0, 10**6), temperatures, st.floats(0.01, 10))
def test_a_limit_shortens_long_gradients_and_leaves_the_loss(seed, temperature, limit):
    student, members = random_case(seed)
    loss, free = gradients(student, members, temperature=temperature)
    same, limited = gradients(student, members, temperature=temperature, limit=limit)
    assert same == loss
    lengths = free.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(limited, torch.where(lengths > limit, free * limit / lengths, free))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_a_limit_holds_where_the_gradient_is_beyond_the_dtype(dtype):
    student = torch.tensor([[11.0, -2.0, 0.0]], dtype=dtype, requires_grad=True)  # e^11 = 60,000, and wrong
    distillation_loss(student, torch.tensor([[[-9.0, 9.0, 0.0]]]), limit=10.0).backward()
    assert student.grad.float().norm() == pytest.approx(10, rel=0.01)


def test_a_limit_and_no_examples():
    assert distillation_loss(torch.zeros(0, 3), torch.zeros(2, 0, 3), limit=1.0).isnan()


def test_a_limit_leaves_an_example_without_gradient_alone():
    student = torch.zeros(1, 2, requires_grad=True)
    distillation_loss(student, torch.zeros(3, 1, 2), limit=1.0).backward(torch.tensor(0.0))
    assert (student.grad == 0).all()


@pytest.mark.parametrize("alpha", [[1.0, 1.0, 1.0], [0.5, 4.0, 12.0], [50.0, 80.0, 5.0]])
def test_optimisation_recovers_the_dirichlet(alpha):
    alpha = torch.tensor(alpha, dtype=torch.double)
    members = Dirichlet(alpha).sample((20_000,))
    logits = torch.zeros(3, dtype=torch.double, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=200, line_search_fn="strong_wolfe", tolerance_grad=1e-10)

    def closure():
        optimizer.zero_grad()
        loss = distillation_loss(logits, members.log(), smoothing=0)
        loss.backward()
        return loss

    optimizer.step(closure)
    torch.testing.assert_close(concentration(logits.detach()), alpha, rtol=0.05, atol=0)
    fitted, true = dirichlet_uncertainty(concentration(logits.detach())), dirichlet_uncertainty(alpha)
    torch.testing.assert_close(fitted.epistemic, true.epistemic, rtol=0.05, atol=0)


def test_gradient_points_back_to_the_true_concentrations():
    alpha = torch.tensor([2.0, 6.0], dtype=torch.double)
    members = Dirichlet(alpha).sample((20_000,))
    for shift in (-0.5, 0.5):  # the precision alone is wrong: too low, too high
        logits = (alpha.log() + shift).requires_grad_(True)
        distillation_loss(logits, members.log(), smoothing=0).backward()
        assert (logits.grad.sign() == math.copysign(1, shift)).all()


def test_agreeing_members_make_a_sharper_dirichlet_than_disagreeing_ones():
    agree, disagree = torch.zeros(2, 1, 2), torch.tensor([[[2.0, 0.0]], [[0.0, 2.0]]])
    gradients = []
    for members in (agree, disagree):
        student = torch.full((1, 2), 1.0, requires_grad=True)
        distillation_loss(student, members).backward()
        gradients.append(student.grad)
    assert (gradients[0] < gradients[1]).all(), "agreement pulls the concentrations up"


def test_smoothing_keeps_confident_members_finite():
    confident = torch.tensor([[[0.0, -5000.0]], [[0.0, -math.inf]]])
    student = torch.zeros(1, 2, requires_grad=True)
    loss = distillation_loss(student, confident)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(student.grad).all()
    one_hot = torch.tensor([[[1.0, 0.0]]])
    assert torch.isfinite(distillation_loss(torch.zeros(1, 2), one_hot.log(), temperature=10))


def test_large_concentrations_do_not_lose_the_loss_in_single_precision():
    student, members = torch.tensor([[14.0, 13.0]]), torch.tensor([[[1.0, 0.0]]])
    single, double = distillation_loss(student, members), distillation_loss(student.double(), members.double())
    assert single.dtype is torch.float32
    torch.testing.assert_close(single.double(), double, rtol=1e-6, atol=0)
    assert distillation_loss(student.bfloat16(), members).dtype is torch.float32


def test_nan_in_is_nan_out():
    student, members = torch.zeros(1, 2), torch.zeros(2, 1, 2)
    assert distillation_loss(student * math.nan, members).isnan()
    assert distillation_loss(student, members * math.nan).isnan()


@pytest.mark.parametrize("shape", [(1, 2), (3, 2, 2), (3, 1, 4), (0, 1, 2), (3, 1, 1, 2)])
def test_bad_member_shapes(shape):
    with pytest.raises(ValueError, match=r"members must be .* for student_logits of shape \(1, 2\)"):
        distillation_loss(torch.zeros(1, 2), torch.zeros(shape))
