"""Numbers, flags and words of a log in German: read where the mapping says how, else counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from karat.errors import InputError
from karat.formats.events.fields import Written, number
from karat.formats.events.flatten import Reading
from karat.formats.events.log import read_events
from karat.formats.events.mapping import Mapped, read_mapping
from karat.formats.events.tally import Tally

NOW = 1_795_305_600_000_000  # 2026-11-22T00:00:00Z
GERMAN = """zeit;user_id;action;query_id;query;hits;revenue;status;is_bot;filtered;latency_ms
20.11.2026 11:00:00,250;v1;;s1;rote Schuhe;p1|p2;;Fehler;nein;ja;35 ms
20.11.2026 11:01:00,000;v1;;s2;Schuhe;p1;;fertig;Ja;nein;1.035,5 ms
20.11.2026 11:02:00,000;v1;purchase;s1;;;80,00;;nein;;
20.11.2026 11:03:00,000;v1;purchase;s1;;;1.234,50;;nein;;
20.11.2026 11:04:00,000;v1;purchase;s1;;;€ 80;;nein;;
"""
TIME = '[columns]\ntime = "zeit"\n[time]\nformat = "%d.%m.%Y %H:%M:%S,%3f"\n'
WORDS = """
[status]
Fehler = "error"
fertig = "ok"
[flags]
yes = ["Ja"]
no = ["nein"]
[numbers]
decimal = ","
without = ["€", "ms"]
"""


def read(path: Path, mapped: Mapped | None = None) -> tuple[list[dict[str, Any]], Tally]:
    """The events of a log, and what became of its rows."""
    tally = Tally(path.name)
    frames = read_events(path, Reading(NOW, "UTC", mapped or Mapped()), tally)
    return [row for frame in frames for row in frame.iter_rows(named=True)], tally


def mapping(folder: Path, text: str) -> Mapped:
    """A mapping from its text."""
    (folder / "m.toml").write_text(text)
    return read_mapping(folder / "m.toml")


@pytest.fixture
def german(tmp_path: Path) -> Path:
    """A log as a German shop writes it."""
    path = tmp_path / "shop.csv"
    path.write_text(GERMAN)
    return path


def test_what_cannot_be_read_is_counted_with_its_first_value(german: Path) -> None:
    rows, tally = read(german, mapping(german.parent, TIME))
    assert [row["value"] for row in rows] == [None] * 5
    assert [row["latency_us"] for row in rows] == [None] * 5
    assert {what.partition(",")[0]: count for what, count in tally.changed.items()} == {
        "revenue is not a number": 3,
        "unknown status": 2,
        "bot flag is neither yes nor no": 5,
        "filtered is neither yes nor no": 2,
        "latency is not a number ≥ 0": 2,
    }
    assert list(tally.firsts.values()) == ["nein", "ja", "Fehler", "35 ms", "80,00"]
    (money,) = (what for what in tally.changed if what.startswith("revenue"))
    assert tally.examples[money][0] == "shop.csv, line 4"


def test_a_mapping_says_how_they_are_written(german: Path) -> None:
    rows, tally = read(german, mapping(german.parent, TIME + WORDS))
    assert [row["value"] for row in rows] == [None, None, 80.0, 1234.5, 80.0]
    assert [row["status"] for row in rows[:2]] == ["error", "ok"]
    assert [row["filtered"] for row in rows[:2]] == [True, False]
    assert [row["bot"] for row in rows] == [False, True, False, False, False]
    assert [row["latency_us"] for row in rows[:2]] == [35_000, 1_035_500]
    assert rows[0]["time_us"] % 1_000_000 == 250_000
    assert not tally.changed


@pytest.mark.parametrize(
    ("text", "written", "expected"),
    [
        ("1.234,50", Written(","), 1234.5),
        ("1.234", Written(","), 1234.0),
        ("80.5", Written(","), None),  # no group of three: not 805
        ("1,234.50", Written("."), 1234.5),
        ("1'234.50", Written(".", "'"), 1234.5),
        ("1\u202f234,5", Written(",", " "), 1234.5),
        ("-3,5 EUR", Written(",", None, ("EUR",)), -3.5),
        ("80,00", Written(), None),
        (" 8e2 ", Written(), 800.0),
    ],
)
def test_numbers(text: str, written: Written, expected: float | None) -> None:
    assert pl.select(number(pl.lit(text), written)).item() == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[status]\nFehler = 'eror'", "did you mean error"),
        ("[flags]\nyep = ['ja']", "did you mean yes"),
        ("[flags]\nyes = ['ja']\nno = ['Ja']", "both yes and no"),
        ("[numbers]\ndecimal = ';'", "not . or ,"),
        ("[numbers]\ndecimal = ','\nthousands = ','", "not the decimal sign"),
        ("[numbers]\nwithout = [3]", "not a list of strings"),
        ("[time]\nformat = '%H:%M:%S,%f'", "%3f, %6f or %9f"),
    ],
)
def test_what_a_mapping_says_wrongly(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        mapping(tmp_path, text)


@pytest.mark.filterwarnings("error")
def test_the_fraction_of_python_is_read(tmp_path: Path) -> None:
    """As ``strptime`` has it, behind a point; Polars alone warns, and reads none."""
    path = tmp_path / "a.csv"
    path.write_text("time,user_id,action\n20.11.2026 10:00:00.25,u,click\n")
    (row,), _ = read(path, mapping(tmp_path, '[time]\nformat = "%d.%m.%Y %H:%M:%S.%f"'))
    assert row["time_us"] == 1_795_168_800_250_000


def test_blanks_are_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    blank = {"timestamp": 1_795_168_800, "query_response_id": "", "query_response_hit_ids": [" "],
             "user_query": "  ", "client_id": "u", "session_id": "\t", "query_id": "\u00a0",
             "query_attributes": {"variant": " ", "device": "  "}}  # fmt: skip
    path.write_text(json.dumps(blank) + "\n" + json.dumps({**blank, "client_id": " "}) + "\n")
    (row,), tally = read(path)
    held = {name for name, value in row.items() if value is not None}
    assert not held & {"query", "session_id", "query_id", "arm", "attribute_device"}
    assert row["hits"] == []
    assert sum(tally.dropped.values()) == 1  # nobody did the second


def test_positions_that_are_none_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    places = ["1", "-1", "2.5", "top"]
    rows_of = "".join(f"{1_795_168_800 + at},u,click,{place}\n" for at, place in enumerate(places))
    path.write_text("time,user_id,action,position\n" + rows_of)
    rows, tally = read(path)
    assert [row["position"] for row in rows] == [1, None, None, None]
    assert tally.changed == {"position is not a whole number, or out of range": 3}


def test_names_of_attributes_that_change_are_said(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("time,user_id,action,Gerät,Device Type,名\n1795168800,u,click,a,b,c\n")
    (row,), tally = read(path)
    assert (row["attribute_ger_t"], row["attribute_device_type"]) == ("a", "b")
    assert tally.renamed == {"gerät": "ger_t"}
    assert any("名" in each for each in tally.left_out)
