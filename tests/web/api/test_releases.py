"""Releases by the API and its client: what the verbs return, and what is refused."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.release_road import Road
from tests.web.api.conftest import ProgramOf, error_of, rows_of
from tests.web.conftest import ClientOf
from tests.web.release_shop import clock, road, walked, workspace

from karat.clients.karat_server import Client
from karat.errors import UsageError
from karat.tables.accounts.people import SCOPES_OF
from karat.workflows.release.pipeline import Release

__all__ = ["clock", "road", "walked", "workspace"]
HERE = "/api/releases/hybrid"


def as_json(record: Any) -> Any:
    return json.loads(json.dumps(asdict(record), default=str))


@pytest.fixture
def program(program_of: ProgramOf) -> TestClient:
    return program_of("engineer")


def test_reading_is_what_the_verbs_return(road: Road, program: TestClient) -> None:
    status = program.get(HERE).json()
    assert status == as_json(road.call(Release.status))
    assert [row["name"] for row in rows_of(program, "/api/releases")] == ["synonyms", "hybrid"]
    story = program.get(f"{HERE}/story").json()
    assert story == as_json(road.call(Release.story))
    assert all(event["opening"] is None for event in story["events"]), "it may name secrets"
    assert program.get("/api/releases/record").json()["releases"] == []
    assert error_of(program.get("/api/releases/hybird"))[:2] == (404, "not_found")
    for path in (f"{HERE}x/advance", f"{HERE}x/evidence"):
        assert program.post(path).status_code == 404
    for path in (f"{HERE}x/skip", f"{HERE}x/hold", f"{HERE}x/rollback"):
        assert program.post(path, json={"reason": "no"}).status_code == 404


def test_steps_that_the_rules_refuse_are_conflicts(road: Road, program: TestClient) -> None:
    refused = error_of(program.post(f"{HERE}/advance", json={"stage": "offline"}))
    assert refused[:2] == (409, "conflict")
    assert "hybrid is in A/B test, not in offline" in refused[2]
    assert program.post(f"{HERE}/advance").status_code == 409, "its evidence does not suffice"
    late = program.post(f"{HERE}/skip", json={"reason": "late", "stage": "shadow"})
    assert late.status_code == 409
    assert program.post(f"{HERE}/resume", json={"reason": "no"}).status_code == 409
    assert program.post(f"{HERE}/override", json={"reason": "no"}).status_code == 409
    for body in ({}, {"reason": ""}, {"reason": "  "}, {"reason": 3}):
        assert program.post(f"{HERE}/hold", json=body).status_code == 400, body
    assert road.call(Release.status).state == "ab"


def test_a_rater_and_a_reader_change_nothing(
    app: FastAPI, road: Road, client_of: ClientOf, program_of: ProgramOf
) -> None:
    assert program_of("rater").get(HERE).status_code == 403
    person = client_of("engineer").person
    assert person is not None
    secret = app.state.site.accounts.make_token(person, "reads", ["read"]).text
    head = {"authorization": f"Bearer {secret}"}
    reader = TestClient(app, base_url="http://127.0.0.1", headers=head)
    assert reader.get(HERE).status_code == 200
    for step in ("advance", "skip", "hold", "resume", "reviewed", "override", "rollback",
                 "evidence"):  # fmt: skip
        answer = reader.post(f"{HERE}/{step}", json={"reason": "mine"})
        assert answer.status_code == 403, step


def test_a_client_has_a_method_for_each_step(
    road: Road, app: FastAPI, client_of: ClientOf, served: str
) -> None:
    person = client_of("engineer").person
    assert person is not None
    secret = app.state.site.accounts.make_token(person, "all", SCOPES_OF["engineer"]).text
    with Client(served, secret) as client:
        assert [row["name"] for row in client.releases()] == ["synonyms", "hybrid"]
        assert client.release("hybrid")["stage"] == "ab"
        assert client.release_record()["relation"]["releases"] == 0
        assert client.release_evidence("synonyms")["stages"][0]["verdict"] == "pass"
        assert client.release_advance("synonyms", "offline")["stage"] == "shadow"
        with pytest.raises(UsageError, match="is in shadow, not in offline"):
            client.release_advance("synonyms", "offline")
        assert client.release_skip("synonyms", "hotfix", "shadow")["stage"] == "ab"
        assert client.release_hold("synonyms", "freeze")["state"] == "held"
        assert client.release_resume("synonyms", "over")["state"] == "ab"
        assert client.release_reviewed("synonyms", "ten, all fine")["stage"] == "ab"
        with pytest.raises(UsageError, match="may not override"):
            client.release_override("hybrid", "I know")
        back = client.release_rollback("hybrid", "wrong prices")
        assert (back["status"]["state"], back["problem"]) == ("rolled_back", "")
        said = [event["kind"] for event in client.release_story("hybrid")["events"]]
        assert "rolled_back" in said
        assert json.loads(road.rollout.read_text())["stopped"]
        with pytest.raises(UsageError, match="is over already"):
            client.release_rollback("hybrid", "again")
