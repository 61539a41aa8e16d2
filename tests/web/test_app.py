"""The app as a whole: whether it is well, what a new page must say, and files of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fastapi import APIRouter, FastAPI

from karat.errors import UsageError
from karat.web.access import MaybeSomebody
from karat.web.app import create_app, need_of
from karat.web.settings import Settings


def test_it_is_well_while_its_store_answers(stranger: object, app: FastAPI) -> None:
    answer = stranger.get("/healthz")  # type: ignore[attr-defined]
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    with app.state.site.workspace.store.begin() as c:
        c.exec_driver_sql("ALTER TABLE golden_set RENAME TO moved")
    answer = stranger.get("/healthz")  # type: ignore[attr-defined]
    assert answer.status_code == 503
    assert answer.json() == {"status": "the store does not answer as it should"}  # and not where


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
    def said(_asking: MaybeSomebody) -> str:
        return "open to everybody, and meant so"

    with pytest.raises(TypeError, match="/forgotten does not say who may call it"):
        create_app(Settings(workspace), routers=[router])
    assert need_of(router.routes[1]).role is None


def test_worker_processes_read_how_to_serve_from_the_environment(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Settings(workspace, accounts=False, owner="anna", base="/k", hosts=("localhost",))
    for name, value in told.to_environment().items():
        monkeypatch.setenv(name, value)
    assert Settings.from_environment() == told
    assert create_app().title == "karat"
    assert "KARAT_SERVE" in os.environ
    with pytest.raises(UsageError, match="in no workspace"):
        create_app(Settings(workspace.parent))
