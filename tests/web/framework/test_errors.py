"""Errors: one shape for programs, a page for people, and nothing that is not theirs to know."""

from __future__ import annotations

import errno
import re
import sqlite3
from contextlib import closing

import pytest
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette import formparsers
from starlette.exceptions import HTTPException
from tests.web.conftest import Browser, ClientOf

from karat.errors import InputError, KaratError, MissingExtra, UsageError
from karat.golden.queue import LeaseLost
from karat.web.api import bodies
from karat.web.framework.auth import Refused
from karat.web.framework.errors import NotFound, describe
from karat.workflows.accounts.accounts import SignInRefused


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Refused(401, "nobody"), 401, "not_signed_in"),
        (Refused(403, "not you"), 403, "not_allowed"),
        (UsageError("wrong"), 400, "usage"),
        (NotFound("nothing"), 404, "not_found"),
        (LeaseLost("gone"), 409, "conflict"),
        (SignInRefused("wrong"), 403, "not_allowed"),
        (SignInRefused("wait", wait_s=3), 429, "too_many"),
        (InputError("bad line"), 400, "input"),
        (MissingExtra("psycopg", "postgres", "this"), 501, "missing_extra"),
        (HTTPException(404), 404, "not_found"),
        (HTTPException(405), 405, "usage"),
        (HTTPException(413), 413, "too_large"),
        (HTTPException(418, "a teapot"), 418, "usage"),
        (KaratError("the store did not answer"), 503, "error"),
        (ValueError("a bug"), 500, "error"),
    ],
)
def test_status_and_code(error: Exception, status: int, code: str) -> None:
    found, said = describe(error)
    assert (found, said.code) == (status, code)
    assert set(said.to_dict()["error"]) == {"code", "message", "where", "nearest", "fix"}


class Full:
    """A file on a disk that is full."""

    def __init__(self, *_: object, **__: object) -> None:
        self._rolled = True

    def write(self, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        """There is nothing to close."""


def test_a_full_disk_is_told_as_what_it_is(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = client_of("engineer")

    async def full(*_: object) -> None:
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr(bodies, "_write", full)
    answer = browser.post(
        "/api/runs?name=a.trec", content=b"q1 Q0 d1 1 1 x\n", headers={"x-csrf": browser.csrf}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (507, "no_room")
    monkeypatch.setattr(formparsers, "SpooledTemporaryFile", Full)
    page = browser.post(
        "/golden/shop/exchange", data={"csrf": browser.csrf}, files={"file": ("a.csv", b"x")}
    )
    assert page.status_code == 507, page.text
    assert "server has no space left for this" in page.text


def test_a_full_disk_is_known_behind_our_own_words() -> None:
    def written() -> None:
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError:
            raise InputError("cannot be written") from None

    with pytest.raises(InputError) as refused:
        written()
    assert describe(refused.value)[0] == 507
    with closing(sqlite3.connect(":memory:")) as c:
        c.execute("create table t (x)")
        c.execute("pragma max_page_count = 2")
        with pytest.raises(sqlite3.OperationalError) as full:
            c.execute("insert into t values (zeroblob(99999))")
    error = KaratError("the store did not answer")
    error.__cause__ = full.value
    assert describe(error)[0] == 507


def test_where_what_is_near_and_what_helps_are_kept_apart() -> None:
    error = InputError("no number", file="runs.tsv", line=3, query="q1", fix="write a number")
    _, said = describe(error)
    assert said.message == "no number"
    assert said.fix == "write a number"
    assert said.where == {"file": "runs.tsv", "line": 3, "query": "q1"}
    _, said = describe(UsageError("no measure nDGC", nearest=["nDCG"], fix="karat measures"))
    assert (said.message, said.nearest, said.fix) == ("no measure nDGC", ["nDCG"], "karat measures")
    _, said = describe(MissingExtra("psycopg", "postgres", "a store"))
    assert said.message == "a store needs the package psycopg"
    assert said.fix == "pip install 'karat[postgres]'"


def test_a_field_that_is_wrong_is_named_but_not_repeated() -> None:
    wrong = {"loc": ("body", "days"), "msg": "Input should be a valid integer", "input": "<secret>"}
    _, said = describe(RequestValidationError([wrong]))
    assert said.where == {"field": "days"}
    assert "secret" not in str(said)


def test_strangers_learn_nothing_of_the_store(
    app: FastAPI, stranger: Browser, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    engineer = client_of("engineer")
    assert describe(KaratError("the store postgresql://db.internal/karat did not answer"))[0] == 503

    def gone() -> None:
        raise KaratError("the store postgresql://db.internal/karat did not answer")

    monkeypatch.setattr(app.state.site.workspace.store, "read", gone)
    answer = stranger.get("/healthz")
    assert answer.status_code == 503
    assert "db.internal" not in answer.text
    # Even who somebody is cannot be looked up now; the page comes all the same.
    assert engineer.get("/nothing").status_code == 404
    assert engineer.get("/static/karat.css").status_code == 200
    page = engineer.get("/account")
    assert page.status_code == 503
    assert "The server cannot do this now" in page.text
    assert "db.internal" not in page.text


def test_a_page_for_people_and_json_for_programs(stranger: Browser, client_of: ClientOf) -> None:
    engineer = client_of("engineer")
    page = engineer.get("/<script>alert(1)</script>")
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "egon" in page.text, "the menu is there"
    assert "<script>alert" not in page.text
    for path, accept in (("/nothing", "application/json"), ("/api/nothing", "text/html")):
        answer = engineer.get(path, headers={"accept": accept})
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == {
            "error": {
                "code": "not_found",
                "message": "there is no such page",
                "where": {},
                "nearest": [],
                "fix": None,
            }
        }
    assert "egon" not in stranger.get("/nothing").text


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "HEAD"])
@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/api/comparisons", {"GET", "POST"}),
        ("/api/comparisons/7", {"GET", "DELETE"}),
        ("/api/runs/old", {"GET", "DELETE"}),
        ("/comparisons/new", {"GET", "POST"}),
        ("/golden/shop/queries", {"GET", "POST"}),
        ("/healthz", {"GET"}),
    ],
)
def test_what_cannot_be_done_names_all_that_can(
    stranger: Browser, method: str, path: str, methods: set[str]
) -> None:
    answer = stranger.request(method, path)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == methods


def test_every_method_of_every_path_is_named(app: FastAPI, stranger: Browser) -> None:
    of_path: dict[str, set[str]] = {}
    for each in iter_route_contexts(app.routes):
        route = each.original_route
        of_path.setdefault(re.sub(r"{.*?}", "7", route.path), set()).update(route.methods)
    assert len(of_path) > 50
    for path, methods in of_path.items():
        answer = stranger.request("BREW", path)
        assert answer.status_code == 405
        assert set(answer.headers["allow"].split(", ")) >= methods, path
