"""Networks that are trained once, for all tests that only look at them."""

import pytest

from reproduction.tests.training.tiny import EVERY, METHODS, SPEC, member, train


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    return folder, train(EVERY, folder, epochs=24)


@pytest.fixture(scope="session")
def alone(tmp_path_factory):
    """Each of the methods trained by itself, and the teachers of the student."""
    folder = tmp_path_factory.mktemp("alone")
    for spec in [SPEC, member(seed=1), *METHODS]:
        train([spec], folder)
    return folder
