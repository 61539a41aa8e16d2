"""The judging table: own grades for many pairs, and what is refused row by row."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import polars as pl
import pytest
from fastapi import FastAPI
from tests.web.conftest import with_deep

from karat.store.sql import documents, judgments, pairs, queue
from karat.store.sql.documents import digest
from karat.tables import Pairs
from karat.workflows.golden.pooling import enqueue
from karat.workflows.judging.in_place import rate_pairs
from karat.workflows.judging.queue import Judging
from karat.workflows.workspace.workspace import Workspace

WHERE = "/judge/shop/table"
PAIRS = [f"q{n}" for n in range(1, 5)]


@pytest.fixture
def opened(app: FastAPI) -> Workspace:
    found: Workspace = app.state.site.opened("shop")
    return found


@pytest.fixture
def egon(client_of: Any) -> Any:
    return client_of("engineer")


NOT_KNOWN = {"none": None, "x3": None}
D5 = digest("Document d5", "What d5 says of shoes, hoses and hats.", None)


def pair(query_id: str, doc_id: str = "d5", guideline: str = "1") -> str:
    """What the box before a row says: the pair, and what is shown of it."""
    return json.dumps([query_id, doc_id, NOT_KNOWN.get(doc_id, D5), guideline])


def grades(opened: Workspace, rater: str = "egon") -> dict[tuple[str, str], float]:
    with opened.store.read() as c:
        frame = judgments.current(c, opened.golden.id).frame
    own = frame.filter(rater=rater, doc_id="d5")
    return {(q, d): g for q, d, g in own.select("query_id", "doc_id", "grade").iter_rows()}


def test_chosen_rows_get_a_grade_as_one_s_own(egon: Any, opened: Workspace) -> None:
    page = egon.get(WHERE).text
    assert page.count('type="checkbox"') == 4
    done = egon.fill(WHERE, pair=[pair("q1"), pair("q3"), pair("q3")], grade="2", reason="alike")
    assert done.status_code == 200
    assert "2 graded." in done.text
    assert grades(opened) == {("q1", "d5"): 2.0, ("q3", "d5"): 2.0}
    found = egon.get(f"{WHERE}?format=json&yours=2").json()["found"]
    assert [row["query_id"] for row in found] == ["q1", "q3"]
    again = egon.fill(WHERE, pair=[pair("q1")], grade="0")  # corrects
    assert "1 graded." in again.text
    assert grades(opened)["q1", "d5"] == 0.0


def test_a_form_that_is_sent_twice_records_each_grade_once(egon: Any, opened: Workspace) -> None:
    form = {"pair": [pair("q1"), pair("q2")], "grade": "2"}
    for _ in range(2):
        assert "2 graded." in egon.fill(WHERE, **form, once="drawn by the page").text
    with opened.store.read() as c:
        history = judgments.history(c, opened.golden.id, "q1", "d5")
    assert history.filter(rater="egon").height == 1
    assert "2 graded." in egon.fill(WHERE, **form, once="another").text  # given again
    with opened.store.read() as c:
        history = judgments.history(c, opened.golden.id, "q1", "d5")
    assert history.filter(rater="egon").height == 2


def test_a_correction_after_others_rated_says_what_stays(
    egon: Any, opened: Workspace, clock: Any
) -> None:
    assert (
        "correct"
        not in egon.fill(WHERE, pair=[pair("q1"), pair("q2")], grade="2")
        .text.split('role="status"')[1]
        .split("</div>")[0]
    )
    rate_pairs(opened, "ann", [("q1", "d5")], 0, now=clock())
    told = egon.fill(WHERE, pair=[pair("q1"), pair("q2")], grade="0").text
    assert "1 of them corrects a rating" in told
    assert grades(opened)["q1", "d5"] == 0.0


def test_what_is_not_theirs_is_refused_row_by_row(egon: Any, opened: Workspace, clock: Any) -> None:
    for name in ("ann", "ben"):  # both places of q1, and both of q2 for a while
        assert rate_pairs(opened, name, [("q1", "d5")], 1, now=clock())[0].judgment is not None
        with opened.store.begin() as c:
            queue.claim_pair(c, opened.golden.id, name, "q2", "d5", now=clock())
    chosen = [*map(pair, PAIRS), pair("q1", "none")]
    answer = egon.fill(WHERE, pair=chosen, grade="3")
    assert answer.status_code == 200
    assert "2 graded, 3 not" in answer.text
    for what in ("as many ratings as it may have", "another rater has it", "not in the queue"):
        assert answer.text.count(what) == 1
    assert "<bdi>red shoes: Document d5</bdi>: it has as many" in answer.text
    assert grades(opened) == {("q3", "d5"): 3.0, ("q4", "d5"): 3.0}
    clock.pass_by(601)  # the leases end
    assert "1 graded." in egon.fill(WHERE, pair=[pair("q2")], grade="0").text


def test_gold_items_are_not_pointed_at(egon: Any, opened: Workspace, clock: Any) -> None:
    gold = pl.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "gold_grade": [3.0]})
    with opened.store.begin() as c:
        pairs.put(c, opened.golden.id, gold, 0, clock())
    assert len(egon.get(f"{WHERE}?format=json").json()["found"]) == 4


def test_nobody_else_s_grades_are_shown(egon: Any, opened: Workspace, clock: Any) -> None:
    desk = Judging(opened, "ann", clock)
    card = desk.card()
    assert card is not None
    desk.submit(card, 3, "secretly fine")
    found = egon.get(f"{WHERE}?format=json").json()["found"]
    assert [row["yours"] for row in found] == [None] * 4
    assert "secretly" not in egon.get(WHERE).text


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"grade": "2"}, "no row is selected"),
        ({"grade": "7", "pair": pair("q1")}, "not on the scale"),
        ({"pair": pair("q1")}, "grade"),
        ({"grade": "1", "pair": "x"}, "a selected row is invalid"),
        ({"grade": "1", "pair": '["q1"]'}, "a selected row is invalid"),
        ({"grade": "1", "pair": '["q1\\u0000", "d5", null, "1"]'}, "a selected row is invalid"),
        *with_deep(
            ({"grade": "1", "pair": "7"}, "a selected row is invalid"),
            ({"grade": "1", "pair": "[" * 200_000}, "a selected row is invalid"),
            ({"grade": "1", "pair": '["\\ud800", "d5", null, "1"]'}, "a selected row is invalid"),
            ({"grade": "1", "pair": '["q1", "d5", "\\udfff", "1"]'}, "a selected row is invalid"),
            ({"grade": "1", "pair": '[["q1"], "d5", null, "1"]'}, "a selected row is invalid"),
            ({"grade": "1", "pair": '["q1", "d5", null, null]'}, "a selected row is invalid"),
            ({"grade": "1", "pair": '["q1", "d5"]'}, "a selected row is invalid"),
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(
    egon: Any, opened: Workspace, fields: dict[str, str], what: str
) -> None:
    refused = egon.fill(WHERE, **fields)
    assert refused.status_code == 400
    assert what in refused.text.casefold()
    if "pair" in fields:  # nor are rows before it graded that could be
        refused = egon.fill(WHERE, **(fields | {"pair": [pair("q2"), fields["pair"]]}))
        assert refused.status_code == 400
    assert not grades(opened)


def test_the_boxes_say_what_is_shown(egon: Any, opened: Workspace) -> None:
    page = egon.get(WHERE).text
    boxes = [unescape(each) for each in re.findall(r'type="checkbox"[^>]* value="([^"]*)"', page)]
    assert sorted(map(json.loads, boxes)) == [json.loads(pair(query)) for query in PAIRS]
    egon.fill(WHERE, pair=[pair("q1")], grade="1")
    with opened.store.read() as c:
        frame = judgments.current(c, opened.golden.id).frame.filter(rater="egon", doc_id="d5")
    assert frame.select("document_hash", "guideline").rows() == [(D5, "1")]


def test_a_row_that_changed_since_it_was_shown_is_refused(
    egon: Any, opened: Workspace, clock: Any
) -> None:
    with opened.store.begin() as c:
        new = pl.DataFrame({"doc_id": ["d5"], "title": ["Another"], "text": ["Of boats."]})
        documents.put(c, opened.golden.id, new, clock())
    answer = egon.fill(WHERE, pair=[pair("q1")], grade="2")
    assert answer.status_code == 200
    assert "0 graded, 1 not" in answer.text
    assert "its document changed since you opened it" in answer.text
    assert not grades(opened)
    boxes = re.findall(r'type="checkbox"[^>]* value="([^"]*)"', answer.text)  # as it is now
    done = egon.fill(WHERE, pair=[unescape(boxes[0])], grade="2")
    assert "1 graded." in done.text
    other = egon.fill(WHERE, pair=[pair("q2", guideline="7")], grade="2")
    assert "its document and guideline changed" in other.text


def test_a_list_is_filtered_and_the_form_keeps_the_filter(
    egon: Any, opened: Workspace, clock: Any
) -> None:
    more = pl.DataFrame({"query_id": ["q1"] * 60, "doc_id": [f"x{n}" for n in range(60)]})
    enqueue(opened, Pairs(more, "pool"), now=clock())
    page = egon.get(f"{WHERE}?q=red&page=2").text
    assert 'action="/judge/shop/table?q=red&amp;page=2"' in page
    answer = egon.fill(f"{WHERE}?q=red&page=2", pair=[pair("q1", "x3")], grade="1")
    assert "Page 2 of 2" in answer.text
