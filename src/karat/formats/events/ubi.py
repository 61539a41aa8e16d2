"""Writes events as UBI 1.3 (User Behavior Insights), as JSON Lines.

https://github.com/o19s/ubi, schemas ``query.request`` and ``event``. ``karat.formats.events.log``
reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from karat.formats.events.vocabulary import ACTIONS, kind_of
from karat.formats.tables.jsonl import line_of
from karat.formats.tables.writing import beside
from karat.tables.online.events import ATTRIBUTE, Kind

_ROWS = 4096  # rows written at once
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
    times = frame.with_columns(pl.from_epoch("time_us", "us").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ"))
    with beside(Path(path)) as stream:
        for part in times.iter_slices(_ROWS):
            lines = []
            for row in part.iter_rows(named=True):
                record = _query if row["kind"] == "search" else _event
                lines.append(line_of(_known(record(row, attributes))))
            stream.write(b"".join(lines))


def _query(row: Mapping[str, Any], attributes: Mapping[str, str]) -> dict[str, Any]:
    hits = row.get("hits")
    more = _more(row, _OF_QUERIES, attributes)
    if hits is None:
        more["returned"] = row.get("returned")
    return {
        "query_id": row.get("query_id"),
        "client_id": row["user_id"],
        "session_id": row.get("session_id"),
        "user_query": row.get("query") or "",
        "timestamp": row["time_us"],
        "object_id_field": _FIELD,
        # Marks a query record, even if the query is empty.
        "query_response_id": row.get("query_id") or "",
        "query_response_hit_ids": hits,
        "query_attributes": _known(more) or None,
    }


def _event(row: Mapping[str, Any], attributes: Mapping[str, str]) -> dict[str, Any]:
    position, doc_id = row.get("position"), row.get("doc_id")
    inner = {
        "position": None if position is None else {"ordinal": position},
        "object": None if doc_id is None else {"object_id": doc_id, "object_id_field": _FIELD},
        "revenue": row.get("value"),
        **_more(row, _OF_EVENTS, attributes),
    }
    return {
        "action_name": _action(row["kind"], row.get("action")),
        "query_id": row.get("query_id"),
        "client_id": row["user_id"],
        "session_id": row.get("session_id"),
        "timestamp": row["time_us"],
        "event_attributes": _known(inner) or None,
    }


def _more(
    row: Mapping[str, Any], names: tuple[str, ...], attributes: Mapping[str, str]
) -> dict[str, Any]:
    more = {name: row.get(name) for name in names}
    more["is_bot"] = row.get("bot") or None
    for column, name in attributes.items():
        if row[column] is not None:
            more[name] = row[column]
    return more


def _known(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value is not None}


@lru_cache(1024)
def _action(kind: Kind, action: str | None) -> str:
    read_as = kind_of(action, {}) if action else None
    if action and (read_as == kind or (kind == "other" and read_as is None)):
        return str(action)
    return ACTIONS[kind][0] if kind in ACTIONS else "other"
