"""Every route, whatever there are, before whoever may not call it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import iter_route_contexts
from starlette.datastructures import Headers
from starlette.testclient import TestClient
from tests.web.conftest import NOW, Browser, ClientOf, Clock

from karat.store.sql import people
from karat.tables.accounts.people import ROLES, SCOPES, SCOPES_OF, Role, Scope
from karat.web.app import PAGES, create_app
from karat.web.framework import auth
from karat.web.framework.auth import Requires, requires_of
from karat.web.framework.settings import Settings

OPEN = {
    ("GET", "/healthz"),
    ("GET", "/static/{name}"),
    ("GET", "/sign-in"),
    ("POST", "/sign-in"),
    ("GET", "/link/{token}"),
    ("GET", "/invited/{token}"),
    ("POST", "/invited/{token}"),
}
"""All that strangers may call. Think twice before a line is added."""


class Route(NamedTuple):
    """A route of the app, and an address of it."""

    method: str
    path: str
    need: Requires

    @property
    def address(self) -> str:
        """The path with something in the place of its parameters."""
        return re.sub(r"{[^}]*}", "1", self.path)


def routes_of(app: FastAPI) -> list[Route]:
    """Every route and method."""
    return [
        Route(method, str(each.path), requires_of(each.original_route))
        for each in iter_route_contexts(app.routes)
        for method in sorted(each.methods or ())
    ]


def _routes() -> list[Route]:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    for router in PAGES:
        app.include_router(router)
    return routes_of(app)


ROUTES = _routes()
CLOSED = [each for each in ROUTES if each.need.role is not None]
every_closed = pytest.mark.parametrize("route", CLOSED, ids=lambda r: f"{r.method} {r.path}")
FIRST = list({(each.need, each.method == "GET"): each for each in reversed(CLOSED)}.values())
"""Of routes that require the same, those on which a build tries everything: a GET and another."""
every_need = pytest.mark.parametrize(
    "route",
    [each if each in FIRST else pytest.param(each, marks=pytest.mark.deep) for each in CLOSED],
    ids=lambda r: f"{r.method} {r.path}",
)
"""For what depends on the caller alone: the guard is the same on all routes."""


@pytest.fixture(scope="module")
def standing(
    _workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Browser]]:
    """A browser of nobody and of each role; the app stays up, for nothing of this changes it."""
    root = shutil.copytree(_workspace, tmp_path_factory.mktemp("access") / "shop")
    app = create_app(Settings(Path(root)), Clock())
    with TestClient(app):
        found = {"nobody": Browser(app)}
        for role in ROLES:
            with app.state.site.workspace.store.begin() as c:
                person = people.add(c, f"a {role}", role, None, NOW)
            found[role] = Browser(app, person)
        yield found


class Asked(NamedTuple):
    """An answer. There are thousands, and a client would take most of the time."""

    status_code: int
    headers: Headers
    content: bytes

    @property
    def text(self) -> str:
        """The body."""
        return self.content.decode()

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.content)


Request = tuple[Browser, dict[str, str | bytes]]


def ask_all(route: Route, *requests: Request, json_: bool = True) -> list[Asked]:
    """Call a route as scripts do, with an empty body."""
    portal = Browser.loop
    assert portal is not None
    return portal.call(_ask_all, route, requests, json_)


async def _ask_all(route: Route, requests: Sequence[Request], json_: bool) -> list[Asked]:
    return [await _ask(route, browser, headers, json_=json_) for browser, headers in requests]


async def _ask(
    route: Route, browser: Browser, more: dict[str, str | bytes], *, json_: bool
) -> Asked:
    headers = {
        "host": "127.0.0.1",
        "accept": "application/json" if json_ else "text/html",
        **({} if browser.secret is None else {"cookie": f"{browser.site.cookie}={browser.secret}"}),
        **more,
    }
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": route.method,
        "scheme": "http",
        "path": route.address,
        "raw_path": route.address.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (name.encode(), value if isinstance(value, bytes) else value.encode())
            for name, value in headers.items()
        ],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 80),
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await browser.app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Asked(sent[0]["status"], Headers(raw=sent[0]["headers"]), body)


def ask(browser: Browser, route: Route, **headers: str | bytes) -> Asked:
    """Call a route as a script does, with an empty body."""
    [answer] = ask_all(route, (browser, headers))
    return answer


def bearer(secret: str) -> dict[str, Any]:
    """The header that holds a token."""
    return {"authorization": f"Bearer {secret}"}


def code(answer: Any) -> tuple[int, str]:
    """Status and code of an error."""
    return answer.status_code, answer.json()["error"]["code"]


def test_the_list_is_that_of_the_app(app: FastAPI) -> None:
    assert routes_of(app) == ROUTES
    assert len(CLOSED) > 10


def test_only_these_routes_are_open() -> None:
    assert {(r.method, r.path) for r in ROUTES if r.need.role is None} == OPEN


@every_closed
def test_nobody_comes_in_without_a_session(standing: dict[str, Browser], route: Route) -> None:
    answer = ask(standing["nobody"], route)
    assert code(answer) == (401, "not_signed_in")
    assert answer.headers["www-authenticate"] == "Bearer"
    [page] = ask_all(route, (standing["nobody"], {}), json_=False)
    if route.method == "GET" and not route.path.startswith("/api/"):
        assert page.status_code == 303
        assert page.headers["location"].startswith("/sign-in?next=%2F")
    else:
        assert page.status_code == 401


@every_need
def test_a_cookie_that_is_no_session_opens_nothing(
    standing: dict[str, Browser], route: Route
) -> None:
    nobody = standing["nobody"]
    secrets = ("x", "", "\u00fc" * 300, "' OR 1=1 --")
    cookies = [f"{nobody.site.cookie}={secret}".encode("latin-1") for secret in secrets]
    for answer in ask_all(route, *((nobody, {"cookie": cookie}) for cookie in cookies)):
        assert answer.status_code == 401


@every_closed
def test_a_lower_role_is_refused(standing: dict[str, Browser], route: Route) -> None:
    assert route.need.role is not None
    for role in ROLES[: ROLES.index(route.need.role)]:
        browser = standing[role]
        answer = ask(browser, route, **{auth.HEADER: browser.csrf})
        assert code(answer) == (403, "not_allowed"), role


@every_need
def test_a_foreign_page_cannot_use_a_session(standing: dict[str, Browser], route: Route) -> None:
    if route.method == "GET":
        pytest.skip("GET changes nothing")
    owner, engineer = standing["owner"], standing["engineer"]
    tried: list[dict[str, str | bytes]] = [
        {},
        {auth.HEADER: ""},
        {auth.HEADER: "0" * 64},
        {auth.HEADER: engineer.csrf},  # of another session
        {auth.HEADER: owner.csrf, "sec-fetch-site": "cross-site"},
        {auth.HEADER: owner.csrf, "sec-fetch-site": "same-site"},
        {auth.HEADER: owner.csrf, "origin": "https://evil.example"},
        {auth.HEADER: owner.csrf, "origin": "null"},
    ]
    answers = ask_all(route, *((owner, headers) for headers in tried))
    for headers, answer in zip(tried, answers, strict=True):
        assert code(answer) == (403, "not_allowed"), headers
        assert "did not come from a page of karat" in answer.text


@pytest.fixture(scope="module")
def revoked(standing: dict[str, Browser]) -> str:
    """A token of the owner's that was good for everything."""
    accounts, person = standing["owner"].site.accounts, standing["owner"].person
    assert person is not None
    made = accounts.make_token(person, "all", SCOPES)
    accounts.revoke(person, made.id)
    return made.text


