"""Pages of machine judges: what they may grade, what it cost, and what came of their last run."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest
from fastapi import FastAPI
from tests.net.visible import visible
from tests.web.conftest import NOW, ClientOf
from tests.web.machine_judge import DECLARED, declare, judged

from karat.workflows.golden.agreement import put_before_adjudicator


@pytest.fixture
def with_judge(workspace: Path, app: FastAPI) -> Path:
    declare(workspace)
    judged(app.state.site.opened("shop"))
    return workspace


def test_without_a_judge_the_page_says_how_to_declare_one(client_of: ClientOf) -> None:
    engineer = client_of("engineer")
    said = visible(engineer.get("/judges").text)
    assert "[judge.cheap]" in said
    assert "karat autojudge certify cheap" in said
    assert engineer.get("/judges/cheap").status_code == 404
    assert (
        '<a href="/judges" aria-current="page">Machine judges</a>' in engineer.get("/judges").text
    )


def test_a_judge_without_a_passport_may_be_measured(workspace: Path, client_of: ClientOf) -> None:
    declare(workspace)
    engineer = client_of("engineer")
    [row] = engineer.get("/judges?format=json").json()["judges"]
    assert (row["name"], row["asks"], row["passport"]) == ("mine", "shop_judge:judge", "none")
    said = visible(engineer.get("/judges/mine").text)
    assert "karat autojudge certify mine" in said
    assert "It has not run yet" in said
    assert not (workspace / "judges").exists()  # looking at it writes nothing


def test_a_passport_and_a_run_are_shown(with_judge: Path, client_of: ClientOf) -> None:
    engineer = client_of("engineer")
    [row] = engineer.get("/judges?format=json").json()["judges"]
    assert (row["passport"], row["pairs"], row["stored"]) == ("candidate", 16, 16)
    found = engineer.get("/judges/mine?format=json").json()
    passport, last = found["passport"], found["judge"]["last"]
    assert (found["may"], found["may_not"]) == ([], ["all queries"])
    assert (last["what"], last["state"]) == ("certify", "done")
    page = visible(engineer.get("/judges/mine").text)
    assert "May not grade: all queries" in page
    assert f"{passport['agreement']['kappa']:.3f}".replace("-", "−") in page
    assert passport["tests"][0]["name"] == "agreement kappa"  # κ
    for test in passport["tests"][1:]:
        assert test["name"].removeprefix("agreement ") in page, test["name"]
    assert "d4 is too long (shop_judge.py, line 5)" in page
    assert "Its stored grades are uncertified" in page
    # A slice with a high κ gives no permit to a judge that is not certified.
    [file] = (with_judge / "judges/passports").iterdir()
    high = {"name": "long", "value": 0.9, "ci_low": 0.8, "ci_high": 0.95, "passed": True}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"slices": [high | {"detail": ""}]}))
    page = visible(engineer.get("/judges/mine").text)
    assert "κ of long" in page
    assert "may grade" not in page
    assert "transport failed" in page


def test_another_model_makes_the_passport_outdated(with_judge: Path, client_of: ClientOf) -> None:
    file = with_judge / "karat.toml"
    file.write_text(file.read_text().replace(DECLARED, f"{DECLARED}characters = 100\n"))
    engineer = client_of("engineer")
    page = engineer.get("/judges")
    assert "outdated" in visible(page.text)
    assert "Grades of other machines" in visible(page.text)  # of the earlier version
    assert "says nothing about the judge as it is now" in visible(engineer.get("/judges/mine").text)


def test_raters_do_not_see_them(workspace: Path, client_of: ClientOf) -> None:
    declare(workspace)
    rater = client_of("rater")
    assert rater.get("/judges").status_code == 403
    assert rater.get("/judges/mine").status_code == 403


def test_uncertified_grades_are_marked_wherever_they_are_shown(
    with_judge: Path, client_of: ClientOf
) -> None:
    """And certified ones as those of a machine; people's are not."""
    engineer = client_of("engineer")

    def marks(path: str, rows: str) -> set[tuple[str, str | None]]:
        found = engineer.get(f"{path}format=json").json()[rows]
        return {(row["rater"].partition("@")[0], row["machine"]) for row in found}

    judgments, pair = "/golden/shop/judgments?", "/golden/shop/pair?query=q1&document=d1&"
    people = {("rita", None), ("ben", None), ("cleo", None)}
    assert marks(judgments, "judgments") == people | {("mine", "uncertified")}
    assert marks(pair, "history") == people | {("mine", "uncertified")}
    assert "uncertified" in visible(engineer.get(f"{judgments}source=llm").text)
    for path in ("/golden/shop/pairs", "/golden/shop/queries/q1"):
        assert "(uncertified machine) 1" in visible(engineer.get(path).text)
    [file] = (with_judge / "judges/passports").iterdir()
    file.write_text(file.read_text().replace('"candidate"', '"certified"'))
    assert marks(judgments, "judgments") == people | {("mine", "certified")}
    assert "(certified machine) 1" in visible(engineer.get("/golden/shop/pairs").text)


def test_an_adjudicator_sees_what_the_machine_said_after_their_own_grade(
    with_judge: Path, app: FastAPI, client_of: ClientOf
) -> None:
    opened = app.state.site.opened("shop")
    assert put_before_adjudicator(opened, None, person="olga", now=NOW)
    owner, of_four = client_of("owner"), False
    page = owner.get("/judge/shop/adjudicate").text
    assert "its number" not in page  # the judge's reason
    for _ in range(5):  # of d4 it says nothing
        of_four = "Document d4" in visible(page)
        ticket = re.search(r'name="ticket" value="([^"]+)"', page)
        assert ticket is not None
        owner.fill("/judge/shop/adjudicate", ticket=unescape(ticket[1]), grade="1")
        page = owner.get("/judge/shop/adjudicate").text
        assert ("its number" in page) is not of_four
        if not of_four:
            break
    said = visible(page)
    assert "Of the pair that you settled last" in said
    assert "(uncertified)" in said
    assert "its number" in said
