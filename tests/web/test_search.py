"""Search for golden sets, runs, comparisons, queries and pages; the page about the API."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.conftest import Browser, ClientOf


def hits(browser: Browser, words: str) -> list[tuple[str, str, str]]:
    found: Any = browser.get(f"/search?q={words}&golden=shop&format=json").json()
    return [(hit["kind"], hit["name"], hit["where"]) for hit in found["hits"]]


@pytest.fixture
def engineer(client_of: ClientOf) -> Browser:
    return client_of("engineer")


def test_objects_and_pages_are_found(engineer: Browser) -> None:
    assert ("golden set", "shop", "/golden/shop") in hits(engineer, "sho")
    assert hits(engineer, "OLD") == [("run", "old", "/runs/1")]
    assert ("page", "Agreement", "/golden/shop/agreement") in hits(engineer, "golden agree")
    assert ("page", "Offline vs online", "/online/against") in hits(engineer, "vs")
    queries = [hit for hit in hits(engineer, "q1") if hit[0] == "query"]
    assert queries == [("query", queries[0][1], "/golden/shop/queries/q1")]
    assert hits(engineer, "nothing-has-this") == []


def test_without_words_it_says_where_one_can_go(engineer: Browser) -> None:
    kinds = {kind for kind, *_ in hits(engineer, "")}
    assert kinds == {"golden set", "run", "page"}, "queries are too many to list"
    assert "Import and export" in engineer.get("/search").text


def test_raters_do_not_search(client_of: ClientOf) -> None:
    assert client_of("rater").get("/search?q=old").status_code == 403
    assert client_of("rater").get("/api").status_code == 403


def test_the_api_has_a_page(engineer: Browser) -> None:
    page = engineer.get("/api").text
    assert "GET /api/runs" in page
    assert 'href="/api/openapi.json"' in page
