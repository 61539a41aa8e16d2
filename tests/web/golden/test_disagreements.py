"""Disagreements: chosen ones go before an adjudicator, and who asked is noted."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.choosing import deep_but
from tests.web.conftest import NOW, Browser, ClientOf

from karat.store.sql import audit
from karat.tables.golden.golden_sets import Exchange
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.workspace.workspace import open_workspace


def asked(browser: Browser, **where: str) -> dict[tuple[str, str], str | None]:
    """Which are listed, and whether an adjudicator waits."""
    answer = browser.get("/golden/shop/disagreements", params={"format": "json", **where})
    return {(r["query_id"], r["doc_id"]): r["asked"] for r in answer.json()["found"]}


def test_the_chosen_go_before_an_adjudicator(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    assert set(asked(browser).values()) == {None}
    chosen = ['["q1", "d1"]', '["q2", "d3"]', '["q9", "d9"]']  # the last is none, and left out
    answer = browser.fill("/golden/shop/disagreements", pair=chosen)
    assert "2 pairs sent to adjudication." in answer.text  # type: ignore[attr-defined]
    waits = {key for key, state in asked(browser).items() if state == "waits"}
    assert waits == {("q1", "d1"), ("q2", "d3")}
    again = browser.fill("/golden/shop/disagreements", pair=chosen)
    assert "These pairs were already sent to adjudication." in again.text  # type: ignore[attr-defined]
    browser.fill("/golden/shop/disagreements", every="true")
    assert set(asked(browser).values()) == {"waits"}
    with browser.site.workspace.store.read() as c:
        noted = audit.frame(c).filter(pl.col("action") == "ask adjudicator")
    assert noted["person"].to_list() == ["egon", "egon"]
    assert noted["about"].to_list() == ["pairs 14, between raters", "pairs 2, between raters"]


def test_an_unknown_kind_of_disagreement_is_refused(client_of: ClientOf) -> None:
    answer = client_of("engineer").get("/golden/shop/disagreements?between=imports")
    assert answer.status_code == 400
    assert "Did you mean import?" in answer.text


def test_what_was_sent_is_not_offered_again(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    where = "/golden/shop/disagreements"
    page = browser.get(where).text
    total = page.count('name="pair"')
    assert f"Send all {total}<" in page
    page = browser.fill(where, pair=['["q1", "d1"]', '["q2", "d3"]']).text  # type: ignore[attr-defined]
    for shown in (page, browser.get(where).text):
        assert shown.count('name="pair"') == total - 2, "the two have no box"
        assert f"2 of {total} are sent to adjudication." in shown
        assert f"Send all {total - 2} that are not sent yet" in shown
        assert 'href="/judge/shop/adjudicate">Settle them' in shown
    page = browser.fill(where, every="true").text  # type: ignore[attr-defined]
    assert f"{total - 2} pairs sent to adjudication." in page
    for shown in (page, browser.get(where).text):
        assert f"All {total} are sent to adjudication." in shown
        assert 'name="pair"' not in shown
        assert "Send all" not in shown


@pytest.mark.parametrize(
    "pair",
    deep_but(
        {"", '["q1"]', "[" * 9999}, ["", "[]", '["q1"]', "[1, 2]", "{}", "null", "[" * 9999, '"ab"']
    ),
)
def test_what_is_no_pair_is_refused(client_of: ClientOf, pair: str) -> None:
    browser = client_of("engineer")
    answer = browser.fill("/golden/shop/disagreements", pair=[pair])
    assert answer.status_code == 400  # type: ignore[attr-defined]
    assert set(asked(browser).values()) == {None}


def test_none_chosen_is_said(client_of: ClientOf) -> None:
    answer = client_of("engineer").fill("/golden/shop/disagreements")
    assert answer.status_code == 400  # type: ignore[attr-defined]
    assert "No pair is selected" in answer.text  # type: ignore[attr-defined]


def test_imported_grades_stand_apart(client_of: ClientOf, workspace: Path) -> None:
    facts = pl.DataFrame(
        {
            "query_id": ["q1", "q1"],
            "doc_id": ["d5", "d5"],
            "rater": [None, "ben"],
            "grade": [3.0, 0.0],
            "reason": [None, "off the subject"],
        }
    )
    with open_workspace(workspace, now=NOW, environment={}) as opened:
        import_exchange(opened, Exchange("csv", judgments=facts), file="x", sha256="", now=NOW)
    browser = client_of("engineer")
    assert asked(browser, between="import") == {("q1", "d5"): None}
    assert ("q1", "d5") not in asked(browser)
    text = browser.get("/golden/shop/disagreements", params={"between": "import"}).text
    assert "ben: off the subject" in text
    browser.fill("/golden/shop/disagreements", every="true", between="import")
    assert asked(browser, between="import") == {("q1", "d5"): "waits"}
