"""CredalWrapper: every kind of member and output, as the module it is; always what wrap gives for the same numbers."""

import copy
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from credalens import wrap, wrap_logits
from credalens.bayes import activate_dropout, to_bayesian, use_generator
from credalens.torch import CredalWrapper
from tests.torch.agreement import assert_same


def network(seed=0, *, dropout=0.5):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 4)).eval()


@pytest.fixture
def members():
    return [network(seed) for seed in range(5)]


@pytest.fixture
def x():
    return torch.randn(7, 6, generator=torch.Generator().manual_seed(0))


def logits_of(members, x):
    with torch.no_grad():
        return torch.stack([member(x) for member in members])


# Members


@pytest.mark.parametrize("options", [{}, {"hull": True}, {"gradients": True}])
def test_the_budget_reaches_the_solver(options):
    logits = torch.from_numpy(np.random.default_rng(0).normal(0, 1, (20, 2, 100)))
    members = [lambda x, n=n: logits[n] for n in range(20)]
    with pytest.warns(RuntimeWarning, match="2 of 2 rows are not certified after max_nodes=1"):
        little = CredalWrapper(members, **options, max_nodes=1)(logits)
    much, lax = (CredalWrapper(members, **options, tolerance=tolerance)(logits) for tolerance in (1e-12, 1.0))
    for rough in (little, lax):
        assert (rough.aleatoric_bound <= much.aleatoric + 1e-12).all()
        assert (rough.aleatoric >= much.aleatoric_bound - 1e-12).all()
        gap, least_gap = ((p.aleatoric - p.aleatoric_bound).max() for p in (rough, much))
        assert gap > least_gap
    with pytest.raises(ValueError, match="max_nodes"):
        CredalWrapper(members, max_nodes=0, **options)
    with pytest.raises(ValueError, match="tolerance"):
        CredalWrapper(members, tolerance=-1.0, **options)


@pytest.mark.parametrize("outputs", ["logits", "probabilities"])
def test_members_of_two_precisions_give_the_wider_in_either_order(outputs):
    row = torch.tensor([[0.25, 0.75]]) if outputs == "probabilities" else torch.tensor([[3.0, 4.0]])
    members = [lambda x: row, lambda x: row.flip(-1).double()]
    for order in (members, members[::-1]):
        assert CredalWrapper(order, outputs=outputs)(row).total.dtype == torch.float64
    narrow = [members[0], lambda x: row.flip(-1)]
    assert CredalWrapper(narrow, outputs=outputs)(row).total.dtype == torch.float32


@pytest.mark.parametrize("options", [{}, {"hull": True}, {"gradients": True}], ids=str)
@pytest.mark.parametrize("narrow", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("wide", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_rows_of_a_narrow_softmax_go_with_those_of_a_wider(options, narrow, wide):
    x = 3 * torch.randn(2, 100, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = [torch.softmax(x[0].to(narrow), -1), torch.softmax(x[1].to(wide), -1)]
    assert ((rows[0].double().sum(-1) - 1).abs() > 1e-5).any()
    expected = wrap(torch.stack([p.double() / p.double().sum(-1, keepdim=True) for p in rows]))
    for order in (rows, rows[::-1]):
        wrapper = CredalWrapper([lambda x, p=p: p for p in order], outputs="probabilities", **options)
        prediction = wrapper(x)
        assert prediction.total.dtype == torch.promote_types(wide, torch.float32)
        for field in ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic"):
            torch.testing.assert_close(
                getattr(prediction, field).double(), getattr(expected, field), rtol=0, atol=2e-6, msg=field
            )


def test_a_row_that_its_own_precision_does_not_allow_is_refused_among_others():
    rows = [torch.full((4, 2), 0.5), torch.full((4, 2), 0.5, dtype=torch.float16)]
    rows[1][3, 0] = 0.52
    for options in ({}, {"hull": True}, {"gradients": True}):
        wrapper = CredalWrapper([lambda x, p=p: p for p in rows], outputs="probabilities", **options)
        with pytest.raises(ValueError, match=r"1 of 4 rows .* member 1 .* index \(3,\)"):
            wrapper(rows[0])


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    st.integers(1, 6),
    st.integers(2, 9),
    st.sampled_from([(), (3,), (2, 13), (0,)]),
    st.sampled_from(["float32", "float64"]),
)
@pytest.mark.filterwarnings("ignore:there is a single member")
def test_any_members_give_what_wrap_gives_for_their_logits(count, classes, batch, dtype):
    logits = torch.from_numpy(np.random.default_rng(count).normal(0, 3, (count, *batch, classes)).astype(dtype))
    wrapper = CredalWrapper([lambda x, n=n: logits[n] for n in range(count)])
    assert_same(wrapper(torch.zeros(1)), wrap_logits(logits), atol=20 * torch.finfo(logits.dtype).eps)
    probs = torch.softmax(logits, -1)
    wrapper = CredalWrapper([lambda x, n=n: probs[n] for n in range(count)], outputs="probabilities")
    assert_same(wrapper(torch.zeros(1)), wrap(probs), atol=20 * torch.finfo(logits.dtype).eps)


@pytest.mark.parametrize("given_as", [list, tuple, iter, nn.ModuleList, lambda m: (member.forward for member in m)])
def test_lists_iterators_module_lists_and_callables(members, x, given_as):
    assert_same(CredalWrapper(given_as(members))(x), wrap_logits(logits_of(members, x)))


def test_ruled_out_classes_and_narrow_precision(x):
    z = torch.tensor([[2.0, -torch.inf, 1.0], [0.0, -torch.inf, 3.0]])
    prediction = CredalWrapper([lambda x: z[:1], lambda x: z[1:]])(x)
    assert prediction.upper[0, 1] == 0
    for dtype in (torch.float16, torch.bfloat16):
        probs = torch.softmax(torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0)), -1).to(dtype)
        prediction = CredalWrapper([lambda x, p=p: p for p in probs], outputs="probabilities")(x)
        assert prediction.total.dtype == torch.float32
        assert_same(prediction, wrap(probs))
        logits = 3 * torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0)).to(dtype)
        prediction = CredalWrapper([lambda x, z=z: z for z in logits])(x)
        assert prediction.total.dtype == torch.float32
        assert_same(prediction, wrap_logits(logits))  # the softmax is not the members' narrow one


