"""JSON read at once and one by one: whatever an object holds, the events are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.errors import InputError
from karat.formats.events.flatten import Reading
from karat.formats.events.json import NO_JSON, is_answer, objects
from karat.formats.events.log import read_events
from karat.formats.events.tally import Tally
from karat.formats.tables.source import Source

NOW = 1_795_305_600_000_000  # 2026-11-22T00:00:00Z


def read(path: Path) -> tuple[list[dict[str, Any]], Tally]:
    """The events of a log without what is null, and what became of its rows."""
    tally = Tally(path.name)
    rows = [
        {name: value for name, value in row.items() if value is not None and name != "_line"}
        for frame in read_events(path, Reading(NOW), tally)
        for row in frame.iter_rows(named=True)
    ]
    return rows, tally


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "ordinal", "object_id", "index"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
FIELDS = ["action_name", "user_query", "position", "object", "page", "error", "x", "y z", "hits"]
OBJECTS = st.fixed_dictionaries(
    {"client_id": st.just("c"), "timestamp": st.integers(1_700_000_000, 1_790_000_000)},
    optional={
        "event_attributes": st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4),
        "query_attributes": st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4),
        **dict.fromkeys(("action_name", "user_query", "query_id", "extra", "page"), VALUES),
    },
)


@settings(FEW, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(objects=st.lists(OBJECTS, min_size=1, max_size=6))
def test_lines_read_at_once_and_one_by_one_are_the_same(
    objects: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Lines go through Polars; an array, and a chunk with a bad line, through Python."""
    folder = tmp_path_factory.mktemp("law")
    lines = "".join(json.dumps(each) + "\n" for each in objects)
    (folder / "a.ndjson").write_text(lines)
    together, fine = read(folder / "a.ndjson")
    (folder / "b.ndjson").write_text(lines + "bad\n")
    one_by_one, careful = read(folder / "b.ndjson")
    (folder / "c.json").write_text(json.dumps(objects))
    array, _ = read(folder / "c.json")
    assert together == one_by_one == array
    assert careful.dropped.pop(NO_JSON) == 1
    assert careful.dropped == fine.dropped


CLICK = {"action_name": "click", "client_id": "c", "timestamp": 1_795_168_800}


def answer(*clients: str) -> dict[str, Any]:
    """What _search says of some events."""
    found = [
        {"_index": "ubi_events", "_id": str(at), "_score": 1.0, "_source": CLICK | {"client_id": c}}
        for at, c in enumerate(clients)
    ]
    total = {"value": len(clients), "relation": "eq"}
    return {
        "took": 3, "timed_out": False, "_shards": {"total": 1, "failed": 0},
        "hits": {"total": total, "max_score": None, "hits": found},
        "aggregations": {"a": {"buckets": [{"key": "}]"}]}},
    }  # fmt: skip


def clients(path: Path) -> tuple[list[str], Tally]:
    """Whose events are in a log."""
    tally = Tally(path.name)
    frames = read_events(path, Reading(NOW), tally)
    return [row["client_id"] for frame in frames for row in frame.iter_rows(named=True)], tally


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("times", [1, 3])
def test_an_answer_is_read_as_it_is(indent: int | None, times: int, tmp_path: Path) -> None:
    """On a line, over several, and as a scroll appends them to each other."""
    path = tmp_path / "answer.json"
    path.write_text("\n".join([json.dumps(answer("a", "b"), indent=indent)] * times) + "\n")
    found, tally = clients(path)
    assert found == ["a", "b"] * times
    assert (tally.rows, tally.unit, tally.dropped) == (2 * times, "object", {})


def test_an_answer_larger_than_a_line_may_be(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    many = [f"{at:0200d}" for at in range(20_500)]
    path.write_text(json.dumps(answer(*many)))
    assert path.stat().st_size > 4 << 20
    assert clients(path)[0] == many


def test_an_answer_without_hits_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(answer()))
    assert clients(path)[0] == []


@pytest.mark.parametrize("cut", [0.4, 0.9])
def test_an_answer_that_is_cut_short_is_refused(cut: float, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    text = json.dumps(answer("a", "b"))
    path.write_text(text[: int(cut * len(text))])
    if not is_answer(path.read_text()):
        pytest.fail("it begins as an answer")
    with pytest.raises(InputError, match="truncated"):
        clients(path)


def test_a_line_that_looks_like_one_is_a_line(tmp_path: Path) -> None:
    """A log may keep a whole answer beside the query: that is a record of a search."""
    path = tmp_path / "log.ndjson"
    record = {**CLICK, "client_id": "x", "hits": answer("a")["hits"]}
    path.write_text(json.dumps(record) + "\n")
    assert clients(path)[0] == ["x"]
    assert not is_answer(json.dumps({"hits": ["d1", "d2"], "took": 3}))


VALUES_OF_ANSWERS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@FEW
@given(
    st.lists(VALUES_OF_ANSWERS, max_size=6),
    VALUES_OF_ANSWERS,
    st.integers(1, 40),
    st.sampled_from([None, 1]),
)
def test_wherever_a_piece_ends_the_hits_are_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    inside: list[Any],
    other: object,
    size: int,
    indent: int | None,
) -> None:
    path = tmp_path_factory.mktemp("law") / "a"
    around = {"max": other, "hits": inside, "x": 1}
    told = {"took": 1, "suggest": other, "hits": around, "status": 2}
    data = json.dumps(told, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch, Source(path) as source:
        cut = [data[at : at + size] for at in range(0, len(data), size)]
        patch.setattr(source, "pieces", lambda: iter(cut))
        assert [value for value, _ in objects(source)] == inside
