"""The page of pairs that people should look at next to what machine judges graded."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from tests.net.visible import visible
from tests.web.conftest import ClientOf
from tests.web.machine_judge import declare, judged

PAGE = "/golden/shop/doubts"


def test_before_a_judge_has_graded_there_are_none(workspace: Path, client_of: ClientOf) -> None:
    declare(workspace)
    page = client_of("engineer").get(PAGE).text
    assert "machine judge has graded pairs yet" in visible(page)
    assert '<a href="/judges" aria-current="page">Machine judges</a>' in page
    assert client_of("rater").get(PAGE).status_code == 403


def test_pairs_are_listed_and_added_to_the_queue(
    workspace: Path, app: FastAPI, client_of: ClientOf
) -> None:
    declare(workspace)
    judged(app.state.site.opened("shop"))
    engineer = client_of("engineer")
    rows = engineer.get(f"{PAGE}?format=json").json()["found"]
    assert {row["title"] for row in rows if row["people"] is None} == {"Document d5"}
    api = client_of("engineer").get("/api/golden/shop/doubts?judge=mine").json()["pairs"]
    names = list(api[0])
    assert [{name: row[name] for name in names} for row in rows] == api
    page = engineer.get(f"{PAGE}?judge=mine&run=old&budget=2").text
    assert "Add " in visible(page)
    assert '<input type="hidden" name="run" value="old">' in page
    done = engineer.fill(PAGE, judge="mine", run="old", budget="9")
    assert "added to the queue" in visible(done.text)
    log = client_of("owner").get("/audit").text
    assert "queue doubts" in log


def test_a_mistake_is_shown_above_the_form(
    workspace: Path, app: FastAPI, client_of: ClientOf
) -> None:
    declare(workspace)
    judged(app.state.site.opened("shop"))
    wrong = client_of("engineer").get(f"{PAGE}?run=old&measure=nDCG@10")
    assert wrong.status_code == 400
    assert "not linear in the gains" in visible(wrong.text)
    assert 'name="budget"' in wrong.text
