"""Gradients: finite differences agree away from ties, and by hand; values are those of ``wrap``."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.autograd import gradcheck, gradgradcheck

from credalens import wrap, wrap_logits
from credalens.torch import CredalWrapper, credal_prediction
from tests.strategies import KINDS, batch_of, ensembles
from tests.torch.agreement import FIELDS

DIFFERENTIABLE = FIELDS[:-1]


def members(seed, count=4, rows=3, classes=5, kind="flat"):
    return torch.from_numpy(batch_of(kind, count, rows, classes, seed=seed)).requires_grad_()


@pytest.mark.parametrize("field", DIFFERENTIABLE)
@pytest.mark.parametrize(
    ("count", "classes", "kind"), [(4, 5, "flat"), (2, 2, "flat"), (2, 4, "flat"), (5, 12, "peaked")]
)
def test_finite_differences_agree(field, count, classes, kind):
    for seed in range(3):
        p = members(seed, count, 2, classes, kind)
        assert gradcheck(lambda p: getattr(credal_prediction(p), field), p, eps=1e-7, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("field", ["probability", "total", "aleatoric"])
def test_second_derivatives_agree(field):
    logits = torch.randn(3, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(5)).requires_grad_()
    assert gradgradcheck(lambda z: getattr(credal_prediction(torch.softmax(z, -1)), field), logits)


@given(ensembles())
def test_values_are_those_of_wrap(p):
    exact, prediction = wrap(p), credal_prediction(torch.from_numpy(p))
    for field in FIELDS:
        np.testing.assert_allclose(getattr(prediction, field), getattr(exact, field), rtol=0, atol=1e-11, err_msg=field)
    np.testing.assert_allclose(prediction.classical.epistemic, exact.classical.epistemic, rtol=0, atol=1e-12)
    np.testing.assert_allclose(prediction.hull.upper_entropy(), exact.hull.upper_entropy(), rtol=0, atol=1e-9)


@given(ensembles(), st.sampled_from(DIFFERENTIABLE))
def test_gradients_are_finite_for_zeros_one_hots_ties_and_agreement(p, field):
    p = torch.from_numpy(p).requires_grad_()
    getattr(credal_prediction(p), field).sum().backward()
    assert torch.isfinite(p.grad).all()


def test_total_by_hand():
    # l = (.5, .1, .1), u = (.8, .3, .3): the level is t = .25, class 0 stays at l_0 = .5. Raising l_0 costs
    # log2(t) - log2(l_0) = -1 bit a unit; it is member 1's first value, and renormalising its row takes the mean
    # gradient p . g = -.5 off all of the row: (-.5, .5, .5).
    p = torch.tensor([[0.8, 0.1, 0.1], [0.5, 0.3, 0.2], [0.5 + 1e-3, 0.2, 0.299]], dtype=torch.float64)
    p.requires_grad_()
    prediction = credal_prediction(p)
    assert math.isclose(prediction.total.item(), 1.5, abs_tol=1e-12)
    prediction.total.backward()
    np.testing.assert_allclose(p.grad, [[0, 0, 0], [-0.5, 0.5, 0.5], [0, 0, 0]], atol=1e-12)


def test_aleatoric_by_hand_at_its_minimiser():
    # l = (.5, .1, .1), u = (.8, .3, .3): the minimiser (.8, .1, .1) is member 0, so the gradient is that of H(p_0) after
    # renormalising: -log2 p_k - H(p_0).
    p = torch.tensor([[0.8, 0.1, 0.1], [0.5, 0.3, 0.2], [0.5 + 1e-3, 0.2, 0.299]], dtype=torch.float64)
    p.requires_grad_()
    prediction = credal_prediction(p)
    entropy = -(0.8 * math.log2(0.8) + 0.2 * math.log2(0.1))
    assert math.isclose(prediction.aleatoric.item(), entropy, abs_tol=1e-12)
    prediction.aleatoric.backward()
    expected = [[-math.log2(0.8) - entropy, -math.log2(0.1) - entropy, -math.log2(0.1) - entropy], [0] * 3, [0] * 3]
    np.testing.assert_allclose(p.grad, expected, atol=1e-12)


def test_one_member_is_a_plain_entropy():
    z = torch.randn(1, 3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    credal, plain = z.clone().requires_grad_(), z.clone().requires_grad_()
    prediction = credal_prediction(torch.softmax(credal, -1), base=math.e)
    prediction.total.sum().backward()
    torch.distributions.Categorical(logits=plain).entropy().sum().backward()
    torch.testing.assert_close(credal.grad, plain.grad)
    assert not prediction.epistemic.any()


def test_descending_epistemic_uncertainty_makes_members_agree():
    z = torch.randn(4, 6, 5, generator=torch.Generator().manual_seed(3)).requires_grad_()
    before = credal_prediction(torch.softmax(z, -1)).epistemic.mean().item()
    optimizer = torch.optim.Adam([z], lr=0.05)
    for _ in range(100):
        optimizer.zero_grad()
        credal_prediction(torch.softmax(z, -1)).epistemic.mean().backward()
        optimizer.step()
    assert credal_prediction(torch.softmax(z, -1)).epistemic.mean().item() < before / 4


@pytest.mark.parametrize(
    ("dtype", "result"),
    [(torch.float64, torch.float64), (torch.float32, torch.float32), (torch.bfloat16, torch.float32)],
)
def test_precision_of_results_and_gradients(dtype, result):
    p = torch.softmax(torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0)).to(dtype), -1).requires_grad_()
    prediction = credal_prediction(p)
    assert {getattr(prediction, field).dtype for field in FIELDS} == {result}
    assert prediction.classical.total.dtype == result
    prediction.total.sum().backward()
    assert p.grad.dtype == dtype


def test_member_axis_and_base():
    p = members(0)
    moved = credal_prediction(p.movedim(0, 1), member_axis=1, base=math.e)
    torch.testing.assert_close(moved.total, credal_prediction(p).total * math.log(2))
    torch.testing.assert_close(moved.probability, credal_prediction(p).probability)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_rows_are_refused(kind):
    p = batch_of(kind, 3, 2, 4)
    p[2, 1] *= 1.5
    with pytest.raises(ValueError, match=r"index \(2, 1\)"):
        credal_prediction(torch.from_numpy(p))


def test_other_arrays_are_sent_to_wrap():
    with pytest.raises(TypeError, match=r"got ndarray\. For other arrays call credalens\.wrap"):
        credal_prediction(np.full((2, 2), 0.5))


def test_through_the_wrapper_to_the_weights_and_the_input():
    torch.manual_seed(0)
    nets, x = [nn.Linear(4, 3).double() for _ in range(2)], torch.randn(2, 4, dtype=torch.float64).requires_grad_()
    wrapper = CredalWrapper(nets, gradients=True)
    for field in ("probability", "total", "aleatoric"):
        assert gradcheck(lambda x, field=field: getattr(wrapper(x), field), x)
    wrapper(x).epistemic.sum().backward()
    assert all(net.weight.grad.abs().sum() > 0 for net in nets)
    logits = torch.stack([net(x) for net in nets])
    torch.testing.assert_close(wrapper(x).total, wrap_logits(logits.detach()).total)


def test_the_wrapper_records_nothing_unless_asked():
    nets, x = [nn.Linear(4, 3) for _ in range(3)], torch.ones(2, 4, requires_grad=True)
    assert not CredalWrapper(nets)(x).total.requires_grad
    asked = CredalWrapper(nets, gradients=True)(x)
    assert asked.total.requires_grad
    assert asked.total.dtype == torch.float32
    assert not asked.aleatoric_bound.requires_grad
    with torch.no_grad():
        assert not CredalWrapper(nets, gradients=True)(x).total.requires_grad
