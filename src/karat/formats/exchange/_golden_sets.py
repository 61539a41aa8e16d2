"""karat's golden sets, and plain lists of queries with their relevant documents."""

from __future__ import annotations

import json
import math
from typing import Any

import polars as pl

from karat.formats.exchange.export import Export
from karat.formats.exchange.import_ import JUDGED, ImportBuilder, ImportedExchange, counted, held
from karat.formats.exchange.source_file import SourceFile
from karat.formats.own import golden
from karat.golden.query import (
    PERSON,
    GoldenQuery,
    Judgment,
    judgment_frame,
    query_frame,
    without_relevant,
)
from karat.tables.golden.golden_sets import Exchange

CLICKS = "clicks"  # source of grades derived from clicks, and the name of their rater
_RESERVED = {"query", "relevant_docs", "sources"}


def read(gathered: ImportBuilder, foreign: SourceFile) -> Exchange:
    """A golden set or a plain list."""
    golden_set = golden.parse(foreign.data, foreign.name)
    if not golden_set.queries:
        raise foreign.wrong("the golden set has no queries")
    said = {(q.query_id, d): j.source for q in golden_set.queries for d, j in q.judgments.items()}
    frame = judgment_frame(golden_set.queries)
    raters = [CLICKS if source == CLICKS else None for source in said.values()]
    judged = frame.with_columns(
        rater=pl.Series(raters, dtype=pl.String), reason=pl.lit(None, pl.String)
    )
    result = ImportedExchange(
        gathered.format,
        queries=query_frame(golden_set.queries, foreign.name),
        judgments=judged.select(*JUDGED) if judged.height else None,
        sources={CLICKS: CLICKS} if CLICKS in raters else {},
        scale=golden_set.scale,
        made_ids=not any(f'"{key}"'.encode() in foreign.data for key in golden.IDS),
    )
    result.kept.extend(held(result))
    waiting = sum(not query.judged for query in golden_set.queries)
    if waiting:
        result.kept.append(f"{counted(waiting, 'query')} not judged yet")
    if without := without_relevant(golden_set.queries):
        result.lost.append(f"{counted(len(without), 'query')} without a relevant document")
    others = {source for source in said.values() if source not in (PERSON, CLICKS)}
    if others:
        result.lost.append(f"sources of grades: {', '.join(sorted(others)[:5])}")
    return result


def write(leaving: Export) -> bytes:
    """A golden set of karat's: with the scale, attributes, and queries not judged yet."""
    for name in sorted(_RESERVED & {name for row in leaving.queries.values() for name in row}):
        leaving.lost.append(f"the attribute {name!r} of queries: the name is reserved")
    return golden.to_bytes(golden.GoldenFile(_queries(leaving), None, leaving.exchange.scale))


def write_list(leaving: Export) -> bytes:
    """A JSON array of ``{"query", "relevant_docs", "category", "difficulty"}``."""
    return golden.simple(_queries(leaving))


def _queries(leaving: Export) -> list[GoldenQuery]:
    out = []
    for query, row in leaving.queries.items():
        grades = {r.doc_id: Judgment(r.grade) for r in leaving.of(query) if r.grade is not None}
        attributes = {
            name: _plain(value)
            for name, value in row.items()
            if name not in {"text", "no_answer", *_RESERVED} and _plain(value) is not None
        }
        silent = bool(row.get("no_answer"))
        text = leaving.texts[query]
        out.append(GoldenQuery(query, text, grades, silent, attributes, judged=bool(grades)))
    return out


def _plain(value: Any) -> Any:
    """An attribute as a JSON scalar; None if it has no value."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
