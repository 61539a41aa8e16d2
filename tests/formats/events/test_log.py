"""Logs of events in every form: the same events come out, and what does not is counted."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from karat.errors import InputError
from karat.formats.events.flatten import Reading
from karat.formats.events.json import NO_JSON, TOO_LONG
from karat.formats.events.lines import NO_TEXT
from karat.formats.events.log import UNEVEN, read_events
from karat.formats.events.mapping import Mapped
from karat.formats.events.rows import LONG_ID, NO_ROW, NO_TIME, NO_USER, TOO_EARLY, TOO_LATE
from karat.formats.events.tally import Tally

NOW = 1_795_305_600_000_000  # 2026-11-22T00:00:00Z
TEN = 1_795_168_800_000_000  # 2026-11-20T10:00:00Z
STAMP = "2026-11-20T10:00:00Z"

QUERY = {
    "application": "shop",
    "query_id": "q1",
    "client_id": "c",
    "user_query": "Red Shoes",
    "timestamp": STAMP,
    "query_response_id": "r1",
    "query_response_hit_ids": ["d1", "d2"],
    "query_attributes": {"num_results": 2, "latency_ms": 12.5, "variant": "b", "device": "phone"},
}
CLICK = {
    "action_name": "click",
    "query_id": "q1",
    "client_id": "c",
    "session_id": "s",
    "timestamp": "2026-11-20T10:00:05.250Z",
    "event_attributes": {
        "position": {"ordinal": 2},
        "object": {"object_id": 7, "object_id_field": "sku"},
        "device": "phone",
    },
}


def read(
    path: Path, mapped: Mapped | None = None, zone: str = "UTC"
) -> tuple[list[dict[str, Any]], Tally]:
    """The events of a log without what is null, and what became of its rows."""
    tally = Tally(path.name)
    reading = Reading(NOW, zone, mapped or Mapped())
    rows = [
        {name: value for name, value in row.items() if value is not None and name != "_line"}
        for frame in read_events(path, reading, tally)
        for row in frame.iter_rows(named=True)
    ]
    return rows, tally


def written(path: Path, objects: Sequence[object]) -> Path:
    """A file with an object a line."""
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    return path


SEARCHED = {
    "client_id": "c",
    "query_id": "q1",
    "time_us": TEN,
    "kind": "search",
    "action": "search",
    "query": "Red Shoes",
    "hits": ["d1", "d2"],
    "bot": False,
    "returned": 2,
    "total_hits": 2,
    "latency_us": 12_500,  # 12.5 ms
    "arm": "b",
    "attribute_application": "shop",
    "attribute_device": "phone",
    "told": False,
    "unsaid": False,
}
CLICKED = {
    "client_id": "c",
    "session_id": "s",
    "query_id": "q1",
    "time_us": TEN + 5_250_000,
    "kind": "click",
    "action": "click",
    "doc_id": "7",
    "position": 2,
    "bot": False,
    "attribute_device": "phone",
    "told": False,
    "unsaid": False,
}


def test_ubi_queries_and_events_in_one_file(tmp_path: Path) -> None:
    rows, tally = read(written(tmp_path / "ubi.ndjson", [QUERY, CLICK]))
    assert rows == [SEARCHED, CLICKED]
    assert (tally.rows, tally.dropped, tally.unknown) == (2, {}, {})


@pytest.mark.parametrize("name", ["a.json", "a.ndjson.gz", "a.json.zst", "a.parquet", "a.csv"])
def test_every_form_gives_the_same(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    lines = "".join(json.dumps(each) + "\n" for each in (QUERY, CLICK))
    if name == "a.json":
        path.write_text(json.dumps([QUERY, CLICK], indent=1))
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(lines.encode()))
    elif name.endswith(".zst"):
        from karat.formats.tables.writing import beside

        with beside(path) as stream:
            stream.write(lines.encode())
    elif name.endswith(".parquet"):
        pl.DataFrame([QUERY, CLICK], infer_schema_length=None).write_parquet(path)
    else:
        # As a warehouse exports it: objects as JSON text.
        flat = [
            {k: v if isinstance(v, str) else json.dumps(v) for k, v in each.items()}
            for each in (QUERY, CLICK)
        ]
        pl.DataFrame(flat, infer_schema_length=None).write_csv(path)
    rows, tally = read(path)
    assert rows == [SEARCHED, CLICKED]
    assert not tally.dropped


def test_what_opensearch_stores_and_search_exports(tmp_path: Path) -> None:
    """Hits with _source; the plugin's query is the raw DSL, and position holds more."""
    query = {**QUERY, "query": '{"query":{"match":{"title":"red shoes"}}}'}
    click = json.loads(json.dumps(CLICK))
    click["event_attributes"]["position"] |= {"x": 3.5, "page_depth": 1}
    hits = [
        {"_index": "ubi_queries", "_id": "1", "_score": 1.0, "_source": query},
        {"_index": "ubi_events", "_id": "2", "_score": 1.0, "_source": click},
    ]
    rows, tally = read(written(tmp_path / "hits.ndjson", hits))
    assert rows == [SEARCHED, CLICKED]
    assert not tally.dropped


