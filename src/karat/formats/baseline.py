"""Saved baselines, as JSON: the head, then one query to a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from karat.errors import InputError
from karat.formats.fields import Fields, finite, short
from karat.formats.jsonl import parsed
from karat.formats.source import Source
from karat.formats.writing import beside
from karat.tables.baseline import VERSION, SavedBaseline

_MARK = "karat_baseline"
_REMADE = "karat gate --save-baseline FILE QRELS RUN makes a new one"
_HEAD = (*("karat", "run", "measures", "rel", "complete", "depth", "hashes", "p95_us", "queries"),)
_QUERY = ("query_id", "answered", "values")
_HASHES = ("qrels", "queries", "run")
_STATES = ("ok", "empty", "missing", "failed")


def write_baseline(baseline: SavedBaseline, path: str | Path) -> None:
    """Write a baseline beside its place, then rename it; compressed by its name (``.gz``).

    Raises:
        InputError: it cannot be written.
    """
    content = baseline.to_dict()
    queries = ",\n".join(f"  {_dumped(query)}" for query in content.pop("queries"))
    with beside(Path(path)) as stream:
        stream.write(f'{_dumped(content)[:-1]}, "queries": [\n{queries}\n]}}\n'.encode())


def holds_baseline(path: str | Path) -> bool:
    """Whether a file is a saved baseline, and not a run."""
    where = Path(path)
    if str(path) == "-" or ".json" not in where.suffixes or not where.is_file():
        return False
    with Source(path) as source:
        return source.whole()[:40].lstrip().startswith(f'{{"{_MARK}"'.encode())


def read_baseline(path: str | Path) -> SavedBaseline:
    """A saved baseline from a file, plain or compressed.

    Raises:
        InputError: it cannot be read, is damaged, or is no baseline.
    """
    with Source(path) as source:
        data, name = source.whole(), source.name
    content = parsed(data, name, 1)
    if not isinstance(content, dict) or _MARK not in content:
        raise InputError("this is no saved baseline of karat's", file=name, fix=_REMADE)
    version = content.pop(_MARK)
    if version != VERSION or isinstance(version, bool):
        newer = isinstance(version, int) and version > VERSION
        raise InputError(
            f"it is a baseline of version {short(version)}, and this karat reads {VERSION}",
            file=name,
            fix="pip install --upgrade karat" if newer else _REMADE,
        )
    head = Fields(content, _HEAD, name, _REMADE)
    measures = head.get("measures", list, "a list of measures")
    if not measures or any(not isinstance(measure, str) for measure in measures):
        raise head.wrong("measures", "a list of measures")
    hashes = Fields(head.get("hashes", dict, "hashes"), _HASHES, name, _REMADE, "hashes")
    answered: dict[str, str] = {}
    values: dict[str, tuple[float | None, ...]] = {}
    for place, row in enumerate(head.get("queries", list, "a list of queries"), start=1):
        query = Fields(row, _QUERY, name, _REMADE, f"query number {place}")
        query_id = query.get("query_id", str, "an id")
        state = query.get("answered", str, "a state")
        given = query.get("values", list, "a list of values")
        if state not in _STATES:
            raise query.wrong("answered", f"one of {', '.join(_STATES)}")
        if query_id in values:
            raise InputError("the query stands twice", file=name, query=query_id, fix=_REMADE)
        if len(given) != len(measures) or any(v is not None and finite(v) is None for v in given):
            raise query.wrong("values", f"{len(measures)} numbers or nulls")
        answered[query_id] = state
        values[query_id] = tuple(None if value is None else float(value) for value in given)
    return SavedBaseline(
        karat=head.get("karat", str, "a version"),
        run=head.get("run", str, "a name"),
        measures=tuple(measures),
        rel=head.above_zero("rel"),
        complete=head.get("complete", bool, "true or false"),
        depth=None if content["depth"] is None else head.get("depth", int, "a depth or null"),
        hashes={key: _hash(hashes, key) for key in _HASHES},
        answered=answered,
        values=values,
        p95_us=head.maybe("p95_us"),
        source=name,
    )


def _hash(hashes: Fields, key: str) -> str | None:
    found: str | None = None
    if hashes.value[key] is not None:
        found = hashes.get(key, str, "a SHA-256 or null")
    return found


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
