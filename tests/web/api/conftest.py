"""Programs that call the API, and the command line they are compared with."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from click.testing import CliRunner
from fastapi import FastAPI
from pydantic import TypeAdapter
from starlette.testclient import TestClient
from tests.web.conftest import Browser, ClientOf

from karat.tables.accounts.people import SCOPES_OF, Role
from karat.web import api

Printed = Callable[..., Any]


ProgramOf = Callable[[Role], TestClient]


@pytest.fixture
def program_of(app: FastAPI, client_of: ClientOf) -> ProgramOf:
    """Programs with a token of rita, egon or olga, good for all they may."""

    def made(role: Role) -> TestClient:
        person = client_of(role).person
        assert person is not None
        secret = app.state.site.accounts.make_token(person, "test", SCOPES_OF[role]).text
        client = TestClient(
            app, base_url="http://127.0.0.1", headers={"authorization": f"Bearer {secret}"}
        )
        client.portal = Browser.loop
        client.event_hooks["response"].append(is_as_described)
        return client

    return made


def is_as_described(answer: Any) -> None:
    """A response has the keys and types of its model, and no other keys."""
    if answer.status_code >= 300:
        return
    path, method = answer.request.url.raw_path.decode().partition("?")[0], answer.request.method
    routes = (
        route
        for router in api.ROUTERS
        for route in router.routes
        if route.methods == {method} and route.path_regex.match(unquote(path))
    )
    route = next(routes, None)
    if route is None or not hasattr(route.response_model, "__metadata__"):
        return  # a page, a file, OpenAPI
    answer.read()
    model = route.response_model.__metadata__[0].model()
    adapter = _adapter(model)
    value = adapter.validate_json(answer.content, strict=True)
    others = set(_others(answer.json(), adapter.dump_python(value, mode="json")))
    if "/queries" in path or path.endswith(("/documents", "/rows")):  # they have attributes
        others = {each for each in others if not each.startswith(".items[]")}
    assert not others, f"{model.__name__} has not {others}"


_adapter = cache(TypeAdapter)


def _others(sent: Any, known: Any, place: str = "") -> Iterator[str]:
    if isinstance(sent, dict):
        for name, value in sent.items():
            if name in known:
                yield from _others(value, known[name], f"{place}.{name}")
            else:
                yield f"{place}.{name}"
    elif isinstance(sent, list):
        for value, other in zip(sent, known, strict=True):
            yield from _others(value, other, f"{place}[]")


@pytest.fixture
def program(program_of: ProgramOf) -> TestClient:
    """A program with a token of egon, an engineer."""
    return program_of("engineer")


@pytest.fixture
def printed(workspace: Path) -> Printed:
    """What a command prints, from its JSON; ``-w`` is the workspace."""

    def run(*words: str, within: bool = True) -> Any:
        from karat.cli.main import karat

        place = ["-w", str(workspace)] if within else []
        done = CliRunner().invoke(karat, [*words, *place], standalone_mode=False)
        assert done.exception is None, done.output
        return json.loads(done.stdout) if done.stdout.strip() else None

    return run


def rows_of(program: TestClient, path: str, **params: Any) -> list[dict[str, Any]]:
    """All rows of a list."""
    answer = program.get(path, params={"per": 1000, **params})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    assert answer.json()["next"] is None
    return found


def error_of(answer: Any) -> tuple[int, str, str]:
    """Status, code and words of an error."""
    said = answer.json()["error"]
    assert set(said) == {"code", "message", "where", "nearest", "fix"}
    return answer.status_code, said["code"], said["message"]


@pytest.fixture
def files(program: TestClient, tmp_path: Path) -> dict[str, str]:
    """The golden set as a BEIR folder, and both runs, by name."""
    found = {}
    packed = tmp_path / "set.zip"
    answer = program.get("/api/golden/shop/export")
    packed.write_bytes(answer.content)
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(tmp_path)
    found["qrels"] = str(tmp_path / "shop-now")
    for row in rows_of(program, "/api/runs"):
        path = tmp_path / f"{row['name']}.parquet"
        path.write_bytes(program.get(f"/api/runs/{row['id']}/file").content)
        found[row["name"]] = str(path)
    return found


def near(one: Any, other: Any) -> bool:
    """Whether two objects are the same, their numbers but for rounding."""
    if isinstance(one, float) or isinstance(other, float):
        return one == pytest.approx(other, abs=1e-12)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(near(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(near, one, other))
    return bool(one == other)
