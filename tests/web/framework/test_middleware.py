"""What stands before every route: headers, names, sizes, and a log that gives nothing away."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, FastAPI, Form, Request
from starlette.testclient import TestClient
from tests.web.conftest import Browser, ClientOf, Clock, with_deep

from karat.web.app import PAGES, create_app
from karat.web.framework.auth import AnEngineer, OptionalUser
from karat.web.framework.middleware import FORM
from karat.web.framework.settings import Settings

LIMIT = 4 * FORM
PROBES = APIRouter()


@PROBES.get("/fails")
def fails(_asking: OptionalUser) -> str:
    """A bug."""
    raise ZeroDivisionError("a secret of ours")


@PROBES.post("/takes")
async def takes(request: Request, _asking: AnEngineer) -> dict[str, int]:
    """An upload, read as it comes."""
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
    return {"bytes": size}


@PROBES.post("/open-form")
def open_form(_asking: OptionalUser, text: Annotated[str, Form()]) -> dict[str, int]:
    """A form that anybody may send."""
    return {"bytes": len(text)}


@pytest.fixture
def app(workspace: Any, clock: Clock) -> Iterator[FastAPI]:
    """The app with routes that misbehave."""
    settings = Settings(
        workspace, hosts=("127.0.0.1", "karat.example.org", "[fd00::2]"), max_upload=LIMIT
    )
    made = create_app(settings, clock, routers=(*PAGES, PROBES))
    with TestClient(made, base_url="http://127.0.0.1"):
        yield made


def guarded(answer: Any) -> None:
    """Every answer has these, whatever it is."""
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in answer.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "cache-control" in answer.headers


def test_every_answer_has_its_headers(client_of: ClientOf, stranger: Browser) -> None:
    owner = client_of("owner")
    answers = {
        "a page": (200, owner.get("/people")),
        "json": (200, owner.get("/people?format=json")),
        "csv": (200, owner.get("/people?format=csv")),
        "a file": (200, stranger.get("/static/karat.css")),
        "well": (200, stranger.get("/healthz")),
        "a redirect": (303, stranger.get("/people", follow_redirects=False)),
        "nobody": (401, stranger.get("/people", headers={"accept": "application/json"})),
        "not allowed": (403, client_of("rater").get("/people")),
        "no page": (404, stranger.get("/nothing")),
        "no file": (404, stranger.get("/static/nothing.css")),
        "no verb": (405, stranger.delete("/people")),
        "a bad form": (400, stranger.post("/sign-in", data={})),
        "not our name": (421, stranger.get("/", headers={"host": "evil.example"})),
        "a bug": (500, stranger.get("/fails")),
        "too large": (413, stranger.post("/sign-in", content=b"x" * (FORM + 1))),
        "far too large": (413, stranger.post("/sign-in", content=b"x" * (LIMIT + 1))),
        "nul": (400, stranger.get("/a%00b")),
    }
    for name, (status, answer) in answers.items():
        assert answer.status_code == status, name
        guarded(answer)
    assert answers["a page"][1].headers["cache-control"] == "no-store"
    assert "immutable" in answers["a file"][1].headers["cache-control"]
    assert answers["no file"][1].headers["cache-control"] == "no-store"
    assert "GET" in answers["no verb"][1].headers["allow"]


def test_a_bug_says_nothing_of_itself_but_in_the_log(
    stranger: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    page = stranger.get("/fails")
    told = stranger.get("/fails", headers={"accept": "application/json"}).json()["error"]
    for text in (page.text, str(told)):
        assert "secret of ours" not in text
        assert "ZeroDivisionError" not in text
    number = told["fix"].split()[-1]
    assert any(number in record.getMessage() and record.exc_info for record in caplog.records)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:8123", 200),
        ("KARAT.example.org:443", 200),
        ("evil.example", 421),
        ("karat.example.org.evil.example", 421),
        ("127.0.0.1@evil.example", 421),
        ("[::1]:80", 421),
        ("", 421),
    ],
)
def test_only_our_own_names_are_answered_to(stranger: Browser, host: str, status: int) -> None:
    assert stranger.get("/healthz", headers={"host": host}).status_code == status


@pytest.mark.parametrize("number", ["%2e%2e%2fapp.py", "..%2fapp.py", "..%5capp.py", "%00.css"])
def test_no_file_but_ours_is_given_out(stranger: Browser, number: str) -> None:
    answer = stranger.get(f"/static/{number}")
    assert answer.status_code in {400, 404}
    for path in ("/static/../app.py", "/static//etc/passwd", "/static/page.py", "/static/." * 9):
        assert stranger.request("GET", f"http://127.0.0.1{path}").status_code == 404


class Body:
    """A body without an end, that counts what was taken of it."""

    def __init__(self) -> None:
        self.taken = 0

    def __iter__(self) -> Iterator[bytes]:
        while self.taken < 100 * LIMIT:
            self.taken += 2**16
            yield b"x" * 2**16


def call(app: FastAPI, path: str, headers: dict[str, str]) -> tuple[int, int]:
    """POST a body that has no end to the app itself: its status, and how much it read."""
    import asyncio

    body, statuses = Body(), []
    chunks = iter(body)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": next(chunks), "more_body": True}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(k.encode(), v.encode()) for k, v in {"host": "127.0.0.1", **headers}.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    return statuses[0], body.taken


FORMED = {"content-type": "application/x-www-form-urlencoded"}
MULTI = {"content-type": "multipart/form-data; boundary=b"}


def test_what_is_too_large_is_refused_without_reading_it(app: FastAPI, client_of: ClientOf) -> None:
    engineer = client_of("engineer")
    theirs = {"cookie": f"{engineer.site.cookie}={engineer.secret}", "x-csrf": engineer.csrf}
    assert call(app, "/takes", {**theirs, "content-length": str(LIMIT + 1)}) == (413, 0)
    assert call(app, "/sign-in", {**FORMED, "content-length": str(FORM + 1)}) == (413, 0)
    assert call(app, "/sign-in", {**FORMED, "content-length": "9" * 30}) == (413, 0)
    # Without a length it is read up to the limit, and no further.
    chunked = {"transfer-encoding": "chunked"}
    status, taken = call(app, "/takes", theirs | chunked)
    assert status == 413
    assert taken <= LIMIT + 2**16
    for headers in (FORMED, MULTI, {}):
        status, taken = call(app, "/open-form", headers | chunked)
        assert status in {400, 413}
        assert taken <= FORM + 2**16


def test_only_who_may_upload_may_send_much(app: FastAPI, client_of: ClientOf) -> None:
    large = b"x" * (2 * FORM)
    engineer, rater = client_of("engineer"), client_of("rater")
    sent = engineer.post("/takes", content=large, headers={"x-csrf": engineer.csrf})
    assert sent.json() == {"bytes": len(large)}
    assert rater.post("/takes", content=large).status_code == 413
    accounts, person = engineer.site.accounts, engineer.person
    assert person is not None
    for scope, status in (("write", 200), ("read", 413)):
        secret = accounts.make_token(person, "ci", [scope]).text
        headers = {"authorization": f"Bearer {secret}"}
        assert Browser(app).post("/takes", content=large, headers=headers).status_code == status


def test_the_log_holds_no_link_that_opens_a_door_and_no_line_of_a_stranger(
    stranger: Browser, client_of: ClientOf, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "karat.access")
    secret = stranger.site.accounts.invite("ben", "rater").text
    stranger.get(f"/invited/{secret}")
    stranger.get(f"/link/{secret}/{secret}")
    stranger.get("/a%0aforged%1b[31m")
    client_of("owner").get("/people")
    said = [r for r in caplog.records if r.name == "karat.access"]
    told = [r.getMessage() for r in said]
    assert told == [
        "GET /invited/… 200",
        "GET /link/… 404",
        "GET /a?forged?[31m 404",
        "GET /people 200",
    ]
    assert not any(secret in str(vars(record)) for record in said)
    assert [vars(record)["person"] for record in said] == [None, None, None, "olga"]


def test_https_only_is_said_where_it_is_so(workspace: Any, clock: Clock) -> None:
    for secure in (False, True):
        made = create_app(Settings(workspace, secure=secure), clock)
        with TestClient(made) as browser:
            answer = browser.get("/healthz")
            assert ("strict-transport-security" in answer.headers) == secure


def test_what_no_store_can_hold_is_refused_in_one_place(client_of: ClientOf, app: FastAPI) -> None:
    browser = client_of("engineer")
    utf7 = {"content-type": "multipart/form-data; boundary=b; charset=utf-7"}
    for path in ("/golden/shop/queries?q=a%00b", "/golden/shop/queries?a%00=b", "/golden/a%00b"):
        assert browser.get(path).status_code == 400, path
    for address in ("/golden/shop/editions", "/golden/shop/disagreements"):
        answer = browser.fill(address, edition="a\0b", pair="x\0")
        assert answer.status_code == 400
        assert "text must not contain nul" in answer.text.casefold()
    # +2AA- is U+D800 in UTF-7: half of a character.
    for held in (
        'name="edition"\r\n\r\n+2AA-',
        'name="edition"\r\n\r\n+AAA-',
        'name="+2AA-"\r\n\r\nx',
    ):
        parts = (f'name="csrf"\r\n\r\n{browser.csrf}', 'name="edition"\r\n\r\nx', held)
        body = "".join(f"--b\r\nContent-Disposition: form-data; {part}\r\n" for part in parts)
        answer = browser.post("/golden/shop/editions", content=f"{body}--b--\r\n", headers=utf7)
        assert answer.status_code == 400
        assert "text must not contain nul" in answer.text.casefold()
    parts = (
        f'name="csrf"\r\n\r\n{browser.csrf}',
        'name="file"; filename="+2AA-.csv"\r\n\r\nquery_id,doc_id,grade\nq1,d1,1\n',
    )
    body = "".join(f"--b\r\nContent-Disposition: form-data; {part}\r\n" for part in parts)
    answer = browser.post("/golden/shop/exchange", content=f"{body}--b--\r\n", headers=utf7)
    assert answer.status_code == 400
    for half in ('["\\ud800","x"]', '["q1","x\\u0000"]'):
        answer = browser.fill("/golden/shop/disagreements", pair=half)
        assert answer.status_code == 400
        assert "a pair must be a json list of query id and document id" in answer.text.casefold()
    fields = {"name": "a\0b", "password": "x"}
    assert Browser(app).post("/sign-in", data=fields).status_code == 400


@pytest.mark.parametrize("number", ["0", *with_deep("-1", "9" * 20, "9" * 5000, "x")])
def test_numbers_that_nothing_has_are_refused(client_of: ClientOf, number: str) -> None:
    owner = client_of("owner")
    assert owner.get(f"/people/{number}").status_code == 400
    for path in (
        f"/people/invitations/{number}/withdraw",
        f"/people/{number}/role",
        f"/account/tokens/{number}/revoke",
    ):
        assert owner.fill(path, role="rater").status_code == 400, path
    assert owner.fill("/golden/shop/pairs", runs="old", k="9" * 30).status_code == 400
    for budget in ("9" * 5000, "-1", "\u0663"):
        answer = owner.fill("/golden/shop/pairs", runs="old", budget=budget)
        assert "is not a number of pairs" in answer.text
    for grade in ("nan", "inf", "x"):
        assert owner.get(f"/golden/shop/pairs?a_grade={grade}").status_code == 400


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("[fd00::2]:8000", 200),
        ("[FD00:0:0:0:0:0:0:2]", 200),
        ("KARAT.example.org.:80", 200),
        ("[fd00::3]", 421),
        ("[fd00::2", 200),
        ("evil.example", 421),
    ],
)
def test_a_name_is_known_in_each_of_its_forms(stranger: Browser, host: str, status: int) -> None:
    assert stranger.get("/healthz", headers={"host": host}).status_code == status
