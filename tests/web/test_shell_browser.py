"""What stands around every page, in a real browser: the account menu, and pages on paper."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from tests.web.conftest import LAPTOP, PHONE, PageOf, sound

from karat.store.sql import audit


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_the_account_menu_closes(page_of: PageOf, size: dict[str, Any]) -> None:
    with page_of("olga", "owner", **size) as page:
        page.goto("/people")
        menu, button = page.locator("details.account"), page.locator(".account summary")
        button.click()
        page.get_by_role("link", name="Account").focus()
        page.keyboard.press("Escape")
        assert menu.get_attribute("open") is None
        assert page.evaluate("document.activeElement.matches('.account summary')")
        button.click()
        page.get_by_role("heading", name="People").click()
        assert menu.get_attribute("open") is None
        button.click()
        page.get_by_label("Name", exact=True).focus()
        assert menu.get_attribute("open") is None
        button.click()
        page.get_by_role("link", name="Account").click()
        page.get_by_role("heading", name="Account").wait_for()


def test_a_list_is_printed_whole_or_says_what_it_lacks(page_of: PageOf, app: FastAPI) -> None:
    site = app.state.site
    with site.workspace.store.begin() as c:
        for number in range(80):
            audit.note(c, "olga", "look", f"page {number}", site.clock())
    with page_of("olga", "owner", **LAPTOP) as page:
        page.goto("/audit")
        assert page.locator(".printed").is_hidden()
        page.emulate_media(media="print")
        for hidden in (".bar", "form.filters", "nav.pages", ".count .ways"):
            assert page.locator(hidden).first.is_hidden(), hidden
        lacks = page.locator(".printed")
        assert lacks.is_visible()
        assert "Page 1 of 2: 50 rows of 80." in lacks.inner_text()
        page.emulate_media(media="screen")
        page.get_by_role("link", name="All 80 on one page").click()
        page.wait_for_url("**page=all")
        assert page.locator("main tbody tr").count() == 80
        sound(page)
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 660, "height": 900})  # A4 without its margins
        assert page.locator("main tbody tr").last.is_visible()
        assert page.locator("main thead").is_visible(), "a table, and not cards"
        assert page.locator(".printed").count() == 0
