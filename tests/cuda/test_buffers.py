"""Results that share an allocation but nothing else, and scratch memory."""

import pytest
import torch

from credalens.cuda import buffers


def test_large_results_do_not_keep_each_other_in_memory(monkeypatch):
    monkeypatch.setattr(buffers, "SHARED", 40)
    for count, classes in ((10, ()), (11, ()), (5, (2,)), (1, (11,))):
        found = buffers.result_arrays(torch.empty(3, count, 2), *classes)
        shared = count * (classes[0] if classes else 1) * 4 <= 40
        assert len({x.untyped_storage().data_ptr() for x in found}) == (1 if shared else 4)
        assert {(*x.shape,) for x in found} == {(count, *classes)}
        assert all(x.is_contiguous() and x.data_ptr() % 16 == 0 for x in found)


@pytest.mark.parametrize("count", [8, 7])
def test_what_is_done_to_one_result_in_place_does_not_concern_the_others(count):
    weight = torch.ones(count, 3, requires_grad=True)
    lower, upper, mean, _ = buffers.result_arrays(torch.ones(2, count, 3), 3)
    for x in (lower, upper, mean):
        x.fill_(2.0)
    loss = (weight * upper).sum()
    lower.add_(1)
    mean.mul_(weight)
    loss.backward()
    assert (weight.grad == 2).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_results_have_the_precision_of_predictions(dtype):
    found = buffers.result_arrays(torch.empty(3, 7, 5, dtype=dtype), 5)
    assert {x.dtype for x in found} == {torch.float64 if dtype == torch.float64 else torch.float32}


def test_scratch_memory_is_one_allocation_of_arrays_that_do_not_meet():
    kinds = [(torch.int32, 3), (torch.float64, 65), (torch.float32, 2), (torch.float32, 64), (torch.float64, 1)]
    places = buffers.scratch_arrays(torch.device("cpu"), *kinds)
    tensors = [place.tensor() for place in places]
    assert [(x.dtype, len(x)) for x in tensors] == kinds
    assert len({x.untyped_storage().data_ptr() for x in tensors}) == 1
    assert [x.data_ptr() for x in tensors] == [place.data_ptr() for place in places]
    assert all(place.data_ptr() % 16 == 0 for place in places)
    for i, x in enumerate(tensors):
        x.fill_(i)
    assert all((x == i).all() for i, x in enumerate(tensors))
