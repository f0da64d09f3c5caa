"""Bad input is an error that names the member and says what to do; it never becomes a number."""

import copy
import warnings

import pytest
import torch
from torch import nn

from credalens.bayes import mean_network, to_bayesian
from credalens.torch import CredalWrapper

X = torch.ones(2, 4)


def linear(classes=3):
    return nn.Linear(4, classes)


def returning(value):
    return lambda x: value


@pytest.mark.parametrize(
    ("members", "options", "error", "message"),
    [
        ([], {}, ValueError, "at least one member; got none"),
        (iter(()), {}, ValueError, "at least one member; got none"),
        (linear(), {}, ValueError, r"one Linear is one prediction: pass samples=50 .* or a list"),
        (linear(), {"samples": 0}, ValueError, "samples must be at least 1; got 0"),
        (linear(), {"samples": -3}, ValueError, "samples must be at least 1; got -3"),
        (linear(), {"samples": 2.0}, TypeError, "samples must be an integer of at least 1; got 2.0"),
        (linear(), {"samples": True}, TypeError, "samples must be an integer of at least 1; got True"),
        ([linear(), 3], {}, TypeError, "member 1 must be a module or another callable; got 3"),
        ([linear(), nn.Linear], {}, TypeError, "member 1 .* got the class Linear, not an instance"),
        (7, {}, TypeError, "members must be modules or callables in a list; got int"),
        ("ab", {}, TypeError, "members must be modules or callables in a list; got str"),
        ({"a": linear()}, {}, TypeError, "got dict"),
        ([linear()], {"outputs": "logit"}, ValueError, "outputs must be one of 'logits', 'probabilities'; got 'logit'"),
        ([linear()], {"base": 1}, ValueError, "base must be finite and above 1"),
        ([linear()], {"vectorised": True, "samples": 3}, ValueError, "with samples= use vectorised=False"),
        ([linear()], {"vectorised": True, "gradients": True}, ValueError, "use vectorised=False"),
        ([linear()], {"member_chunk": 2}, ValueError, "member_chunk limits a vectorised pass"),
        ([linear()], {"member_chunk": 0, "vectorised": True}, ValueError, "member_chunk must be at least 1"),
    ],
)
def test_a_wrapper_that_makes_no_sense(members, options, error, message):
    with pytest.raises(error, match=message):
        CredalWrapper(members, **options)


OPTIONS = [{}, {"hull": True}, {"gradients": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    ("members", "error", "message"),
    [
        ([linear(), linear(), linear(4)], ValueError, r"member 2 \(Linear\) predicts 4 classes .* before it 3"),
        (
            [linear(), lambda x: torch.ones(5, 3)],
            ValueError,
            r"member 1 \(<lambda>\) returned shape \(5, 3\) .* \(2, 3\)",
        ),
        (
            [linear(), returning(torch.tensor([[0.0, 1.0, 2.0], [0.0, torch.nan, torch.inf]]))],
            ValueError,
            r"1 of 2 rows of the logits of member 1 \(<lambda>\) .* index \(1,\) .*class 1 is nan",
        ),
        ([returning(torch.full((2, 3), -torch.inf))], ValueError, r"member 0 .* index \(0,\) .* rule out every class"),
        ([linear(), linear(1)], ValueError, r"member 1 \(Linear\) returned shape \(2, 1\).*two classes"),
        ([returning(torch.tensor(1.0))], ValueError, r"member 0 .* returned shape \(\)"),
        (
            [returning(torch.ones(2, 3, dtype=torch.long))],
            TypeError,
            r"member 0 .* returned torch.int64.*not class labels",
        ),
        (
            [linear(), returning({"scores": X})],
            TypeError,
            r"member 1 .* returned dict with keys \['scores'\].*lambda x",
        ),
        ([returning(None)], TypeError, "member 0 .* returned NoneType"),
        ([returning(())], TypeError, "member 0 .* returned tuple"),
        (
            [linear(), linear().to("meta")],
            ValueError,
            r"member 1 \(Linear\) is on meta and the input on cpu.*wrapper.to",
        ),
        ([returning(torch.ones(2, 3, device="meta"))], ValueError, "member 0 .* tensor on meta, expected cpu"),
    ],
)
def test_a_bad_member_is_named(members, error, message, options):
    with pytest.raises(error, match=f"(?s){message}"):
        CredalWrapper(members, **options)(X)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    ("row", "what"),
    [
        ([0.5, 0.5, 0.5], "sums to 1.5"),
        ([1.5, -0.5, 0.0], "class 1 is -0.5"),
        ([torch.nan, 0.5, 0.5], "class 0 is nan"),
    ],
)
def test_rows_that_are_no_probabilities_name_the_member(row, what, options):
    good = torch.tensor([[0.2, 0.3, 0.5]] * 2)
    bad = torch.stack([good[0], torch.tensor(row)])
    wrapper = CredalWrapper([returning(good), returning(bad)], outputs="probabilities", **options)
    with pytest.raises(ValueError, match=rf"the probabilities of member 1 .* index \(1,\) .*{what}"):
        wrapper(X)


