"""Which answers count: of the card that was dealt, once, and of no card that was left behind."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from fastapi import FastAPI
from tests.web.judging.test_judge import PART, WHERE, hidden, opened, query_on, rita, said

from karat.store.sql import judgments, queue
from karat.store.sql.schema import deferred, slot
from karat.workflows.workspace.workspace import Workspace

__all__ = ["opened", "rita"]  # fixtures


def send(who: Any, fields: dict[str, str], where: str = WHERE, **more: str) -> Any:
    return who.post(where, data=fields | more, headers=PART)


def test_a_card_without_a_ticket_of_one_s_own_is_not_judged(
    rita: Any, client_of: Any, opened: Workspace
) -> None:
    fields = hidden(rita.get(WHERE).text)
    theirs = hidden(client_of("owner").get(WHERE).text)
    other = "B" if fields["ticket"].startswith("A") else "A"
    for wrong in (
        {"ticket": ""},
        {"ticket": "", "slot": "1", "token": "mine", "seconds": "1e300"},
        {"ticket": theirs["ticket"]},
        {"ticket": other + fields["ticket"][1:]},
    ):
        for what in ({"grade": "1"}, {"do": "later"}):
            refused = send(rita, fields, **wrong, **what)
            assert refused.status_code == 400
            assert "invalid ticket" in refused.json()["error"]["message"]
    elsewhere = send(rita, fields, f"{WHERE}/adjudicate", grade="1")
    assert elsewhere.status_code == 400
    assert said(opened.store).is_empty()


def test_no_page_tells_the_number_of_the_place(rita: Any) -> None:
    page = rita.get(WHERE).text
    assert "slot" not in page
    assert "slot" not in rita.get(f"{WHERE}?format=json").text
    assert set(hidden(page)) == {"csrf", "ticket", "seconds", "newest"}


def test_an_earlier_card_is_not_rewritten_and_the_newest_is_with_a_word(
    rita: Any, opened: Workspace
) -> None:
    first = hidden(rita.get(WHERE).text)
    copy = hidden(rita.get(WHERE).text)  # in another tab
    second = hidden(send(rita, first, grade="1").text)
    corrected = send(rita, copy, grade="2")
    assert corrected.status_code == 200
    assert "The previous pair was corrected from 1." in corrected.text
    stale = hidden(rita.get(WHERE).text)
    third = hidden(send(rita, second, grade="0").text)
    for old in (first, copy):  # sent again: it was superseded, or is known
        send(rita, old, grade="3")
    assert said(opened.store)["grade"].to_list() == [2.0, 0.0]
    again = hidden(send(rita, stale, grade="3").text)
    assert said(opened.store)["grade"].to_list() == [2.0, 3.0]
    send(rita, third, grade="1")
    late = rita.fill(WHERE, **again, grade="1")
    assert late.headers["location"].startswith("/judge/shop")
    assert said(opened.store).height in {3, 4}


def test_an_answer_of_a_card_left_behind_is_refused_with_a_sentence(
    rita: Any, opened: Workspace
) -> None:
    tabs = [hidden(rita.get(WHERE).text) for _ in range(3)]
    page = send(rita, tabs[0], grade="1").text
    send(rita, hidden(page), grade="1")
    refused = send(rita, tabs[1], grade="3")
    assert refused.status_code == 409
    assert "or judged another" in refused.text
    assert query_on(refused.text)  # the next card shows
    form = rita.fill(WHERE, **tabs[2], grade="3")
    assert form.headers["location"] == "/judge/shop?note=overtaken"
    assert "or judged another" in rita.get("/judge/shop?note=overtaken").text
    assert said(opened.store)["grade"].to_list() == [1.0, 1.0]


def test_what_was_taken_back_is_not_recorded_by_sending_it_again(
    rita: Any, opened: Workspace
) -> None:
    fields = hidden(rita.get(WHERE).text)
    page = send(rita, fields, grade="1").text
    page = send(rita, hidden(page), do="undo").text
    again = send(rita, fields, grade="1")
    assert again.status_code == 409
    assert "undone your rating" in again.text
    assert said(opened.store).is_empty()
    assert send(rita, hidden(page), grade="2").status_code == 200
    assert said(opened.store)["grade"].to_list() == [2.0]


def test_a_form_without_a_script_says_what_it_corrects(rita: Any) -> None:
    copies = [hidden(rita.get(WHERE).text) for _ in range(2)]
    rita.fill(WHERE, **copies[0], cannot="language")
    done = rita.fill(WHERE, **copies[1], grade="3")
    assert done.headers["location"] == "/judge/shop?was=cannot+judge"
    page = rita.get(done.headers["location"]).text
    assert "was corrected from cannot judge." in page
    for made_up in ("7", "<b>", "1.0"):
        assert "corrected" not in rita.get(WHERE, params={"was": made_up}).text


def leases(opened: Workspace) -> int:
    with opened.store.read() as c:
        held = slot.select().where(slot.c.rater == "rita", slot.c.judgment_id.is_(None))
        return len(c.execute(held).all())


@pytest.mark.parametrize("path", [WHERE, f"{WHERE}/adjudicate", f"{WHERE}?format=json"])
@pytest.mark.parametrize("to", ["image", "iframe", "empty", "object", "script"])
def test_a_card_is_dealt_to_a_page_alone(rita: Any, opened: Workspace, path: str, to: str) -> None:
    for site in ("cross-site", "same-origin", "same-site"):
        refused = rita.get(path, headers={"sec-fetch-dest": to, "sec-fetch-site": site})
        assert refused.status_code == 403
    assert leases(opened) == 0


def test_a_link_from_elsewhere_leads_to_what_waits_and_deals_nothing(
    rita: Any, opened: Workspace
) -> None:
    from_there = {"sec-fetch-dest": "document", "sec-fetch-site": "cross-site"}
    page = rita.get(WHERE, headers=from_there).text
    assert 'href="/judge/shop"' in page
    assert 'name="grade"' not in page
    assert leases(opened) == 0
    for ours in (
        {"sec-fetch-dest": "document", "sec-fetch-site": "none"},
        {"sec-fetch-dest": "document", "sec-fetch-site": "same-origin"},
        {"sec-fetch-dest": "empty", "sec-fetch-site": "same-origin", "x-part": "1"},
    ):
        assert 'name="grade"' in rita.get(WHERE, headers=ours).text
    assert leases(opened) == 1


@pytest.mark.deep  # how much is read, and not what is shown
def test_votes_are_read_of_four_disagreements_at_most_and_none_is_settled(
    client_of: Any, opened: Workspace, clock: Any
) -> None:
    with opened.store.begin() as c:
        facts = pl.DataFrame(
            {
                "query_id": ["q1"] * 12,
                "doc_id": [f"x{n // 2}" for n in range(12)],
                "grade": [0.0, 3.0] * 6,
                "rater": ["ben", "cleo"] * 6,
                "source": "human",
                "time_us": clock(),
            }
        )
        judgments.record(c, opened.golden.id, facts, None)
        apart = facts.select("query_id", "doc_id").unique()
        queue.open_adjudications(c, opened.golden.id, apart, clock())
    olga, where = client_of("owner"), f"{WHERE}/adjudicate"
    page = olga.get(where, headers={"sec-fetch-dest": "image"})
    assert page.status_code == 403
    assert seen(opened) == 0
    for _ in range(8):
        answer = send(olga, hidden(olga.get(where).text), where, do="later")
    assert answer.status_code == 409
    assert "You have put off 3 pairs" in answer.text
    form = olga.fill(where, **hidden(answer.text), do="later")
    assert form.headers["location"] == "/judge/shop/adjudicate?note=many"
    assert seen(opened) == 4
    assert send(olga, hidden(answer.text), where, grade="3").status_code == 200
    clock.pass_by(3601)  # they come back
    assert send(olga, hidden(olga.get(where).text), where, do="later").status_code == 200


def seen(opened: Workspace) -> int:
    with opened.store.read() as c:
        return len(c.execute(deferred.select().where(deferred.c.saw_votes)).all())


def test_a_place_that_went_does_not_leave_its_number_to_an_answer(
    rita: Any, opened: Workspace, app: FastAPI
) -> None:
    fields = hidden(rita.get(WHERE).text)
    with opened.store.begin() as c:  # as if it had been a repeat, and another had come
        held = c.execute(slot.select().where(slot.c.rater == "rita")).one()
        other = c.execute(slot.select().where(slot.c.pair_id != held.pair_id)).first()
        assert other is not None
        c.execute(slot.delete().where(slot.c.pair_id == other.pair_id))
        moved = slot.update().where(slot.c.id == held.id)
        c.execute(moved.values(pair_id=other.pair_id, place=9))
    assert send(rita, fields, grade="1").status_code == 409
    assert said(opened.store).is_empty()
