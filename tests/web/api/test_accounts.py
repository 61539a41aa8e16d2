"""Who am I, and my API tokens."""

from __future__ import annotations

from starlette.testclient import TestClient
from tests.web.api.conftest import error_of, rows_of
from tests.web.conftest import ClientOf


def test_a_token_is_somebody(program: TestClient) -> None:
    assert program.get("/api/me").json() == {
        "name": "egon",
        "role": "engineer",
        "scopes": ["judge", "read", "write"],
        "signed_in_by": "token",
        "golden": "shop",
    }


def test_tokens_are_listed_and_revoked_in_a_session_alone(
    client_of: ClientOf, program: TestClient
) -> None:
    assert error_of(program.get("/api/tokens"))[:2] == (403, "not_allowed")
    browser = client_of("engineer")
    [row] = rows_of(browser, "/api/tokens")
    assert row["name"] == "test"
    assert "secret" not in str(row)
    headers = {"x-csrf": browser.csrf}
    assert browser.delete(f"/api/tokens/{row['id']}", headers=headers).json() == {
        "revoked": row["id"]
    }
    assert error_of(program.get("/api/me"))[:2] == (401, "not_signed_in")
    assert error_of(browser.delete("/api/tokens/99", headers=headers))[:2] == (404, "not_found")
