"""Judging over HTTP: what is kept, what a lost answer costs, and what nobody may see or run."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from fastapi import FastAPI
from tests.web.conftest import with_deep

from karat.store.sql import documents, golden_sets, judgments, queries, queue
from karat.store.sql.opening import Store
from karat.tables import Pairs
from karat.workflows.golden.pooling import enqueue
from karat.workflows.workspace.workspace import Workspace

WHERE = "/judge/shop"
PART = {"x-part": "1", "accept": "application/json"}


@pytest.fixture
def rita(client_of: Any) -> Any:
    return client_of("rater")


@pytest.fixture
def opened(app: FastAPI) -> Workspace:
    found: Workspace = app.state.site.opened("shop")
    return found


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of the answer's form, without those that wait for a script."""
    form = page[page.index('id="answer"') :]
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form)
    return {name: unescape(value) for name, value in found}


def query_on(page: str) -> str:
    found = re.search(r'<h2 id="query"[^>]*>(.*?)</h2>', page, re.DOTALL)
    assert found is not None
    return unescape(found[1])


def said(store: Store) -> pl.DataFrame:
    """What rita said in the queue and counts, oldest first."""
    with store.read() as c:
        frame = judgments.current(c, 1).frame
    return frame.filter(rater="rita", doc_id="d5").sort("judgment")


def test_a_judgment_is_in_the_store_when_the_answer_comes(
    rita: Any, opened: Workspace, clock: Any
) -> None:
    page = rita.get(WHERE).text
    assert query_on(page) in {"red shoes", "garden hose", "tall ladder", "wool hat"}
    clock.pass_by(9)
    fields = hidden(page) | {"grade": "2", "reason": " a  hat ", "seconds": "6.5"}
    answer = rita.post(WHERE, data=fields, headers=PART)
    assert answer.status_code == 200
    assert "<html" not in answer.text
    assert "1 judged, 3 left" in answer.text
    assert query_on(answer.text) != query_on(page)
    row = said(opened.store).row(0, named=True)
    assert (row["grade"], row["reason"], row["seconds"]) == (2.0, "a hat", 6.5)
    assert row["guideline"] == "1"
    assert row["document_hash"] is not None


def test_without_a_script_a_form_leads_to_the_next_card(rita: Any, opened: Workspace) -> None:
    page = rita.get(WHERE).text
    answer = rita.fill(WHERE, **hidden(page), grade="0")
    assert (answer.status_code, answer.headers["location"]) == (303, "/judge/shop")
    assert said(opened.store)["grade"].to_list() == [0.0]
    assert query_on(rita.get(WHERE).text) != query_on(page)


def test_sent_twice_is_one_judgment(rita: Any, opened: Workspace) -> None:
    fields = hidden(rita.get(WHERE).text) | {"grade": "1"}
    first = rita.post(WHERE, data=fields, headers=PART)
    again = rita.post(WHERE, data=fields, headers=PART)
    assert query_on(first.text) == query_on(again.text)
    # A lost answer that is sent again says what was said first.
    rita.post(WHERE, data=fields | {"grade": "3"}, headers=PART)
    assert said(opened.store)["grade"].to_list() == [1.0]


def test_a_reload_shows_the_same_card(rita: Any) -> None:
    pages = [rita.get(WHERE).text for _ in range(2)]
    assert query_on(pages[0]) == query_on(pages[1])
    first, again = map(hidden, pages)
    assert first["ticket"] != again["ticket"]
    assert first["ticket"] != again["ticket"]


def test_undo_goes_back_to_the_first_and_an_undo_sent_twice_is_one(
    rita: Any, opened: Workspace, clock: Any
) -> None:
    seen = []
    page = rita.get(WHERE).text
    for grade in "012":
        seen.append(query_on(page))
        clock.pass_by(5)
        page = rita.post(
            WHERE, data=hidden(page) | {"grade": grade, "reason": grade}, headers=PART
        ).text
    undo = hidden(page) | {"do": "undo"}
    page = rita.post(WHERE, data=undo, headers=PART).text
    assert query_on(page) == seen[2]
    assert "Undone: 2" in page
    assert ">2</textarea>" in page  # its reason, to be kept
    rita.post(WHERE, data=undo, headers=PART)  # the browser did not see the answer
    assert said(opened.store)["grade"].to_list() == [0.0, 1.0]
    for query in seen[1::-1]:
        page = rita.post(WHERE, data=hidden(page) | {"do": "undo"}, headers=PART).text
        assert query_on(page) == query
    assert said(opened.store).is_empty()
    assert "disabled" in page
    nothing = rita.post(WHERE, data=hidden(page) | {"do": "undo", "newest": ""}, headers=PART)
    assert "nothing to undo" in nothing.text


