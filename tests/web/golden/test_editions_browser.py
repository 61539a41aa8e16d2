"""Settling, freezing and exporting in a real browser, by clicking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from tests.web.conftest import LAPTOP_THEN_PHONE, PageOf, sound

from karat.workflows.golden.editions import list_editions


@pytest.mark.deep  # without a browser in test_disagreements.py and test_editions.py
@pytest.mark.parametrize("size", LAPTOP_THEN_PHONE)
def test_people_freeze_and_export_by_clicking(
    app: FastAPI, page_of: PageOf, size: dict[str, Any]
) -> None:
    with page_of("egon", "engineer", **size) as page:
        page.goto("/golden/shop/disagreements")
        page.get_by_label("All rows on this page").check()
        sound(page, on_both=True)
        page.get_by_role("button", name="Send selected").click()
        page.get_by_text("16 pairs sent to adjudication.").wait_for()
        page.get_by_role("link", name="Editions", exact=True).click()
        page.get_by_label("Name of the edition").fill("first")
        sound(page, on_both=True)
        page.get_by_role("button", name="Freeze").click()
        page.get_by_role("heading", name="first").wait_for()
        sound(page, on_both=True)
        page.get_by_role("link", name="other formats").click()
        page.get_by_label("Format").last.select_option("trec")
        sound(page, on_both=True)
        with page.expect_download() as download:
            page.get_by_role("button", name="Download").first.click()
        lines = Path(download.value.path()).read_text("utf-8").splitlines()
        assert download.value.suggested_filename == "shop-first.qrels"
        assert len(lines) == 16
        page.goto("/golden/shop/queries")
        page.locator("tbody a").first.focus()
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.textContent.trim()") == "garden hose"
    assert [row.name for row in list_editions(app.state.site.opened("shop"))] == ["first"]
