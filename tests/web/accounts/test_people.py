"""Users: an owner invites them, changes roles, disables and enables accounts."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.web.conftest import Browser, ClientOf, Clock

from karat.store.sql import people
from karat.web.accounts.account import browser as called
from karat.web.app import create_app
from karat.web.framework.settings import Settings

PASSWORD = "correct horse battery"


def test_an_invitation_is_shown_once_and_brings_somebody_in(
    app: FastAPI, client_of: ClientOf
) -> None:
    owner = client_of("owner")
    fields = {"name": "dora", "role": "engineer", "once": once(owner, "/people")}
    for _ in range(2):  # a second click
        made = owner.fill("/people/invitations", **fields)
        assert (made.status_code, made.headers["location"]) == (303, "/people")
        parts = {part.strip().lower() for part in made.headers["set-cookie"].split(";")}
        assert {"httponly", "samesite=lax", "path=/people", "max-age=60"} <= parts
    assert "invited" not in owner.get("/people?format=json").json()
    shown = owner.get("/people").text
    link = re.search(r'value="(http://127\.0\.0\.1/invited/[\w-]{43})"', shown)
    assert link is not None
    page = owner.get("/people")
    assert link[1] not in page.text, "it is shown once"
    assert len(owner.site.accounts.invitations()) == 1
    assert "as engineer, by <bdi>olga</bdi>" in page.text
    fields = {"password": PASSWORD, "again": PASSWORD}
    dora = Browser(app)
    assert dora.post(link[1], data=fields).status_code == 200
    assert dora.get("/account").status_code == 200
    assert dora.get("/people").status_code == 403
    rows = {row["name"]: row for row in owner.get("/people?format=json").json()["people"]}
    assert (rows["dora"]["role"], rows["dora"]["sessions"]) == ("engineer", 1)
    assert rows["olga"]["last_seen"] is not None
    assert "No pending invitations." in owner.get("/people").text


def once(browser: Browser, path: str) -> str:
    """What the form of a page says that makes something once."""
    found = re.search(r'name="once" value="([\w-]{22})"', browser.get(path).text)
    assert found is not None
    return found[1]


def test_inviting_somebody_again_asks_before_it_replaces_the_first_link(
    app: FastAPI, client_of: ClientOf, clock: Clock
) -> None:
    owner = client_of("owner")
    first = owner.site.accounts.invite("dora", "engineer", "olga").text
    fields = {"name": "dora", "role": "rater", "once": once(owner, "/people")}
    asked = owner.fill("/people/invitations", **fields)
    assert asked.status_code == 409
    assert (
        "<bdi>dora</bdi> already has a pending invitation as engineer, which expires" in asked.text
    )
    assert "the first link then stops working" in asked.text
    assert Browser(app).get(f"/invited/{first}").status_code == 200, "it works as before"
    form = re.search(r"<form[^>]*>((?:(?!</form>).)*)<button>Replace link", asked.text)
    assert form is not None
    said = dict(re.findall(r'name="(name|role|replace|once)" value="([^"]*)"', form[1]))
    assert (said["name"], said["role"], said["replace"]) == ("dora", "rater", "true")
    assert owner.fill("/people/invitations", **said).headers["location"] == "/people"
    assert Browser(app).get(f"/invited/{first}").status_code == 404
    assert [each.role for each in owner.site.accounts.invitations()] == ["rater"]


def test_a_page_says_of_an_open_link_for_a_new_password_that_another_replaces_it(
    client_of: ClientOf, clock: Clock
) -> None:
    owner, engineer = client_of("owner"), client_of("engineer")
    assert engineer.person is not None
    there = f"/people/{engineer.person.id}"
    words = "A new link replaces it; the first then stops working."
    assert words not in owner.get(there).text
    clock.pass_by(1)
    owner.site.accounts.renew("egon", "olga")
    assert words in owner.get(there).text


def test_a_form_that_was_sent_and_is_sent_again_with_another_name_is_another(
    client_of: ClientOf, clock: Clock
) -> None:
    owner = client_of("owner")
    value = once(owner, "/people")
    assert value != once(owner, "/people")
    for name in ("dora", "emil", "dora"):
        assert owner.fill("/people/invitations", name=name, once=value).status_code == 303
    found = owner.site.accounts.invitations()
    assert [each.name for each in found] == ["emil", "dora"]
    assert owner.fill(f"/people/invitations/{found[1].id}/withdraw").status_code == 303
    answer = owner.fill("/people/invitations", name="dora", once=value)
    assert answer.status_code == 400
    assert "This link was made before and is not valid any more." in answer.text
    assert owner.fill("/people/invitations", name="dora").status_code == 303


def test_a_link_is_shown_to_nobody_else_and_on_no_other_page(
    app: FastAPI, client_of: ClientOf
) -> None:
    owner, other = client_of("owner"), client_of("owner")
    owner.fill("/people/invitations", name="dora", once="x")
    cookie = next(each for each in owner.cookies.jar if each.name.endswith("_secret"))
    assert cookie.value is not None
    other.cookies.set(cookie.name, cookie.value, domain="127.0.0.1")
    assert "/invited/" not in other.get("/people").text
    assert owner.person is not None
    assert "/invited/" not in owner.get(f"/people/{owner.person.id}").text
    assert "/invited/" in owner.get("/people").text


def test_what_cannot_be_is_said_beside_the_form(client_of: ClientOf) -> None:
    owner = client_of("owner")
    for name, role, said in (
        ("olga", "rater", "There is an account called &#39;olga&#39;."),
        ("OLGA", "rater", "There is an account called &#39;olga&#39;."),
        (" ", "rater", "The name of a person is empty."),
        ("x\N{RIGHT-TO-LEFT OVERRIDE}y", "rater", "The name of a person contains"),
        ("../../etc/passwd", "rater", "The name of a person cannot be"),
        ("dora", "king", "Unknown role &#39;king&#39;."),
    ):
        answer = owner.fill("/people/invitations", name=name, role=role)
        assert answer.status_code == 400, name
        assert said in answer.text, name
    assert not owner.site.accounts.invitations()


def test_a_link_is_withdrawn(app: FastAPI, client_of: ClientOf) -> None:
    owner = client_of("owner")
    made = owner.site.accounts.invite("dora", "rater", "olga")
    assert owner.fill(f"/people/invitations/{made.id}/withdraw").status_code == 303
    assert Browser(app).get(f"/invited/{made.text}").status_code == 404


def test_roles_and_coming_in(app: FastAPI, client_of: ClientOf, clock: Clock) -> None:
    owner, engineer = client_of("owner"), client_of("engineer")
    assert engineer.person is not None
    assert owner.person is not None
    there = f"/people/{engineer.person.id}"
    assert "egon" in owner.get(there).text
    assert owner.fill(f"{there}/role", role="rater").headers["location"] == there
    assert engineer.get("/account").url.path == "/sign-in", "signed out, for the role is another"
    again = client_of("engineer")
    assert again.get("/people").status_code == 403
    assert owner.fill(f"{there}/shut-out").status_code == 303
    assert again.get("/account").url.path == "/sign-in"
    assert "<dt>Disabled</dt><dd><time" in owner.get(there).text
    assert owner.fill(f"{there}/new-password").status_code == 400
    assert owner.fill(f"{there}/let-in").status_code == 303
    clock.pass_by(1)
    value = once(owner, there)
    for _ in range(2):
        assert owner.fill(f"{there}/new-password", once=value).headers["location"] == there
    made = owner.get(there)
    link = re.search(r"http://127\.0\.0\.1/invited/[\w-]{43}", made.text)
    assert link is not None
    assert "choose a new password" in Browser(app).get(link[0]).text
    for path in ("/people/999", "/people/999/role"):
        assert owner.get(path).status_code in {404, 405}
    assert owner.fill("/people/999/shut-out").status_code == 404
    assert owner.get("/people/x").status_code == 400


def test_the_last_owner_is_told_so(client_of: ClientOf) -> None:
    owner = client_of("owner")
    assert owner.person is not None
    there = f"/people/{owner.person.id}"
    assert "This is the last owner" in owner.get(there).text
    for action, fields in (("shut-out", {}), ("role", {"role": "rater"})):
        answer = owner.fill(f"{there}/{action}", **fields)
        assert answer.status_code == 400
        assert "This is the last owner" in answer.text
    assert owner.get("/people").status_code == 200


def test_the_audit_says_who_did_what(client_of: ClientOf) -> None:
    owner = client_of("owner")
    owner.fill("/people/invitations", name="=dora", role="rater")
    owner.site.accounts.make_token(owner.person, "ci", ["read"])
    rows = owner.get("/audit?person=olga&format=json").json()["rows"]
    assert [(r["person"], r["action"], r["subject"], r["about"]) for r in rows] == [
        ("olga", "make token", "ci", "scopes read"),
        ("olga", "invite", "=dora", "role rater"),
    ]
    assert "make token" in owner.get("/audit?q=token").text
    assert "invite</bdi>" not in owner.get("/audit?q=token").text
    found = list(csv.DictReader(io.StringIO(owner.get("/audit?format=csv").text)))
    assert {row["subject"] for row in found} == {"ci", "'=dora"}, "no cell is a formula"


def test_the_audit_shows_the_beginning_of_a_hash_and_holds_all_of_it(client_of: ClientOf) -> None:
    owner, engineer = client_of("owner"), client_of("engineer")
    engineer.fill("/golden/shop/editions", edition="first")
    [row] = owner.get("/audit?action=freeze+edition&format=json").json()["rows"]
    [whole] = re.findall("[0-9a-f]{64}", row["about"])
    page = owner.get("/audit?action=freeze+edition").text
    assert whole not in page
    assert f"{whole[:12]}…" in page
    assert whole in owner.get("/audit?format=csv").text


def test_browsers_are_called_as_people_call_them() -> None:
    chrome = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    chrome += "Chrome/140.0.0.0 Safari/537.36"
    phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 "
    phone += "(KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
    assert called(chrome) == "Chrome on Windows"
    assert called(chrome + " Edg/140.0.0.0") == "Edge on Windows"
    assert called(phone) == "Safari on iPhone"
    firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    assert called(firefox) == "Firefox on Linux"
    assert called("") == "Unknown browser"
    assert called("x" * 200) == "x" * 60


def test_a_link_goes_where_karat_was_said_to_be(workspace: Path, clock: Clock) -> None:
    def link(hosts: tuple[str, ...], host: str, *, secure: bool = False) -> str:
        app = create_app(Settings(workspace, hosts=hosts, secure=secure), clock)
        with TestClient(app, base_url="http://127.0.0.1"):
            with app.state.site.workspace.store.begin() as c:
                olga = people.find(c, "olga") or people.add(c, "olga", "owner", None, clock())
            owner = Browser(app, olga)
            data = {"csrf": owner.csrf, "name": "dora", "replace": "true"}
            sent = {"follow_redirects": False, "headers": {"host": host}}
            done = owner.post("/people/invitations", data=data, **sent)
            cookie = done.headers["set-cookie"].partition(";")[0]
            cookie += f"; {owner.site.cookie}={owner.secret}"
            made = Browser(app).get("/people", headers={"host": host, "cookie": cookie})
        found = re.search(r'value="([^"]*)/invited/[\w-]{43}"', made.text)
        assert found is not None, made.text
        assert ("Append it to the address of this server" in made.text) == (not found[1])
        return found[1]

    # Nobody said how it is called, and the request is anybody's word.
    assert link((), "evil.example") == ""
    own = ("karat.example", "127.0.0.1", "localhost", "[::1]")
    assert link(own, "karat.example:8443") == "http://karat.example:8443"
    assert link(own, "127.0.0.1:8000", secure=True) == "https://karat.example"
    assert link(own, "karat.example:80@evil.example") == "http://karat.example"
    assert link(own[1:], "localhost:8000") == "http://localhost:8000"
    assert link(own[1:], "[::1]:8000") == "http://[::1]:8000"
    assert link(own[1:], "localhost:80@evil.example") == ""