def test_cannot_judge_wants_a_reason_that_is_known(rita: Any, opened: Workspace) -> None:
    fields = hidden(rita.get(WHERE).text)
    for wrong in (
        {"cannot": "tired"},
        {"cannot": "other"},
        {},
        {"cannot": "language", "grade": "1"},
    ):
        refused = rita.post(WHERE, data=fields | wrong, headers=PART)
        assert refused.status_code == 400
        assert refused.json()["error"]["message"]
    wordless = rita.fill(WHERE, **fields, cannot="other")
    assert wordless.headers["location"] == "/judge/shop?note=words"
    assert "“Another reason” needs a comment" in rita.get("/judge/shop?note=words").text
    page = rita.post(WHERE, data=fields | {"cannot": "other", "reason": "torn"}, headers=PART).text
    rita.post(WHERE, data=hidden(page) | {"cannot": "language"}, headers=PART)
    found = said(opened.store)
    assert found["state"].to_list() == ["cannot_judge"] * 2
    assert found["reason"].to_list() == ["other: torn", "language"]


@pytest.mark.parametrize("grade", ["9", "nan", "x", *with_deep("-1", "0.5", "inf", "1e999")])
def test_a_grade_that_there_is_not_is_refused(rita: Any, opened: Workspace, grade: str) -> None:
    fields = hidden(rita.get(WHERE).text) | {"grade": grade}
    refused = rita.post(WHERE, data=fields, headers=PART)
    assert refused.status_code == 400
    assert said(opened.store).is_empty()


@pytest.mark.parametrize(
    "wrong",
    [
        {"ticket": ""},
        {"do": "delete"},
        *with_deep({"ticket": "x"}, {"ticket": "x" * 5000}, {"newest": "x"}),
    ],
)
def test_a_form_that_is_none_is_refused(rita: Any, wrong: dict[str, str]) -> None:
    fields = hidden(rita.get(WHERE).text) | {"grade": "1"} | wrong
    assert rita.post(WHERE, data=fields, headers=PART).status_code == 400


def test_later_comes_later(rita: Any, opened: Workspace, clock: Any) -> None:
    page = rita.get(WHERE).text
    snooze, fields = query_on(page), hidden(page) | {"do": "later"}
    page = rita.post(WHERE, data=fields, headers=PART).text
    assert rita.post(WHERE, data=fields, headers=PART).status_code == 200  # sent twice
    for _ in range(3):
        assert query_on(page) != snooze
        page = rita.post(WHERE, data=hidden(page) | {"grade": "1"}, headers=PART).text
    assert "You judged 3 pairs" in page
    assert "1 that you put off returns" in page
    clock.pass_by(3601)
    assert query_on(rita.get(WHERE).text) == snooze


def test_a_lost_lease_is_said_and_the_next_card_shows(
    rita: Any, client_of: Any, opened: Workspace, clock: Any
) -> None:
    page = rita.get(WHERE).text
    fields = hidden(page) | {"grade": "3"}
    clock.pass_by(601)
    for role in ("engineer", "owner"):  # both places are somebody's now
        other = client_of(role)
        theirs = other.get(WHERE).text
        while query_on(theirs) != query_on(page):
            theirs = other.post(WHERE, data=hidden(theirs) | {"grade": "1"}, headers=PART).text
        other.post(WHERE, data=hidden(theirs) | {"grade": "1"}, headers=PART)
    lost = rita.post(WHERE, data=fields, headers=PART)
    assert lost.status_code == 409
    assert "another rater has it now" in lost.text
    form = rita.fill(WHERE, **fields)
    assert form.headers["location"] == "/judge/shop?note=lost"
    assert said(opened.store).is_empty()


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("", 9.0), ("4.2", 4.2), ("9999", 9.0), *with_deep(("-1", 9.0), ("nan", 9.0), ("x", 9.0))],
)
def test_the_time_is_the_server_s_unless_the_browser_s_can_be(
    rita: Any, opened: Workspace, clock: Any, sent: str, kept: float
) -> None:
    fields = hidden(rita.get(WHERE).text) | {"grade": "1", "seconds": sent}
    clock.pass_by(9)
    rita.post(WHERE, data=fields, headers=PART)
    assert said(opened.store)["seconds"].to_list() == [kept]


def test_the_pace_and_the_finish_are_told(rita: Any, opened: Workspace, clock: Any) -> None:
    more = pl.DataFrame({"query_id": ["q1"] * 6, "doc_id": [f"x{n}" for n in range(6)]})
    enqueue(opened, Pairs(more, "pool"), now=clock())
    page = rita.get(WHERE).text
    for _ in range(6):
        clock.pass_by(20)
        page = rita.post(WHERE, data=hidden(page) | {"grade": "1"}, headers=PART).text
    assert "6 judged, 4 left, about a minute" in page  # 4 x 20 s
    for _ in range(4):
        clock.pass_by(20)
        page = rita.post(WHERE, data=hidden(page) | {"grade": "1"}, headers=PART).text
    assert "Thank you, rita." in page
    assert "You judged 10 pairs" in page
    assert "Median time: 20 seconds" in page
    assert "Thank you" in rita.get(WHERE).text
    assert 'value="undo"' in page


