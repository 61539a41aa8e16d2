"""Writes events as UBI 1.3 (User Behavior Insights), as JSON Lines.

https://github.com/o19s/ubi, schemas ``query.request`` and ``event``. ``karat.formats.events.log``
reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from karat.formats.events.vocabulary import ACTIONS, kind_of
from karat.formats.tables.jsonl import line_of
from karat.formats.tables.writing import beside
from karat.tables.online.events import ATTRIBUTE

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OF_QUERIES = ("total_hits", "raw_hits", "filtered", "page", "status", "latency_us", "arm")
_OF_EVENTS = ("arm",)
_FIELD = "doc_id"


def write_events(path: str | Path, frame: pl.DataFrame) -> None:
    """Write events as UBI 1.3, in row order.

    Searches become query records, all else events; ``user_id`` is written as ``client_id``. An
    action that would be read as another kind is replaced by the usual name of its kind.
    """
    attributes = {
        name: name.removeprefix(ATTRIBUTE) for name in frame.columns if name.startswith(ATTRIBUTE)
    }
    with beside(Path(path)) as stream:
        for row in frame.iter_rows(named=True):
            record = _query if row["kind"] == "search" else _event
            stream.write(line_of(dict(record(row, attributes))))


def _query(row: Mapping[str, Any], attributes: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    yield from _there(row, "query_id")
    yield "client_id", row["user_id"]
    yield from _there(row, "session_id")
    yield "user_query", row.get("query") or ""
    yield "timestamp", _stamp(row["time_us"])
    yield "object_id_field", _FIELD
    # Marks a query record, even if the query is empty.
    yield "query_response_id", row.get("query_id") or ""
    if row.get("hits") is not None:
        yield "query_response_hit_ids", row["hits"]
    more = dict(_more(row, _OF_QUERIES, attributes))
    if row.get("hits") is None:
        more.update(_there(row, "returned"))
    if more:
        yield "query_attributes", more


def _event(row: Mapping[str, Any], attributes: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    yield "action_name", _action(row)
    yield from _there(row, "query_id")
    yield "client_id", row["user_id"]
    yield from _there(row, "session_id")
    yield "timestamp", _stamp(row["time_us"])
    inner: dict[str, Any] = {}
    if row.get("position") is not None:
        inner["position"] = {"ordinal": row["position"]}
    if row.get("doc_id") is not None:
        inner["object"] = {"object_id": row["doc_id"], "object_id_field": _FIELD}
    if row.get("value") is not None:
        inner["revenue"] = row["value"]
    inner.update(_more(row, _OF_EVENTS, attributes))
    if inner:
        yield "event_attributes", inner


def _more(
    row: Mapping[str, Any], names: tuple[str, ...], attributes: Mapping[str, str]
) -> Iterator[tuple[str, Any]]:
    for name in names:
        yield from _there(row, name)
    if row.get("bot"):
        yield "is_bot", True
    for column, name in attributes.items():
        if row[column] is not None:
            yield name, row[column]


def _there(row: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    if row.get(name) is not None:
        yield name, row[name]


def _action(row: Mapping[str, Any]) -> str:
    kind, action = row["kind"], row.get("action")
    read_as = kind_of(action, {}) if action else None
    if action and (read_as == kind or (kind == "other" and read_as is None)):
        return str(action)
    return ACTIONS[kind][0] if kind in ACTIONS else "other"


def _stamp(time_us: int) -> str:
    moment = _EPOCH + timedelta(microseconds=time_us)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
