"""Your own account: password, sessions, tokens."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import FastAPI
from tests.web.conftest import Browser, ClientOf, Clock

from karat.tables.accounts.people import SCOPES, Role

PASSWORD, NEW = "correct horse battery", "staple of correct horses"


def with_password(app: FastAPI) -> tuple[Browser, Browser]:
    """Two browsers of ben, who has a password."""
    accounts = app.state.site.accounts
    ben = accounts.accept(accounts.invite("ben", "engineer").text, PASSWORD)
    return Browser(app, ben), Browser(app, ben)


def person(app: FastAPI, name: str, role: Role) -> Browser:
    """The browser of somebody with a password."""
    accounts = app.state.site.accounts
    return Browser(app, accounts.accept(accounts.invite(name, role).text, PASSWORD))


def change(browser: Browser, old: str, new: str, again: str | None = None) -> object:
    """Send the form."""
    return browser.fill("/account/password", old=old, password=new, again=again or new)


def test_a_new_password_signs_out_the_other_browser(app: FastAPI) -> None:
    here, there = with_password(app)
    for old, new, again, status, said in (
        ("wrong", NEW, NEW, 403, "The old password is wrong."),
        (PASSWORD, NEW, "another one", 400, "The two new passwords differ."),
        (PASSWORD, "short", "short", 400, "A password must have 10 to 1,000 characters"),
    ):
        answer = change(here, old, new, again)
        assert answer.status_code == status
        assert said in answer.text
    assert there.get("/account").url.path == "/account"
    done = change(here, PASSWORD, NEW)
    assert done.headers["location"] == "/account"
    assert "Your password has been changed" in here.get("/account").text
    assert "Your password has been changed" not in here.get("/account?done=password").text
    assert there.get("/account").url.path == "/sign-in"


def test_guessing_the_old_password_gets_slow(app: FastAPI) -> None:
    here, _ = with_password(app)
    assert [change(here, "wrong", NEW).status_code for _ in range(6)] == [403] * 5 + [429]
    assert change(here, PASSWORD, NEW).headers["retry-after"] == "1"


def test_signing_out_everywhere_ends_the_other_browser_at_once(client_of: ClientOf) -> None:
    role: Role = "rater"
    here, there, other = client_of(role), client_of(role), client_of("engineer")
    page = here.get("/account").text
    assert page.count("this browser") == 1
    assert page.count("<bdi>A browser</bdi>") == 2
    assert here.fill("/sign-out", everywhere="true").headers["location"] == "/sign-in"
    assert there.get("/account").url.path == "/sign-in"
    assert here.get("/account").url.path == "/sign-in"
    assert other.get("/account").url.path == "/account"


def test_a_token_is_shown_once_and_works_until_it_is_revoked(
    app: FastAPI, client_of: ClientOf, stranger: Browser, clock: Clock
) -> None:
    owner = person(app, "anna", "owner")
    fields = {"name": "nightly", "scopes": ["admin", "read"], "days": "30"}
    assert "Your password" in owner.get("/account").text
    for given in ({}, {"password": "a wrong guess"}):
        refused = owner.fill("/account/tokens", **fields, **given)
        assert refused.status_code == 403, "a session that was taken makes none"
        assert "The password is wrong." in refused.text
    value = re.search(r'name="once" value="([\w-]{22})"', owner.get("/account").text)
    assert value is not None
    for _ in range(2):  # a second click
        made = owner.fill("/account/tokens", **fields, password=PASSWORD, once=value[1])
        assert (made.status_code, made.headers["location"]) == (303, "/account")
    assert len(owner.site.accounts.tokens(owner.person)) == 1
    made = owner.get("/account")
    secret = re.search(r'value="(karat_[\w-]{43})"', made.text)
    assert secret is not None
    page = owner.get("/account").text
    assert secret[1] not in page
    assert "nightly" in page
    assert "read, admin" in page
    headers = {"authorization": f"Bearer {secret[1]}"}
    assert stranger.get("/people", headers=headers).status_code == 200
    assert stranger.get("/account", headers=headers).status_code == 403
    number = owner.site.accounts.tokens(owner.person)[0].id
    assert client_of("rater").fill(f"/account/tokens/{number}/revoke").status_code == 404
    assert stranger.get("/people", headers=headers).status_code == 200
    assert owner.fill(f"/account/tokens/{number}/revoke").status_code == 303
    found = stranger.get("/people", headers={**headers, "accept": "application/json"})
    assert found.status_code == 401
    again = owner.fill("/account/tokens", **fields, password=PASSWORD, once=value[1])
    assert again.status_code == 400
    assert "This token was made before" in again.text


def test_whoever_has_no_password_is_asked_for_none(client_of: ClientOf) -> None:
    owner = client_of("owner")  # as who served karat on this machine alone
    page = owner.get("/account").text
    assert "You have no password yet. To set one" in page
    assert 'href="/people"' in page
    assert 'type="password"' not in page
    for path, fields in (
        ("/account/tokens", {"name": "x", "scopes": "read"}),
        ("/account/password", {"old": "-", "password": NEW, "again": NEW}),
    ):
        answer = owner.fill(path, **fields)
        assert answer.status_code == 400
        assert "You have no password yet" in answer.text


def test_a_token_for_nothing_or_for_more_than_the_role_is_not_made(app: FastAPI) -> None:
    rater = person(app, "ron", "rater")
    assert "judge pairs in the queue" in rater.get("/account").text
    assert "everything that only owners may do" not in rater.get("/account").text
    for fields, said in (
        ({"name": "x"}, "The token has no scopes."),
        ({"name": "x", "scopes": "admin"}, "The role rater does not allow the scope"),
        ({"name": "", "scopes": "judge"}, ""),
        ({"name": "x", "scopes": "judge", "days": "-1"}, "1 to 3,650 days"),
        ({"name": "x", "scopes": "judge", "days": "9" * 30}, ""),
        ({"name": "x", "scopes": "judge", "days": "9" * 5000}, "1 to 3,650 days"),
        ({"name": "x", "scopes": "judge", "days": "0"}, "1 to 3,650 days"),
        ({"name": "x", "scopes": "judge", "days": "soon"}, "is not a number of days"),
    ):
        answer = rater.fill("/account/tokens", **fields, password=PASSWORD)
        assert answer.status_code == 400, fields
        assert said in answer.text, fields
    assert not rater.site.accounts.tokens(rater.person)
    fields = {"name": "x", "scopes": "judge", "days": "ever", "password": PASSWORD}
    assert rater.fill("/account/tokens", **fields).status_code == 303
    assert rater.site.accounts.tokens(rater.person)[0].ends_us is None


def test_signing_out_everywhere_may_revoke_tokens(client_of: ClientOf, stranger: Browser) -> None:
    accounts = stranger.site.accounts
    here = client_of("engineer")
    assert "and revoke my API tokens" not in here.get("/account").text
    token = accounts.make_token(here.person, "ci", ["read"]).text
    assert "and revoke my API tokens" in here.get("/account").text
    assert here.fill("/sign-out", everywhere="true").status_code == 303
    assert accounts.by_token(token) is not None
    again = client_of("engineer")
    assert again.fill("/sign-out", everywhere="true", tokens="true").status_code == 303
    assert accounts.by_token(token) is None


def test_a_rater_sees_the_account_and_none_of_the_menu(client_of: ClientOf) -> None:
    page = client_of("rater").get("/account").text
    assert 'aria-label="Sections"' not in page
    assert "/people" not in page
    assert "/audit" not in page


def test_the_guide_of_the_api_has_each_scope_once(root: Path) -> None:
    guide = (root / "docs/how-to/use-the-api.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \|", guide, re.MULTILINE)
    assert sorted(named) == sorted(SCOPES)
