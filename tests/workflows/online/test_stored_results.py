"""Kept answers: there at once when asked again, gone when the log changes, never many."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from karat.tables.online.evaluation import OnlineResult, OnlineResults
from karat.tables.online.events import EventLog
from karat.workflows.online import stored_results


@pytest.fixture(autouse=True)
def _nothing_at_hand() -> Iterator[None]:
    stored_results.forget()
    yield
    stored_results.forget()


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    return EventLog(
        folder=tmp_path, files=(), rows=1, bots=0, kinds={}, attributes=(), arms=(),
        known=frozenset(), first_us=0, last_us=0, first_day=0, last_day=0, timezone="UTC",
        simulated=False, version="v1",
    )  # fmt: skip


QUESTION = {"what": "evaluate", "metrics": [["CTR", 1]], "days": [1, 2]}


def test_what_was_answered_is_there_after_a_restart(log: EventLog) -> None:
    asked: list[int] = []

    def make() -> dict[str, list[int | None]]:
        asked.append(1)
        return {"rows": [1, None]}

    assert stored_results.find(log, QUESTION) is None
    for _ in range(2):
        assert stored_results.answered(log, QUESTION, make) == {"rows": [1, None]}
        stored_results.forget()
    assert asked == [1]
    other = {**QUESTION, "days": [1, 3]}
    assert stored_results.find(log, other) is None


def test_another_version_of_the_log_is_another_question(log: EventLog) -> None:
    stored_results.keep(log, QUESTION, {"a": 1})
    assert stored_results.find(replace(log, version="v2"), QUESTION) is None
    assert stored_results.find(log, QUESTION) == {"a": 1}


DEEP = b"[" * 50_000  # deeper than Python's stack


OTHER = b'{"version": "v2", "answer": {"a": 3}}'  # of another log


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"version": "v1"}', OTHER, b"\xff\xfe", DEEP]
)
def test_a_damaged_file_is_not_there(log: EventLog, damage: bytes) -> None:
    stored_results.keep(log, QUESTION, {"a": 1})
    [path] = (log.folder / stored_results.FOLDER / "evaluate").iterdir()
    stored_results.forget()
    path.write_bytes(damage)
    assert stored_results.find(log, QUESTION) is None
    assert stored_results.answered(log, QUESTION, lambda: {"a": 2}) == {"a": 2}
    stored_results.forget()
    assert stored_results.find(log, QUESTION) == {"a": 2}


def of(day: int) -> dict[str, Any]:
    return {"what": "evaluate", "day": day}


def test_those_that_were_looked_at_longest_ago_go(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_results, "MOST", 3)
    for day in range(3):
        stored_results.keep(log, of(day), {"day": day})
    stored_results.keep(log, {"what": "rows"}, {"rows": 1})  # of another kind, and in nobody's way
    folder = log.folder / stored_results.FOLDER / "evaluate"
    for path in folder.iterdir():
        day = json.loads(path.read_bytes())["answer"]["day"]
        os.utime(path, (day, day))
    stored_results.forget()
    assert stored_results.find(log, of(0)) == {"day": 0}  # looked at just now
    stored_results.keep(log, of(3), {"day": 3})
    stored_results.forget()
    there = [day for day in range(4) if stored_results.find(log, of(day)) is not None]
    assert there == [0, 2, 3]
    assert len(list(folder.iterdir())) == 3
    assert stored_results.find(log, {"what": "rows"}) == {"rows": 1}


def test_where_nothing_can_be_written_this_process_has_it_all_the_same(log: EventLog) -> None:
    (log.folder / stored_results.FOLDER).write_text(
        "a file where the folder should be", encoding="utf-8"
    )
    assert stored_results.answered(log, QUESTION, lambda: {"a": 1}) == {"a": 1}
    assert stored_results.find(log, QUESTION) == {"a": 1}
    stored_results.forget()
    assert stored_results.find(log, QUESTION) is None


def test_results_come_back_as_they_were(log: EventLog) -> None:
    row = OnlineResult("CTR", 1, {"arm": ""}, 0.1, 0.05, None, "users", None, None, 3, 2, 1.0, "ok")
    gone = replace(row, value=None, low=None, state="none", reason="no searches")
    results = OnlineResults(
        [row, gone], ("arm",), "rules@1", ("2026-11-01", "2026-11-02"), 9, ["h"], ["n"], True
    )
    stored_results.keep(log, QUESTION, results.to_dict())
    stored_results.forget()
    assert stored_results.results_of(stored_results.find(log, QUESTION)) == results
    empty = replace(results, results=[], period=None)
    assert stored_results.results_of(json.loads(json.dumps(empty.to_dict()))) == empty
