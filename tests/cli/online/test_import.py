"""karat online import and status, as somebody types them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from karat.cli.online import _import

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
    assert "assumed UTC" in said
    assert "by their size assumed to be seconds since 1970" in said
    assert "positions begin at 1: none is 0" in said
    assert max(map(len, said.splitlines())) <= 80
    again = typed("online import log.ndjson --events store").out
    assert again == "Nothing new: 1 file is already in the event store\n"


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
    assert lines[1].endswith("; 1 event of a bot, excluded from all metrics")
    at = next(place for place, line in enumerate(lines) if line.startswith("Kinds, without bots"))
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
        ('timezone = "Berlin"', "[online] timezone: unknown time zone 'Berlin'"),
        ('zone = "UTC"', "[online] unknown key 'zone'"),
        ("events = 3", "[online] events is 3, not a string"),
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
    assert "3 events of 5 rows in 1 file: check only, nothing is imported" in said
    assert not (tmp_path / "store").exists()
    (tmp_path / "shop.csv").write_text("when,who,what\n20.11.2026,v,opened\n")
    wrong = typed("online import shop.csv --events store", code=2).err
    assert "columns: when, who, what" in wrong
    assert "--mapping FILE" in wrong


EMPTY = """time,user_id,query_id,query,Treffer,action,doc_id
2026-11-20T10:00:00Z,u1,s1,pie,d1|d2,,
2026-11-20T10:00:05Z,u1,s1,,,click,d1
2026-11-20T10:00:10Z,u2,s2,pye,,,
2026-11-20T10:00:20Z,u3,s3,pye,,,
2026-11-20T10:00:30Z,u4,s4,pie,d1|d2,,
2026-11-20T10:00:35Z,u4,s4,,,click,d2
"""
MAPPING = '[columns]\nhits = "Treffer"\n[hits]\nseparator = "|"\n'


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A log whose list of hits is empty where nothing was found."""
    (tmp_path / "m.toml").write_text(MAPPING)
    path = tmp_path / "log.csv"
    path.write_text(EMPTY)
    return path


@pytest.mark.usefixtures("empty")
def test_empty_hits_are_never_dropped_in_silence(typed: Typed, tmp_path: Path) -> None:
    said = typed("online import log.csv --mapping m.toml --events store").out
    text = " ".join(said.split())
    assert "2 of 4 searches have an empty 'Treffer'; none of them were clicked, of the" in text
    assert "[hits] empty = 0" in text
    assert "again into an empty event store" in text
    assert max(map(len, said.splitlines())) <= 80
    found = json.loads(typed("online evaluate --events store -m ZeroResults -f json").out)
    unsaid = "the number of results is unknown for 2 of 4 searches (50 %)"
    assert any(unsaid in said for said in found["health"])
    # What it says to do helps.
    (tmp_path / "m.toml").write_text(MAPPING + "empty = 0\n")
    typed("online import log.csv --mapping m.toml --events other")
    [row] = json.loads(typed("online evaluate --events other -m ZeroResults -f json").out)[
        "results"
    ]
    assert (row["value"], row["n"]) == (0.5, 4)


@pytest.mark.usefixtures("empty")
def test_json_has_empty_hits(typed: Typed) -> None:
    found = json.loads(typed("online import log.csv --mapping m.toml --events s -f json").out)
    assert found["empty_hits"] == {
        "columns": ["Treffer"], "searches": 2, "of": 4, "clicked": 0, "others_clicked": 2,
        "taken_as": "unknown", "by": "default",
    }  # fmt: skip
    assert found["warnings"][0].startswith("2 of 4 searches have an empty 'Treffer'")
    found = json.loads(typed("online import log.csv --mapping m.toml --events s -f json").out)
    assert (found["empty_hits"], found["warnings"]) == (None, [])


@pytest.mark.parametrize(("answer", "zeros"), [("y\n", 0.5), ("n\n", 0.0), ("\n", 0.5)])
@pytest.mark.usefixtures("empty")
def test_on_a_terminal_it_is_asked(
    answer: str, zeros: float, typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    more = "".join(f"2026-11-20T11:00:{n}0Z,u{n}5,s{n}5,pye,,,\n" for n in range(6))
    if answer == "\n":  # where it is plain, Enter says yes
        (tmp_path / "log.csv").write_text(EMPTY + more)
        zeros = 0.8
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(_import, "sys", SimpleNamespace(stdin=terminal, stderr=terminal))
    done = typed("online import log.csv --mapping m.toml --events store", given=answer)
    assert "empty 'Treffer'" in done.err
    assert "Does empty mean that nothing was found?" in done.err
    assert "as you answered" in " ".join(done.out.split())
    [row] = json.loads(typed("online evaluate --events store -m ZeroResults -f json").out)[
        "results"
    ]
    assert row["value"] == zeros


def test_json_holds_no_letter_that_a_terminal_obeys(typed: Typed, tmp_path: Path) -> None:
    strange = {**LOG[0], "de\x7f\x9b\u202evice": "phone"}
    (tmp_path / "log.ndjson").write_text(json.dumps(strange) + "\n")
    said = typed("online import log.ndjson --events store -f json").out
    assert "de" + r"\u007f\u009b\u202e" + "vice" in said
    assert not set("\x7f\x9b\u202e") & set(said)
    renamed = [each for each in json.loads(said)["assumed"] if "renamed attributes" in each]
    assert "de\x7f\x9b\u202evice as de___vice" in renamed[0]


@pytest.mark.deep  # processes; of every command: tests/cli/test_core_only.py
def test_without_the_store_no_golden_set_is_spoken_of(tmp_path: Path) -> None:
    # In a process of its own, where SQLAlchemy cannot be imported.
    code = "import sys; sys.modules['sqlalchemy'] = None; from karat.cli.main import main; main()"
    for line in (["import", "x.jsonl"], ["evaluate"]):
        done = subprocess.run(
            [sys.executable, "-c", code, "online", *line, "--events", str(tmp_path)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert "events needs the package sqlalchemy\n" in done.stderr
        assert done.stderr.endswith("  fix: pip install 'karat[store]'\n")
