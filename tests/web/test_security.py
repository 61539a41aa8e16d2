"""What strangers write stays text: names, browsers, addresses, on every page of accounts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from fastapi import FastAPI
from tests.web.conftest import Browser, ClientOf, with_deep

from karat.store.sql import people

EVIL = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7*7 }}{% raw %}",
    "javascript:alert(1)",
    "</textarea></title><svg/onload=alert(1)>",
    "=HYPERLINK(1)",
)


class Seen(HTMLParser):
    """The tags of a page, and what could run in them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.runs: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what matters of a tag."""
        icon = tag == "svg" and dict(attrs).get("aria-hidden") == "true"  # of the menu
        self.tags.append("icon" if icon else tag)
        for name, value in attrs:
            said = value or ""
            if name.startswith("on") or name in {"style", "srcdoc"}:
                self.runs.append(f"{tag} {name}")
            if name in {"href", "src", "action", "formaction"} and not re.match(
                r"(/(?!/)|\?|#)", said
            ):
                self.runs.append(f"{tag} {name}={said}")
        if tag == "script" and not dict(attrs).get("src"):
            self.runs.append("script of its own")


@pytest.mark.parametrize("evil", [*EVIL[:2], *with_deep(*EVIL[2:])])
def test_nothing_a_stranger_wrote_runs(app: FastAPI, client_of: ClientOf, evil: str) -> None:
    owner = client_of("owner")
    accounts = app.state.site.accounts
    with app.state.site.workspace.store.begin() as c:
        person = people.add(c, evil, "owner", None, 1)
    accounts.start_session(person, evil)
    theirs = Browser(app, person)
    accounts.make_token(person, evil, ["read"])
    invited = accounts.invite(f"{evil} too", "rater", evil)
    sent = owner.fill(f"/people/{person.id}/new-password")
    assert sent.headers["location"] == f"/people/{person.id}"
    pages = {
        "new password": owner.get(f"/people/{person.id}"),
        "people": owner.get("/people"),
        "filtered": owner.get("/people", params={"q": evil, "role": evil, "sort": evil}),
        "person": owner.get(f"/people/{person.id}"),
        "wrong name": owner.fill("/people/invitations", name=evil, role=evil),
        "audit": owner.get("/audit"),
        "account": theirs.get("/account"),
        "invited": Browser(app).get(f"/invited/{invited.text}"),
        "sign in": Browser(app).get("/sign-in", params={"next": f"/{evil}"}),
        "wrong": Browser(app).post("/sign-in", data={"name": evil, "password": "x", "next": evil}),
        "nothing": owner.get(f"/nothing/{evil}"),
        "no file": owner.get("/static/x", params={"v": evil}),
    }
    clean = Seen(owner.get("/account").text)
    assert not clean.runs
    for name, answer in pages.items():
        assert answer.headers["content-type"].startswith("text/html"), name
        seen = Seen(answer.text)
        assert not seen.runs, (name, seen.runs)
        assert {"img", "svg", "textarea"}.isdisjoint(seen.tags), name
    assert evil not in pages["people"].text or "<" not in evil


def test_no_page_of_accounts_loads_anything_from_elsewhere(client_of: ClientOf) -> None:
    owner = client_of("owner")
    for path in ("/people", "/account", "/audit", "/nothing"):
        page = owner.get(path).text
        assert not re.search(r"""(?:src|href|action)=["'](?:https?:)?//""", page), path


def test_json_is_never_taken_for_a_page(client_of: ClientOf) -> None:
    owner = client_of("owner")
    owner.site.accounts.invite("<script>alert(1)</script>", "rater", "olga")
    answer = owner.get("/people?format=json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_secret_stands_in_a_page_or_in_its_json(client_of: ClientOf) -> None:
    owner = client_of("owner")
    assert owner.secret is not None
    for path in ("/account", "/account?format=json", "/people?format=json", "/audit?format=json"):
        text = owner.get(path).text
        assert owner.secret not in text
        assert "$argon2" not in text
        assert "sha256" not in text