# Samples


def test_mc_dropout_switches_on_the_dropout_layers_and_nothing_else(x):
    model = network()
    seen = []
    model[1].register_forward_pre_hook(lambda layer, _: seen.append((layer.training, model[3].training)))
    before = copy.deepcopy(model.state_dict())
    torch.manual_seed(3)
    prediction = CredalWrapper(model, samples=20)(x)
    assert seen == [(False, True)] * 20
    assert not any(layer.training for layer in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    torch.manual_seed(3)
    with torch.no_grad(), activate_dropout(model):
        expected = wrap_logits(torch.stack([model(x) for _ in range(20)]))
    assert_same(prediction, expected)
    assert (prediction.epistemic > 0.01).all()


def test_dropout_is_off_again_after_an_error():
    model = network()
    wrapper = CredalWrapper(model, samples=3)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        wrapper(torch.zeros(2, 5))
    assert not any(layer.training for layer in model.modules())


@pytest.mark.parametrize("estimator", ["reparameterization", "flipout"])
def test_a_bayesian_network_is_sampled_and_its_dropout_stays_off(x, estimator):
    bnn = to_bayesian(network(), estimator=estimator, initial_std=0.3)
    with use_generator(bnn, torch.Generator().manual_seed(1)):
        prediction = CredalWrapper(bnn, samples=30)(x)
    with use_generator(bnn, torch.Generator().manual_seed(1)):
        expected = wrap_logits(logits_of([bnn] * 30, x))
    assert_same(prediction, expected)
    assert (prediction.epistemic > 0.01).all()


def test_a_callable_that_samples_and_an_ensemble_that_is_sampled(members, x):
    generator = torch.Generator().manual_seed(0)
    prediction = CredalWrapper(lambda x: torch.randn(len(x), 3, generator=generator), samples=25)(x)
    draws = torch.Generator().manual_seed(0)
    assert_same(
        prediction, wrap_logits(torch.stack([torch.randn(7, 3, generator=draws) for _ in range(25)])), atol=1e-6
    )
    torch.manual_seed(0)
    assert CredalWrapper(members, samples=4)(x).n_members == 20


def test_the_seed_of_torch_repeats_the_draws(x):
    wrapper = CredalWrapper(network(), samples=5)
    torch.manual_seed(0)
    first, second = wrapper(x), wrapper(x)
    torch.manual_seed(0)
    assert_same(wrapper(x), first, atol=0)
    assert not torch.equal(first.total, second.total)


# Outputs


Both = namedtuple("Both", ["features", "logits"])


@pytest.mark.parametrize(
    "packed",
    [
        lambda z: z,
        lambda z: {"loss": z.sum(), "logits": z},
        lambda z: SimpleNamespace(logits=z),
        lambda z: Both(z[:1], z),
        lambda z: (z, {"hidden": z * 0}),
        lambda z: [z, z * 0],
        lambda z: torch.distributions.Categorical(logits=z),
    ],
    ids=["tensor", "dict", "object", "namedtuple", "tuple", "list", "distribution"],
)
def test_logits_are_found(members, x, packed):
    wrapper = CredalWrapper([lambda x, member=member: packed(member(x)) for member in members])
    assert_same(wrapper(x), wrap_logits(logits_of(members, x)))


def test_probabilities_are_found_by_their_name(members, x):
    wrapper = CredalWrapper(
        [lambda x, m=m: {"logits": None, "probabilities": m(x).softmax(-1)} for m in members], outputs="probabilities"
    )
    assert_same(wrapper(x), wrap(logits_of(members, x).softmax(-1)))


def test_a_hugging_face_ensemble(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.DistilBertConfig(
        vocab_size=30, dim=8, hidden_dim=16, n_layers=1, n_heads=2, max_position_embeddings=16, num_labels=3
    )
    torch.manual_seed(0)
    models = [transformers.DistilBertForSequenceClassification(config).eval() for _ in range(3)]
    batch = {"input_ids": torch.randint(30, (4, 6)), "attention_mask": torch.ones(4, 6, dtype=torch.long)}
    expected = wrap_logits(torch.stack([model(**batch).logits.detach() for model in models]))
    wrapper = CredalWrapper(models)
    assert_same(wrapper(batch), expected)
    assert_same(wrapper(**batch), expected)
    assert_same(wrapper(transformers.BatchEncoding(batch)), expected)
    assert_same(wrapper.predict([batch, batch], progress=False, returns="torch"), _twice(expected))
    with pytest.raises(ValueError, match=r"member 0 \(DistilBert\w+\) .* layer '[\w.]+dropout'"):
        CredalWrapper([model.train() for model in models])(batch)


def _twice(prediction):
    members = prediction._members
    return wrap(torch.from_numpy(np.concatenate([members.array] * 2, axis=1)).float())


class TakesABatch(nn.Module):
    def forward(self, batch):
        return batch["x"] * self.scale

    scale = 2.0


@pytest.mark.filterwarnings("ignore:there is a single member")
def test_a_dictionary_stays_whole_for_a_member_that_wants_it(x):
    batch = {"x": x}
    assert_same(CredalWrapper([TakesABatch()])(batch), wrap_logits(x[None] * 2))
    assert_same(CredalWrapper([lambda x: x * 2])(batch), wrap_logits(x[None] * 2))


@pytest.mark.filterwarnings("ignore:there is a single member")
def test_arguments_are_passed_on(x):
    wrapper = CredalWrapper([lambda x, y, *, scale: (x + y) * scale])
    assert_same(wrapper(x, 1.0, scale=3.0), wrap_logits((x[None] + 1) * 3))


def test_the_hull_needs_the_members(members, x):
    logits = logits_of(members, x)
    prediction = CredalWrapper(members, hull=True)(x)
    assert_same(prediction, wrap_logits(logits))
    torch.testing.assert_close(prediction.hull.upper_entropy(), wrap_logits(logits).hull.upper_entropy())
    with pytest.raises(ValueError, match="hull"):
        _ = CredalWrapper(members)(x).hull


def test_base_and_summaries(members, x):
    half = CredalWrapper(members[:2], base=10).summarise(x).merge(CredalWrapper(members[2:]).summarise(x))
    assert_same(half.prediction(base=10), CredalWrapper(members, base=10)(x), atol=1e-7)
    assert CredalWrapper(members, base=10)(x).base == 10


# As a module


def test_it_is_a_module(members, x, tmp_path):
    wrapper = CredalWrapper(members)
    assert sum(p.numel() for p in wrapper.parameters()) == sum(p.numel() for m in members for p in m.parameters())
    assert set(wrapper.state_dict()) == {f"members.{n}.{key}" for n in range(5) for key in members[0].state_dict()}
    other = CredalWrapper([network(seed + 10) for seed in range(5)])
    assert not torch.equal(other(x).total, wrapper(x).total)
    torch.save(wrapper.state_dict(), tmp_path / "weights.pt")
    other.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True))
    assert_same(other(x), wrapper(x), atol=0)
    assert_same(copy.deepcopy(wrapper)(x), wrapper(x), atol=0)
    assert "outputs='logits'" in repr(wrapper)


