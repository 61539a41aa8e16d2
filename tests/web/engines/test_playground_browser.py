"""The playground in a real browser: keys grade the document in focus, in place."""

from __future__ import annotations

import pytest
from tests.web.conftest import PHONE, PageOf, sound


@pytest.mark.deep  # without a browser in test_playground.py
def test_variants_are_asked_and_a_document_is_graded_by_a_key(page_of: PageOf) -> None:
    with page_of("egon", "engineer", **PHONE) as page:  # narrow and dark; it may have a keyboard
        page.goto("/playground")
        page.keyboard.type("red shoes")  # the box has the focus
        page.keyboard.press("Enter")
        page.wait_for_selector("#answers li:focus[data-doc=d5]")  # the first without a grade
        sound(page)
        page.keyboard.press("2")
        page.wait_for_function("() => document.querySelector('#said').textContent.includes('d5')")
        assert "Grade 2 recorded for d5." in page.locator("#said").inner_text()
        assert page.locator(".grade.unjudged").count() == 0
        page.keyboard.press("2")
        assert "another rater" in page.locator("#said").inner_text()
        page.keyboard.press("ArrowUp")
        assert page.locator("li:focus").get_attribute("data-doc") == "d2"
        page.locator("[name=a_engine]").select_option("titles")
        page.wait_for_selector("[name=a_shown][value=titles]", state="attached")
        assert page.locator("[name=q]").input_value() == "red shoes"
        page.goto("/engines")
        sound(page)
