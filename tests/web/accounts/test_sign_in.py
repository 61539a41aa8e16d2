"""Coming in and going out, in browsers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.web.conftest import Browser, ClientOf, Clock, with_deep

from karat.tables.accounts.people import Role
from karat.web.app import create_app
from karat.web.framework.settings import Settings
from karat.workflows.accounts._rate_limit import CROWD
from karat.workflows.accounts.accounts import SignInRefused

PASSWORD = "correct horse battery"


@pytest.fixture
def anna(app: FastAPI) -> str:
    """The name of an owner who has a password."""
    accounts = app.state.site.accounts
    accounts.accept(accounts.invite("anna", "owner").text, PASSWORD)
    return "anna"


def sign_in(browser: Browser, password: str = PASSWORD, **more: Any) -> Any:
    """Send the form of /sign-in."""
    headers = more.pop("headers", {})
    data = {"name": "anna", "password": password, **more}
    return browser.post("/sign-in", data=data, headers=headers, follow_redirects=False)


def test_in_by_name_and_password_and_out_again(anna: str, stranger: Browser) -> None:
    asked = stranger.get("/people?sort=name")
    assert asked.url.path == "/sign-in"
    assert asked.url.params["next"] == "/people?sort=name"
    assert 'value="/people?sort=name"' in asked.text
    done = sign_in(stranger, next="/people?sort=name")
    assert (done.status_code, done.headers["location"]) == (303, "/people?sort=name")
    assert stranger.get("/people").status_code == 200
    secret = stranger.secret
    out = stranger.fill("/sign-out")
    assert (out.status_code, out.headers["location"]) == (303, "/sign-in")
    assert stranger.secret is None
    assert secret is not None
    stranger.hold(secret)  # the cookie is good no more, whoever kept it
    assert stranger.get("/people").url.path == "/sign-in"


def test_it_is_never_said_which_of_the_two_is_wrong(anna: str, stranger: Browser) -> None:
    wrong = sign_in(stranger, "not the password")
    nobody = stranger.post("/sign-in", data={"name": "nobody", "password": PASSWORD})
    assert wrong.status_code == nobody.status_code == 403
    assert "Wrong name or password." in wrong.text
    assert wrong.text.replace("anna", "nobody") == nobody.text
    assert not wrong.cookies
    assert not nobody.cookies


@pytest.mark.parametrize("scheme", ["https", *with_deep("http")])
def test_what_the_cookie_allows(app: FastAPI, anna: str, scheme: str) -> None:
    browser = TestClient(app, base_url=f"{scheme}://127.0.0.1")
    done = browser.post(
        "/sign-in", data={"name": "anna", "password": PASSWORD}, follow_redirects=False
    )
    parts = [part.strip().lower() for part in done.headers["set-cookie"].split(";")]
    assert {"httponly", "samesite=lax", "path=/"} <= set(parts)
    assert ("secure" in parts) == (scheme == "https")
    assert not any(part.startswith("domain") for part in parts)


@pytest.mark.filterwarnings("ignore:The `root_path` parameter is deprecated")
def test_under_a_prefix_and_with_https_ahead(workspace: Any, clock: Clock) -> None:
    settings = Settings(workspace, base="/karat", secure=True)
    app = create_app(settings, clock)
    with TestClient(app, base_url="http://127.0.0.1") as browser:
        accounts = app.state.site.accounts
        accounts.accept(accounts.invite("anna", "owner").text, PASSWORD)
        done = browser.post(
            "/karat/sign-in",
            data={"name": "anna", "password": PASSWORD, "next": "/people"},
            follow_redirects=False,
        )
        parts = [part.strip().lower() for part in done.headers["set-cookie"].split(";")]
        assert {"httponly", "samesite=lax", "path=/karat", "secure"} <= set(parts)
        assert done.headers["location"] == "/karat/people"
        assert done.headers["strict-transport-security"]


def test_nobody_can_choose_the_session_beforehand(anna: str, stranger: Browser) -> None:
    stranger.hold("chosen-by-somebody-else")
    sign_in(stranger)
    first = stranger.secret
    assert first is not None
    assert first != "chosen-by-somebody-else"
    assert stranger.site.accounts.by_session("chosen-by-somebody-else") is None
    # Coming in once more gives another session, and ends the one that was there.
    done = sign_in(stranger, csrf=stranger.csrf)
    assert done.status_code == 303
    second = stranger.secret
    assert second is not None
    assert second != first
    assert stranger.site.accounts.by_session(first) is None
    assert stranger.site.accounts.by_session(second) is not None


EVIL = (
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\r\nSet-Cookie: a=b",
    "\r\n//evil.example",
    "https:evil.example",
    "https://evil.example",
    "https:///evil.example",
    "javascript:alert(1)",
    "evil.example",
    "@evil.example",
    " //evil.example",
    "/\u2028/evil.example",
    "",
)


def test_nobody_is_led_to_another_host(
    app: FastAPI, anna: str, stranger: Browser, client_of: ClientOf
) -> None:
    owner = client_of("owner")
    for where in EVIL:
        done = sign_in(Browser(app), next=where)
        assert (done.status_code, done.headers["location"]) == (303, "/"), where
        assert "a" not in done.cookies
        address = f"/sign-in?{urlencode({'next': where})}"
        there = owner.get(address, follow_redirects=False)
        assert (there.status_code, there.headers["location"]) == (303, "/"), where
        assert "evil" not in stranger.get(address).text


def test_no_address_leads_to_another_host(stranger: Browser) -> None:
    for path in ("//evil.example/x", "//evil.example/", "/%5Cevil.example", "/%0d%0aa:b", "//%2F"):
        answer = stranger.request("GET", f"http://127.0.0.1{path}", follow_redirects=False)
        where = answer.headers.get("location", "/")
        assert where.startswith("http://127.0.0.1/") or (where[0] == "/" and where[1:2] != "/")
        assert "a" not in answer.headers


def test_guessing_gets_slow_and_the_right_password_has_to_wait_too(
    anna: str, stranger: Browser, clock: Clock
) -> None:
    for _ in range(5):
        assert sign_in(stranger, "wrong").status_code == 403
    waits = []
    for _ in range(4):
        refused = sign_in(stranger)
        assert refused.status_code == 429
        waits.append(int(refused.headers["retry-after"]))
        clock.pass_by(waits[-1])
        assert sign_in(stranger, "wrong").status_code == 403
    assert waits == [1, 2, 4, 8]
    assert "Too many attempts: wait 16 seconds." in sign_in(stranger).text
    clock.pass_by(16)
    assert sign_in(stranger).status_code == 303


def test_a_form_of_another_site_signs_nobody_in(anna: str, stranger: Browser) -> None:
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
    ):
        assert sign_in(stranger, headers=headers).status_code == 403
        assert stranger.secret is None
    ours = {"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8000"}
    assert sign_in(stranger, headers=ours).status_code == 303


def test_an_invitation_in_the_browser(stranger: Browser, app: FastAPI, clock: Clock) -> None:
    secret = stranger.site.accounts.invite("Ben <b>", "engineer").text
    page = stranger.get(f"/invited/{secret}")
    assert "Ben &lt;b&gt;</bdi>, you are invited as engineer" in page.text
    short = stranger.post(f"/invited/{secret}", data={"password": "short", "again": "short"})
    assert short.status_code == 400
    assert "10 to 1,000 characters" in short.text
    differ = stranger.post(f"/invited/{secret}", data={"password": PASSWORD, "again": "another"})
    assert differ.status_code == 400
    assert "The two passwords differ." in differ.text
    fields = {"password": PASSWORD, "again": PASSWORD}
    done = stranger.post(f"/invited/{secret}", data=fields, follow_redirects=False)
    assert (done.status_code, done.headers["location"]) == (303, "/")
    assert stranger.get("/account").status_code == 200
    other = Browser(app)
    for answer in (
        other.get(f"/invited/{secret}"),
        other.post(f"/invited/{secret}", data=fields),
        other.get("/invited/nothing"),
    ):
        assert answer.status_code == 404
        assert "The invitation was used" in answer.text
    late = stranger.site.accounts.invite("late", "rater").text
    clock.pass_by(8 * 86_400)
    assert other.get(f"/invited/{late}").status_code == 404


def test_an_invitation_cannot_be_followed_from_another_site(stranger: Browser) -> None:
    secret = stranger.site.accounts.invite("ben", "engineer").text
    fields = {"password": PASSWORD, "again": PASSWORD}
    refused = stranger.post(
        f"/invited/{secret}", data=fields, headers={"sec-fetch-site": "cross-site"}
    )
    assert refused.status_code == 403
    assert stranger.site.accounts.invitation(secret) is not None


@pytest.fixture
def site_settings(request: pytest.FixtureRequest, workspace: Any) -> Settings:
    """With accounts; for ``alone`` without."""
    alone = "alone" in request.node.name
    return Settings(workspace, accounts=not alone, owner="olga", hosts=("127.0.0.1",))


def test_alone_one_comes_by_the_link_once(app: FastAPI, stranger: Browser) -> None:
    accounts = app.state.site.accounts
    assert "Open the link that" in stranger.get("/account").text
    me = accounts.local("olga")
    earlier, link = accounts.link(me), accounts.link(me)
    assert stranger.get(f"/link/{earlier}").status_code == 404, "a new start prints a new one"
    came = stranger.get(f"/link/{link}", follow_redirects=False)
    assert (came.status_code, came.headers["location"]) == (303, "/")
    assert stranger.get("/").status_code == 200
    assert Browser(app).get(f"/link/{link}").status_code == 404
    assert Browser(app).get("/link/x").status_code == 404


def test_alone_there_are_no_accounts(app: FastAPI, client_of: ClientOf) -> None:
    owner: Role = "owner"
    accounts = app.state.site.accounts
    secret = accounts.invite("ben", "rater").text
    browser = client_of(owner)
    for path in ("/people", "/people/1", f"/invited/{secret}"):
        answer = browser.get(path)
        assert answer.status_code == 404, path
        assert "Fix:" in answer.text
    assert browser.fill("/people/invitations", name="eve").status_code == 404
    assert sign_in(Browser(app)).status_code == 404
    page = browser.get("/account")
    assert page.status_code == 200
    assert "Old password" not in page.text
    data = {"old": "-", "password": PASSWORD, "again": PASSWORD}
    assert browser.fill("/account/password", **data).status_code == 404


def test_the_link_of_this_machine_opens_nothing_where_there_are_accounts(
    app: FastAPI, stranger: Browser
) -> None:
    accounts = app.state.site.accounts
    link = accounts.link(accounts.local("olga"))
    assert stranger.get(f"/link/{link}").status_code == 404
    assert stranger.secret is None


def test_a_lasting_session_ends_all_the_same(client_of: ClientOf, clock: Clock) -> None:
    browser = client_of("owner")
    for _ in range(9):  # 90 days of use, and no day more
        assert browser.get("/account").url.path == "/account"
        clock.pass_by(10 * 86_400 - 1)
    assert browser.get("/account").url.path == "/account"
    clock.pass_by(10)
    assert browser.get("/account").url.path == "/sign-in"


def test_a_session_that_is_not_used_ends(client_of: ClientOf, clock: Clock) -> None:
    browser = client_of("owner")
    clock.pass_by(14 * 86_400 + 1)
    assert browser.get("/account").url.path == "/sign-in"


def test_a_browser_that_came_in_before_is_not_kept_out_by_others(
    app: FastAPI, anna: str, stranger: Browser
) -> None:
    first = sign_in(stranger)
    cookie = next(each for each in first.headers.get_list("set-cookie") if "_device=" in each)
    parts = {part.strip().lower() for part in cookie.split(";")}
    assert {"httponly", "samesite=lax", "path=/sign-in", "max-age=31536000"} <= parts
    stranger.fill("/sign-out")
    accounts = app.state.site.accounts
    for _ in range(6):
        with suppress(SignInRefused):
            accounts.sign_in("anna", "", "127.0.0.1")
    assert sign_in(Browser(app)).status_code == 429
    assert sign_in(stranger).status_code == 303


@pytest.mark.deep  # tests/workflows/accounts has the limits
def test_nobody_is_kept_out_by_what_was_tried_under_other_names(
    app: FastAPI, anna: str, stranger: Browser, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a proxy that is not believed, everybody comes from one address."""
    accounts = app.state.site.accounts
    with monkeypatch.context() as patched:  # it is not Argon2 that is tried here
        patched.setattr(accounts._passwords, "right", lambda _held, _given: False)
        for k in range(CROWD + 50):
            with suppress(SignInRefused):
                accounts.sign_in(f"name {k}", "", "127.0.0.1")
    clock.pass_by(1)
    assert sign_in(stranger, "wrong").status_code == 403
    assert sign_in(stranger).status_code == 303
    assert [sign_in(Browser(app), "wrong").status_code for _ in range(3)] == [403, 403, 429]
