"""What the API does, as it is described: whole, true, and all that the command line does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import click
import pytest
from starlette.testclient import TestClient
from tests.web.conftest import ClientOf

from karat.cli.main import karat
from karat.clients.karat_server import Client
from karat.web.api.openapi import described

BY_API = {
    "karat autojudge doubts": ("GET", "/api/golden/{golden}/doubts"),
    "karat autojudge list": ("GET", "/api/judges"),
    "karat autojudge show": ("GET", "/api/judges/{judge}"),
    "karat clicks agree": ("GET", "/api/golden/{golden}/clicks"),
    "karat clicks fit": ("GET", "/api/golden/{golden}/clicks"),
    "karat clicks judge": ("POST", "/api/golden/{golden}/clicks"),
    "karat compare": ("POST", "/api/comparisons"),
    "karat diagnose": ("GET", "/api/runs/{run}/diagnosis"),
    "karat evaluate": ("POST", "/api/evaluate"),
    "karat experiment analyze": ("GET", "/api/experiments/{experiment}"),
    "karat experiment interleaving": ("GET", "/api/experiments/interleaving"),
    "karat experiment plan": ("GET", "/api/experiments/planning"),
    "karat explain": ("GET", "/api/runs/{run}/explain"),
    "karat gate": ("POST", "/api/gate"),
    "karat golden agreement": ("GET", "/api/golden/{golden}/agreement"),
    "karat golden coverage": ("GET", "/api/golden/{golden}/coverage"),
    "karat golden diff": ("GET", "/api/golden/{golden}/diff"),
    "karat golden disagreements": ("GET", "/api/golden/{golden}/disagreements"),
    "karat golden editions": ("GET", "/api/golden/{golden}/editions"),
    "karat golden export": ("GET", "/api/golden/{golden}/export"),
    "karat golden freeze": ("POST", "/api/golden/{golden}/editions"),
    "karat golden import": ("POST", "/api/golden/{golden}/import"),
    "karat try": ("POST", "/api/try"),
    "karat golden plan": ("GET", "/api/plan"),
    "karat golden pool": ("POST", "/api/golden/{golden}/pool"),
    "karat golden queue": ("POST", "/api/golden/{golden}/queue"),
    "karat golden stale": ("GET", "/api/golden/{golden}/stale"),
    "karat golden status": ("GET", "/api/golden/{golden}/status"),
    "karat judge": ("POST", "/api/judge/{golden}/claim"),
    "karat measures": ("GET", "/api/measures"),
    "karat online against": ("GET", "/api/online/against"),
    "karat online evaluate": ("GET", "/api/online/evaluate"),
    "karat online metrics": ("GET", "/api/online/metrics"),
    "karat online queries": ("GET", "/api/online/queries"),
    "karat online status": ("GET", "/api/online/status"),
    "karat release advance": ("POST", "/api/releases/{release}/advance"),
    "karat release evidence": ("POST", "/api/releases/{release}/evidence"),
    "karat release hold": ("POST", "/api/releases/{release}/hold"),
    "karat release resume": ("POST", "/api/releases/{release}/resume"),
    "karat release rollback": ("POST", "/api/releases/{release}/rollback"),
    "karat release skip": ("POST", "/api/releases/{release}/skip"),
    "karat release status": ("GET", "/api/releases/{release}"),
    "karat release watch": ("POST", "/api/releases/{release}/evidence"),
    "karat release why": ("GET", "/api/releases/{release}/story"),
    "karat review": ("GET", "/api/comparisons/{comparison_id}/review"),
    "karat shadow compare": ("GET", "/api/shadow/{shadow}"),
    "karat trend": ("GET", "/api/trends/{history}"),
}
NOT_BY_API = {
    "karat clicks models": "a catalogue of the command, as of this version",
    "karat autojudge": "asks models where karat.toml and the keys are; grades are imported",
    "karat backup": "copies the files of the machine that has the workspace",
    "karat completion": "prints a script for the shell of this machine",
    "karat demo": "builds a workspace in a folder of this machine",
    "karat engine": "asks engines that the machine reaches which has karat.toml",
    "karat fuse": "makes a run of files; what comes of it is uploaded",
    "karat golden choose": "a log holds what people typed: it stays where it is, and the queries "
    "drawn from it are imported",
    "karat golden documents": "asks engines for documents, as karat engine does",
    "karat tune": "asks an engine hundreds of times, where karat.toml is",
    "karat golden split": "is done once, where the workspace is; the queries then carry their part",
    "karat init": "makes the workspace that is served",
    "karat lint": "looks at files before they are sent; import says what is wrong with one",
    "karat online import": "a log holds what people did: it stays where it is",
    "karat online simulate": "makes a log of files, which is then imported",
    "karat online watch": "is for schedulers: it compares, tells and ends with a code",
    "karat people": "accounts are an owner's, on the page of people or at the machine: no token "
    "makes another way in",
    "karat golden source": "decides whose grades count as people's, which is for who has the store",
    "karat release run": "is what the server does each minute",
    "karat release start": "reads the files of a policy, and fixes what moves the traffic",
    "karat restore": "puts back the files of the machine that has the workspace",
    "karat search": "asks a function of this machine; the run is then uploaded",
    "karat shadow run": "asks engines that the machine reaches which has karat.toml",
    "karat serve": "is what answers",
}
"""Commands without a route, and why that is so."""
NOT_BY_CLIENT = {
    "openapi": "a description for other tools",
    "tokens": "needs a session, which a program does not have",
    "revoke": "needs a session, which a program does not have",
}
CALLED = {
    "list_golden_sets": "golden_sets",
    "golden_status": "status",
    "import_from": "import_file",
    "export_golden_set": "export",
    "waiting": "to_judge",
    "list_runs": "runs",
    "bring_run": "upload_run",
    "one_run": "run",
    "run_file": "download_run",
    "list_comparisons": "comparisons",
    "make": "compare",
    "one_comparison": "comparison",
    "result": "comparison_result",
    "comparison_queries": "comparison_queries",
    "again": "compare_again",
    "queue_next": "queue_comparison",
    "list_trends": "trends",
}
"""What a method of the client is called, where the route is called otherwise."""


def commands(group: click.Group, name: str) -> Iterator[str]:
    """Every command that does something, by its whole name."""
    for each in group.commands.values():
        called = f"{name} {each.name}"
        if isinstance(each, click.Group):
            yield from commands(each, called)
        else:
            yield called


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return described()


def operations(told: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method.upper(), path, each)
        for path, methods in told["paths"].items()
        for method, each in methods.items()
    ]


def test_every_operation_of_the_command_line_has_its_route(told: dict[str, Any]) -> None:
    there = {(method, path) for method, path, _ in operations(told)}
    for command in commands(karat, "karat"):
        if not any(command.startswith(name) for name in NOT_BY_API):
            assert command in BY_API, f"{command}: give it a route, or say why it has none"
    assert set(BY_API.values()) <= there


def test_every_route_has_a_method_of_the_client(told: dict[str, Any]) -> None:
    for _, path, each in operations(told):
        name = each["operationId"]
        if name in NOT_BY_CLIENT:
            continue
        method = CALLED.get(name, name)
        assert callable(getattr(Client, method, None)), f"{path} is no method of karat.Client"


def test_every_operation_says_its_needs_its_shape_and_the_one_error(told: dict[str, Any]) -> None:
    names = [each["operationId"] for _, _, each in operations(told)]
    assert len(names) == len(set(names))
    for method, path, each in operations(told):
        assert set(each["x-needs"]) == {"role", "scope"}, path
        assert each["summary"].endswith("."), path
        assert each["responses"]["default"] == {"$ref": "#/components/responses/Error"}
        assert "422" not in each["responses"]
        good = next(answer for status, answer in each["responses"].items() if status[0] == "2")
        assert good["content"]
        if method == "GET":
            assert "requestBody" not in each
    for name in re.findall(r'"\$ref": "([^"]+)"', json.dumps(told)):
        held: Any = told
        for part in name.removeprefix("#/").split("/"):
            held = held[part]


def test_every_route_has_a_model_or_sends_a_file(told: dict[str, Any]) -> None:
    for _, path, each in operations(told):
        good = next(answer for status, answer in each["responses"].items() if status[0] == "2")
        [(kind, content)] = good["content"].items()
        if kind == "application/octet-stream":
            assert path.endswith(("/file", "/export"))
        else:
            assert {"$ref", "properties", "additionalProperties"} & set(content["schema"]), path


def test_every_field_of_every_body_is_told(told: dict[str, Any]) -> None:
    for _, path, each in operations(told):
        body = each.get("requestBody", {}).get("content", {}).get("application/json")
        for name, field in (body or {"schema": {}})["schema"].get("properties", {}).items():
            assert field.get("description"), f"{path}: {name} is not told in Attributes"


def test_the_error_is_the_one_that_is_sent(told: dict[str, Any], client_of: ClientOf) -> None:
    schema = told["components"]["schemas"]["Error"]["properties"]["error"]
    answer = client_of("engineer").get("/api/runs/99").json()["error"]
    assert set(answer) == set(schema["required"])
    assert answer["code"] in schema["properties"]["code"]["enum"]


def test_it_is_served_to_engineers(client_of: ClientOf, stranger: TestClient) -> None:
    answer = client_of("engineer").get("/api/openapi.json")
    assert answer.status_code == 200
    assert answer.json()["openapi"].startswith("3.1")
    assert "/api/evaluate" in answer.json()["paths"]
    assert not [path for path in answer.json()["paths"] if not path.startswith("/api/")]
    assert client_of("rater").get("/api/openapi.json").status_code == 403
    assert stranger.get("/api/openapi.json").status_code == 401


def test_it_is_a_page_that_needs_no_script_and_no_other_host(client_of: ClientOf) -> None:
    answer = client_of("engineer").get("/api/docs")
    assert answer.status_code == 200
    for path in client_of("engineer").get("/api/openapi.json").json()["paths"]:
        assert f"<code>{path}</code>" in answer.text
    links = re.findall(r'href="#([^"]+)"', answer.text)
    assert links
    assert not [name for name in links if f'id="{name}"' not in answer.text]
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', answer.text)
    assert "style=" not in answer.text
    assert client_of("rater").get("/api/docs").status_code == 403