@pytest.mark.parametrize(
    ("layer", "name"),
    [
        (nn.Dropout(0.1), "Dropout"),
        (nn.AlphaDropout(0.1), "AlphaDropout"),
        (nn.BatchNorm1d(3), "BatchNorm1d"),
        (nn.RReLU(), "RReLU"),
    ],
)
def test_a_member_in_the_wrong_mode_is_named_with_its_layer_and_the_remedy(layer, name):
    members = [nn.Sequential(linear(), nn.Sequential(copy.deepcopy(layer))) for _ in range(3)]
    members[0].eval()
    members[1][0].eval()
    members[2].eval()
    wrapper = CredalWrapper(members)
    with pytest.raises(ValueError, match=rf"member 1 .* layer '1\.0' \({name}\) .*Call \.eval\(\)"):
        wrapper(X)
    assert wrapper.eval()(X).n_members == 3


@pytest.mark.parametrize(
    "layer",
    [nn.ReLU(), nn.Dropout(0.0), nn.LayerNorm(3), nn.BatchNorm1d(3, track_running_stats=False)],
)
@pytest.mark.filterwarnings("ignore:there is a single member")
def test_layers_that_are_the_same_in_both_modes_are_welcome_in_either(layer):
    member = nn.Sequential(linear(), layer).train()
    assert CredalWrapper([member])(X).n_members == 1


def test_batch_normalisation_in_training_mode_is_refused_for_samples_too():
    model = nn.Sequential(linear(), nn.BatchNorm1d(3), nn.Dropout()).train()
    with pytest.raises(ValueError, match=r"member 0 .* layer '1' \(BatchNorm1d\)"):
        CredalWrapper(model, samples=3)(X)
    model[1].eval()
    assert CredalWrapper(model, samples=3)(X).n_members == 3


def test_recurrent_dropout_in_training_mode_is_seen():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.read, self.attend = nn.LSTM(4, 3, 2, dropout=0.5), nn.MultiheadAttention(3, 1, dropout=0.5)

        def forward(self, x):
            return self.read(x)[0]

    model = Reader()
    with pytest.raises(ValueError, match=r"'read' \(LSTM\)"):
        CredalWrapper([model])(X)
    model.read.eval()
    with pytest.raises(ValueError, match=r"'attend' \(MultiheadAttention\)"):
        CredalWrapper([model])(X)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_deterministic_module_asked_for_many_samples_warns_once(options):
    wrapper = CredalWrapper(linear(), samples=5, **options)
    with pytest.warns(UserWarning, match=r"5 samples of member 0 \(Linear\) are identical"):
        prediction = wrapper(X)
    assert not prediction.epistemic.any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrapper(X)


def test_dropout_of_nothing_and_a_bayesian_network_at_its_mean_warn():
    with pytest.warns(UserWarning, match="identical"):
        CredalWrapper(nn.Sequential(linear(), nn.Dropout(0.0)), samples=3)(X)
    bnn = to_bayesian(linear())
    with mean_network(bnn), pytest.warns(UserWarning, match="identical"):
        CredalWrapper(bnn, samples=3)(X)


def test_of_several_sampled_members_the_deterministic_one_is_named():
    members = [to_bayesian(linear()), linear()]
    with pytest.warns(UserWarning, match="samples of member 1"):
        CredalWrapper(members, samples=3)(X)


def test_no_warning_without_need():
    CredalWrapper(to_bayesian(linear()), samples=3)(X)
    CredalWrapper([linear(), linear()])(X)


def test_a_failed_batch_leaves_no_trace_in_the_next():
    values = iter([torch.full((2, 3), torch.nan), torch.zeros(2, 3)])
    wrapper = CredalWrapper([linear(), lambda x: next(values)])
    with pytest.raises(ValueError, match="member 1"):
        wrapper(X)
    assert wrapper(X).n_members == 2
