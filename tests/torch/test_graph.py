"""In the graph: torch.compile and torch.export keep the decomposition as one operator, with the numbers of eager mode."""

import pytest
import torch
from torch import nn

from credalens.torch import CredalWrapper
from tests.torch.agreement import FIELDS, assert_same

ROWS = torch.randn(7, 6, generator=torch.Generator().manual_seed(0))
MAPS = torch.randn(2, 6, 5, 3, generator=torch.Generator().manual_seed(0))


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 4)).eval()


def ensemble(count=3):
    return [network(seed) for seed in range(count)]


def convolution(seed):
    torch.manual_seed(seed)
    return nn.Conv2d(6, 4, 1).double()


def named_outputs(member):
    return lambda x: {"probabilities": torch.softmax(member(x), -1)}


CASES = {
    "ensemble": (lambda: CredalWrapper(ensemble(), base=10), ROWS),
    "callables": (lambda: CredalWrapper(map(named_outputs, ensemble()), outputs="probabilities"), ROWS),
    "vectorised": (lambda: CredalWrapper(ensemble(), vectorised=True), {"input": ROWS}),
    "dropout": (lambda: CredalWrapper(network(), samples=3), ROWS),
    "maps": (lambda: CredalWrapper([convolution(n) for n in range(3)], class_axis=1, hull=True), MAPS.double()),
}


def seeded(model, x):
    torch.manual_seed(1)
    return model(x)


def compiled(wrapper, backend="eager"):
    torch.compiler.reset()
    return torch.compile(wrapper, backend=backend, fullgraph=True)


@pytest.mark.parametrize("name", list(CASES)[1:])
def test_compiled_without_a_graph_break_it_gives_the_same_to_the_bit(name):
    make, x = CASES[name]
    wrapper = make()
    prediction, expected = seeded(compiled(wrapper), x), seeded(wrapper, x)
    assert_same(prediction, expected, atol=0)
    assert not prediction.total.requires_grad
    if wrapper.hull:
        assert_same_hull(prediction[:1], expected[:1])


def assert_same_hull(prediction, expected):
    torch.testing.assert_close(prediction.hull.lower_entropy(), expected.hull.lower_entropy(), rtol=0, atol=0)
    assert torch.equal(prediction.score("mean_pairwise_kl"), expected.score("mean_pairwise_kl"))


def test_gradients_through_the_graph_are_those_of_the_eager_wrapper():
    wrapper, predictions, gradients = CredalWrapper(ensemble(), gradients=True), [], []
    for model in (wrapper, compiled(wrapper, "aot_eager")):
        x = ROWS.clone().requires_grad_()
        predictions.append(model(x))
        (predictions[-1].total.sum() + predictions[-1].epistemic.sum()).backward()
        gradients.append(x.grad)
    for field in FIELDS:
        assert torch.equal(*(getattr(p, field) for p in predictions)), field
    assert_same_hull(*predictions)
    torch.testing.assert_close(*gradients)
    assert gradients[0].any()


def test_an_exported_program_runs_after_saving_for_any_number_of_rows(tmp_path):
    make, x = CASES["ensemble"]
    program = torch.export.export(make(), (x,), dynamic_shapes={"args": ({0: torch.export.Dim("rows")},)})
    assert "credalens.decompose" in str(program.graph)
    torch.export.save(program, tmp_path / "credal.pt2")
    loaded = torch.export.load(tmp_path / "credal.pt2").module()
    for rows in (x, x[:2].repeat(6, 1)):
        assert_same(loaded(rows), make()(rows), atol=0)


OPTIONS = (-1, 2.0, 100, 1e-9, 1)  # class_axis, base and the budget


@pytest.mark.parametrize("together", [False, True])
def test_the_operator_checks_values_and_warns_as_the_wrapper_does(together):
    half = torch.full((3, 2), 0.5)
    with pytest.raises(ValueError, match=r"3 of 3 rows of the probabilities of member 1"):
        torch.ops.credalens.decompose([half, 2 * half], "probabilities", together, *OPTIONS)
    with pytest.raises(ValueError, match="rows of probs"):
        torch.ops.credalens.extremes(torch.stack([half, 2 * half]), half, half, *OPTIONS[2:])
    with pytest.warns(UserWarning, match="all members predict the same"):
        torch.ops.credalens.decompose([half, half], "probabilities", together, *OPTIONS)
    with pytest.warns(UserWarning, match="these logits are probabilities"):
        torch.ops.credalens.decompose([half, half * half.new([0, 2])], "logits", together, *OPTIONS)


@pytest.mark.parametrize("together", [False, True])
def test_the_operator_of_predictions_keeps_torchs_rules(together):
    outputs = [ROWS, -ROWS.double()]
    torch.library.opcheck(torch.ops.credalens.decompose, (outputs, "logits", together, *OPTIONS))


def test_the_operator_of_gradients_keeps_torchs_rules():
    probs = torch.softmax(torch.stack([ROWS, -ROWS]).double(), -1)
    bounds = probs.amin(0), probs.amax(0)
    torch.library.opcheck(torch.ops.credalens.extremes, (probs, *bounds, *OPTIONS[2:]))
