"""Comparing and judging in a real browser: on a desk and on a telephone, no other host asked."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from tests.web.conftest import LAPTOP, PHONE, ClientOf, PageOf, sound

pytest.importorskip("vl_convert")


# On a phone it is the same walk; `narrow` measures its widths on a laptop too.
@pytest.mark.parametrize(
    "size",
    [pytest.param(LAPTOP, id="laptop"), pytest.param(PHONE, id="phone", marks=pytest.mark.deep)],
)
def test_two_runs_are_compared_and_a_missing_grade_is_given(
    page_of: PageOf, size: dict[str, Any], *, deep: bool
) -> None:
    """A build has axe look at the comparison, and at a query that was judged."""
    with page_of("egon", "engineer", **size) as page:
        page.goto("/runs")
        if deep:
            sound(page)
        page.get_by_role("link", name="Compare runs").click()
        if deep:
            sound(page)
        page.get_by_role("button", name="Compare", exact=True).click()
        page.wait_for_selector("#measures")
        sound(page)
        narrow(page)
        page.goto(f"{page.url}#queries")  # an address of before there were tabs
        page.wait_for_selector("section#queries")
        listed(page)
        page.locator("#queries tbody a", has_text="red shoes").click()
        page.wait_for_selector("#rankings")
        if deep:
            sound(page)
        narrow(page)
        for key, back in (("j", "k"), ("k", "j")):  # to the next query, or the previous one
            if page.locator(f"a[rel={'next' if key == 'j' else 'prev'}]").count():
                here = page.url
                page.keyboard.press(key)
                page.wait_for_url(lambda url, here=here: url != here)
                page.wait_for_selector("#rankings")
                page.keyboard.press(back)
                page.wait_for_url(here)
                break
        assert page.locator(".grade.unjudged").count() == 2  # d5, in both rankings
        read(page)
        assert page.locator(".grade.unjudged").count() == 0
        assert "/queries/q1" in page.url
        assert "1 judgment was given since" in page.locator("#rankings").inner_text()
        sound(page)
        page.locator("#drawer a.close").click()
        page.wait_for_selector("#drawer[hidden]", state="attached")
        page.get_by_role("button", name="Recompute").click()
        page.wait_for_selector("#measures")
        assert "given since" not in page.locator("main").inner_text()


@pytest.mark.deep  # a race
def test_the_last_list_that_was_asked_for_is_shown(page_of: PageOf, client_of: ClientOf) -> None:
    client_of("engineer").fill("/comparisons/new", baseline=1, candidate=[2], measure=["nDCG@3"])
    with page_of("egon", "engineer") as page:
        late: list[Any] = []
        page.goto("/comparisons/1?view=queries")
        page.wait_for_selector("section#queries")
        page.route("**outcome=worse**", lambda route: late.append(route))  # noqa: PLW0108 - it marks what it calls
        page.evaluate("window.stayed = true")
        page.locator("#queries .pills a", has_text="worse").click()
        page.locator("#queries .pills a", has_text="better").click()
        chosen = page.locator("#queries .pills a[aria-current]", has_text="better")
        chosen.wait_for()
        assert len(late) == 1
        with suppress(Exception):  # the browser gave it up already, if all is well
            late[0].continue_()
        page.wait_for_timeout(200)
        assert chosen.count() == 1
        assert "outcome=better" in page.url
        assert page.evaluate("window.stayed") is True
        taken = page.evaluate(
            """() => ["altKey", "ctrlKey", "metaKey", "shiftKey"].map((key) => {
              let taken;
              addEventListener("click", (event) => {
                taken = event.defaultPrevented;
                event.preventDefault();
              }, { once: true });
              const how = { [key]: true, bubbles: true, cancelable: true };
              const link = document.querySelector("#queries .pills a");
              link.dispatchEvent(new MouseEvent("click", how));
              return taken;
            })"""
        )
        assert taken == [False] * 4


def narrow(page: Any) -> None:
    """On a screen of a phone's width nothing is wider than it."""
    before = page.viewport_size
    page.set_viewport_size(PHONE["viewport"])
    width = PHONE["viewport"]["width"]
    page.wait_for_function(f"() => innerWidth === {width}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size(before)


def read(page: Any) -> None:
    """Open documents beside the rankings, by a click and by keys, and grade what lacks a grade."""
    page.evaluate("window.stayed = true")
    page.locator("#rankings a.opens", has_text="Document d1").first.click()
    drawer = page.locator("#drawer")
    drawer.get_by_text("What d1 says of shoes").wait_for()
    assert page.evaluate("document.activeElement.id") == "drawer-head"
    over = drawer.bounding_box()
    if page.viewport_size["width"] < 700:  # it covers the page
        assert (over["x"], over["width"]) == (0, page.viewport_size["width"])
    else:
        assert over["x"] > page.locator("#rankings").bounding_box()["width"]
    page.keyboard.press("Escape")
    page.wait_for_selector("#drawer[hidden]", state="attached")
    assert page.evaluate("document.activeElement.textContent") == "Document d1"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    drawer.get_by_text("What d2 says of shoes").wait_for()
    page.keyboard.press("n")
    drawer.get_by_text("What d5 says of shoes").wait_for()
    page.keyboard.press("?")
    keys = page.locator("dialog[open]").inner_text()
    for words in ("open the document", "grade the open document", "close the document"):
        assert words in keys
    page.keyboard.press("Escape")
    page.keyboard.press("3")
    page.wait_for_function("() => document.querySelectorAll('.grade.unjudged').length === 0")
    page.locator("#said", has_text="Grade 3 recorded for d5").wait_for()
    assert "Your grade: 3" in drawer.inner_text()
    page.go_back()
    drawer.get_by_text("What d2 says of shoes").wait_for()
    page.go_forward()
    drawer.get_by_text("What d5 says of shoes").wait_for()
    assert page.evaluate("window.stayed") is True


def listed(page: Any) -> None:
    """Filter the list in place: by a link, by the form, and back."""
    every = page.locator("#queries tbody tr").count()
    page.evaluate("window.stayed = true")
    page.locator("#queries .pills a", has_text="worse").click()
    page.wait_for_url("**outcome=worse**")
    worse = page.locator("#queries tbody tr").count()
    assert page.locator("#queries .pills a[aria-current]", has_text=f"worse {worse}").count() == 1
    page.go_back()
    page.locator("#queries .pills a[aria-current]", has_text=f"all {every}").wait_for()
    page.wait_for_function(
        f"() => document.querySelectorAll('#queries tbody tr').length === {every}"
    )
    page.locator("#queries input[type=search]").fill("shoes")
    page.locator("#queries input[type=search]").press("Enter")
    page.wait_for_function("() => document.querySelectorAll('#queries tbody tr').length === 1")
    assert page.evaluate("window.stayed") is True