@pytest.mark.parametrize(
    ("position", "expected"),
    [({"index": 4}, 4), ({}, None), ({"xy": {"x": 1, "y": 2}}, None), (5, 5), ({"ordinal": 0}, 0)],
)
def test_positions_of_every_version_of_ubi(
    position: object, expected: int | None, tmp_path: Path
) -> None:
    click = {**CLICK, "event_attributes": {"position": position, "object": {"object_id": "x"}}}
    (row,), tally = read(written(tmp_path / "a.ndjson", [click]))
    assert row.get("position") == expected
    assert row["doc_id"] == "x"
    assert not tally.changed  # an object without a number is no number gone wrong


def test_the_old_name_of_returned_documents(tmp_path: Path) -> None:
    old = {k: v for k, v in QUERY.items() if k != "query_response_hit_ids"}
    old["query_response_objects_ids"] = ["d1", "d2"]
    assert read(written(tmp_path / "a.ndjson", [old]))[0] == [SEARCHED]


def test_rows_that_are_no_event_are_counted_with_their_lines(tmp_path: Path) -> None:
    bad = [
        {"client_id": "c", "timestamp": STAMP},
        {"action_name": "click", "client_id": "c", "timestamp": "soon"},
        {"action_name": "click", "client_id": "c", "timestamp": 86_400},
        {"action_name": "click", "client_id": "c", "timestamp": "2026-11-22T00:10:01Z"},
        {"action_name": "click", "timestamp": STAMP},
        {"action_name": "click", "client_id": "c" * 1025, "timestamp": STAMP},
        {"action_name": "click", "client_id": "c" * 1024, "timestamp": "2026-11-22T00:10:00Z"},
    ]
    rows, tally = read(written(tmp_path / "a.ndjson", bad))
    assert len(rows) == 1
    reasons = [NO_ROW, NO_TIME, TOO_EARLY, TOO_LATE, NO_USER, LONG_ID]
    assert tally.dropped == dict.fromkeys(reasons, 1)
    assert [tally.examples[each] for each in reasons] == [
        [f"a.ndjson, line {line}"] for line in range(1, 7)
    ]


def test_damaged_lines_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    sound = json.dumps(CLICK).encode()
    lines = [
        sound,
        b"not json",
        sound.replace(b'"s"', b'"\xff"'),
        sound.replace(b'"s"', b'"a\x00b"'),
        b"[1]",
        sound.replace(b'"s"', b'"\\ud800"'),
        b"",
        sound.replace(b'"s"', b'"\\ud83d\\ude00"'),
        sound[:40],
    ]
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"\n".join(lines))
    rows, tally = read(path)
    assert [row["session_id"] for row in rows] == ["s", "\N{GRINNING FACE}"]
    assert tally.rows == 8
    # Lines 2 to 6 and the half-written last one; of them 3 is no text.
    assert tally.dropped == {NO_JSON: 5, NO_TEXT: 1}
    assert tally.examples[NO_JSON] == [f"a.ndjson, line {line}" for line in (2, 4, 5)]
    assert tally.examples[NO_TEXT] == ["a.ndjson, line 3"]


