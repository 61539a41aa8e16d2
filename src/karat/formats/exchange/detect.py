"""Detects the format of another tool's file by its content, never by its name."""

from __future__ import annotations

import json
import re

from karat.errors import InputError
from karat.formats.exchange import plain as tables
from karat.formats.exchange.source_file import Node, SourceFile

# Top-level key to format; the first key that is present counts.
_KEYS = (
    ("query_doc_pairs", "quepid-book"),
    ("case_name", "quepid-case"),
    ("snapshots", "quepid-snapshot"),
    ("requests", "rank-eval"),
    ("details", "rank-eval-response"),
    ("rank_eval", "rank-eval-response"),
    ("judgmentRatings", "opensearch-judgments"),
    ("querySetQueries", "opensearch-queries"),
    ("queryText", "opensearch-queries"),
    ("topics", "rre"),
    ("query_groups", "rre"),
    ("file_format", "quepid-api"),
    ("ratings", "quepid-api"),
    ("docs", "quepid-snapshot"),
)
_FIX = "name its format, such as csv or quepid-csv"


def detect(content: SourceFile) -> str:
    data = content.data.lstrip()
    if data[:1] in (b"{", b"["):
        return _json(content)
    first = next((text for _, text in content.lines() if not text.startswith("#")), "")
    if re.match(r"\S+\s+qid:\S+\s", first):
        return "quepid-ltr"
    if re.match(r'query:\s*"', first):
        return "opensearch-queries"
    if (name := _sheet(content)) is not None:
        return name
    if re.fullmatch(r"\S+\s+\S+\s+\S+\s+[+-]?[\d.]+", first):
        return "trec"
    raise content.wrong("unknown format", fix=_FIX)


def _json(content: SourceFile) -> str:
    line = content.data.lstrip().partition(b"\n")[0]
    if line.startswith(b"{") and line.rstrip().endswith(b"}") and b'"queryText"' in line:
        return "opensearch-queries"
    if _golden(_object(line), content.data):
        return "golden-list"
    root = content.json()
    if isinstance(root.value, dict) and "karat_golden_set" in root.value:
        return "golden"
    if isinstance(root.value, list):
        first = root.value[0] if root.value else None
        if isinstance(first, dict) and "searchContext" in first:
            return "rankquest"
        if isinstance(first, dict) and "queryText" in first:
            return "opensearch-queries"
        if _golden(first, content.data):
            return "golden-list"
        raise InputError("unknown format of the JSON array", file=root.file, fix=_FIX)
    if (name := _by_keys(root)) is not None:
        return name
    names = ", ".join(map(repr, list(root.value)[:8])) or "nothing"
    raise InputError(
        f"unknown format; the JSON object has the keys {names}", file=root.file, fix=_FIX
    )


def _golden(first: object, data: bytes) -> bool:
    """Whether an object is the first query of a golden set."""
    if not isinstance(first, dict) or not {"query", "text"} & first.keys():
        return False
    return "relevant_docs" in first or b'"relevant_docs"' in data


def _object(line: bytes) -> object:
    """The object on a line of JSON Lines; None if it is not a complete object."""
    try:
        return json.loads(line) if line.startswith(b"{") else None
    except (ValueError, RecursionError):
        return None


def _by_keys(root: Node) -> str | None:
    source = root.get("_source") or root
    hits = root.get("hits")
    if hits is not None and isinstance(hits.value, dict):
        inner = hits.value.get("hits")
        if isinstance(inner, list) and inner and isinstance(inner[0], dict):
            source = Node(inner[0].get("_source"), ".hits.hits[0]._source", root.file)
    if not isinstance(source.value, dict):
        return None
    for key, name in _KEYS:
        if source.has(key):
            return name
    queries = source.value.get("queries")
    first = queries[0] if isinstance(queries, list) and queries else None
    if not isinstance(first, dict):
        return None
    return "rre" if "placeholders" in first else "quepid-json" if "query" in first else None


def _sheet(content: SourceFile) -> str | None:
    """The format of a CSV file, by its column names."""
    sheet = content.sheet()
    names = sheet.names
    folded = [name.casefold().replace("_", " ") for name in names]
    known = set(folded)
    if known in ({"query", "docid", "rating"}, {"query", "doc id", "rating"}):
        return "csv" if sheet.separator == "\t" else "quepid-csv"
    if known & {"doc position", "position"}:
        detailed = {"case name", "rating"} <= known
        return "quepid-case-csv" if detailed else "quepid-snapshot-csv"
    if {"query", "information need"} == known or {"case name", "query text"} <= known:
        return "quepid-case-csv"
    found = tables.columns(names)
    if {"doc_id", "grade"} <= set(found) and set(found) & {"query_id", "text"}:
        return "csv"
    if folded[:2] == ["query", "docid"]:
        return "quepid-book-csv"
    return None
