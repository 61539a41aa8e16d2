"""Judging in a real browser: by keyboard and thumb, through reloads and broken lines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import polars as pl
import pytest
from fastapi import FastAPI
from tests.web.conftest import LAPTOP, PHONE, PageOf, sound

from karat.store.sql import judgments, queue
from karat.tables import Pairs
from karat.workflows.golden.pooling import enqueue

SIZES = pytest.mark.parametrize(
    "size",
    [
        # A phone has less room for the same.
        pytest.param(LAPTOP, id="laptop", marks=pytest.mark.deep),
        pytest.param(PHONE, id="phone"),
    ],
)


@pytest.fixture
def clock() -> Callable[[], int]:
    """The time of this machine: how long a rater took is part of what is kept."""
    return lambda: time.time_ns() // 1000


def more_pairs(app: FastAPI, count: int) -> None:
    """Pairs that wait, of one query."""
    site = app.state.site
    docs = [f"x{n}" for n in range(count)]
    frame = pl.DataFrame({"query_id": ["q1"] * count, "doc_id": docs})
    enqueue(site.opened("shop"), Pairs(frame, "pool"), now=site.clock())


def kept(app: FastAPI, rater: str) -> pl.DataFrame:
    """What counts of a rater's, oldest first, what was imported left out."""
    with app.state.site.workspace.store.read() as c:
        frame = judgments.current(c, 1).frame
    own = frame.filter(pl.col("rater") == rater, pl.col("seconds").is_not_null())
    return own.sort("judgment")


def ticket(page: Any) -> str:
    found: str = page.locator("#answer input[name=ticket]").input_value()
    return found


def moved_on(page: Any, before: str) -> None:
    """Wait until another card shows than that of a ticket."""
    page.locator(f"[name=ticket]:not([value='{before}'])").wait_for(state="attached")


def another(page: Any, act: Callable[[], object]) -> None:
    """Do what leads to another card or to the finish, and wait for that."""
    old = page.evaluate("document.querySelector('#answer').outerHTML")
    act()
    page.wait_for_function(
        "old => { const form = document.querySelector('#answer');"
        " return form && form.outerHTML !== old && !document.querySelector('[aria-busy]') }",
        arg=old,
    )


def press(page: Any, *keys: str) -> None:
    """Press keys, the last of which leads to another card or to the finish."""
    another(page, lambda: [page.keyboard.press(each) for each in keys])


def test_twenty_pairs_by_keyboard_with_undo_and_reload(app: FastAPI, page_of: PageOf) -> None:
    more_pairs(app, 30)
    with page_of("nora") as page:
        page.goto("/judge")
        assert page.url.endswith("/judge/shop")
        for n in range(20):
            if n == 7:
                press(page, "u", "3")
            elif n == 8:
                page.keyboard.press("e")
                page.keyboard.type("u2 zl: not a key in here")
                page.keyboard.press("Escape")
                press(page, "2")
            else:
                press(page, str(n % 4))
        said = kept(app, "nora")
        assert said.height == 20
        assert said["state"].to_list().count("cannot_judge") == 1
        assert said["reason"][7] == "language"
        assert said["reason"][8] == "u2 zl: not a key in here"
        assert said["grade"].to_list()[:7] == [0, 1, 2, 3, 0, 1, 2]
        assert "20 judged, 14 left" in page.locator("#far").inner_text()
        assert "about a minute" in page.locator("#far").inner_text()

        title = page.locator(".doc h3").inner_text()
        page.reload()
        assert page.locator(".doc h3").inner_text() == title

        for _ in range(3):
            press(page, "z")
        assert kept(app, "nora").height == 17
        assert page.locator(".note").inner_text().startswith("Undone: 1.")
        assert page.locator("#status").inner_text().count("Undone") == 1, "it is announced once"
        for key in "333":
            press(page, key)
        assert kept(app, "nora")["grade"].to_list()[-3:] == [3, 3, 3]
        assert page.locator(".doc h3").inner_text() == title  # where it stopped
        press(page, "l")
        assert kept(app, "nora").height == 20


@pytest.mark.deep  # as test_every_page_browser.py
@SIZES
def test_the_screens_fit_and_shut_nobody_out(page_of: PageOf, size: dict[str, Any]) -> None:
    with page_of("nora", "engineer", **size) as page:
        for path in ("/judge/shop", "/judge/shop/table", "/judge/shop/adjudicate"):
            page.goto(path)
            sound(page)
        page.goto("/judge/shop")
        for key, sheet in (("?", "#help"), ("g", "#guideline"), ("u", "#cannot")):
            page.keyboard.press(key)
            assert page.locator(f"{sheet}[open]").count() == 1
            sound(page)
            page.keyboard.press("Escape")
            assert page.locator(f"{sheet}[open]").count() == 0
        small = page.evaluate(
            "[...document.querySelectorAll('#answer button, #cannot summary')]"
            ".filter(b => b.offsetParent && b.getBoundingClientRect().height < 44).length"
        )
        assert small == 0
        bottom = page.locator(".grades").bounding_box()
        assert bottom["y"] + bottom["height"] <= size["viewport"]["height"]
        for _ in range(4):
            press(page, "1")
        assert "Thank you, nora." in page.locator(".finish").inner_text()
        sound(page)


@pytest.mark.deep  # the same form as by keys
def test_a_thumb_judges_too(app: FastAPI, page_of: PageOf) -> None:
    with page_of("nora", **PHONE) as page:
        page.goto("/judge/shop")
        first = ticket(page)
        page.locator("[name=grade][value='3.0']").tap()
        moved_on(page, first)
        page.locator("#cannot summary").tap()
        page.locator("[name=cannot][value=other]").tap()
        assert "Write the reason" in page.locator("#failed").inner_text()
        page.keyboard.type("blurred")
        press(page, "Enter")
        assert kept(app, "nora").select("grade", "reason").rows() == [
            (3.0, None),
            (None, "other: blurred"),
        ]


