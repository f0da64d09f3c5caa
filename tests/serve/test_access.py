"""Who may ask: bearer tokens, known names, no pages elsewhere, and health for everybody."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from credalens import wrap
from credalens.guard import Guard
from credalens.serve import app, member_outputs
from credalens.serve.access import read_tokens
from tests.serve.messages import request
from tests.strategies import batch_of

CLIENT = TestClient(app(member_outputs(), tokens=("first-secret", "zweites-ü")))


@pytest.mark.parametrize("path", ["/v2", "/v2/models/credal", "/v2/models/credal/ready", "/nothing"])
@pytest.mark.parametrize(
    "value",
    [None, "", "Bearer", "Bearer ", "Bearer first", "Bearer first-secret2", "Basic first-secret", "first-secret"],
)
def test_without_a_token_nothing_is_told(path, value):
    response = CLIENT.get(path, headers={} if value is None else {"Authorization": value})
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert list(response.json()) == ["error"]


@pytest.mark.parametrize("value", ["Bearer first-secret", "bearer first-secret", "Bearer zweites-ü".encode()])
def test_with_a_token_all_is(value):
    assert CLIENT.get("/v2", headers={"Authorization": value}).status_code == 200


def test_health_is_open():
    for path in ("/v2/health/live", "/v2/health/ready"):
        assert CLIENT.get(path).status_code == 200


def test_a_file_of_tokens(tmp_path):
    (path := tmp_path / "tokens").write_text("# of the team\none\n\n two \n")
    assert read_tokens(path) == ("one", "two")
    path.write_text("one\r\n# two\r\nzweites-ü\r\n", encoding="utf-8-sig", newline="")
    assert read_tokens(path) == ("one", "zweites-ü")
    path.write_text("one\n", encoding="utf-16")
    with pytest.raises(ValueError, match="tokens: expected UTF-8"):
        read_tokens(path)
    path.write_text("\n# none yet\n")
    with pytest.raises(ValueError, match="holds no token"):
        read_tokens(path)


@pytest.mark.parametrize(
    ("tokens", "error", "words"),
    [
        ("secret", TypeError, r"tokens must be a list of strings, such as \['a-long-secret'\]; got a str"),
        (b"secret", TypeError, "got a bytes"),
        (5, TypeError, "got an? int"),
        (["good", 7], TypeError, "token 1 is an? int"),
        ([""], ValueError, "token 0 is empty"),
        (["good", " good"], ValueError, "token 1 begins or ends with white space"),
        (["go\nod"], ValueError, "token 0 holds a control character"),
        (["\ud800"], ValueError, "token 0 is not valid Unicode"),
    ],
)
def test_tokens_that_nobody_could_send_are_refused_at_once(tokens, error, words):
    """And no error shows a token."""
    with pytest.raises(error, match=words) as caught:
        app(member_outputs(), tokens=tokens)
    assert "good" not in str(caught.value)
    assert "secret" not in str(caught.value).replace("a-long-secret", "")


@given(st.text(min_size=1))
def test_every_token_that_is_taken_lets_its_owner_in(token):
    try:
        application = app(member_outputs(), tokens=[token], observers=[])
    except ValueError:
        return
    client = TestClient(application)
    assert client.get("/v2", headers={"Authorization": b"Bearer " + token.encode()}).status_code == 200
    assert client.get("/v2", headers={"Authorization": "Bearer"}).status_code == 401


GUARD = Guard.fit(wrap(batch_of("peaked", 3, 200, 4, seed=1)))
MESSAGE = request({"probs": batch_of("flat", 3, 2, 4)}, ["total"])
INFER, RESTART, HEALTH = "/v2/models/credal/infer", "/drift/restart", "/v2/health/ready"
NO_FORM = {"X-Requested-With": "curl"}
LOCAL = "http://127.0.0.1:8000"
PAGE = {"text/plain", "text/plain;charset=UTF-8", "TEXT/PLAIN", "multipart/form-data; boundary=x"}


def client(server=LOCAL, **options):
    """A client whose connection arrives at the address ``server``."""
    return TestClient(app(member_outputs(GUARD), GUARD, **options), base_url=server)


def status(server, host, path="/v2", **options):
    return client(server, **options).get(path, headers={"Host": host}).status_code


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8000",
        "localhost",
        "LOCALHOST:8000",
        "localhost.",
        "a.localhost:1",
        "[::1]:8000",
        "10.0.0.7",
        "[fe80::1]:8000",
    ],
)
def test_loopback_names_and_addresses_are_answered(host):
    assert status(LOCAL, host) == 200


UNKNOWN = [
    "evil.example",
    "evil.example:8000",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evillocalhost",
    "",
    "[::1",
    "a b",
    "[::1].evil.example",
]


@pytest.mark.parametrize("host", UNKNOWN)
@pytest.mark.parametrize(
    "server", [LOCAL, "http://[::1]:8000", "http://localhost:8000", "http://[::ffff:127.0.0.1]:80"]
)
def test_other_names_may_point_here_by_rebinding_and_are_refused(server, host):
    refused = client(server).get("/v2", headers={"Host": host})
    assert refused.status_code == 403
    assert "--allow-host" in refused.json()["error"]
    assert status(server, host, HEALTH) == 200


def test_names_are_checked_where_no_other_machine_can_come_and_where_some_are_configured():
    service = "http://10.1.2.3:8000"
    assert status(service, "credalens.namespace.svc:8000") == 200
    names = {"allowed_hosts": ["Credalens.svc", "*.example.org"]}
    for server in (LOCAL, service):
        for host in ("credalens.SVC:8000", "a.b.example.org", "localhost", "10.1.2.3"):
            assert status(server, host, **names) == 200, host
        for host in ("example.org", "evilexample.org", "credalens.svc.evil", "svc"):
            assert status(server, host, **names) == 403, host
        assert status(server, "credalens.svc", HEALTH, **names) == status(server, "probe.local", HEALTH, **names) == 200
    assert status(LOCAL, "evil.example", allowed_hosts=["*"]) == 200


@pytest.mark.parametrize(
    ("hosts", "error", "words"),
    [
        ("example.org", TypeError, "allowed_hosts must be a list of strings"),
        ([""], ValueError, "allowed_hosts"),
        (["http://example.org"], ValueError, r"without scheme, port or path, .*; got 'http://example.org'"),
        (["example.org:8000"], ValueError, "without scheme, port or path"),
        (["a.*.org"], ValueError, r"'\*' alone, or '\*\.' before a name"),
        ([None], TypeError, "allowed host 0 is a NoneType"),
    ],
)
def test_names_that_no_request_has_are_refused_at_once(hosts, error, words):
    with pytest.raises(error, match=words):
        app(member_outputs(), allowed_hosts=hosts)


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://localhost:3000", "http://127.0.0.1", "http://127.0.0.1:8000.evil"],
)
@pytest.mark.parametrize("server", [LOCAL, "http://10.1.2.3:8000"])
def test_pages_elsewhere_are_refused(server, origin):
    """Whatever they ask, and with whatever headers."""
    asking = client(server, allowed_hosts=["*"])
    for method, path in (("POST", INFER), ("POST", RESTART), ("GET", "/v2"), ("GET", "/metrics"), ("OPTIONS", INFER)):
        refused = asking.request(method, path, content=MESSAGE.content, headers=NO_FORM | {"Origin": origin})
        assert (refused.status_code, list(refused.json())) == (403, ["error"])
        assert not any(name.startswith("access-control") for name in refused.headers)
    assert asking.get(HEALTH, headers={"Origin": origin}).status_code == 200


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("localhost", "http://localhost"),
        ("localhost:80", "http://LOCALHOST"),
        ("localhost", "https://localhost:443"),  # TLS ends at a proxy
        ("[::1]:8000", "http://[::1]:8000"),
        ("127.0.0.1:8000", "https://app.example.org"),  # behind a proxy that names the server
    ],
)
def test_the_servers_own_pages_and_configured_ones_may_ask(host, origin):
    asking = client(allowed_hosts=["app.example.org"])
    answer = asking.post(INFER, content=MESSAGE.content, headers={"Host": host, "Origin": origin})
    assert answer.status_code == 200


@pytest.mark.parametrize("kind", sorted(PAGE))
def test_bodies_of_forms_are_not_taken(kind):
    refused = client().post(INFER, content=MESSAGE.content, headers={"Content-Type": kind})
    assert refused.status_code == 415
    assert "application/json" in refused.json()["error"]


@pytest.mark.parametrize(
    "kind", [None, "application/json", "application/octet-stream", "application/x-www-form-urlencoded"]
)
def test_bodies_of_programs_are(kind):
    """The last is what ``curl -d`` says."""
    assert (
        client().post(INFER, content=MESSAGE.content, headers={} if kind is None else {"Content-Type": kind}).is_success
    )


@pytest.mark.parametrize("headers", [{}, *({"Content-Type": kind} for kind in PAGE), {"Authorization": "Basic YTpi"}])
def test_an_alarm_is_not_restarted_by_what_a_form_can_send(headers):
    """A browser sends Basic credentials on its own."""
    refused = client().post(RESTART, headers=headers)
    assert refused.status_code == 403
    assert "X-Requested-With" in refused.json()["error"]


@pytest.mark.parametrize("headers", [NO_FORM, {"Content-Type": "application/json"}])
def test_an_alarm_is_restarted_by_programs(headers):
    assert client().post(RESTART, headers=headers).json() == {"restarted": True}


def test_an_alarm_is_restarted_with_a_token_and_only_with_one():
    asking = client(tokens=["secret"])
    assert asking.post(RESTART, headers={"Authorization": "Bearer secret"}).status_code == 200
    assert asking.post(RESTART, headers=NO_FORM).status_code == 401
    assert asking.post(RESTART, headers={"Authorization": "Bearer other"}).status_code == 401


def test_all_this_holds_below_a_prefix():
    inner = app(member_outputs(GUARD), GUARD, tokens=["secret"])
    asking = TestClient(Starlette(routes=[Mount("/credal", inner)]), base_url=LOCAL)
    assert asking.get(f"/credal{HEALTH}", headers={"Host": "probe.local"}).status_code == 200
    bearer = {"Authorization": "Bearer secret"}
    assert asking.post(f"/credal{INFER}", content=MESSAGE.content, headers=bearer).status_code == 200
    assert asking.post(f"/credal{INFER}", content=MESSAGE.content).status_code == 401
    assert asking.post(f"/credal{RESTART}", headers=NO_FORM | {"Origin": "http://evil.example"}).status_code == 403
