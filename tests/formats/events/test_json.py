"""JSON read at once and one by one: whatever an object holds, the events are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karat.formats.events.flatten import Reading
from karat.formats.events.json import NO_JSON
from karat.formats.events.log import read_events
from karat.formats.events.tally import Tally

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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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
