"""Queries: filtered by what they are, and one with what each rater said of its documents."""

from __future__ import annotations

import gzip
import re
import secrets
from html import unescape
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.web.conftest import NOW, Browser, ClientOf, with_deep

from karat.formats.tables.query_log import Most
from karat.store.sql import audit
from karat.tables.golden.golden_sets import Exchange
from karat.web.golden import queries
from karat.workflows.golden import sampling
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.workspace.workspace import open_workspace


def test_queries_come_with_their_counts(client_of: ClientOf) -> None:
    answer = client_of("engineer").get("/golden/shop/queries", params={"format": "json"})
    first = answer.json()["queries"][0]
    # 5 documents, of which 4 were judged by three people; the last waits for two judgments.
    assert first["text"] == "red shoes"
    assert (first["documents"], first["graded"], first["judgments"]) == (5, 4, 12)
    assert (first["waiting"], first["editions"], first["words"]) == (2, 0, "2")


def test_queries_are_filtered_by_any_attribute(client_of: ClientOf, workspace: Path) -> None:
    given = {"query_id": ["q1", "q2"], "text": ["red shoes", "garden hose"]}
    odd = {"season": ["summer", "winter"], "q": ["x", "y"], "judgments": [1, 2], "of": [[1], [2]]}
    found = Exchange("csv", queries=pl.DataFrame(given | odd))
    with open_workspace(workspace, now=NOW, environment={}) as opened:
        import_exchange(opened, found, file="more.csv", sha256="", now=NOW)
    browser = client_of("engineer")

    def ids(**where: str) -> list[str]:
        answer = browser.get("/golden/shop/queries", params={"format": "json", **where})
        return [row["query_id"] for row in answer.json()["queries"]]

    assert ids(season="summer") == ["q1"]
    assert ids(season="none") == ["q3", "q4"]
    # Attributes called as a list's own words, or its counts, stand under other names.
    assert ids(**{"attribute q": "y"}) == ["q2"]
    assert ids(**{"attribute judgments": ">=2"}) == ["q2"]
    assert ids(judgments="12") == ["q1", "q2", "q3", "q4"]
    assert ids(q="HOSE") == ["q2"]