@every_need
def test_a_token_that_is_not_good_is_refused(
    standing: dict[str, Browser], revoked: str, route: Route
) -> None:
    values = [f"Bearer {secret}" for secret in (revoked, "karat_x", "", "x y", "\u00fc")]
    headers = [{"authorization": value.encode("latin-1")} for value in values]
    for answer in ask_all(route, *((standing["nobody"], each) for each in headers)):
        assert code(answer) == (401, "not_signed_in")


@pytest.fixture(scope="module")
def tokens(standing: dict[str, Browser]) -> dict[tuple[Role, Scope], str]:
    """A token of each role for each scope that it may have."""
    accounts = standing["nobody"].site.accounts
    made = {}
    for role in ROLES:
        person = standing[role].person
        assert person is not None
        for scope in SCOPES_OF[role]:
            made[role, scope] = accounts.make_token(person, scope, [scope]).text
    return made


@every_closed
def test_a_token_does_what_its_scopes_and_its_owner_may_and_no_more(
    standing: dict[str, Browser],
    tokens: dict[tuple[Role, Scope], str],
    route: Route,
    deep: bool,
) -> None:
    """Of routes that require the same, all tokens are tried on one, and two on each other."""
    need = route.need
    assert need.role is not None
    least = ROLES.index(need.role)
    refused = [
        (role, scope, browser)
        for role, scope in tokens
        if scope != need.scope or ROLES.index(role) < least  # the others may
        # Nor does a session that comes with it help: the token is what is looked at.
        for browser in (standing["nobody"], standing["owner"])
    ]
    if not deep and route not in FIRST:
        refused = [refused[0], refused[-1]]  # of the least role, and of an owner with a session
    requests = [(browser, bearer(tokens[role, scope])) for role, scope, browser in refused]
    for what, answer in zip(refused, ask_all(route, *requests), strict=True):
        assert code(answer) == (403, "not_allowed"), what[:2]


