"""The whole way in real browsers: invited, judged by two, settled, frozen, exported, compared."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl
import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from tests.web.conftest import LAPTOP, PHONE, PageOf, sound
from tests.web.judging.test_judge_browser import another, clock, kept, more_pairs, press

__all__ = ["clock"]  # a fixture

PAIRS = 20
APART = "x3"
"""The document of which the two raters think differently."""
WHY = {"nora": ("0", "it is a boot"), "timo": ("3", "a shoe after all")}
PASSWORD = "correct horse battery"
RUN = "q1 Q0 d9 1 3 next\nq1 Q0 d2 2 2 next\nq1 Q0 d1 3 1 next\n"
"""TREC: d9 was never judged."""


class Keys:
    """Somebody with a keyboard."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def grade(self, grade: str, why: str = "") -> None:
        """Judge the card."""
        if why:
            self.page.keyboard.press("e")
            self.page.keyboard.type(why)
            self.page.keyboard.press("Enter")
        press(self.page, grade)

    def undo(self) -> None:
        """Take the last one back."""
        press(self.page, "z")


class Thumbs(Keys):
    """Somebody with a telephone; quicker than people, and so never twice at one place.

    A browser takes two taps close together for a double tap, whose second the page lets fall.
    """

    def __init__(self, page: Any) -> None:
        super().__init__(page)
        self.at = itertools.cycle([30, 330])

    def grade(self, grade: str, why: str = "") -> None:
        """Judge the card."""
        if why:
            self.page.locator("[name=reason]").tap()
            self.page.keyboard.type(why)
        button = self.page.locator(f"[name=grade][value='{grade}.0']")
        another(self.page, lambda: button.tap(position={"x": next(self.at), "y": 20}))

    def undo(self) -> None:
        """Take the last one back."""
        another(self.page, self.page.locator("[name=do][value=undo]").tap)


@pytest.fixture
def queued(app: FastAPI) -> None:
    """Twenty pairs wait, each for two raters; none is asked twice."""
    more_pairs(app, PAIRS - 4)
    with app.state.site.workspace.store.begin() as c:
        c.execute(sa.text("UPDATE golden_set SET repeats = 0"))


def come_in(owner: Any, page: Any, name: str) -> None:
    """Be invited by an owner, follow the link, and choose a password."""
    owner.goto("/people")
    owner.get_by_role("textbox", name="Name").fill(name)
    owner.get_by_role("button", name="Create link").click()
    page.goto(urlsplit(owner.get_by_label(f"Link for {name}").input_value()).path)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the password").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/judge**")


def shown(page: Any) -> tuple[str, str]:
    """Query and document of the card."""
    return page.locator("#query").inner_text(), page.locator(".doc h3").inner_text()


def judge_all(hands: Keys, name: str, grades: dict[tuple[str, str], str]) -> None:
    """Judge all that waits; look back, load the page anew and go away on the way.

    Args:
        hands: Who judges.
        name: Their name.
        grades: The grade of each card; those without one get one.
    """
    page = hands.page
    for n in range(PAIRS):
        card = shown(page)
        if n in {6, 7}:
            hands.undo()
            assert shown(page) != card
            hands.grade(grades[shown(page)])
        elif n == 10:
            page.reload()
        elif n == 14:
            page.goto("/account")
            page.goto("/judge/shop")
        assert shown(page) == card
        if card[1] == APART:
            grades[card], why = WHY[name]
            hands.grade(grades[card], why)
        else:
            hands.grade(grades.setdefault(card, str(n % 4)))
    assert f"Thank you, {name}." in page.locator(".finish").inner_text()
    assert f"You judged {PAIRS} pairs." in page.locator(".finish").inner_text()
    sound(page)


def judged_by_two(
    owner: Any, pages: dict[str, Any], hands: type[Keys]
) -> dict[tuple[str, str], str]:
    """Let nora and timo judge: both the same cards, and the same but for one."""
    grades: dict[tuple[str, str], str] = {}
    for name, page in pages.items():
        come_in(owner, page, name)
        sound(page)
        judge_all(hands(page), name, grades)
        assert len(grades) == PAIRS
    return grades


def both_kept(app: FastAPI) -> None:
    """The store has what both said: of each pair once, one pair apart."""
    nora, timo = kept(app, "nora"), kept(app, "timo")
    assert nora.height == timo.height == PAIRS
    both = nora.join(timo, on=["query_id", "doc_id"], validate="1:1")
    assert both.height == PAIRS
    apart = both.filter(pl.col("grade") != pl.col("grade_right"))
    assert apart.select("doc_id", "grade", "grade_right", "reason", "reason_right").rows() == [
        (APART, 0, 3, WHY["nora"][1], WHY["timo"][1])
    ]