def test_nothing_tells_who_or_what_kind(rita: Any, clock: Any) -> None:
    text = rita.get(f"{WHERE}?format=json").text
    held = json.loads(text)
    assert set(held["card"]) == {
        *("query", "need", "title", "body", "rest", "more", "image", "link", "address"),
        *("votes", "ticket"),
    }
    page = rita.get(WHERE).text
    for word in ("cleo", "egon", "repeat", "priority", "chosen_by"):
        assert word not in text + page
    assert "/golden/shop" not in page  # a rater has no way back
    assert "Comparisons" not in page[page.index("<main") :]


EVIL = '"><script>document.title="taken"</script><img src=x onerror=alert(1)>'


def test_what_strangers_wrote_stays_text(client_of: Any, opened: Workspace, clock: Any) -> None:
    with opened.store.begin() as c:
        asked = pl.DataFrame({"query_id": ["q1"], "text": [f"shoes {EVIL}"], "need": [EVIL]})
        queries.put(c, 1, asked, clock())
        text = [f"shoes {EVIL}", "x" * 20_000 + EVIL]
        for doc_id, body in zip(("d5", "d4"), text, strict=True):
            row = {
                "doc_id": [doc_id],
                "title": [EVIL],
                "text": [body],
                "url": ["javascript:alert(1)"],
            }
            documents.put(c, 1, pl.DataFrame(row), clock())
    rita, egon = client_of("rater"), client_of("engineer")
    pages = []
    page = rita.get(WHERE).text
    while 'name="grade"' in page:
        fields = hidden(page) | {"grade": "0", "reason": EVIL}
        pages.append(page)
        page = rita.post(WHERE, data=fields, headers=PART).text
    pages.append(rita.post(WHERE, data=hidden(page) | {"do": "undo"}, headers=PART).text)
    pages.extend(
        egon.get(path).text for path in (f"{WHERE}/table", "/judge", f"{WHERE}?note={EVIL}")
    )
    assert any("taken" in page for page in pages)
    for page in pages:
        assert "<script>document" not in page
        assert "<img" not in page
        assert "onerror=alert" not in page.replace("onerror=alert(1)&gt;", "")
        assert not re.search(r'(href|src|action)="\s*javascript:', page, re.IGNORECASE)


def test_a_golden_set_that_there_is_not(rita: Any) -> None:
    for path in ("/judge/shoo", "/judge/shoo/adjudicate"):
        assert rita.get(path).status_code == 404
    assert "shop" in rita.get("/judge/shoo").text  # the nearest


def test_one_golden_set_is_gone_to_and_a_second_is_chosen(
    rita: Any, opened: Workspace, clock: Any
) -> None:
    straight = rita.get("/judge", follow_redirects=False)
    assert (straight.status_code, straight.headers["location"]) == (303, "/judge/shop")
    with opened.store.begin() as c:
        made = {"scale": (0, 1), "grades": {}, "salt": "s", "guideline": "", "now": clock()}
        golden_sets.make(c, "a & b", **made)
    page = rita.get("/judge").text
    assert "a &amp; b" in page
    assert 'href="/judge/a%20%26%20b"' in page
    assert "0 judged, 4 left" in page
    assert rita.get("/judge/a%20%26%20b").status_code == 200


def test_an_adjudicator_sees_reasons_and_no_names(
    client_of: Any, opened: Workspace, clock: Any
) -> None:
    rita, egon, olga = (client_of(role) for role in ("rater", "engineer", "owner"))
    for who, grade, why in ((rita, "0", "a boot"), (egon, "3", "a shoe after all")):
        page = who.get(WHERE).text
        for _ in range(4):
            page = who.post(
                WHERE, data=hidden(page) | {"grade": grade, "reason": why}, headers=PART
            ).text
    apart = pl.DataFrame({"query_id": ["q1"], "doc_id": ["d5"]})
    with opened.store.begin() as c:
        queue.open_adjudications(c, 1, apart, clock())
    for who in (rita, egon):
        assert "Nothing to settle" in who.get(f"{WHERE}/adjudicate").text
    page = olga.get(f"{WHERE}/adjudicate").text
    assert "a boot" in page
    assert "a shoe after all" in page
    assert page.index("a boot") < page.index("a shoe after all")  # the lowest grade first
    assert "rita" not in page
    assert "egon" not in page
    fields = hidden(page) | {"grade": "3", "reason": "shoes are shoes"}
    olga.post(f"{WHERE}/adjudicate", data=fields, headers=PART)
    with opened.store.read() as c:
        frame = judgments.current(c, 1).frame
    settled = frame.filter(pl.col("kind") == "adjudication")
    assert settled.select("rater", "grade").rows() == [("olga", 3.0)]


def test_nobody_judges_without_a_session_or_from_another_page(
    stranger: Any, rita: Any, workspace: Path
) -> None:
    assert stranger.get(WHERE, follow_redirects=False).headers["location"].startswith("/sign-in")
    assert stranger.post(WHERE, data={"grade": "1"}, headers=PART).status_code == 401
    fields = hidden(rita.get(WHERE).text) | {"grade": "1", "csrf": "0" * 64}
    assert rita.post(WHERE, data=fields, headers=PART).status_code == 403
    assert rita.get(f"{WHERE}/table").status_code == 403
