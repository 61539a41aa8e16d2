"""Programs judge by the rules of people: one card at a time, once, and what a rater may know."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.choosing import deep_but
from tests.web.api.conftest import Printed, ProgramOf, error_of, rows_of
from tests.web.conftest import Clock
from tests.web.machine_judge import declare, judged

CARD = {
    *("ticket", "query_id", "query", "need", "doc_id", "title", "text", "url"),
    *("image", "more", "votes", "grades", "guideline", "leased_until_us"),
}


def claim(program: TestClient) -> dict[str, object]:
    """The next card."""
    found: dict[str, object] = program.post("/api/judge/shop/claim").json()["card"]
    return found


def answer_to(card: dict[str, object], **said: object) -> dict[str, object]:
    """What is sent of a card."""
    return {"ticket": card["ticket"]} | said


def test_a_program_judges_undoes_and_puts_off(program_of: ProgramOf, clock: Clock) -> None:
    rita = program_of("rater")
    [waiting] = rows_of(rita, "/api/judge")
    assert (waiting["rater"], waiting["left"]) == ("rita", 4)
    card = claim(rita)
    assert set(card) == CARD
    assert card["doc_id"] == "d5"
    assert card["grades"] == [0, 1, 2, 3]
    assert card["text"] == "What d5 says of shoes, hoses and hats."
    assert claim(rita)["doc_id"] == card["doc_id"]  # until it is dealt with
    clock.pass_by(7)
    given = answer_to(card, grade=2)
    number = rita.post("/api/judge/shop/submit", json=given).json()["judgment"]
    twice = rita.post("/api/judge/shop/submit", json=given).json()["judgment"]
    assert twice == number
    far = rita.get("/api/judge/shop/progress").json()
    assert (far["left"], far["newest"], far["seconds"][-1]) == (3, number, 7.0)
    gone = rita.post("/api/judge/shop/undo", json={"newest": number + 1}).json()
    assert gone == {"undone": False, "grade": None, "reason": None, "card": None}
    undone = rita.post("/api/judge/shop/undo", json={"newest": number}).json()
    assert (undone["undone"], undone["grade"]) == (True, 2)
    assert undone["card"]["doc_id"] == card["doc_id"]
    again = {"ticket": undone["card"]["ticket"]}
    assert rita.post("/api/judge/shop/later", json=again).json() == {"later": True}
    other = claim(rita)
    assert (other["query_id"], other["doc_id"]) != (card["query_id"], card["doc_id"])
    said = answer_to(other, cannot="other", reason="the link is dead")
    assert rita.post("/api/judge/shop/submit", json=said).status_code == 200


@pytest.mark.parametrize(
    "said",
    deep_but(
        [{}, {"grade": 9}, {"cannot": "because"}, {"grade": 2, "ticket": "made up"}],
        [
            {},
            {"grade": 2, "cannot": "language"},
            {"grade": 9},
            {"grade": 1.5},
            {"cannot": "because"},
            {"cannot": "other"},
            {"grade": 2, "seconds": -1},
            {"grade": "2"},
            {"grade": 2, "ticket": ""},
            {"grade": 2, "ticket": "made up"},
            {"grade": 2, "slot": 1},
        ],
    ),
)
def test_what_is_no_judgment_is_not_recorded(
    program_of: ProgramOf, said: dict[str, object]
) -> None:
    rita = program_of("rater")
    answer = rita.post("/api/judge/shop/submit", json=answer_to(claim(rita), **said))
    assert error_of(answer)[:2] == (400, "usage")
    assert rita.get("/api/judge/shop/progress").json()["left"] == 4


def test_a_lease_that_others_have_by_now_is_a_conflict(program_of: ProgramOf, clock: Clock) -> None:
    rita = program_of("rater")
    card = claim(rita)
    clock.pass_by(1800)  # her lease has ended
    for role in ("engineer", "owner"):  # and both places of the pair are taken
        other = program_of(role)  # type: ignore[arg-type]
        while (held := claim(other))["query_id"] != card["query_id"]:
            other.post("/api/judge/shop/later", json={"ticket": held["ticket"]})
    late = rita.post("/api/judge/shop/submit", json=answer_to(card, grade=1))
    assert error_of(late)[:2] == (409, "conflict")


def test_an_engineer_sees_disagreements_settles_none_of_their_own_and_freezes(
    program: TestClient,
) -> None:
    rows = rows_of(program, "/api/golden/shop/disagreements", between="raters")
    assert rows
    first = [rows[0]["query_id"], rows[0]["doc_id"]]
    asked = program.post("/api/golden/shop/disagreements/queue", json={"pairs": [first]})
    assert asked.json() == {"queued": 1}
    card = program.post("/api/judge/shop/claim", json={"adjudicate": True}).json()["card"]
    assert [card["query_id"], card["doc_id"]] == first
    assert len(card["votes"]) == 3
    assert "rita" not in str(card["votes"])
    settled = answer_to(card, grade=1, adjudicate=True)
    assert program.post("/api/judge/shop/submit", json=settled).status_code == 200
    rest = program.post("/api/golden/shop/disagreements/queue", json={}).json()["queued"]
    assert rest == len(rows) - 1
    none = program.post("/api/golden/shop/disagreements/queue", json={"pairs": []})
    assert error_of(none)[:2] == (400, "usage")
    made = program.post("/api/golden/shop/editions", json={"name": "first/ä"})
    assert made.status_code == 201, made.text
    row = program.get("/api/golden/shop/editions/first%2F%C3%A4").json()
    assert row["sha256"] == made.json()["sha256"]
    assert [each["name"] for each in rows_of(program, "/api/golden/shop/editions")] == ["first/ä"]
    now = rows_of(program, "/api/golden/shop/grades")
    assert rows_of(program, "/api/golden/shop/grades", edition="first/ä") == now
    changed = program.get("/api/golden/shop/diff", params={"old": "first/ä"}).json()
    assert (changed["queries"], changed["grades"]) == ([], [])
    again = program.post("/api/golden/shop/editions", json={"name": "first/ä"})
    assert error_of(again)[:2] == (400, "usage")
    missing = program.get("/api/golden/shop/editions/second")
    assert error_of(missing)[:2] == (404, "not_found")


def test_machine_judges_are_listed_with_their_passports(
    workspace: Path, app: FastAPI, program_of: ProgramOf
) -> None:
    declare(workspace)
    judged(app.state.site.opened("shop"))
    egon = program_of("engineer")
    [row] = rows_of(egon, "/api/judges")
    assert (row["name"], row["passport"], row["stored"]) == ("mine", "candidate", 16)
    found = egon.get("/api/judges/mine").json()
    assert found["judge"] == row
    assert found["passport"]["judge"] == row["rater"]
    assert error_of(egon.get("/api/judges/mime"))[:2] == (404, "not_found")
    assert program_of("rater").get("/api/judges").status_code == 403


def test_doubts_are_those_of_the_command_line_and_are_queued(
    workspace: Path,
    app: FastAPI,
    program_of: ProgramOf,
    printed: Printed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declare(workspace)
    judged(app.state.site.opened("shop"))
    monkeypatch.chdir(workspace)
    egon, path = program_of("engineer"), "/api/golden/shop/doubts"
    found = egon.get(path, params={"judge": "mine", "budget": 9}).json()
    words = ("autojudge", "doubts", "mine", "--budget", "9", "-f", "json")
    assert found == printed(*words, within=False)
    assert {row["doc_id"] for row in found["pairs"] if row["chance"]} == {"d5"}  # nobody judged it
    assert any(row["people"] is not None for row in found["pairs"])
    assert found["queued"] is None
    of_runs = {"judge": "mine", "run": ["old", "new"], "measure": "DCG@5"}
    assert {row["chosen_by"] for row in egon.get(path, params=of_runs).json()["pairs"]} == {
        "it moves the result", "people disagree",
    }  # fmt: skip
    body = {"judges": ["mine"], "budget": 9}
    assert program_of("rater").post(f"{path}/queue", json=body).status_code == 403
    queued = egon.post(f"{path}/queue", json=body).json()
    assert queued["pairs"] == found["pairs"]
    assert queued["queued"] is not None
    assert error_of(egon.get(path, params={"judge": "mime"}))[:2] == (400, "usage")
    wrong = egon.get(path, params={**of_runs, "measure": "nDCG@10"})
    assert "not linear" in error_of(wrong)[2]
