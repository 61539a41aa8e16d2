"""Pages of people and accounts in a real browser: long names, phones, second clicks, axe."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from tests.web.conftest import LAPTOP, PHONE, PageOf, sound

from karat.store.sql import people

LONG = "W" * 90
ARABIC = "عبد الرحمن بن عوف"


@pytest.fixture
def peopled(app: FastAPI) -> FastAPI:
    """Somebody with a long name, of each kind, with what their pages show."""
    site = app.state.site
    with site.workspace.store.begin() as c:
        owner = people.add(c, LONG, "owner", None, site.clock())
        people.add(c, "\N{WATERMELON}" * 90, "rater", None, site.clock())
        people.add(c, ARABIC, "engineer", None, site.clock())
    site.accounts.invite(f"{LONG[:89]}x", "rater", LONG)
    site.accounts.make_token(owner, LONG, ["read", "admin"])
    return app


@pytest.mark.deep  # as test_every_page_browser.py
@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        pytest.param(LAPTOP, "light", id="laptop-light"),
        # ``sound`` looks at a telephone's width and at dark colours in the one above.
        pytest.param(PHONE, "dark", id="phone-dark", marks=pytest.mark.deep),
        pytest.param(LAPTOP, "dark", id="laptop-dark", marks=pytest.mark.deep),
        pytest.param(PHONE, "light", id="phone-light", marks=pytest.mark.deep),
    ],
)
def test_every_page_fits_and_shuts_nobody_out(
    page_of: PageOf, peopled: FastAPI, size: dict[str, Any], scheme: str, *, deep: bool
) -> None:
    site = peopled.state.site
    number = site.accounts.by_name(LONG).id
    other = site.accounts.by_name(ARABIC).id
    link = site.accounts.invite(f"{LONG[:89]}y", "engineer", LONG).text
    look = size | {"color_scheme": scheme}
    with page_of(LONG, "owner", **look) as page:
        alike = (  # in its parts like the next one
            f"/people/{other}",
            "/people?sort=nosuch&page=99&state=shut",
            f"/people/{number}",
            "/account",
            "/audit",
            "/people/999999",
        )
        for path in (*(alike if deep else ()), "/people"):
            page.goto(path)
            sound(page, on_both=True)
        page.locator(".account summary").click()
        sound(page, on_both=True)
    with page_of(None, **look) as page:
        for path in (*(("/sign-in", "/invited/none") if deep else ()), f"/invited/{link}"):
            page.goto(path)
            sound(page, on_both=True)


@pytest.mark.deep
def test_the_menu_shows_where_one_is_on_a_phone(page_of: PageOf) -> None:
    with page_of("olga", "owner", **PHONE) as page:
        for path in ("/", "/comparisons", "/trends"):
            page.goto(path)
            place = page.locator(".bar [aria-current]").bounding_box()
            assert place["x"] >= 0
            assert place["x"] + place["width"] <= page.viewport_size["width"]


@pytest.mark.deep  # without a browser in accounts/test_people.py
def test_two_clicks_make_one_and_a_reload_makes_none(page_of: PageOf, app: FastAPI) -> None:
    site = app.state.site
    with page_of("olga", "owner", **LAPTOP) as page:
        page.goto("/people")
        page.get_by_label("Name", exact=True).fill("dora")
        page.get_by_role("button", name="Create link").dblclick()
        page.wait_for_selector(".once")
        link = page.get_by_label("Link for dora").input_value()
        sound(page)
        page.reload()
        assert page.locator(".once").count() == 0
        # Without a script nothing holds the second one back: the server makes one all the same.
        page.goto("/people")
        page.get_by_label("Name", exact=True).fill("emil")
        page.evaluate("form => { form.submit(); form.submit(); }", _form(page))
        page.wait_for_selector(".once")
    found = site.accounts.invitations()
    assert [each.name for each in found] == ["emil", "dora"]
    assert site.accounts.invitation(link.rpartition("/")[2]) is not None
    assert [row["action"] for row in site.accounts.done().to_dicts()].count("invite") == 2


def _form(page: Any) -> Any:
    return page.locator("form[action$='/people/invitations']").element_handle()
