"""Files of traces: JSON lines, one for each query and stage, Parquet, and spans of OpenTelemetry.

A line is::

    {"query_id": "q1", "stage": "bm25", "kind": "retrieve", "parents": [], "latency_us": 4100,
     "parameters": {"k": 100}, "state": "ok",
     "candidates": [{"doc_id": "a", "rank": 1, "score": 7.2, "parts": {"title": 3.1}}]}

Only ``query_id``, ``stage`` and ``kind`` are needed. A missing ``rank`` is the place in the list.
``started_us``, ``parse`` (the query as the engine understood it) and ``error`` are optional.
Parquet has the columns of ``tables.diagnosis.traces.COLUMNS``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import InputError, nearest
from karat.formats.own import _spans
from karat.formats.tables import parquet
from karat.formats.tables.jsonl import parsed
from karat.formats.tables.source import Source
from karat.formats.tables.writing import beside
from karat.tables.diagnosis.traces import COLUMNS, Trace

_KEYS = (
    *("query_id", "stage", "kind", "parents", "started_us", "latency_us", "parameters", "parse"),
    *("state", "error", "candidates"),
)


def read_trace(path: str | Path, queries: Mapping[str, str] | None = None) -> Trace:
    with Source(path) as source:
        if source.head.startswith(b"PAR1"):
            return _from_parquet(source)
        lines = ((number, raw) for number, raw in source.lines() if raw.strip())
        if b'"resourceSpans"' in source.head or b'"resource_spans"' in source.head:
            rows = _spans.rows_of(_one_value(lines, source.name), source.name, queries or {})
        else:
            rows = (_row(number, raw, source.name) for number, raw in lines)
        return Trace(pl.DataFrame(list(rows), schema=COLUMNS, strict=True), source.name)


def write_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace as Parquet or, for any other extension, as JSON lines."""
    target = Path(path)
    with beside(target) as stream:
        if target.suffix.lower() in {".parquet", ".pq"}:
            trace.frame.write_parquet(stream, compression="zstd", statistics=False)
            return
        for row in trace.frame.iter_rows(named=True):
            stream.write(line_of(row).encode() + b"\n")


def line_of(row: Mapping[str, Any]) -> str:
    """A row of ``COLUMNS`` as a line."""
    line = {key: row[key] for key in _KEYS[:-1] if row.get(key) is not None}
    if "parameters" in line:
        line["parameters"] = json.loads(line["parameters"])
    blank = [None] * len(row["doc_ids"] or ())
    lists = [
        row["doc_ids"] or (),
        row["ranks"] or (),
        row["scores"] or blank,
        row["parts"] or blank,
    ]
    line["candidates"] = [
        {"doc_id": doc_id, "rank": rank}
        | ({} if score is None else {"score": score})
        | ({} if parts is None else {"parts": json.loads(parts)})
        for doc_id, rank, score, parts in zip(*lists, strict=True)
    ]
    return json.dumps(line, ensure_ascii=False)


def _from_parquet(source: Source) -> Trace:
    plan, names = parquet.scan(source)
    missing = [name for name in ("query_id", "stage", "kind", "doc_ids") if name not in names]
    if missing:
        raise source.wrong(
            f"not a trace: it has no column {missing[0]}", fix=f"columns {', '.join(COLUMNS)}"
        )
    try:
        frame = plan.collect()
        for name, dtype in COLUMNS.items():
            if name not in names:
                frame = frame.with_columns(pl.lit(None, dtype).alias(name))
        if "ranks" not in names:
            ranks = pl.int_ranges(1, pl.col("doc_ids").list.len() + 1, dtype=pl.UInt32)
            frame = frame.with_columns(ranks=ranks)
        return Trace(frame, source.name)
    except parquet.BROKEN as error:
        raise source.wrong(f"not a readable trace: {error}") from None


