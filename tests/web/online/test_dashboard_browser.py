"""Online metrics in a real browser: no script of a stranger, nothing serious for axe, one click."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.event_stores import keep_events
from tests.web.conftest import LAPTOP, PHONE, PageOf, sound
from tests.web.online_log import put_users

pytest.importorskip("vl_convert")
# A build looks at one walk in Chromium: the numbers, addresses and forms of the others are in the
# tests of each page, and what a phone adds to a list is in the shell's.
SIZES = [pytest.param(LAPTOP, id="laptop"), pytest.param(PHONE, id="phone", marks=pytest.mark.deep)]
EVIL = "<img src=x onerror=document.title='taken'>"


def put(workspace: Path) -> None:
    put_users(workspace, simulated=True, shop=EVIL)
    search = {"user_id": EVIL, "time_us": 1_799_920_000_000_000, "kind": "search", "query": EVIL}
    more = {"query_id": "s", "returned": 0, "total_hits": 0, "status": "ok", "arm": "a"}
    types = {"returned": pl.Int32, "total_hits": pl.Int64}
    keep_events(workspace / "events", pl.DataFrame([search | more], schema_overrides=types))


def opened(page: Any, where: str) -> None:
    """Go to a page, and wait until its numbers are there."""
    page.goto(where)
    page.wait_for_selector("main:not(:has([data-waits]))")


@pytest.mark.parametrize("size", SIZES)
def test_from_a_figure_to_its_rows(page_of: PageOf, workspace: Path, size: dict[str, Any]) -> None:
    put(workspace)
    with page_of("egon", "engineer", **size) as page:
        opened(page, "/online?metrics=CTR,ZeroResults&by=arm")
        untaken(page)
        assert page.get_by_text("simulated", exact=True).is_visible()
        assert page.locator("figure svg:visible").count() == 2
        page.get_by_role("link", name="83.3 %").first.click()
        page.wait_for_url("**/online/rows?**")
        page.wait_for_selector("#rows")
        assert "60 in all" in page.locator("#rows").inner_text()
        untaken(page)
        page.get_by_role("link", name="not counted").click()
        page.wait_for_selector("#rows >> text=12 in all")
        opened(page, "/online?by=shop&metrics=CTR")
        untaken(page)


@pytest.mark.deep
@pytest.mark.parametrize("size", SIZES)
def test_worst_queries_and_both_worlds(
    page_of: PageOf, workspace: Path, size: dict[str, Any]
) -> None:
    put(workspace)
    with page_of("egon", "engineer", **size) as page:
        opened(page, "/online/queries")
        untaken(page)
        page.get_by_role("checkbox", name=EVIL).check()
        page.get_by_role("button", name="Add the selected queries").click()
        page.wait_for_selector("[role=status] >> text=1 query was added to the golden set")
        untaken(page)
        opened(page, "/online/against?run=old")
        assert page.locator("figure svg:visible").count() == 1
        untaken(page)


_BROKEN = r"""cells => cells.flatMap(cell => {
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
  for (let text; (text = texts.nextNode());)
    for (const word of text.data.matchAll(/\p{L}+/gu)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(box => box.top)).size > 1) broken.push(word[0]);
    }
  return broken;
})"""


@pytest.mark.deep
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_no_column_is_narrower_than_its_words(
    page_of: PageOf, workspace: Path, size: dict[str, Any]
) -> None:
    put_users(workspace, query_class="ambiguously_reformulated", shop="neighbourhood")
    with page_of("egon", "engineer", **size) as page:
        for where in (
            "/online?by=query_class",
            "/online/queries?by=query_class",
            "/online/rows?slice=query%3Dgarden+hose",
            "/online/against?run=old",
        ):
            opened(page, where)
            cells = page.locator("tbody :is(th, td)")
            assert cells.count() > 9, where
            assert cells.evaluate_all(_BROKEN) == [], where
            if size is PHONE and where.startswith("/online?"):
                # The name of a slice is no text of the page: beside its number it needs the width.
                widths = "cells => cells.map(cell => cell.getBoundingClientRect().width)"
                assert min(page.locator(".headlines td").evaluate_all(widths)) > 300
            if size is LAPTOP and "rows" in where:
                box = page.locator("#rows tbody th").first.bounding_box()
                assert box is not None
                assert box["width"] >= 11 * 16


@pytest.mark.deep
def test_a_long_word_breaks_and_widens_no_page(page_of: PageOf, workspace: Path) -> None:
    put_users(workspace, shop="x" * 4_000)
    with page_of("egon", "engineer", **PHONE) as page:
        for where in ("/online/rows", "/online?by=shop", "/online/queries?by=shop"):
            opened(page, where)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, where


@pytest.mark.deep
def test_a_step_of_a_chart_leads_to_its_rows(page_of: PageOf, workspace: Path) -> None:
    put(workspace)
    with page_of("egon", "engineer") as page:
        opened(page, "/online?metrics=CTR")
        page.locator("figure .wide a.mark").nth(2).click()
        page.wait_for_selector("#rows")
        assert page.locator("input[name=from]").first.input_value() == "2027-01-12"
        opened(page, "/online")
        page.get_by_text("Other metrics").click()
        page.get_by_role("checkbox", name="ErrorRate").check()
        page.get_by_role("button", name="Show these").click()
        page.wait_for_url("**metrics=**ErrorRate**")


@pytest.mark.deep
def test_it_works_without_scripts(page_of: PageOf, workspace: Path) -> None:
    put(workspace)
    with page_of("egon", "engineer", **LAPTOP, java_script_enabled=False) as page:
        page.goto("/online?metrics=CTR")
        page.wait_for_selector("#headlines", timeout=60_000)  # the page refreshes itself
        page.get_by_label("Slice by").select_option("arm")
        page.get_by_role("button", name="Show", exact=True).click()
        page.wait_for_selector("text=83.3 %", timeout=60_000)


def untaken(page: Any) -> None:
    """Nobody took the page over, and it shuts nobody out."""
    assert page.title() != "taken"
    assert page.locator("main img").count() == 0
    sound(page)
