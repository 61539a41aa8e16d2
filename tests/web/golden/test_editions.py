"""Editions: made as the command line makes them, and compared."""

from __future__ import annotations

from dataclasses import replace
from html import unescape

import polars as pl
import pytest
from tests.choosing import deep_but
from tests.web.conftest import ClientOf

from karat.store.sql import audit
from karat.workflows.golden.editions import list_editions
from karat.workflows.golden.queries import pairs_in


def test_an_edition_is_made_once_and_noted(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    assert "It would contain 4 queries and 16 grades." in browser.get("/golden/shop/editions").text
    answer = browser.fill("/golden/shop/editions", edition=" 2026/03 ")
    assert answer.status_code == 303  # type: ignore[attr-defined]
    where = answer.headers["location"]  # type: ignore[attr-defined]
    assert where == "/golden/shop/editions/2026%2F03"
    page = browser.get(where, params={"format": "json"}).json()
    assert (page["name"], page["queries"], len(page["grades"])) == ("2026/03", 4, 16)
    made = list_editions(browser.site.opened("shop"))
    assert [(row.name, row.sha256) for row in made] == [("2026/03", page["sha256"])]
    again = browser.fill("/golden/shop/editions", edition="2026/03")
    assert again.status_code == 400  # type: ignore[attr-defined]
    said = unescape(again.text)  # type: ignore[attr-defined]
    assert "There is already an edition '2026/03'" in said
    assert "use a new name: editions never change" in said
    with browser.site.workspace.store.read() as c:
        noted = audit.frame(c).filter(pl.col("action") == "freeze edition")
    assert noted.select("person", "subject").rows() == [("egon", "2026/03")]


@pytest.mark.parametrize(
    "name",
    deep_but(
        {"", "now", "a\u202eb"}, ["", "  ", "now", "x" * 101, "..", "a\u202eb", "\u200b", "a\nb"]
    ),
)
def test_a_name_that_is_none_is_refused(client_of: ClientOf, name: str) -> None:
    browser = client_of("engineer")
    answer = browser.fill("/golden/shop/editions", edition=name)
    assert answer.status_code == 400  # type: ignore[attr-defined]
    assert not list_editions(browser.site.opened("shop"))


def test_the_policy_refuses(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    site = browser.site
    policy = replace(site.workspace.workspace, refuse=True)
    strict = replace(site, workspace=replace(site.workspace, workspace=policy))
    browser.app.state.site = strict  # type: ignore[attr-defined]
    page = browser.get("/golden/shop/editions").text
    assert "Raters do not agree enough; the policy does not allow an edition" in page
    answer = browser.fill("/golden/shop/editions", edition="first")
    assert answer.status_code == 400  # type: ignore[attr-defined]
    assert "judge more, or settle what" in answer.text  # type: ignore[attr-defined]
    assert "karat.toml" not in answer.text  # type: ignore[attr-defined]
    assert not list_editions(site.opened("shop"))


def test_what_changed_is_told(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    browser.fill("/golden/shop/editions", edition="first")
    same = browser.get("/golden/shop/changes", params={"old": "first"})
    assert "Queries and grades are the same." in same.text
    csv = "query_id,doc_id,grade,rater\nq1,d1,3,rita\nq1,d1,3,ben\nq1,d5,1,ben\n"
    browser.post(
        "/golden/shop/exchange",
        data={"csrf": browser.csrf},
        files={"file": ("more.csv", csv.encode())},
    )
    where = {"old": "first", "new": "now", "format": "json"}
    found = browser.get("/golden/shop/changes", params=where).json()
    # d1 of q1 had 0, 1 and 2, whose median is 1, and has 3, 3 and 2 now; d5 had none.
    told = {(r["query_id"], r["doc_id"], r["change"], r["old"], r["new"]) for r in found["grades"]}
    assert told == {("q1", "d1", "changed", 1, 3), ("q1", "d5", "added", None, 1)}
    text = browser.get("/golden/shop/changes", params={"old": "first"}).text
    assert "1 grade added, 0 removed, 1 changed, 15 the same." in text
    assert browser.get("/golden/shop/changes", params={"old": "frist"}).status_code == 400
    # Rows are told by names; ids stand in columns of their own.
    edition = browser.get("/golden/shop/editions/first").text
    titles = pairs_in(browser.site.opened("shop")).drop_nulls("title")["title"]
    assert titles.len()
    for shown in (edition, text):
        assert any(f"<bdi>{title}</bdi>" in shown for title in titles)
        assert "<bdi>d1</bdi>" not in shown
        assert "<bdi>q1</bdi>" not in shown


def test_there_is_no_such_edition(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    for name in ("nothing", "now"):
        assert browser.get(f"/golden/shop/editions/{name}").status_code == 404
