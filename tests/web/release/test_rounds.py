"""Releases go on while the server runs; a board without releases."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.net.visible import visible
from tests.web.conftest import NOW, ClientOf
from tests.web.release_shop import begin

from karat.errors import KaratError
from karat.web import app as app_module
from karat.web import server
from karat.web.framework.settings import Settings
from karat.web.framework.state import AppState
from karat.web.release.rounds import one_round, releases_go_on
from karat.workflows.release import pipeline
from karat.workflows.workspace.workspace import Workspace


@pytest.fixture
def opened(app: FastAPI) -> Workspace:
    workspace: Workspace = app.state.site.workspace
    return workspace


def stages(opened: Workspace) -> str:
    return pipeline.Release.of(opened, "newer", NOW).status().stage


def until(said: str, caplog: pytest.LogCaptureFixture) -> None:
    end = time.monotonic() + 20
    while said not in caplog.text:
        assert time.monotonic() < end, caplog.text
        time.sleep(0.02)


def test_a_board_without_releases_says_how_to_begin(client_of: ClientOf, app: FastAPI) -> None:
    said = visible(client_of("engineer").get("/releases").text)
    assert "No releases yet." in said
    assert "karat release start hybrid bm25 hybrid --propose" in said
    assert "Promised" not in said
    one_round(app.state.site, {})  # nothing to do


def test_a_release_goes_on_and_the_log_says_so(
    app: FastAPI, opened: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    begin(opened, now=NOW)
    with caplog.at_level(logging.INFO, "karat.web"):
        one_round(app.state.site, {})
    known = pipeline.events_of(opened, "newer")
    assert {event.kind for event in known} >= {"started", "evidence", "switched"}
    assert "release newer: offline" in caplog.text
    caplog.clear()
    problems: dict[str, str] = {}
    rollout = opened.workspace.root / "rollout.json"
    rollout.unlink()
    rollout.mkdir()
    for _ in range(2):
        one_round(app.state.site, problems)
    assert caplog.text.count("the switch is not there") == 1, "a problem is logged once"


def test_an_error_ends_no_thread_and_the_end_is_soon(
    app: FastAPI, opened: Workspace, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    begin(opened, now=NOW)
    rounds: list[int] = []
    true = pipeline.run

    def run(*args: object, **values: object) -> object:
        rounds.append(1)
        if len(rounds) == 1:
            raise KaratError("the store is away")
        if len(rounds) == 2:
            raise ZeroDivisionError
        return true(*args, **values)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "run", run)
    with caplog.at_level(logging.INFO, "karat.web"), releases_go_on(app.state.site, 0.01):
        until("release newer: offline", caplog)
        [thread] = [each for each in threading.enumerate() if each.name == "releases"]
    thread.join(5)
    assert not thread.is_alive()
    assert "releases: the store is away" in caplog.text
    assert "a round of releases failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_the_server_has_such_rounds_and_no_other_app(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []
    monkeypatch.setattr(app_module, "create_app", lambda *_, **how: given.append(how["during"]))
    for name, value in Settings(workspace).to_environment().items():
        monkeypatch.setenv(name, value)
    server.app_of_process()
    [meanwhile] = given
    monkeypatch.undo()
    lives: list[str] = []

    @contextmanager
    def during(site: AppState) -> Iterator[None]:
        lives.append(site.workspace.golden.name)
        yield
        lives.append("over")

    with TestClient(app_module.create_app(Settings(workspace), during=during)):
        assert lives == ["shop"]
    assert lives == ["shop", "over"]
    with TestClient(app_module.create_app(Settings(workspace))):
        assert not {"releases", "watch"} & {each.name for each in threading.enumerate()}
    with TestClient(app_module.create_app(Settings(workspace), during=meanwhile)):  # type: ignore[arg-type]
        assert {"releases", "watch"} <= {each.name for each in threading.enumerate()}
