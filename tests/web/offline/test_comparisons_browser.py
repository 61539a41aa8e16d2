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
        page.wait_for_selector("#queries")
        sound(page)
        narrow(page)
        listed(page)
        page.locator("#queries tbody a", has_text="red shoes").click()
        page.wait_for_selector("#rankings")
        if deep:
            sound(page)
        narrow(page)
        lacking = page.locator(".grade.unjudged").count()
        assert lacking == 2  # d5, in both rankings
        page.locator("details.judge summary").first.click()
        assert "What d5 says of shoes" in page.locator("details.judge").first.inner_text()
        page.locator("form[data-in-place] button[value='3']").first.click()
        page.wait_for_function("() => document.querySelectorAll('.grade.unjudged').length === 0")
        assert "/queries/q1" in page.url
        assert "Grade 3 recorded for d5" in page.locator("#said").inner_text()
        assert "1 judgment was given since" in page.locator("#rankings").inner_text()
        sound(page)
        page.get_by_role("button", name="Recompute").click()
        page.wait_for_selector("#queries")
        assert "given since" not in page.locator("main").inner_text()


@pytest.mark.deep  # a race
def test_the_last_list_that_was_asked_for_is_shown(page_of: PageOf, client_of: ClientOf) -> None:
    client_of("engineer").fill("/comparisons/new", baseline=1, candidate=[2], measure=["nDCG@3"])
    with page_of("egon", "engineer") as page:
        late: list[Any] = []
        page.goto("/comparisons/1")
        page.wait_for_selector("#queries")
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