def _one_value(lines: Iterator[tuple[int, bytes]], name: str) -> Iterator[Any]:
    """The JSON values of a file with one value on each line, or one value on many lines."""
    several = list(lines)
    try:
        yield from [json.loads(raw) for _, raw in several]
    except (ValueError, RecursionError):
        yield parsed(b"\n".join(raw for _, raw in several), name, 1, None)


def _row(line: int, raw: bytes, name: str) -> dict[str, Any]:
    def wrong(what: str, fix: str | None = None) -> InputError:
        return InputError(what, file=name, line=line, fix=fix)

    row = parsed(raw, name, line, None)
    if not isinstance(row, dict):
        raise wrong("not a JSON object", "one object for each query and stage")
    for key in row:
        if key not in _KEYS:
            near = nearest(key, _KEYS, 1)
            raise wrong(
                f"unknown key {key!r} of a stage",
                f"did you mean {near[0]}?" if near else f"one of {', '.join(_KEYS)}",
            )
    for key in ("query_id", "stage", "kind"):
        if not isinstance(row.get(key), str) or not row[key]:
            raise wrong(f"{key} is {row.get(key)!r}, not a text", f'"{key}": "…"')
    listed = row.get("candidates") or []
    try:
        lists = _candidates(listed)
        parameters = row.get("parameters")
        return {
            "query_id": row["query_id"],
            "stage": row["stage"],
            "kind": row["kind"],
            "parents": [str(parent) for parent in row.get("parents") or []],
            "state": row.get("state"),
            "started_us": _whole(row.get("started_us")),
            "latency_us": _whole(row.get("latency_us")),
            "parameters": None if parameters is None else json.dumps(parameters),
            "parse": row.get("parse"),
            "error": row.get("error"),
            **lists,
        }
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        pass
    raise wrong(*_cause(row, listed))


def _candidates(listed: list[dict[str, Any]]) -> dict[str, Any]:
    """The lists of a stage; raises one of several errors for what is not a candidate."""
    doc_ids = [candidate["doc_id"] for candidate in listed]
    if not all(type(doc_id) is str and doc_id for doc_id in doc_ids):
        doc_ids = [_id(doc_id) for doc_id in doc_ids]
    ranks: list[Any] = [int(candidate.get("rank", at)) for at, candidate in enumerate(listed, 1)]
    scores = [candidate.get("score") for candidate in listed]
    parts = [candidate.get("parts") for candidate in listed]
    if sorted(ranks) != ranks:
        order = sorted(range(len(ranks)), key=ranks.__getitem__)
        doc_ids, ranks, scores, parts = (
            [values[at] for at in order] for values in (doc_ids, ranks, scores, parts)
        )
    known = [score for score in scores if score is not None]
    if known and (len(known) < len(scores) or any(float(score) != score for score in known)):
        raise ValueError("scores")
    if min(ranks, default=1) < 1:
        raise ValueError("ranks")
    return {
        "doc_ids": doc_ids,
        "ranks": ranks,
        "scores": [float(score) for score in known] or None,
        "parts": [json.dumps(part) for part in parts] if any(parts) else None,
    }


def _id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise TypeError(value)
    return str(value)


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


def _cause(row: dict[str, Any], listed: Any) -> tuple[str, str]:
    """What is wrong with a line, and the fix."""
    form = '{"doc_id": "a", "rank": 1, "score": 7.2}'
    if not isinstance(listed, list):
        return "candidates is not a list", f'"candidates": [{form}]'
    for at, candidate in enumerate(listed, 1):
        try:
            _candidates([candidate | {"rank": candidate.get("rank", at)}])
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            return f"candidate {at} is {json.dumps(candidate)[:80]}, not a document", form
    for key in ("started_us", "latency_us"):
        try:
            _whole(row.get(key))
        except (TypeError, ValueError, OverflowError):
            return f"{key} is {row[key]!r}, not a whole number", f'"{key}": 4100'
    if not isinstance(row.get("parents") or [], list):
        return f"parents is {row['parents']!r}, not a list", '"parents": ["bm25"]'
    return "some candidates have a score and others none", "give all of them one, or none"
