"""A small log of users, put into a workspace, whose every number can be worked out by hand.

On each of four days (10, 12, 13 and 14 January 2027; nobody came on the 11th) each of twelve users
searches for the four queries of the shop, an hour apart, so that each search is a session. Ten
results come for each but “wool hat”, which finds nothing. The first so many users click on the
first result five seconds later, and leave it after a minute: ``CLICKERS``. Users 0 to 5 are in arm
a, the others in arm b; users 0, 2, 4 … have a phone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.event_stores import keep_events

from karat.tables.online.events import EventLog
from karat.workflows.workspace.artifacts import ArtifactCache

CLICKERS: dict[str, int | None] = {
    "red shoes": 6,
    "garden hose": 3,
    "tall ladder": 9,
    "wool hat": None,  # nothing is found
}
DAYS = (10, 12, 13, 14)
USERS = 12
SECOND = 1_000_000


def put_users(workspace: Path, *, simulated: bool = False, **attributes: str) -> EventLog:
    """Put the log into the event store of a workspace.

    Args:
        workspace: Its folder.
        simulated: Whether it is said to be.
        attributes: More attributes, the same of every event.
    """
    rows: list[dict[str, Any]] = []
    for day in DAYS:
        for user in range(USERS):
            for hour, (query, clickers) in enumerate(CLICKERS.items()):
                at = dt.datetime(2027, 1, day, 9 + hour, user, tzinfo=dt.UTC)
                time = int(at.timestamp()) * SECOND
                own = {
                    "user_id": f"user {user}",
                    "arm": "a" if user < USERS // 2 else "b",
                    "attribute_device": "phone" if user % 2 == 0 else "desktop",
                    **{f"attribute_{name}": value for name, value in attributes.items()},
                }
                hits = 10 if clickers is not None else 0
                search = {"kind": "search", "query": query, "query_id": f"{day}-{user}-{hour}"}
                search |= {"returned": hits, "total_hits": hits, "latency_us": 100_000}
                search |= {"status": "ok", "time_us": time}
                rows.append(own | search)
                if clickers is not None and user < clickers:
                    click = {"doc_id": "d1", "position": 1, "query_id": search["query_id"]}
                    rows.append(own | click | {"kind": "click", "time_us": time + 5 * SECOND})
                    rows.append(own | click | {"kind": "hide", "time_us": time + 65 * SECOND})
    types = {"position": pl.Int32, "returned": pl.Int32, "total_hits": pl.Int64}
    frame = pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)
    return keep_events(workspace / "events", frame, simulated=simulated)


_ANSWERS: dict[tuple[str, str], Any] = {}


def compute_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a workspace store the numbers that were computed for the workspace of another test.

    Their key names the log and what is asked of it. That of judgments and queries is a count of
    changes, which another workspace has, too. (The salt of pseudonyms is the same in all copies.)
    """
    real = ArtifactCache.answer

    def answer(cache: ArtifactCache, kind: str, key: str, make: Callable[[], Any]) -> Any:
        def once() -> Any:
            if (kind, key) not in _ANSWERS:
                _ANSWERS[kind, key] = make()
            return _ANSWERS[kind, key]

        of_log = kind.startswith("online-") and kind != "online-against"
        return real(cache, kind, key, once if of_log else make)

    monkeypatch.setattr(ArtifactCache, "answer", answer)


def plan_experiment(workspace: Path, text: str = "") -> None:
    """Plan the experiment of the arms of that log."""
    folder = workspace / "experiments"
    folder.mkdir()
    plan = text or '[experiment]\ncontrol = "a"\ntreatment = "b"\ndecide = ["CTR"]\n'
    (folder / "ranker.toml").write_text(plan, encoding="utf-8")
