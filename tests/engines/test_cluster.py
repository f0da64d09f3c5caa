"""Whose Ray it is, and that one of our own is told to keep to itself for as long as it runs."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from credalens.engines import cluster as clusters


@pytest.fixture
def ray(monkeypatch):
    """A Ray that notes what it is asked for, and what the environment then says about statistics."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    asked = []

    def note(what, **options):
        asked.append((what, os.environ.get(clusters.STATISTICS), options.get("address"), options.get("num_cpus")))
        if options.get("address") == "local":
            os.environ.setdefault("RAY_AUTH_MODE", made.authentication)

    made = SimpleNamespace(
        asked=asked,
        authentication="token",
        connected=False,
        is_initialized=lambda: made.connected,
        init=lambda **options: note("init", **options),
        exceptions=SimpleNamespace(RayError=type("RayError", (Exception,), {})),
        shutdown=lambda: note("shutdown"),
        util=SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1"),
        _private=SimpleNamespace(ray_constants=SimpleNamespace(ENABLE_RAY_CLUSTER=True)),
        __version__="2.40.0",
    )
    monkeypatch.setattr(clusters, "import_ray", lambda: made)
    monkeypatch.setattr(clusters, "_check_answers", lambda address: None)
    return made


@pytest.mark.parametrize("before", [None, "1"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_ray_of_our_own_sends_no_statistics_as_long_as_it_runs(ray, monkeypatch, before, fails):
    if before is None:
        monkeypatch.delenv(clusters.STATISTICS, raising=False)
    else:
        monkeypatch.setenv(clusters.STATISTICS, before)
    try:
        with clusters.ray_cluster(workers=2):
            assert os.environ[clusters.STATISTICS] == "0"
            if fails:
                raise KeyError
    except KeyError:
        assert fails
    assert ray.asked == [("init", "0", "local", 2), ("shutdown", "0", None, None)]
    assert os.environ.get(clusters.STATISTICS) == before


def test_the_environment_is_as_before_afterwards(ray, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with clusters.ray_cluster():
        assert os.environ["RAY_AUTH_MODE"] == "token"
        assert not ray._private.ray_constants.ENABLE_RAY_CLUSTER
    assert os.environ["RAY_AUTH_MODE"] == "disabled"
    assert ray._private.ray_constants.ENABLE_RAY_CLUSTER


@pytest.mark.parametrize("open_to", ["network", "clients"])
def test_a_ray_that_lets_others_in_is_stopped(ray, open_to):
    if open_to == "network":
        ray.util.get_node_ip_address = lambda: "192.0.2.7"
    else:
        ray.authentication = "disabled"
    with (
        pytest.raises(RuntimeError, match=r"version 2\.40\.0\) was stopped.*use Ray 2\.59 or later"),
        clusters.ray_cluster(),
    ):
        pass
    assert [what for what, *_ in ray.asked] == ["init", "shutdown"]


def test_what_others_want_of_their_ray_is_left_alone(ray, monkeypatch):
    monkeypatch.setenv(clusters.STATISTICS, "1")
    with clusters.ray_cluster("head:6379", workers=2):
        assert os.environ[clusters.STATISTICS] == "1"
    assert ray.asked == [("init", "1", "head:6379", None), ("shutdown", "1", None, None)]
    ray.connected = True
    with clusters.ray_cluster(workers=2) as found:
        assert found is ray
    assert len(ray.asked) == 2


def test_a_ray_is_ours_when_none_runs_and_none_is_named(ray, monkeypatch):
    assert clusters.is_ours()
    assert not clusters.is_ours("head:6379")
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    assert not clusters.is_ours()
    monkeypatch.delenv("RAY_ADDRESS")
    ray.connected = True
    assert not clusters.is_ours()


@pytest.mark.parametrize("kind", [ConnectionError, RuntimeError, "RayError"])
def test_a_cluster_that_lets_nobody_in_is_an_error_that_names_the_token(ray, kind):
    error = ray.exceptions.RayError if kind == "RayError" else kind

    def refuse(**options):
        raise error("Version mismatch:\n    other Python")

    ray.init = refuse
    with (
        pytest.raises(ConnectionError, match=r"head:6379 .*other Python\).*RAY_AUTH_MODE=token"),
        clusters.ray_cluster("head:6379"),
    ):
        pass
    assert ray.asked == []
