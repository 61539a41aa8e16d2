"""Saved baselines, as JSON: the head, then one query per line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from karat.errors import InputError
from karat.formats.own.fields import Fields, Kind, finite, to_bytes
from karat.formats.tables.detect import own_kind
from karat.formats.tables.source import EmptyFile, Source
from karat.formats.tables.writing import beside
from karat.tables.checksum import checksum
from karat.tables.release.baseline import VERSION, SavedBaseline

_REMADE = "karat gate --save-baseline FILE --policy FILE QRELS RUN makes a new one"
_KIND = Kind("baseline", VERSION, _REMADE)
_HEAD = (
    *("karat", "run", "measures", "rel", "complete", "depth", "collapse", "hashes", "p95_us"),
    *("sha256", "queries"),
)
_QUERY = ("query_id", "answered", "values")
_TIME = "latency_us"  # of a query that was timed
_HASHES = ("qrels", "queries", "chunks", "run")
_STATES = ("ok", "empty", "missing", "failed")


def write_baseline(baseline: SavedBaseline, path: str | Path) -> None:
    """Write a baseline; a name in ``.gz`` compresses it. Raises InputError if it cannot."""
    with beside(Path(path)) as stream:
        stream.write(to_bytes(baseline.to_dict()))


def holds_baseline(path: str | Path) -> bool:
    """Whether a file is a saved baseline rather than a run."""
    where = Path(path)
    if str(path) == "-" or ".json" not in where.suffixes or not where.is_file():
        return False
    try:
        with Source(path) as source:
            return own_kind(source) == "a saved baseline"
    except EmptyFile:
        return False


def read_baseline(path: str | Path) -> SavedBaseline:
    with Source(path) as source:
        data, name = source.whole(), source.name
    content = _KIND.content(data, name)
    head = Fields(content, _HEAD, name, _REMADE)
    measures = head.get("measures", list, "a list of measures")
    if not measures or any(not isinstance(measure, str) for measure in measures):
        raise head.wrong("measures", "a list of measures")
    hashes = Fields(head.get("hashes", dict, "hashes"), _HASHES, name, _REMADE, "hashes")
    answered: dict[str, str] = {}
    values: dict[str, tuple[float | None, ...]] = {}
    times: dict[str, float] = {}
    for place, row in enumerate(head.get("queries", list, "a list of queries"), start=1):
        timed = isinstance(row, dict) and _TIME in row
        names = (*_QUERY, _TIME) if timed else _QUERY
        query = Fields(row, names, name, _REMADE, f"query number {place}")
        query_id = query.get("query_id", str, "an id")
        state = query.get("answered", str, "a state")
        row_values = query.get("values", list, "a list of values")
        if state not in _STATES:
            raise query.wrong("answered", f"one of {', '.join(_STATES)}")
        if query_id in values:
            raise InputError("duplicate query", file=name, query=query_id, fix=_REMADE)
        if len(row_values) != len(measures) or any(
            v is not None and finite(v) is None for v in row_values
        ):
            raise query.wrong("values", f"{len(measures)} numbers or nulls")
        if timed:
            times[query_id] = query.number(_TIME)
        answered[query_id] = state
        values[query_id] = tuple(None if value is None else float(value) for value in row_values)
    if head.get("sha256", str, "text") != _checksum(content):
        raise InputError(
            "the file is damaged or was edited: its sha256 does not match its content",
            file=name,
            fix=_REMADE,
        )
    return SavedBaseline(
        measures=tuple(measures),
        rel=head.above_zero("rel"),
        hashes={key: hashes.text_or_none(key) for key in _HASHES},
        answered=answered,
        values=values,
        times_us=times,
        source=name,
        **head.plain(SavedBaseline, "rel"),
    )


def _checksum(content: Mapping[str, Any]) -> str:
    """The checksum of the content as written, to the last digit."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    return checksum({_KIND.mark: VERSION} | rest)