def test_a_route_that_does_not_say_who_may_call_it_stops_the_start(site_settings: Settings) -> None:
    router = APIRouter()

    @router.get("/forgotten")
    def forgotten() -> str:
        return "for everybody"

    with pytest.raises(TypeError, match="/forgotten does not say who may call it"):
        create_app(site_settings, routers=[router])


def test_a_token_of_somebody_who_was_made_less_is_less(app: FastAPI, client_of: ClientOf) -> None:
    owner, engineer = client_of("owner"), client_of("engineer")
    assert owner.person is not None
    assert engineer.person is not None
    accounts = app.state.site.accounts
    secret = accounts.make_token(engineer.person, "ci", ["judge", "read"]).text
    assert accounts.by_token(secret)[0].role == "engineer"
    accounts.set_role(engineer.person.name, "rater", "olga")
    assert accounts.by_token(secret)[0].role == "rater"


def test_what_a_proxy_asks_of_browsers_is_not_for_us(client_of: ClientOf) -> None:
    owner = client_of("owner")
    assert owner.get("/people", headers={"authorization": "Basic YTpi"}).status_code == 200


def test_a_token_is_no_matter_where_anybody_may_come(stranger: Browser) -> None:
    for value in ("Bearer x", "Basic YTpi"):
        assert stranger.get("/healthz", headers={"authorization": value}).status_code == 200


def test_a_token_needs_no_csrf_for_no_browser_sends_it_unasked(
    stranger: Browser, client_of: ClientOf
) -> None:
    owner = client_of("owner").person
    assert owner is not None
    secret = stranger.site.accounts.make_token(owner, "admin", ["admin"]).text
    made = stranger.post(
        "/people/invitations?format=json", data={"name": "dora"}, headers=bearer(secret)
    )
    assert made.status_code == 200
    assert made.json()["link"]["name"] == "dora"


def test_shutting_somebody_out_ends_session_and_token_at_once(
    app: FastAPI, client_of: ClientOf, stranger: Browser
) -> None:
    engineer: Role = "engineer"
    browser = client_of(engineer)
    assert browser.person is not None
    accounts = app.state.site.accounts
    secret = accounts.make_token(browser.person, "ci", ["judge"]).text
    assert ask(browser, Route("GET", "/account", auth.SESSION)).status_code != 401
    assert stranger.get("/", headers=bearer(secret)).status_code == 200
    accounts.disable(browser.person.name, "olga")
    assert ask(browser, Route("GET", "/account", auth.SESSION)).status_code == 401
    assert (
        stranger.get(
            "/", headers={"accept": "application/json", **bearer(secret)}, follow_redirects=False
        ).status_code
        == 401
    )


def test_forms_that_are_not_of_this_session_are_refused(client_of: ClientOf) -> None:
    owner, other = client_of("owner"), client_of("owner")
    for csrf in (None, "", "x", "\u2603", other.csrf):
        data = {"name": "eve", "role": "owner"} | ({} if csrf is None else {"csrf": csrf})
        assert owner.post("/people/invitations", data=data).status_code == 403
        assert owner.post("/people/invitations", files={"f": b"x"}, data=data).status_code == 403
    assert not owner.site.accounts.invitations()
    assert owner.post("/people/invitations", data={"name": "eve", "csrf": owner.csrf}).is_success
