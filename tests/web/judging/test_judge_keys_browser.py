"""Keys that judge, and keys that do not: layouts, shifts, quick fingers, and what covers a card."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from tests.web.conftest import ClientOf, PageOf
from tests.web.judging.test_judge_browser import clock, kept, moved_on, press, ticket

__all__ = ["clock"]  # a fixture


def key(page: Any, name: str, code: str, **more: bool) -> None:
    """Press a key of another layout."""
    page.evaluate(
        "about => document.body.dispatchEvent("
        "new KeyboardEvent('keydown', {bubbles: true, cancelable: true, ...about}))",
        {"key": name, "code": code, **more},
    )


def stays(page: Any, app: FastAPI, before: str, count: int) -> None:
    """Nothing was sent."""
    page.wait_for_timeout(150)
    assert ticket(page) == before
    assert kept(app, "nora").height == count


NO_ANSWERS: list[tuple[str, str, dict[str, bool]]] = [
    ("!", "Digit1", {"shiftKey": True}),  # Shift+1 on a US layout
    ("}", "Digit0", {"modifierAltGraph": True}),  # AltGr+0 on a German one
    ("3", "Digit3", {"modifierAltGraph": True}),
    ("1", "Digit1", {"altKey": True}),
    ("1", "Digit1", {"repeat": True}),
    ("1", "Digit1", {"isComposing": True}),
    ("Dead", "Digit2", {}),
    ("End", "Numpad1", {"shiftKey": True}),
    ("L", "KeyL", {"shiftKey": True}),
    ("Д", "KeyL", {"shiftKey": True}),
]


@pytest.mark.deep
def test_what_is_no_answer_gives_none(app: FastAPI, page_of: PageOf) -> None:
    with page_of("nora") as page:
        page.goto("/judge/shop")
        before = ticket(page)
        sent: list[str] = []
        page.on("request", lambda request: sent.append(request.method))
        for name, code, more in NO_ANSWERS:
            key(page, name, code, **more)
            page.wait_for_timeout(20)
            assert sent == [], (name, code, more)
        page.keyboard.press("Shift+Digit1")  # as a real keyboard does it
        stays(page, app, before, 0)


@pytest.mark.deep
def test_a_digit_counts_by_what_it_says_or_where_the_row_has_none(
    app: FastAPI, page_of: PageOf
) -> None:
    keys = [
        ("2", "Digit2", {}, 2),
        ("3", "Digit3", {"shiftKey": True}, 3),  # AZERTY, with Shift
        ("&", "Digit1", {}, 1),  # and without
        ("1", "Numpad1", {}, 1),
    ]
    with page_of("nora") as page:
        page.goto("/judge/shop")
        for name, code, more, _ in keys:
            before = ticket(page)
            key(page, name, code, **more)
            page.wait_for_function(
                "old => document.querySelector('[name=ticket]')?.value !== old", arg=before
            )
        assert kept(app, "nora")["grade"].to_list() == [each[3] for each in keys]


@pytest.mark.deep
def test_a_second_press_or_click_is_not_for_the_next_card(app: FastAPI, page_of: PageOf) -> None:
    with page_of("nora", pause="400") as page:
        page.goto("/judge/shop")
        first = ticket(page)
        page.keyboard.press("2")
        moved_on(page, first)
        second = ticket(page)
        page.keyboard.press("2")
        page.locator("[name=grade]").nth(1).click()
        page.keyboard.press("l")
        stays(page, app, second, 1)
        page.wait_for_timeout(400)
        page.keyboard.press("3")
        moved_on(page, second)
        assert kept(app, "nora")["grade"].to_list() == [2, 3]


def test_the_pause_is_three_tenths_of_a_second(client_of: ClientOf) -> None:
    page = client_of("rater").get("/judge/shop").text
    assert '<div id="judging" data-pause="300">' in page


@pytest.mark.deep
@pytest.mark.parametrize("sheet", ["g", pytest.param("?", marks=pytest.mark.deep)])
def test_a_card_that_is_covered_is_not_judged(app: FastAPI, page_of: PageOf, sheet: str) -> None:
    with page_of("nora") as page:
        page.goto("/judge/shop")
        before = ticket(page)
        page.keyboard.press(sheet)
        page.locator(".sheet[open]").wait_for()
        for each in "13lz":
            page.keyboard.press(each)
        stays(page, app, before, 0)
        page.keyboard.press("Escape")
        press(page, "3")
        assert kept(app, "nora")["grade"].to_list() == [3]


@pytest.mark.deep  # without a browser in test_judge_answers.py
def test_a_second_tab_says_that_it_corrects(app: FastAPI, page_of: PageOf) -> None:
    with page_of("nora") as page:
        page.goto("/judge/shop")
        other = page.context.new_page()
        other.goto("/judge/shop")
        press(page, "0")
        press(other, "3")
        assert other.locator(".note").inner_text() == "The previous pair was corrected from 0."
        told = other.locator("#status").inner_text()
        assert "The previous pair was corrected from 0." in told
        assert "Saved" not in told
        assert kept(app, "nora")["grade"].to_list() == [3]
