"""The board, and the page of a release: what it shows, and what a person does there."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from tests.net.visible import visible
from tests.release_road import Road
from tests.web.conftest import Browser, ClientOf, Clock
from tests.web.release_shop import clock, road, walked, workspace

from karat.store.sql import releases
from karat.web.release import releases as pages
from karat.workflows.release import pipeline

__all__ = ["clock", "road", "walked", "workspace"]
PAGE = "/releases/hybrid"


@pytest.fixture
def egon(client_of: ClientOf) -> Browser:
    return client_of("engineer")


def words(answer: Any) -> str:
    """The text of a page, on one line."""
    return " ".join(visible(answer.text).split())


def act(browser: Browser, do: str, name: str = "hybrid", **fields: object) -> Any:
    return browser.fill(f"/releases/{name}", do=do, **fields)


def led(browser: Browser, answer: Any) -> str:
    """The page that a form leads to."""
    assert answer.status_code == 303, words(answer)
    return words(browser.get(answer.headers["location"]))


def stopped(road: Road) -> bool:
    return bool(json.loads(road.rollout.read_text())["stopped"])


def test_the_board_has_a_row_for_each_release(road: Road, egon: Browser) -> None:
    page = egon.get("/releases")
    said = words(page)
    assert said.index("synonyms") < said.index("hybrid"), "the latest first"
    assert "A/B test cannot tell" in said
    assert re.search(r"shadow (skipped by ben|passed|cannot tell)", said)
    assert "40 % of users" in said
    assert "of its margin" in said
    assert "Next: needs evidence: none was gathered yet." in said
    assert "No release has reached users and ended yet." in said
    assert "0 of the 10 releases that it needs" in said
    rows = egon.get("/releases?format=json").json()["releases"]
    assert [row["name"] for row in rows] == ["synonyms", "hybrid"]
    road.roll_back("wrong prices")
    said = words(egon.get("/releases"))
    assert said.index("Ended") < said.index("wrong prices")
    assert "hybrid rolled back nDCG@10" in said


def test_a_release_shows_what_is_next_and_why(road: Road, egon: Browser) -> None:
    page = egon.get(PAGE)
    said = words(page)
    assert (
        said.index("Next") < said.index("Evidence") < said.index("Promised") < said.index("Story")
    )
    assert "hybrid for bm25 · started by ben" in said
    assert "less than a week" in said
    assert 'class="drawn"' in page.text, "effects have their intervals in the row"
    assert "Every rule of the gate holds." in said
    assert "Started by ben" in said
    assert "40 % of users get the candidate" in said
    [number] = re.findall(r'href="/gates/(\d+)">The gate', page.text)
    gate = egon.get(f"/gates/{number}")
    assert "by karat, for a release" in words(gate)
    assert "Release hybrid" in words(gate)
    story = egon.get(f"{PAGE}?format=json").json()["story"]
    assert story == egon.get("/api/releases/hybrid/story").json()
    assert egon.get("/releases/hybird").status_code == 404
    assert "hybrid" in words(egon.get("/releases/hybird")), "the nearest name"


def test_buttons_are_those_of_the_rules(road: Road, egon: Browser, client_of: ClientOf) -> None:
    choices = egon.get(f"{PAGE}?format=json").json()["choices"]
    assert set(choices) == {"held", "skipped", "rolled_back"}, "its evidence does not suffice"
    assert choices["rolled_back"] == "all users get the baseline again"
    assert choices["skipped"] == "50 % of users get it"
    page = egon.get(PAGE).text
    assert 'value="skipped"' in page
    assert 'value="advanced"' not in page
    road.roll_back("wrong prices")
    assert egon.get(f"{PAGE}?format=json").json()["choices"] == {}
    assert "<form" not in egon.get(PAGE).text.partition("<main")[2]
    assert client_of("rater").get(PAGE).status_code == 403
    assert act(client_of("rater"), "held", reason="mine").status_code == 403


def test_a_stage_passes_on_gathered_evidence(road: Road, egon: Browser) -> None:
    egon.get("/releases/synonyms")
    answer = act(egon, "evidence", "synonyms")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/releases/synonyms#evidence"
    page = egon.get("/releases/synonyms")
    assert "Pass this stage: no user gets the candidate yet" in words(page)
    said = led(egon, act(egon, "advanced", "synonyms", stage="offline"))
    assert "shadow" in said
    # The other of two operators, whose page still shows the stage before.
    late = act(egon, "advanced", "synonyms", stage="offline")
    assert late.status_code == 409
    assert "is in shadow, not in offline." in words(late)
    with egon.site.workspace.store.read() as connection:
        events = releases.events(connection, "synonyms")
    assert [event["by"] for event in events if event["kind"] == "advanced"] == ["egon"]


def test_hold_and_resume_by_a_person_with_a_reason(road: Road, egon: Browser) -> None:
    bare = act(egon, "held", reason="  ")
    assert bare.status_code == 400
    assert "A reason is missing." in words(bare)
    assert '<details class="act" id="held" open>' in bare.text
    said = led(egon, act(egon, "held", reason="deploy <freeze>"))
    assert "Held by egon: deploy <freeze>." in said
    assert act(egon, "held", reason="too").status_code == 409
    said = led(egon, act(egon, "resumed", reason="over"))
    assert "Resumed by egon: over" in said


def test_a_refused_form_keeps_what_was_typed(road: Road, egon: Browser) -> None:
    unsure = act(egon, "rolled_back", reason='wrong "prices" & more')
    assert unsure.status_code == 400
    assert "The rollback is not confirmed." in words(unsure)
    assert '<details class="act" id="rolled-back" open>' in unsure.text
    assert 'value="wrong "prices" & more"' in html.unescape(unsure.text)
    assert not stopped(road)
    gone = act(egon, "skipped", stage="shadow", reason="still")
    assert gone.status_code == 409
    assert 'name="reason" value="still"' in gone.text


def test_only_those_whom_the_policy_names_override(road: Road, egon: Browser) -> None:
    assert act(egon, "overridden", reason="I know better").status_code == 409
    assert "Fix: ask anna" in words(act(egon, "overridden", reason="I know"))


def test_a_rollback_is_users_first(road: Road, egon: Browser) -> None:
    assert not stopped(road)
    said = led(egon, act(egon, "rolled_back", reason="wrong prices", sure="yes"))
    assert stopped(road)
    assert "rolled back (wrong prices); no user has it" in said
    assert "Rolled back by egon: wrong prices" in said
    again = act(egon, "rolled_back", reason="again", sure="yes")
    assert again.status_code == 409


def test_a_rollback_needs_no_ledger(
    road: Road, egon: Browser, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise OperationalError("INSERT", {}, Exception("the database is away"))

    with monkeypatch.context() as patch:
        patch.setattr(releases, "append", away)
        answer = act(egon, "rolled_back", reason="wrong prices", sure="yes")
        assert stopped(road)
        said = led(egon, answer)
        assert "hybrid is rolled back. The ledger could not be written" in said
        assert "the ledger does not know yet" in said
    pipeline.run(egon.site.workspace, now=clock())
    [back] = [
        event
        for event in pipeline.events_of(egon.site.workspace, "hybrid")
        if event.kind == "rolled_back"
    ]
    assert (back.by, back.reason) == ("egon", "wrong prices")


def test_a_rollback_whose_switch_fails_is_recorded_and_said(road: Road, egon: Browser) -> None:
    road.rollout.unlink()
    road.rollout.mkdir()
    answer = act(egon, "rolled_back", reason="wrong prices", sure="yes")
    assert answer.status_code == 503
    said = words(answer)
    assert "users may still get the candidate" in said.casefold()
    assert pipeline.state_of(egon.site.workspace, "hybrid").rolled_back is not None
    assert "wrong prices" in said
    road.rollout.rmdir()
    again = led(egon, act(egon, "rolled_back", reason="once more", sure="yes"))
    assert stopped(road)
    assert "Roll back again" not in again
    assert act(egon, "rolled_back", reason="once more", sure="yes").status_code == 409


def test_search_and_home_find_releases(road: Road, egon: Browser) -> None:
    hits = egon.get("/search?q=hyb&format=json").json()["hits"]
    assert {"kind": "release", "name": "hybrid", "where": PAGE} in hits
    page = egon.get("/")
    assert "The release hybrid (A/B test) needs evidence" in words(page)
    assert f'href="{PAGE}"' in page.text


def test_long_evidence_leads_to_its_progress(
    road: Road, egon: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "WAIT_S", 0.0)
    answer = act(egon, "evidence")
    where = answer.headers["location"]
    assert where.startswith(("/jobs/evidence-", PAGE))


def test_files_of_the_page_are_not_of_the_server(road: Road, egon: Browser, tmp_path: Path) -> None:
    for where in ("/releases/..%2Fx", "/releases/nope"):
        answer = egon.get(where)
        assert answer.status_code == 404
        assert str(tmp_path) not in answer.text
    assert act(egon, "rolled_back", "nope", reason="x", sure="yes").status_code == 404
