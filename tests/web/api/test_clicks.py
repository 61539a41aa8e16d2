"""Clicks as judgments by the API: as the page has them; added and queued by engineers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.web.api.conftest import ProgramOf, error_of
from tests.web.click_users import put_clicks

from karat.formats.own.click_grades import click_grades_file

PATH = "/api/golden/shop/clicks"


def test_grades_of_clicks(workspace: Path, program_of: ProgramOf) -> None:
    put_clicks(workspace)
    egon = program_of("engineer")
    found = egon.get(PATH, params={"model": "SDBN", "cut": [0.1, 0.2, 0.5], "least": 30}).json()
    judged = found["judgments"]
    assert (judged["origin"]["model"], judged["origin"]["cuts"]) == ("SDBN", [0.1, 0.2, 0.5])
    assert (judged["graded"], found["added"]) == (20, None)
    assert str(workspace) not in str(found)  # no paths of the server
    body = {"model": "SDBN", "cuts": [0.1, 0.2, 0.5], "least": 30}
    assert program_of("rater").post(PATH, json=body).status_code == 403
    made = egon.post(PATH, json=body).json()
    assert made["by_grade"] == judged["by_grade"]
    assert click_grades_file(workspace, "shop").is_file()
    assert egon.get(PATH).json()["added"]["model"] == "SDBN"
    opposing = egon.get(PATH).json()["agreement"]["opposing"]
    assert egon.post(f"{PATH}/queue", json={}).json() == {"queued": len(opposing)}


def test_what_is_refused(workspace: Path, program_of: ProgramOf) -> None:
    egon = program_of("engineer")
    assert "no events" in error_of(egon.get(PATH))[2]
    put_clicks(workspace, swaps=False)
    found = egon.get(PATH).json()
    assert not found["identified"]
    assert found["reason"] in found["refused"]
    assert (found["judgments"], found["agreement"], found["pairs"]) == (None, None, [])
    status, code, message = error_of(egon.post(PATH, json={}))
    assert (status, code) == (400, "input")
    assert "positions are not identified" in message
    assert error_of(egon.get(PATH, params={"cut": 2}))[0] == 400
    assert error_of(egon.get(PATH, params={"least": "inf"}))[0] == 400


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karat.web.online.log._LOOK_S", 0.05)