@pytest.mark.deep  # a large file
def test_a_line_of_64_megabytes_is_dropped_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    sound = json.dumps(CLICK).encode() + b"\n"
    with path.open("wb") as stream:
        stream.write(sound)
        stream.write(b'{"a":"' + b"x" * (64 << 20) + b'"}\n')
        stream.write(sound + b'{"a":"' + b"y" * (10 << 20))
    tracemalloc.start()
    rows, tally = read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(rows) == 2
    assert tally.dropped == {TOO_LONG: 2}
    assert tally.examples[TOO_LONG] == ["a.ndjson, line 2", "a.ndjson, line 4"]
    assert peak < 32 << 20  # half of that one line


def test_hostile_strings_are_made_harmless_or_kept_as_they_are(tmp_path: Path) -> None:
    hostile = {
        **CLICK,
        "query_id": "q\x001\x1b[2J",
        "client_id": "=cmd|' /C calc'!A0",
        "event_attributes": {"object": {"object_id": "../../etc"}, "é/\u202e x": "v" * 300},
    }
    query = {**QUERY, "user_query": "a\n\tb" + "x" * 5000}
    rows, tally = read(written(tmp_path / "a.ndjson", [hostile, query]))
    assert rows[0]["query_id"] == "q1[2J"
    assert rows[0]["client_id"] == "=cmd|' /C calc'!A0"  # tables that are written defuse it
    assert rows[0]["doc_id"] == "../../etc"
    assert len(rows[1]["query"]) == 4096
    assert rows[1]["query"].startswith("a  bxx")
    assert sorted(tally.changed.values()) == [1, 1, 1, 1]
    assert not [name for row in rows for name in row if name.startswith("attribute_") and
                not name.removeprefix("attribute_").isascii()]  # fmt: skip


def test_attributes_are_bounded_and_what_is_left_out_is_named(tmp_path: Path) -> None:
    many = {f"a{at:03d}": at for at in range(40)}
    nested = {"filters": {"brand": ["x"]}, "boosts": {"a": 1}, "tags": ["x", "y"]}
    rows, tally = read(
        written(tmp_path / "a.ndjson", [{**QUERY, "query_attributes": nested | many}])
    )
    kept = [name for name in rows[0] if name.startswith("attribute_")]
    assert len(kept) == 32
    assert rows[0]["filtered"] is True
    assert {name.split(" ")[0] for name in tally.left_out} >= {"boosts", "tags", "a039"}


def test_values_as_names_do_not_make_a_column_each(tmp_path: Path) -> None:
    """Facets with a product's number for a name: 4,000 names in 400 rows."""
    rows = [
        {
            **QUERY,
            "query_id": str(at),
            "query_attributes": {f"sku{at}-{each}": 1 for each in range(10)},
        }
        for at in range(400)
    ]
    found, tally = read(written(tmp_path / "a.ndjson", rows))
    assert len(found) == 400
    assert any("more than 256 names" in each for each in tally.left_out)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"timed_out": True}, "timeout"),
        ({"error": "shard failed"}, "error"),
        ({"error": "", "timed_out": False}, "ok"),
        ({"status": 200}, "ok"),
        ({"status": 504}, "timeout"),
        ({"status": "500"}, "error"),
        ({"status": "shrug"}, None),
        ({}, None),
    ],
)
def test_how_a_search_ended(
    attributes: dict[str, object], expected: str | None, tmp_path: Path
) -> None:
    (row,), _ = read(written(tmp_path / "a.ndjson", [{**QUERY, "query_attributes": attributes}]))
    assert row.get("status") == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"latency_us": 7}, 7),
        ({"took": 7}, 7_000),
        ({"latency_s": 0.25}, 250_000),
        ({"latency": 7}, 7_000),  # taken for milliseconds, which is said
        ({"latency_ms": -1}, None),
        ({"latency_ms": "NaN"}, None),
    ],
)
def test_latency_by_the_unit_in_its_name(
    attributes: dict[str, object], expected: int | None, tmp_path: Path
) -> None:
    (row,), tally = read(
        written(tmp_path / "a.ndjson", [{**QUERY, "query_attributes": attributes}])
    )
    assert row.get("latency_us") == expected
    assert tally.assumed["latency"] == ("latency" in attributes)


