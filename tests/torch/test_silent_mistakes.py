"""Mistakes that would give plausible numbers: each causes a warning or an error that names the remedy."""

from functools import partial

import pytest
import torch
from torch import nn

from credalens import wrap_logits
from credalens.torch import CredalWrapper

X = torch.ones(2, 4)


def linear():
    return nn.Linear(4, 3)


def test_members_that_say_little():
    for single in (CredalWrapper(linear(), samples=1), CredalWrapper([linear()])):
        for call in (single, partial(single.predict, progress=False)):
            with pytest.warns(UserWarning, match="there is a single member") as caught:
                call(X)
            assert len(caught) == 1
    same = CredalWrapper([linear()] * 3)
    one_hot = CredalWrapper([lambda x, k=k: torch.eye(3)[[k] * len(x)] for k in range(3)], outputs="probabilities")
    for wrapper, words in ((same, "all members predict the same"), (one_hot, "nearly one-hot")):
        for call in (wrapper, partial(wrapper.predict, progress=False, batch_size=2)):
            with pytest.warns(UserWarning, match=words) as caught:
                call(torch.randn(8, 4))
            assert len(caught) == 1
    assert CredalWrapper([linear()]).summarise(X).count == 1  # one of several processes


def test_probabilities_given_as_logits():
    members = [nn.Sequential(linear(), nn.Softmax(-1)) for _ in range(3)]
    for options in ({}, {"hull": True}, {"gradients": True}, {"vectorised": True}):
        with pytest.warns(UserWarning, match=r'these logits are probabilities.*outputs="probabilities"') as caught:
            CredalWrapper(members, **options)(X)
        assert len(caught) == 1
        CredalWrapper(members, outputs="probabilities", **options)(X)


def test_square_maps_are_taken_for_classes_only_with_a_warning():
    maps = [nn.Conv2d(2, 3, 1) for _ in range(2)]
    images = torch.randn(4, 2, 5, 5)
    for options in ({}, {"hull": True}, {"gradients": True}):
        with pytest.warns(UserWarning, match="the last axis is taken for the classes.*class_axis"):
            CredalWrapper(maps, **options)(images)
        assert CredalWrapper(maps, class_axis=3, **options)(images).lower.shape == (4, 3, 5, 5)


@pytest.mark.parametrize("options", [{}, {"hull": True}, {"gradients": True}, {"vectorised": True}], ids=str)
@pytest.mark.parametrize("outputs", ["logits", "probabilities"])
def test_classes_on_another_axis(options, outputs):
    maps, images = [nn.Conv2d(2, 3, 1) for _ in range(2)], torch.randn(4, 2, 5, 6)
    members = [nn.Sequential(m, nn.Softmax(1)) for m in maps] if outputs == "probabilities" else maps
    with torch.no_grad():
        expected = wrap_logits(torch.stack([m(images) for m in maps]), class_axis=2)
    for axis in (1, -3):
        prediction = CredalWrapper(members, outputs=outputs, class_axis=axis, **options)(images)
        assert prediction.lower.shape == (4, 5, 6, 3)
        torch.testing.assert_close(prediction.total, expected.total, rtol=0, atol=1e-5)
    if outputs == "probabilities":
        with pytest.raises(ValueError, match="say class_axis=-3"):
            CredalWrapper(members, outputs=outputs, **options)(images)
    with pytest.raises(ValueError, match="class_axis=4 is out of range"):
        CredalWrapper(members, outputs=outputs, class_axis=4, **options)(images)


@pytest.mark.parametrize("options", [{}, {"vectorised": True}], ids=str)
def test_a_dictionary_for_a_member_that_takes_a_tensor(options):
    wrapper = CredalWrapper([linear(), linear()], **options)
    words = r"got the batch itself, a dictionary with the keys \['image', 'id'\].*inputs=lambda batch: batch\['image'\]"
    with pytest.raises(TypeError, match=words):
        wrapper({"image": X, "id": 7})
    with pytest.raises(TypeError, match=words):
        wrapper.predict([{"image": X, "id": 7}], progress=False)


def test_numpy_arrays_name_the_way_to_tensors():
    wrapper = CredalWrapper([linear(), linear()])
    with pytest.raises(TypeError, match=r"data is a NumPy array.*torch.from_numpy.*inputs="):
        wrapper.predict(X.numpy(), progress=False)
    with pytest.raises(TypeError, match=r"got a NumPy array.*inputs=torch.as_tensor"):
        wrapper.predict([X.numpy()], progress=False)
    assert len(wrapper.predict([X.numpy()], inputs=torch.as_tensor, progress=False)) == len(X)


@pytest.mark.parametrize("texts", ["a text", ["a text", "another"]])
def test_text_is_sent_to_the_tokenizer(texts):
    wrapper = CredalWrapper([linear(), linear()])
    with pytest.raises(TypeError, match=r"got text.*tokenizer\(texts"):
        wrapper(texts)