@pytest.mark.deep  # forms without a script are what test_judge_answers.py sends
def test_without_a_script_forms_do_it(app: FastAPI, page_of: PageOf) -> None:
    with page_of("nora", java_script_enabled=False) as page:
        page.goto("/judge/shop")
        for grade in ("2.0", "0.0"):
            page.locator(f"[name=grade][value='{grade}']").click()
        page.locator("#cannot summary").click()
        page.locator("[name=cannot][value=query_unclear]").click()
        page.locator("[name=do][value=undo]").click()
        assert "Undone" in page.locator(".note").inner_text()
        assert kept(app, "nora")["grade"].to_list() == [2.0, 0.0]


@pytest.mark.deep  # sent twice: test_judge_answers.py
def test_an_answer_that_did_not_arrive_is_sent_again_and_counts_once(
    app: FastAPI, page_of: PageOf
) -> None:
    with page_of("nora") as page:
        page.goto("/judge/shop")
        card = ticket(page)
        page.route("**/judge/shop", lambda route: route.abort())
        page.keyboard.press("2")
        page.locator("#again").wait_for()
        assert "kept on this page" in page.locator("#failed").inner_text()
        page.keyboard.press("3")  # one answer at a time: this one is not it
        assert ticket(page) == card
        assert kept(app, "nora").is_empty()

        def lose(route: Any) -> None:
            route.fetch()  # the server answers, and nobody hears it
            route.abort()

        page.unroute("**/judge/shop")
        page.route("**/judge/shop", lose)
        page.keyboard.press("Enter")
        page.locator("[aria-busy]").wait_for(state="detached")
        page.locator("#again").wait_for()
        assert ticket(page) == card
        page.unroute("**/judge/shop")
        press(page, "Enter")
        assert kept(app, "nora")["grade"].to_list() == [2.0]

        page.context.set_offline(True)
        page.keyboard.press("1")
        page.locator("#again").wait_for()
        assert "You are offline" in page.locator("#failed").inner_text()
        card = ticket(page)
        page.context.set_offline(False)  # it is sent by itself
        moved_on(page, card)
        assert kept(app, "nora")["grade"].to_list() == [2.0, 1.0]


@pytest.mark.deep  # test_what_is_no_answer_gives_none has a key that repeats
def test_a_held_key_judges_one_pair(app: FastAPI, page_of: PageOf) -> None:
    with page_of("nora") as page:
        page.goto("/judge/shop")
        before = ticket(page)
        page.keyboard.down("2")
        moved_on(page, before)
        second = ticket(page)
        for _ in range(5):
            page.keyboard.down("2")  # it is still down: these repeat
            page.wait_for_timeout(30)
        page.keyboard.up("2")
        assert ticket(page) == second
        assert kept(app, "nora").height == 1


@pytest.mark.deep
def test_hidden_time_is_not_counted(app: FastAPI, page_of: PageOf) -> None:
    with page_of("nora", clocked=True) as page:
        page.goto("/judge/shop")
        hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
        tell = "document.dispatchEvent(new Event('visibilitychange'))"
        page.evaluate(hide % "true" + tell)
        page.clock.run_for(60_000)
        page.evaluate(hide % "false" + tell)
        page.clock.run_for(7_000)
        with page.expect_request("**/judge/shop") as sent:
            page.keyboard.press("1")
        # As the browser has it; by the server's clock, which nobody put forward, no second is over.
        assert 7 <= float(parse_qs(sent.value.post_data)["seconds"][0]) < 12
        page.locator("[aria-busy]").wait_for(state="detached")
    assert kept(app, "nora")["seconds"][0] < 5


@pytest.mark.deep  # without a browser in test_judge.py
def test_two_disagree_and_a_third_settles(app: FastAPI, page_of: PageOf) -> None:
    for name, grade, why in (("ben", "0", "it is a boot"), ("cleo", "3", "a shoe after all")):
        with page_of(name) as page:
            page.goto("/judge/shop")
            for _ in range(4):
                page.keyboard.press("e")
                page.keyboard.type(why)
                page.keyboard.press("Enter")
                press(page, grade)
    apart = pl.DataFrame({"query_id": ["q1"], "doc_id": ["d5"]})
    with app.state.site.workspace.store.begin() as c:
        queue.open_adjudications(c, 1, apart, app.state.site.clock())
    with page_of("olga", "owner") as page:
        page.goto("/judge/shop/adjudicate")
        votes = page.locator(".said li").all_inner_texts()
        assert ["boot" in votes[0], "shoe after all" in votes[1]] == [True, True]
        assert not {"ben", "cleo"} & set(page.locator("body").inner_text().split())
        sound(page)
        press(page, "3")
        assert "You settled 1 disagreement." in page.locator(".finish").inner_text()
        press(page, "z")
        press(page, "2")
    settled = kept(app, "olga")
    assert settled.select("kind", "grade").rows() == [("adjudication", 2.0)]


@pytest.mark.deep  # without a browser in test_table.py
def test_rows_of_a_table_are_graded(app: FastAPI, page_of: PageOf) -> None:
    with page_of("egon", "engineer") as page:
        page.goto("/judge/shop/table?q=hat")
        page.locator("td.pick input").first.check()
        page.get_by_role("button", name="1 Related").click()
        assert "graded" in page.locator(".note").inner_text()
        assert page.url.endswith("/judge/shop/table?q=hat")
        with app.state.site.workspace.store.read() as c:
            own = judgments.current(c, 1).frame.filter(rater="egon")
        assert set(own["grade"]) == {1.0}
