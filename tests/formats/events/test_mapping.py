"""Mappings: what the columns and actions of somebody's own log mean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from karat.errors import InputError
from karat.formats.events.flatten import Reading
from karat.formats.events.log import read_events
from karat.formats.events.mapping import read_mapping
from karat.formats.events.tally import Tally

MAPPING = """
[columns]
time = "Wann"
user_id = "Wer"
action = "Was"
query_id = "Suche"
query = "Text"
doc_id = "Artikel"
position = "Platz"
hits = "Treffer"
latency = "Dauer"
bot = "Maschine"

[attributes]
shop = "Laden"

[constants]
arm = "control"

[kinds]
"geöffnet" = "click"
gesucht = "search"

[time]
zone = "Europe/Berlin"
format = "%d.%m.%Y %H:%M:%S"

[latency]
unit = "s"

[hits]
separator = "/"

[position]
base = 0
"""
LOG = """\
Wann,Wer,Was,Suche,Text,Artikel,Platz,Treffer,Dauer,Maschine,Laden,Rest
20.11.2026 11:00:00,u,gesucht,q,Schuhe,,,a/b c,0.5,nein,x,1
20.11.2026 11:00:05,u,geöffnet,q,,b c,1,,,ja,x,1
"""


def test_a_log_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(MAPPING)
    (tmp_path / "log.csv").write_text(LOG.replace("ja", "yes"))
    mapped = read_mapping(tmp_path / "m.toml")
    reading = Reading(1_795_305_600_000_000, "UTC", mapped)
    (frame,) = read_events(tmp_path / "log.csv", reading, Tally("log.csv"))
    search, click = (
        {name: value for name, value in row.items() if value is not None and name != "_line"}
        for row in frame.iter_rows(named=True)
    )
    ten = 1_795_168_800_000_000  # 2026-11-20T10:00:00Z, eleven in Berlin
    assert search == {
        "user_id": "u", "query_id": "q", "time_us": ten, "kind": "search", "action": "gesucht",
        "query": "Schuhe", "hits": ["a", "b c"], "bot": False, "returned": 2,
        "latency_us": 500_000, "arm": "control", "attribute_shop": "x", "told": True,
        "unsaid": False,
    }  # fmt: skip
    assert click == {
        "user_id": "u", "query_id": "q", "time_us": ten + 5_000_000, "kind": "click",
        "action": "geöffnet", "doc_id": "b c", "position": 1, "bot": True, "arm": "control",
        "attribute_shop": "x", "told": False, "unsaid": False,
    }  # fmt: skip
    assert mapped.base == 0


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        (
            "[columns]\nusr_id = 'a'",
            r"\[columns\] unknown key 'usr_id'",
            "did you mean user_id",
        ),
        ("[column]\n", "unknown key 'column'", "did you mean columns"),
        ("[kinds]\nopened = 'klick'", "unknown kind 'klick'", "did you mean click"),
        ("[time]\nunit = 'min'", "unknown unit 'min'", "one of s, ms, us, ns|did you mean"),
        ("[time]\nzone = 'Berlin'", "zone: unknown time zone 'Berlin'", "Europe/Berlin"),
        ("[time]\nunits = 'ms'", "unknown key 'units'", "did you mean unit"),
        ("[columns]\ntime = 3.5.1", "not valid TOML", "correct line 2"),
        ("[columns]\ntime = ['a']", "not a string", "time = "),
        ("columns = 3", "is not a table", r"\[columns\]"),
        ("[position]\nbase = 2", "not 0 or 1", "base = 1"),
        ("[constants]\nkind = 'klick'", "unknown kind 'klick'", "did you mean click"),
    ],
)
def test_what_is_wrong_is_said_with_the_nearest(
    text: str, what: str, fix: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=what) as error:
        read_mapping(path)
    assert error.value.file == str(path)
    assert re.search(fix, error.value.fix or "")


def test_a_column_that_is_mapped_is_nothing_else(tmp_path: Path) -> None:
    """Without a mapping ``visitor`` is a client."""
    (tmp_path / "m.toml").write_text("[columns]\nuser_id = 'visitor'\n")
    (tmp_path / "log.csv").write_text("time,visitor,action\n1795168800,v,click\n")
    reading = Reading(1_795_305_600_000_000, "UTC", read_mapping(tmp_path / "m.toml"))
    (frame,) = read_events(tmp_path / "log.csv", reading, Tally("log.csv"))
    assert frame.select("user_id", "client_id").rows() == [("v", None)]
    (frame,) = read_events(tmp_path / "log.csv", Reading(reading.now), Tally("log.csv"))
    assert frame.select("user_id", "client_id").rows() == [(None, "v")]


@pytest.mark.parametrize(
    ("typed", "ours"),
    [
        ("revenue", "value"),
        ("timestamp", "time"),
        ("uid", "user_id"),
        ("nbhits", "total_hits"),
    ],
)
def test_a_mapping_may_use_the_usual_name_of_a_column(
    typed: str, ours: str, tmp_path: Path
) -> None:
    (tmp_path / "m.toml").write_text(f'[columns]\n{typed} = "Betrag"\n')
    assert read_mapping(tmp_path / "m.toml").columns == {ours: "Betrag"}


def test_two_names_of_one_column_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text('[columns]\nvalue = "a"\nrevenue = "b"\n')
    with pytest.raises(InputError, match="revenue is another name for value, and both are set"):
        read_mapping(tmp_path / "m.toml")
