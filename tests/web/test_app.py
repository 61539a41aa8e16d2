"""The app as a whole: whether it is well, what a new page must say, and files of its own."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fastapi import APIRouter, FastAPI
from starlette.testclient import TestClient
from tests.web.conftest import ClientOf

from karat.errors import UsageError
from karat.web.app import create_app
from karat.web.framework.auth import OptionalUser, requires_of
from karat.web.framework.settings import Settings


def test_it_is_well_while_its_store_answers(stranger: object, app: FastAPI) -> None:
    answer = stranger.get("/healthz")  # type: ignore[attr-defined]
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    with app.state.site.workspace.store.begin() as c:
        c.exec_driver_sql("ALTER TABLE golden_set RENAME TO moved")
    answer = stranger.get("/healthz")  # type: ignore[attr-defined]
    assert answer.status_code == 503
    assert answer.json() == {"status": "the store does not respond as expected"}  # and not where


def test_files_of_ours_may_be_kept_and_no_others_are_there(stranger: object) -> None:
    answer = stranger.get("/static/karat.css")  # type: ignore[attr-defined]
    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-type"].startswith("text/css")
    for name in ("none.css", "..%2Fapp.py", "%2Fetc%2Fpasswd", "%2e%2e%2Fpage.py"):
        assert stranger.get(f"/static/{name}").status_code == 404  # type: ignore[attr-defined]


def test_a_route_that_forgets_to_say_who_may_call_it_does_not_start(workspace: Path) -> None:
    router = APIRouter()

    @router.get("/forgotten")
    def forgotten() -> str:
        return "open to everybody"

    @router.get("/said")
    def said(_asking: OptionalUser) -> str:
        return "open to everybody, and meant so"

    with pytest.raises(TypeError, match="/forgotten does not say who may call it"):
        create_app(Settings(workspace), routers=[router])
    assert requires_of(router.routes[1]).role is None


def test_what_a_router_does_while_the_app_is_up_is_done(workspace: Path) -> None:
    told: list[str] = []

    @asynccontextmanager
    async def around(app: FastAPI) -> AsyncIterator[None]:
        told.append(app.state.site.workspace.golden.name)
        yield
        told.append("ended")

    with TestClient(create_app(Settings(workspace), routers=[APIRouter(lifespan=around)])):
        assert told == ["shop"]
    assert told == ["shop", "ended"]


def test_worker_processes_read_how_to_serve_from_the_environment(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Settings(workspace, accounts=False, owner="anna", base="/k", hosts=("localhost",))
    for name, value in told.to_environment().items():
        monkeypatch.setenv(name, value)
    assert Settings.from_environment() == told
    assert create_app(told).title == "karat"
    assert "KARAT_SERVE" in os.environ
    with pytest.raises(UsageError, match="not in a workspace"):
        create_app(Settings(workspace.parent))


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/comparisons/new",
        "/static/karat.css",
        "/golden/shop/pairs?format=csv",
        "/api/measures",
    ],
)
def test_answers_are_compressed_for_who_can_read_that(client_of: ClientOf, path: str) -> None:
    egon = client_of("engineer")
    small = egon.get(path)
    whole = egon.get(path, headers={"accept-encoding": "identity"})
    assert small.status_code == whole.status_code == 200
    assert small.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in small.headers["vary"]
    assert "content-encoding" not in whole.headers
    # What differs are tokens, of which each answer has its own.
    assert abs(len(small.text) - len(whole.text)) < 50
    assert int(small.headers["content-length"]) < len(whole.content) / 2


def test_files_and_short_answers_go_as_they_are(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    for path in ("/api/runs/old/file", "/healthz", "/api/runs/nothing"):
        assert "content-encoding" not in egon.get(path).headers


@pytest.mark.deep  # csrf itself is in test_signed_values.py
def test_what_an_address_says_does_not_measure_a_secret(client_of: ClientOf) -> None:
    """No two pages show one text that another site's page could guess, and forms stay good."""
    egon = client_of("engineer")
    token = re.compile(r'name="csrf" (?:content|value)="([^"]+)"')
    shown = [token.findall(egon.get("/").text) for _ in "ab"]
    assert shown[0]
    assert not {*shown[0]} & {*shown[1]}
    parts = [{each[i : i + 8] for each in pages for i in range(len(each) - 8)} for pages in shown]
    assert not parts[0] & parts[1]
    for each in (*shown[0], *shown[1]):
        sent = {"csrf": each, "baseline": 1, "candidate": 2}
        assert egon.post("/comparisons/new", data=sent, follow_redirects=False).status_code == 303
    for wrong in ("", "x", "00" * 64, shown[0][0][:-2] + "zz", shown[0][0][64:], "é"):
        sent = {"csrf": wrong, "baseline": 1, "candidate": 2}
        assert egon.post("/comparisons/new", data=sent, follow_redirects=False).status_code == 403
    other = client_of("owner")
    sent = {"csrf": shown[0][0], "baseline": 1, "candidate": 2}
    assert other.post("/comparisons/new", data=sent, follow_redirects=False).status_code == 403
