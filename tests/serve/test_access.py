"""Who may ask: bearer tokens, and health for everybody."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from credalens.serve import app, member_outputs
from credalens.serve.tokens import read_tokens

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
    path.write_text("\n# none yet\n")
    with pytest.raises(ValueError, match="holds no token"):
        read_tokens(path)
