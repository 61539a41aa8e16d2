"""Alerts by the API and its client: what the verbs return, and what is refused."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.watches import SATURDAY_NOON, watched
from tests.web.api.conftest import ProgramOf, error_of, rows_of
from tests.web.conftest import Clock

from karat.clients.karat_server import Client
from karat.web.framework.state import AppState
from karat.workflows.online import alerts

HERE = "/api/online/alerts"


@pytest.fixture
def clock() -> Clock:
    return Clock(SATURDAY_NOON)


@pytest.fixture
def site(app: FastAPI, clock: Clock) -> AppState:
    """A workspace with alert 1."""
    found: AppState = app.state.site
    assert alerts.record(found.workspace, watched(), now=clock()) == [1]
    return found


@pytest.fixture
def program(program_of: ProgramOf) -> TestClient:
    return program_of("engineer")


def test_reading_is_what_the_verbs_return(site: AppState, program: TestClient) -> None:
    found = asdict(alerts.find(site.workspace, 1, now=site.clock()))
    assert program.get(f"{HERE}/1").json() == json.loads(json.dumps(found))
    assert rows_of(program, HERE) == [json.loads(json.dumps(found))]
    assert error_of(program.get(f"{HERE}/2"))[:2] == (404, "not_found")
    for verb in ("acknowledge", "resolve", "reopen"):
        assert program.post(f"{HERE}/2/{verb}").status_code == 404
    assert program.post(f"{HERE}/2/mute", json={"until": "1h"}).status_code == 404


def test_what_is_refused(site: AppState, program: TestClient, program_of: ProgramOf) -> None:
    assert error_of(program.post(f"{HERE}/1/reopen"))[0] == 400
    for body in ({}, {"until": ""}, {"until": "soon"}, {"until": "8h", "who": "x"}):
        assert program.post(f"{HERE}/1/mute", json=body).status_code == 400, body
    assert program_of("rater").post(f"{HERE}/1/resolve").status_code == 403
    assert alerts.find(site.workspace, 1, now=site.clock()).actions == []


def test_the_client_does_what_people_do(served: str, site: AppState, program: TestClient) -> None:
    secret = program.headers["authorization"].removeprefix("Bearer ")
    with Client(served, secret) as client:
        assert [each["state"] for each in client.alerts()] == ["open"]
        assert client.acknowledge_alert(1, "on it")["state"] == "acknowledged"
        assert client.mute_alert(1, "8h")["state"] == "muted"
        assert client.resolve_alert(1)["state"] == "resolved"
        assert client.reopen_alert(1)["state"] == "open"
        did = [(each["action"], each["note"]) for each in client.alert(1)["actions"]]
    assert did == [("acknowledged", "on it"), ("muted", ""), ("resolved", ""), ("reopened", "")]
    assert site.workspace.golden.name == "shop"