def test_to_moves_every_member(members, x):
    wrapper = CredalWrapper(members).to(torch.float64)
    assert {p.dtype for p in wrapper.parameters()} == {torch.float64}
    assert wrapper(x.double()).total.dtype == torch.float64
    assert {p.device.type for p in wrapper.to("meta").parameters()} == {"meta"}


def test_train_and_eval_reach_every_member(members, x):
    wrapper = CredalWrapper(members)
    assert not wrapper.training
    assert wrapper.train() is wrapper
    assert all(layer.training for member in members for layer in member.modules())
    with pytest.raises(ValueError, match="wrong mode"):
        wrapper(x)
    wrapper.eval()
    assert not any(layer.training for layer in wrapper.modules())
    assert_same(wrapper(x), wrap_logits(logits_of(members, x)))


def test_training_through_the_wrapper_runs_members_as_they_are(members, x):
    wrapper = CredalWrapper(members, gradients=True).train()
    before = members[0][1].running_mean.clone()
    wrapper(x).total.mean().backward()
    assert not torch.equal(members[0][1].running_mean, before)


def test_a_member_may_carry_a_note_of_its_errors(members):
    wrapper = CredalWrapper([*members[:2], nn.Linear(5, 4)])
    with pytest.raises(RuntimeError) as error:
        wrapper(torch.zeros(2, 6))
    assert error.value.__notes__ == ["Raised by member 2 (Linear) of the CredalWrapper."]
