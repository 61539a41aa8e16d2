"""UBI 1.3: what is written comes back in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.choosing import FEW

from karat.formats.events.ubi import write_events
from karat.store.events.log import read_event_log
from karat.tables.schema import EVENTS
from karat.workflows.online.import_events import import_events

NOW = 1_795_305_600_000_000  # 2026-11-22T00:00:00Z
TEN = 1_795_168_800_000_000  # 2026-11-20T10:00:00Z
TYPES = {column.name: column.dtype for column in EVENTS}
LETTERS = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=12).filter(
    lambda text: text == text.strip()
)
QUERIES = LETTERS.filter(lambda text: "\ufeff" not in text)


def searches() -> st.SearchStrategy[dict[str, Any]]:
    """Searches with what a log may say of them."""
    return st.fixed_dictionaries(
        {
            "user_id": LETTERS,
            "time_us": st.integers(TEN, NOW),
            "kind": st.just("search"),
            "action": st.just("search"),
            "query_id": LETTERS,
            "query": st.none() | QUERIES,
            "hits": st.none() | st.lists(LETTERS, max_size=4),
            "total_hits": st.none() | st.integers(0, 2**40),
            "raw_hits": st.none() | st.integers(0, 2**40),
            "filtered": st.none() | st.booleans(),
            "page": st.none() | st.integers(1, 99),
            "status": st.sampled_from([None, "ok", "error", "timeout"]),
            "latency_us": st.none() | st.integers(0, 10**9),
            "arm": st.none() | LETTERS,
            "bot": st.booleans(),
        }
    )


def events() -> st.SearchStrategy[dict[str, Any]]:
    """Events of the other kinds."""
    actions = [("click", "click"), ("cart", "add_to_cart"), ("hide", "page_hide"),
               ("purchase", "purchase"), ("other", "hover"), ("answer", "answer_view"),
               ("impression", "impression"), ("heartbeat", "checkin")]  # fmt: skip
    return st.tuples(
        st.sampled_from(actions),
        st.fixed_dictionaries(
            {
                "user_id": LETTERS,
                "time_us": st.integers(TEN, NOW),
                "query_id": st.none() | LETTERS,
                "session_id": st.none() | LETTERS,
                "doc_id": st.none() | LETTERS,
                "position": st.none() | st.integers(1, 1000),
                "value": st.none() | st.floats(0, 1e6),
                "arm": st.none() | LETTERS,
                "bot": st.booleans(),
                "attribute_device": st.sampled_from([None, "phone", "desktop"]),
            }
        ),
    ).map(lambda pair: {"kind": pair[0][0], "action": pair[0][1], **pair[1]})


@settings(FEW, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(searches() | events(), min_size=1, max_size=8))
def test_what_is_written_comes_back(
    rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("ubi")
    # The value is that of purchases, and what is equal in all that tells events apart is one.
    keys = ("user_id", "time_us", "kind", "action", "query_id", "doc_id", "position")
    told: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in rows:
        if row["kind"] != "purchase":
            row = {name: value for name, value in row.items() if name != "value"}  # noqa: PLW2901
        told.setdefault(tuple(row.get(name) for name in keys), row)
    schema = {**TYPES, "attribute_device": pl.String()}
    names = {name for row in told.values() for name in row}
    frame = pl.DataFrame(list(told.values()), {n: t for n, t in schema.items() if n in names})
    write_events(folder / "log.ndjson.gz", frame)
    done = import_events(folder / "s", [folder / "log.ndjson.gz"], now=NOW, position_base=1)
    assert (done.kept, done.dropped) == (len(told), {})
    (stored,) = read_event_log(folder / "s").files
    back = pl.read_parquet(stored.path)
    same = sorted(names & set(back.columns))
    lacking = names - set(back.columns)
    assert all(row.get(name) is None for row in told.values() for name in lacking)
    order = [name for name in keys if name in names]
    left, right = (each.select(same).sort(order, nulls_last=True) for each in (frame, back))
    assert left.to_dicts() == right.to_dicts()


def test_it_is_what_the_schema_of_ubi_names(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "user_id": ["u", "u"],
            "time_us": [TEN, TEN + 1_500_000],
            "kind": ["search", "cart"],
            "action": ["search", "in den Korb"],
            "query_id": ["q", "q"],
            "query": ["Schuhe", None],
            "hits": [["a", "b"], None],
            "doc_id": [None, "a"],
            "position": [None, 1],
        }
    )
    write_events(tmp_path / "a.ndjson", frame)
    query, event = map(json.loads, (tmp_path / "a.ndjson").read_text().splitlines())
    assert query == {
        "query_id": "q",
        "client_id": "u",
        "user_query": "Schuhe",
        "timestamp": "2026-11-20T10:00:00.000000Z",
        "object_id_field": "doc_id",
        "query_response_id": "q",
        "query_response_hit_ids": ["a", "b"],
    }
    # An action that nobody else would take for a cart is written as UBI calls it.
    assert event == {
        "action_name": "add_to_cart",
        "query_id": "q",
        "client_id": "u",
        "timestamp": "2026-11-20T10:00:01.500000Z",
        "event_attributes": {
            "position": {"ordinal": 1},
            "object": {"object_id": "a", "object_id_field": "doc_id"},
        },
    }