def test_a_query_has_every_raters_grade(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    answer = browser.get("/golden/shop/queries/q1")
    assert answer.status_code == 200
    # Pair 0 got grades 0, 1 and 2 of rita, ben and cleo (the workspace's rule: i + j modulo 4).
    assert "ben 1, cleo 2, rita 0" in answer.text
    assert "/golden/shop/pair?query=q1&amp;document=d1" in answer.text
    rows = browser.get("/golden/shop/queries/q1", params={"format": "json"}).json()["documents"]
    assert {row["doc_id"]: row["waiting"] for row in rows}["d5"] == 2


def test_ids_are_any_text(client_of: ClientOf, workspace: Path) -> None:
    odd = "a/b ?#%é"
    found = Exchange("csv", queries=pl.DataFrame({"query_id": [odd], "text": ["odd one"]}))
    with open_workspace(workspace, now=NOW, environment={}) as opened:
        import_exchange(opened, found, file="odd.csv", sha256="", now=NOW)
    browser = client_of("engineer")
    where = "/golden/shop/queries/a%2Fb%20%3F%23%25%C3%A9"
    assert where in browser.get("/golden/shop/queries").text
    assert "odd one" in browser.get(where).text
    assert browser.get("/golden/shop/queries/q11").status_code == 404


LOG = b"query,count\nred shoes,50\nblue door,30\nann@example.org,15\ncap,5\n"


def planned(browser: Browser, data: bytes = LOG, **fields: str) -> Any:
    """Send a log, as the form does."""
    return browser.post(
        "/golden/shop/queries",
        data={"csrf": browser.csrf, "size": "4", **fields},
        files={"log": ("C:\\\\march.csv", data)},
    )


def put(browser: Browser, page: Any, **fields: str) -> Any:
    """Put in what a page shows, as its form does."""
    sealed = re.findall('name="sample" value="(.*?)"', page.text)
    return browser.fill("/golden/shop/chosen", sample=sealed or "x", **fields)


def texts(browser: Browser) -> set[str]:
    """The queries of the golden set."""
    found = browser.get("/golden/shop/queries", params={"format": "json"}).json()["queries"]
    return {row["text"] for row in found}


def test_queries_are_chosen_from_a_log_after_a_look(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    before = texts(browser)
    page = planned(browser)
    said = unescape(page.text).replace("<bdi>", "").replace("</bdi>", "")
    assert page.status_code == 200, said
    assert (
        "4 queries of march.csv: 3 new, 1 already in the golden set. Nothing is saved yet." in said
    )
    assert "The log has 100 searches of 4 queries" in said
    assert "1 query with email" in said
    assert "Raters would see it" in said
    assert texts(browser) == before
    # Before, all queries count alike; the three judged ones that no log counted would not.
    assert "3 judged queries are not in this sample" in said
    refused = put(browser, page)
    assert refused.status_code == 400
    assert "file of queries with weights" in refused.text
    assert texts(browser) == before
    done = put(browser, page, replace="true")
    assert "3 queries added, 1 unchanged, 0 removed" in done.text
    assert texts(browser) == before | {"blue door", "ann@example.org", "cap"}
    with browser.site.workspace.store.read() as c:
        noted = audit.frame(c).filter(pl.col("action") == "choose queries")
    assert noted.select("person", "subject").rows() == [("egon", "shop")]


def test_a_look_as_json_holds_the_sample_and_not_the_whole_log(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    found = browser.post(
        "/golden/shop/queries?format=json",
        data={"csrf": browser.csrf, "size": "4"},
        files={"log": ("march.csv", LOG + b"scarf,4\n")},
    )
    assert found.status_code == 200
    chosen = {each["text"] for each in found.json()["queries"]}
    (other,) = {"red shoes", "blue door", "ann@example.org", "cap", "scarf"} - chosen
    assert other not in found.text
    assert "sealed" not in found.json()


def test_what_is_personal_is_replaced_if_that_is_asked(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    page = planned(browser, mask="true")
    assert "ann@example.org" not in page.text
    assert put(browser, page, replace="true").status_code == 200
    assert not any("example.org" in text for text in texts(browser))


@pytest.mark.deep
def test_most_of_a_sample_goes_only_if_that_is_said(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    put(browser, planned(browser), replace="true")
    other = planned(browser, b"query,count\ngrey wall,3\ngreen roof,2\n", size="2")
    assert "not in the log any more" in other.text
    refused = put(browser, other)
    assert refused.status_code == 400
    assert "--" not in "".join(re.findall("Fix: <code>(.*?)</code>", refused.text))
    assert "blue door" in texts(browser)
    assert put(browser, other, replace="true").status_code == 200
    assert {"grey wall", "green roof"} <= texts(browser)
    assert "blue door" not in texts(browser)


@pytest.mark.parametrize(
    ("data", "fields", "says"),
    [
        (b"", {}, "empty"),
        (b"a,b\nx,y\nz,w\n", {}, "no column of queries"),
        (b"\x89PNG\x00\x00", {}, "binary"),
        (LOG, {"size": "many"}, "is not a number of queries"),
        (LOG, {"bands": "head"}, "has no '='"),
        *with_deep(
            (LOG, {"size": "9999"}, "is not a number of queries"),
            (LOG, {"bands": "head=x"}, "is not a share"),
            (LOG, {"quotas": "class=name"}, "has no number"),
            (LOG, {"quotas": "class=name:2"}, "no attribute 'class'"),
            (LOG, {"text": "words"}, "no column 'words'"),
        ),
    ],
)
def test_what_cannot_be_chosen_is_said_with_what_the_form_can_do(
    client_of: ClientOf, data: bytes, fields: dict[str, str], says: str
) -> None:
    browser = client_of("engineer")
    before = texts(browser)
    page = planned(browser, data, **fields)
    text = unescape(page.text)
    assert page.status_code == 400, text
    assert says.casefold() in text.casefold()
    helps = "".join(re.findall("Fix: <code>(.*?)</code>", text))
    assert not re.search("--[a-z]|karat |iconv", helps)
    assert "karat-" not in text  # where it lay is nobody's to know
    assert texts(browser) == before


@pytest.mark.deep  # a large sample
def test_a_long_sample_comes_back_whole_or_is_refused_when_it_is_looked_at(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = client_of("engineer")
    monkeypatch.setattr(queries, "_FIELD", 100)
    page = planned(browser)
    assert len(re.findall('name="sample"', page.text)) > 5
    assert put(browser, page, replace="true").status_code == 200
    assert "blue door" in texts(browser)
    monkeypatch.setattr(queries, "_MOST_HELD", 100)
    page = planned(browser)
    assert page.status_code == 400
    assert "too large for a page" in page.text


@pytest.mark.deep  # a large log
def test_more_than_a_form_field_holds_is_put_in(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    texts_of = [secrets.token_hex(3_000) for _ in range(300)]  # 900 kB of chance, 1.6 MB sealed
    log = "query,count\n" + "".join(f"{text},1\n" for text in texts_of)
    page = planned(browser, log.encode(), size="300")
    assert page.status_code == 200
    assert put(browser, page, replace="true").status_code == 200
    assert set(texts_of) <= texts(browser)


@pytest.mark.parametrize("size", [Most(50, 100), Most(1 << 20, 3)])
def test_a_log_is_as_large_as_it_is_unpacked(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch, size: Most
) -> None:
    browser = client_of("engineer")
    monkeypatch.setattr(sampling, "ON_SERVER", size)
    packed = gzip.compress(b"query,count\n" + b"red shoes,1\n" * 50)
    assert len(packed) < 60
    parquet = BytesIO()
    pl.DataFrame({"query": ["red shoes", "blue door"] * 50}).write_parquet(parquet)
    for log in (packed, parquet.getvalue(), gzip.compress(parquet.getvalue())):
        page = planned(browser, log)
        assert page.status_code == 400
        assert "log has more than" in page.text
    where = "/api/golden/shop/choose?name=march.csv.gz"
    found = browser.post(where, content=packed, headers={"x-csrf": browser.csrf})
    assert found.status_code == 400
    assert "log has more than" in found.text


def test_a_sample_that_was_not_shown_is_not_put_in(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    before = texts(browser)
    for sealed in ("", "x", "x" * 400):
        answer: Any = browser.fill("/golden/shop/chosen", sample=sealed)
        assert answer.status_code == 400
    shown = planned(browser)
    assert put(client_of("owner"), shown).status_code == 400  # it was shown to another
    assert texts(browser) == before
