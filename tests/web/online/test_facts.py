"""Facts for eyes: nobody named, and no 0 of what a log says nothing of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.event_stores import keep_events

from karat.engines.frames.opening import open_engine
from karat.tables.online.events import EventLog
from karat.web.online._facts import for_eyes, pseudonym
from karat.workflows.online.facts import Table, look

SECOND = 1_000_000
BEGIN = 1_800_000_000 * SECOND


def event(kind: str, at: int, **more: Any) -> dict[str, Any]:
    return {"user_id": "ada", "kind": kind, "time_us": BEGIN + at * SECOND, **more}


SEARCHES = [
    event("search", 0, query="rope", query_id="s1"),
    event("search", 60, query="blue rope", query_id="s2"),
]


def seen(folder: Path, table: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    types = {"position": pl.Int32, "value": pl.Float64}
    types = {name: kind for name, kind in types.items() if any(name in row for row in rows)}
    frame = pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)
    log: EventLog = keep_events(folder / "events", frame)
    with open_engine() as engine:
        found, _ = look(log, engine, table, {})
    return for_eyes(found, log, table, "salt")


def test_a_log_of_searches_alone_knows_of_nothing_else(tmp_path: Path) -> None:
    found = seen(tmp_path, "searches", SEARCHES)
    assert found.height == 2
    unknown = ("clicks", "clicked", "paul_5", "sat", "quick_back", "carts", "purchases", "revenue",
               "answered", "abandoned", "error", "timeout")  # fmt: skip
    assert {name: found[name].null_count() for name in unknown} == dict.fromkeys(unknown, 2)
    assert found["reformulated"].to_list() == [0, 1]  # it has their texts
    sessions = seen(tmp_path / "more", "sessions", SEARCHES)
    assert sessions.select("searches", "tasks", "success").rows() == [(2, 1, None)]


def test_what_the_log_says_may_be_0(tmp_path: Path) -> None:
    click = event("click", 5, doc_id="d", position=1, query_id="s1")
    sold = event("purchase", 9, doc_id="d", value=3.0, query_id="s1")
    found = seen(tmp_path, "searches", [*SEARCHES, click, sold])
    # The newest first: nothing came of it, as far as the log goes.
    assert found["clicks"].to_list() == [0, 1]
    assert found["carts"].null_count() == 2
    assert found["purchases"].null_count() == 2  # one may still come, for a day


def test_a_dwell_that_nothing_tells_is_none(tmp_path: Path) -> None:
    clicks = [
        event("click", 5, doc_id="d", position=1, query_id="s1"),  # until the next search
        event("click", 70, doc_id="e", position=1, query_id="s2"),
    ]
    found = seen(tmp_path, "clicks", [*SEARCHES, *clicks])
    assert found.select("doc_id", "dwell_us", "dwell_s", "became").rows() == [
        ("e", None, None, None),
        ("d", 55 * SECOND, 55.0, "satisfied"),
    ]


def test_a_heartbeat_tells_that_it_was_read_for_as_long(tmp_path: Path) -> None:
    rows = [
        *SEARCHES,
        event("click", 70, doc_id="e", position=1, query_id="s2"),
        event("heartbeat", 80, doc_id="e"),
    ]
    found = seen(tmp_path, "clicks", rows)
    assert found.select("dwell_s", "became").rows() == [(10.0, "perhaps for longer")]


def test_a_session_has_a_beginning_and_no_number(tmp_path: Path) -> None:
    found = seen(tmp_path, "searches", SEARCHES)
    assert set(found["session_began"]) == {found["when"].min()}
    assert not {"session", "session_us", "user_key", "user_bucket"} & set(found.columns)


@pytest.mark.parametrize(("one", "other", "same"), [
    ((7, "salt"), (7, "salt"), True),
    ((7, "salt"), (7, "other"), False),
    ((7, "salt"), (8, "salt"), False),
])  # fmt: skip
def test_no_pseudonym_is_the_same_in_another_workspace(
    one: tuple[int, str], other: tuple[int, str], *, same: bool
) -> None:
    assert (pseudonym(*one) == pseudonym(*other)) == same
