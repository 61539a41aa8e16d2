"""karat online alerts, as typed: from the watch that opens one to its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.event_stores import keep_events
from tests.workflows.online.incident import incident

from karat.cli.online import _watch

WATCH = "online watch --by topic --until 2026-11-20"


@pytest.fixture
def shop(typed, tmp_path: Path) -> None:
    typed("init .")
    keep_events(tmp_path / "events", incident())


def test_a_watch_in_a_workspace_opens_an_alert_that_people_handle(typed, shop) -> None:
    assert typed("online alerts list").out == "No alerts.\n"
    out = typed(WATCH, code=1).out
    assert "ZeroResults of topic=howto rose from" in out
    assert "onset: 2026-11-20 03:00 (95 %:" in " ".join(out.split())
    assert "explains ZeroResults" in out
    assert max(map(len, out.splitlines())) <= 80
    listed = typed("online alerts list").out
    assert "since 2026-11-20 03:00, explains" in " ".join(listed.split())
    acknowledged = typed("online alerts acknowledge 1 --by eve --note", "on it")
    assert acknowledged.out.startswith("Alert 1: acknowledged by eve\n")
    assert "acknowledged by eve: on it" in acknowledged.out
    muted = json.loads(typed("online alerts mute 1 --until 8h --by eve -f json").out)
    assert (muted["state"], muted["metric"]) == ("muted", "ZeroResults")
    assert typed("online alerts resolve 1 --by eve").out.startswith("Alert 1: resolved by eve\n")
    assert typed("online alerts reopen 1 --by eve").out.startswith("Alert 1: open\n")
    shown = json.loads(typed("online alerts show 1 -f json").out)
    assert [each["action"] for each in shown["actions"]] == [
        "acknowledged", "muted", "resolved", "reopened",
    ]  # fmt: skip
    assert "there is no alert 2" in typed("online alerts show 2", code=2).err
    assert "is not in the range" in typed(f"online alerts show {2**63}", code=2).err
    assert "the name is empty" in typed("online alerts resolve 1 --by", " ", code=2).err
    assert "neither a duration" in typed("online alerts mute 1 --until soon", code=2).err


def test_a_part_of_the_searches_opens_none(typed, shop, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(_watch, "_remembered", lambda *given: asked.append(given))
    line = "online watch -m CTR --until 2026-11-20 --history 7d"
    for more in ("--only device=phone", "--rule idle=20min", "--events events"):
        typed(f"{line} {more}", code=3)
    assert asked == []
    typed(line, code=3)
    assert len(asked) == 1
