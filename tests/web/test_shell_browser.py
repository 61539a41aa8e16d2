"""The frame of every page, in a real browser: menus, palette, keys, tables, and pages on paper."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from tests.web.conftest import LAPTOP, LAPTOP_THEN_PHONE, PHONE, PageOf, sound

from karat.store.sql import audit


@pytest.mark.deep
@pytest.mark.parametrize("size", LAPTOP_THEN_PHONE)
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


@pytest.mark.deep
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


def test_the_palette_finds_a_run(page_of: PageOf) -> None:
    with page_of("egon", "engineer", **LAPTOP) as page:
        page.goto("/golden/shop/queries")
        page.keyboard.press("Control+k")
        field = page.get_by_role("combobox", name="Search everything")
        field.fill("old")
        page.get_by_role("option", name="old run").wait_for()
        sound(page)
        field.press("Enter")
        page.wait_for_url("**/runs/1")
        page.keyboard.press("Control+k")
        page.keyboard.press("Escape")
        assert page.locator("dialog[open]").count() == 0


@pytest.mark.deep
def test_the_keys_of_a_page_are_listed(page_of: PageOf) -> None:
    with page_of("egon", "engineer", **LAPTOP) as page:
        page.goto("/golden/shop/queries")
        page.keyboard.press("?")
        keys = page.get_by_role("dialog", name="Keys")
        assert "search the list" in keys.inner_text()
        sound(page)
        page.keyboard.press("Escape")
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.name") == "q"
        page.locator("tbody a").first.focus()
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.textContent.trim()") == "garden hose"


@pytest.mark.deep
def test_a_list_is_sorted_on_a_phone(page_of: PageOf) -> None:
    with page_of("egon", "engineer", **PHONE) as page:
        page.goto("/golden/shop/queries")
        page.get_by_label("Sort").select_option(label="Query, Z to A")
        page.wait_for_url("**sort=-text**")
        sound(page)


@pytest.mark.deep
def test_a_table_is_copied_as_markdown(page_of: PageOf) -> None:
    with page_of("egon", "engineer", **LAPTOP) as page:
        page.goto("/golden/shop/queries")
        page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
        page.get_by_role("button", name="Copy as Markdown").click()
        page.get_by_role("button", name="Copied").wait_for()
        lines = page.evaluate("window.copied").splitlines()
        assert lines[1].startswith("| ---")
        assert len(lines) == 2 + page.locator("tbody tr").count()


@pytest.mark.deep
def test_the_head_of_a_table_stays_in_view(page_of: PageOf) -> None:
    with page_of("egon", "engineer", **LAPTOP) as page:
        page.goto("/golden/shop/pairs?page=all")
        page.wait_for_selector(".scroll.fits")
        page.locator("tbody tr").nth(15).scroll_into_view_if_needed()
        page.evaluate("scrollTo(0, document.querySelectorAll('tbody tr')[12].offsetTop + 300)")
        assert page.locator("thead th").first.bounding_box()["y"] >= 0