def test_no_number_is_null_and_never_nan(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame(
        {
            "user_id": ["u", "u"],
            "timestamp": [TEN, TEN + 1],
            "action": ["purchase", "search"],
            "query": [None, "x"],
            "revenue": [float("nan"), 3.0],
            "position": [float("nan"), float("inf")],
            "total_hits": [1.0, float("nan")],
            "score": [float("nan"), 0.5],
        }
    ).write_parquet(path)
    rows, _ = read(path)
    assert [row.get("value") for row in rows] == [None, None]  # and no money of a search
    assert [row.get("position") for row in rows] == [None, None]
    assert [row.get("total_hits") for row in rows] == [None, None]
    assert [row.get("attribute_score") for row in rows] == [None, "0.5"]


def test_robots_are_marked_and_what_they_call_themselves_is_not_kept(tmp_path: Path) -> None:
    agents = ["Mozilla/5.0", "Googlebot/2.1", "python-requests/2", None]
    rows = [{**CLICK, "user_agent": agent} for agent in agents] + [{**CLICK, "is_bot": True}]
    found, _ = read(written(tmp_path / "a.ndjson", rows))
    assert [row["bot"] for row in found] == [False, True, True, False, True]
    assert not any("agent" in name or "is_bot" in name for row in found for name in row)


def test_unknown_actions_are_other_and_counted(tmp_path: Path) -> None:
    names = ["Add To Cart", "addToCart", "page-hide", "hover", "hover", "view", "search"]
    found, tally = read(
        written(tmp_path / "a.ndjson", [{**CLICK, "action_name": n} for n in names])
    )
    kinds = [row["kind"] for row in found]
    # A search without what was typed, or returned, may be the button.
    assert kinds == ["cart", "cart", "hide", "other", "other", "other", "other"]
    assert tally.unknown == {"hover": 2, "view": 1, "search": 1}


def test_csv_rows_that_do_not_fit_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(
        b"timestamp;user id;Event;doc_id\n"
        b"2026-11-20 10:00:00;u;click;a\n"
        b"2026-11-20 10:00:01;u;click\n"
        b'2026-11-20 10:00:02;u;click;"b;c"\n'
        b"2026-11-20 10:00:03;u;click;\xff\n"
        b"2026-11-20 10:00:04;u;cli"
    )
    rows, tally = read(path, zone="Europe/Berlin")
    assert [row["doc_id"] for row in rows] == ["a", "b;c"]
    # Berlin is an hour ahead in November.
    assert [row["time_us"] for row in rows] == [TEN - 3_600_000_000, TEN - 3_598_000_000]
    assert tally.assumed["naive"] == 2
    assert tally.dropped == {UNEVEN: 2, NO_TEXT: 1}


def test_what_is_no_log_is_refused_with_what_to_do(tmp_path: Path) -> None:
    damaged = gzip.compress((json.dumps(CLICK) + "\n").encode() * 500)[:-200]
    for data, said in (
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "binary data"),
        (damaged, "damaged or truncated"),
        (b"PAR1 and no more", "Parquet data is damaged"),
        (b"just words\nand more\n", "no header in line 1"),
        (b'[{"a":1},', "truncated"),
        (b'{\n "took": 3\n}', "JSON objects span several lines"),
    ):
        path = tmp_path / "log"
        path.write_bytes(data)
        with pytest.raises(InputError, match=said) as error:
            read(path)
        assert error.value.fix or said == "binary data"


def test_an_empty_file_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").touch()
    assert read(tmp_path / "a.ndjson")[0] == []


ENDLESS = '{"action_name":"click","client_id":"c","timestamp":1795168800,"event_attributes":'
ENDLESS += '{"x":1e999,"n":"\\n","device":"phone"}}\n'
HALF = 'user_id,timestamp,query,hits\nu,1795168800,x,"[""a\\ud800"",""b""]"\n'


@pytest.mark.parametrize(("name", "text"), [("a.ndjson", ENDLESS), ("a.csv", HALF)])
def test_numbers_and_letters_that_are_none(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    (row,), tally = read(tmp_path / name)
    assert not tally.dropped
    assert "attribute_x" not in row
    assert "hits" not in row