@pytest.mark.deep  # what telephones add to the next one is in judging/test_judge_browser.py
@pytest.mark.usefixtures("queued")
def test_two_raters_judge_with_their_thumbs(app: FastAPI, page_of: PageOf) -> None:
    with ExitStack() as stack:
        owner = stack.enter_context(page_of("olga", "owner"))
        phones = {name: stack.enter_context(page_of(None, **PHONE)) for name in WHY}
        judged_by_two(owner, phones, Thumbs)
    both_kept(app)


@pytest.mark.deep  # each step alone, and most of them in a browser, is in the tests of its page
@pytest.mark.usefixtures("queued")
def test_from_an_invitation_to_a_comparison(app: FastAPI, page_of: PageOf) -> None:
    with ExitStack() as stack:
        owner = stack.enter_context(page_of("olga", "owner"))
        laptops = {name: stack.enter_context(page_of(None, **LAPTOP)) for name in WHY}
        grades = judged_by_two(owner, laptops, Keys)
        both_kept(app)
        settle(owner)
        freeze_and_export(owner, {doc: grade for (_, doc), grade in grades.items()} | {APART: "2"})
        compare(owner)
    said = kept(app, "olga").select("kind", "query_id", "doc_id", "grade").rows()
    assert said[0] == ("adjudication", "q1", APART, 2)
    with app.state.site.workspace.store.read() as c:
        found = sa.text("SELECT rater, grade FROM judgment WHERE doc_id = 'd9'")
        assert c.execute(found).all() == [("olga", 3)]


def settle(page: Any) -> None:
    """Settle the one disagreement of nora and timo, with both reasons on screen."""
    page.goto(f"/golden/shop/disagreements?q={APART}")
    page.locator("td.pick input").check()
    page.get_by_role("button", name="Send selected").click()
    page.get_by_text("1 pair sent to adjudication.").wait_for()
    page.goto("/judge/shop/adjudicate")
    said = page.locator(".said li").all_inner_texts()
    assert len(said) == 2
    assert [WHY["nora"][1] in said[0], WHY["timo"][1] in said[1]] == [True, True]
    sound(page)
    press(page, "2")
    assert "You settled 1 disagreement." in page.locator(".finish").inner_text()


def freeze_and_export(page: Any, grades: dict[str, str]) -> None:
    """Freeze an edition, and read the file that it gives: what was judged, and what was there."""
    page.goto("/golden/shop/editions")
    page.get_by_label("Name of the edition").fill("2026-11")
    page.get_by_role("button", name="Freeze").click()
    page.get_by_role("heading", name="2026-11").wait_for()
    with page.expect_download() as download:
        page.get_by_role("link", name="TREC qrels").click()
    rows = [line.split() for line in Path(download.value.path()).read_text("utf-8").splitlines()]
    assert len(rows) == PAIRS + 16  # those of d1 to d4, which three had judged before
    found = {doc: grade for query, _, doc, grade in rows if query == "q1"}
    judged = {doc: grade for doc, grade in grades.items() if doc.startswith("x")}
    assert {doc: grade for doc, grade in found.items() if doc.startswith("x")} == judged
    assert found[APART] == "2"


def compare(page: Any) -> None:
    """Upload a run, compare it with one that is there, and judge a pair that it lacks."""
    page.goto("/runs")
    run = {"name": "next.trec", "mimeType": "text/plain", "buffer": RUN.encode()}
    page.locator("input[type=file]").set_input_files(run)
    page.get_by_role("button", name="Add the run").click()
    page.get_by_role("heading", name="next").wait_for()
    page.get_by_role("link", name="Compare").click()
    page.locator("[name=baseline][value='1']").check()
    assert page.locator("[name=candidate]:checked").count() == 1
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_role("link", name="Queries 4").click()
    page.wait_for_selector("section#queries")
    page.locator("#queries tbody a", has_text="red shoes").click()
    page.wait_for_selector("#rankings")
    assert page.locator(".grade.unjudged").count() == 1
    page.get_by_role("link", name="Grade what is not judged").click()
    page.wait_for_selector("#drawer form")
    sound(page)
    page.locator("form[data-in-place] button[value='3']").click()
    page.wait_for_function("() => document.querySelectorAll('.grade.unjudged').length === 0")
    assert "Grade 3 recorded for d9" in page.locator("#said").inner_text()
