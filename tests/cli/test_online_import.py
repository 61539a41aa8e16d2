"""karat online import and status, as somebody types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Typed = Callable[..., Any]
LOG = [
    {"query_id": "q1", "client_id": "c", "user_query": "shoes", "timestamp": "2026-01-20T23:30:00Z",
     "query_response_hit_ids": ["d1", "d2"]},
    {"action_name": "click", "query_id": "q1", "client_id": "c", "timestamp": 1768951805,
     "event_attributes": {"position": {"ordinal": 1}, "object": {"object_id": "d2"}}},
    {"action_name": "hover", "client_id": "c", "timestamp": "2026-01-20T23:30:09"},
    {"action_name": "click"},
]  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A small log with a half-written last line."""
    path = tmp_path / "log.ndjson"
    path.write_text("".join(json.dumps(each) + "\n" for each in LOG) + '{"action_na')
    return path


@pytest.mark.usefixtures("log")
def test_import_says_what_was_kept_dropped_and_assumed(typed: Typed) -> None:
    said = typed("online import log.ndjson --events store").out
    assert "3 events of 5 rows in 1 file: import 1" in said
    assert "log.ndjson, line 4" in said
    assert "log.ndjson, line 5" in said
    assert "kept as other: hover (1)" in said
    assert "UTC was assumed" in said
    assert "by their size seconds since 1970" in said
    assert "positions begin at 1: none is 0" in said
    assert max(map(len, said.splitlines())) <= 80
    again = typed("online import log.ndjson --events store").out
    assert again == "Nothing new: 1 file is in the event store already\n"


@pytest.mark.usefixtures("log")
def test_json_says_the_same(typed: Typed) -> None:
    found = json.loads(typed("online import log.ndjson --events store -f json").out)
    assert (found["number"], found["rows"], found["kept"]) == (1, 5, 3)
    assert found["kinds"] == {"click": 1, "other": 1, "search": 1}
    assert sum(found["dropped"].values()) == 2
    held = json.loads(typed("online status --events store -f json").out)
    assert (held["rows"], held["first_day"], held["timezone"]) == (3, "2026-01-20", "UTC")
    assert "query" in held["known"]
    assert "latency_us" in held["unknown"]
    assert held["imports"][0]["kept"] == 3


def test_robots_are_in_the_total_and_in_no_kind(typed: Typed, tmp_path: Path) -> None:
    robots = [{**each, "is_bot": each["client_id"] == "robot"}
              for each in (LOG[0], {**LOG[0], "query_id": "q2", "client_id": "robot"})]  # fmt: skip
    (tmp_path / "log.ndjson").write_text("".join(json.dumps(each) + "\n" for each in robots))
    typed("online import log.ndjson --events store")
    lines = [line.strip() for line in typed("online status --events store").out.splitlines()]
    assert lines[0].startswith("2 events, ")
    assert lines[1].endswith("; 1 event of a robot, counted nowhere")
    at = next(place for place, line in enumerate(lines) if line.startswith("kinds, without robots"))
    assert lines[at + 2].split() == ["search", "1"]


@pytest.mark.usefixtures("log")
def test_a_workspace_says_where_events_lie_and_where_a_day_begins(
    typed: Typed, tmp_path: Path
) -> None:
    typed("init")
    settings = tmp_path / "karat.toml"
    settings.write_text(
        settings.read_text() + '\n[online]\nevents = "what/happened"\ntimezone = "Europe/Berlin"\n'
    )
    typed("online import log.ndjson")
    assert (tmp_path / "what/happened/manifest.json").is_file()
    # Half past eleven in the evening UTC is the next day in Berlin.
    said = typed("online status").out
    assert "3 events, 2026-01-21 (Europe/Berlin)" in said
    assert "never logged: session_id, total_hits" in said


def test_what_is_typed_wrongly(typed: Typed, log: Path, tmp_path: Path) -> None:
    assert "karat init" in typed("online import log.ndjson", code=2).err
    assert "no such file" in typed("online import lag.ndjson --events s", code=2).err
    assert "did you mean" in typed("online import lag.ndjson --events s", code=2).err
    assert "karat online import" in typed("online status --events s", code=2).err
    wrong = typed("online import log.ndjson --events s --clocks Berlin", code=2).err
    assert "Europe/Berlin" in wrong
    (tmp_path / "m.toml").write_text("[kinds]\nhover = 'klick'\n")
    wrong = typed("online import log.ndjson --events s --mapping m.toml", code=2).err
    assert "did you mean click" in wrong
    (tmp_path / "s").mkdir(exist_ok=True)
    (tmp_path / "s/manifest.json").write_text("{")
    assert "damaged" in typed("online status --events s", code=2).err
    log.write_bytes(b"\x00\x01\x02" * 99)
    assert "binary data" in typed("online import log.ndjson --events t", code=2).err


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('timezone = "Berlin"', "[online] timezone is 'Berlin', which is none"),
        ('zone = "UTC"', "[online] there is no key 'zone'"),
        ("events = 3", "[online] events is 3, not a text"),
    ],
)
def test_settings_that_are_wrong(line: str, what: str, typed: Typed, tmp_path: Path) -> None:
    typed("init")
    with (tmp_path / "karat.toml").open("a") as settings:
        settings.write(f"\n[online]\n{line}\n")
    assert what in typed("online status", code=2).err


@pytest.mark.usefixtures("log")
def test_a_check_and_a_file_without_events(typed: Typed, tmp_path: Path) -> None:
    said = typed("online import log.ndjson --events store --check").out
    assert "3 events of 5 rows in 1 file: would be kept, nothing is" in said
    assert not (tmp_path / "store").exists()
    (tmp_path / "shop.csv").write_text("when,who,what\n20.11.2026,v,opened\n")
    wrong = typed("online import shop.csv --events store", code=2).err
    assert "columns: when, who, what" in wrong
    assert "--mapping FILE" in wrong
