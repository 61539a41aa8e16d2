"""Spans of OpenTelemetry, in OTLP JSON, as stages of a trace.

Read are the conventions of OpenInference (spec of 2026-08) and the retrieval span of OpenTelemetry
GenAI (in development). A span counts as a stage if it returned documents, or rewrote the query: a
RETRIEVER span, a RERANKER span, and a CHAIN span with two or more retrievers below it, which is a
fusion. Everything else only connects them. Documents are in a span's attributes, else in the JSON
that it has as output, as the decorators of OpenInference write it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from karat.errors import InputError

_INDEXED = re.compile(r"(.+)\.(\d{1,7})\.document\.(\w+)", re.ASCII)
_QUERY_IDS = ("karat.query_id", "query_id", "metadata.query_id")
_KINDS = {"RETRIEVER": "retrieve", "RERANKER": "rerank"}
_TEXTS = ("query", "input", "question", "text")  # a call's arguments, as decorators write them
_DROPPED = (
    "the SDK dropped the attributes of some documents: set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT to 5,000"
)


class _Document(NamedTuple):
    place: int  # from 0
    id: str
    score: float | None


@dataclass
class _Span:
    """A span, with its attributes as plain values."""

    trace: str
    id: str
    parent: str
    name: str
    start: int  # nanoseconds
    end: int
    attributes: dict[str, Any]
    error: str | None
    dropped: bool  # whether the SDK dropped attributes
    children: list[_Span] = field(default_factory=list)

    @property
    def kind(self) -> str:
        kind = str(self.attributes.get("openinference.span.kind", "")).upper()
        if not kind and self.attributes.get("gen_ai.operation.name") == "retrieval":
            return "RETRIEVER"
        return kind


def rows_of(
    values: Iterable[Any], name: str, queries: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """The stages of all traces, as rows of ``tables.diagnosis.traces.COLUMNS``.

    The query of a trace is its attribute ``karat.query_id`` (of any span), else the query whose
    text the root span has as input. Of several traces of a query the last counts.
    """
    traces: dict[str, list[_Span]] = defaultdict(list)
    for span in _spans(values, name):
        traces[span.trace].append(span)
    by_text = {_plain(text): query_id for query_id, text in queries.items()}
    newest: dict[str, tuple[int, list[dict[str, Any]]]] = {}
    for spans in traces.values():
        _name_apart(spans)
        roots = _linked(spans)
        rows = [row for root in roots for row in _stages(root)]
        if not rows:
            continue
        query_id = _query_id(spans, roots, by_text, name)
        start = max(root.start for root in roots)
        if query_id not in newest or start >= newest[query_id][0]:
            newest[query_id] = start, rows
    for query_id, (_, rows) in newest.items():
        yield from ({"query_id": query_id, **row} for row in rows)
    if not newest:
        raise InputError(
            f"none of the {len(traces):,} traces has a span that retrieves",
            file=name,
            fix='spans with openinference.span.kind "RETRIEVER"',
        )


def _spans(values: Iterable[Any], name: str) -> Iterator[_Span]:
    try:
        for value in values:
            for resource in _either(value, "resourceSpans", "resource_spans"):
                for scope in _either(resource, "scopeSpans", "scope_spans"):
                    for span in scope.get("spans") or ():
                        yield _span(span)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"not spans in OTLP JSON: {error}",
            file=name,
            fix="as the collector's file exporter writes",
        ) from None


def _either(value: Mapping[str, Any], camel: str, snake: str) -> Any:
    return value.get(camel) or value.get(snake) or ()


def _span(span: Mapping[str, Any]) -> _Span:
    def get(camel: str, snake: str) -> Any:
        return span.get(camel, span.get(snake))

    status = span.get("status") or {}
    failed = status.get("code") in {2, "STATUS_CODE_ERROR"}
    return _Span(
        str(get("traceId", "trace_id")),
        str(get("spanId", "span_id")),
        str(get("parentSpanId", "parent_span_id") or ""),
        str(span.get("name") or "span"),
        _time(get("startTimeUnixNano", "start_time_unix_nano")),
        _time(get("endTimeUnixNano", "end_time_unix_nano")),
        _values(span.get("attributes")),
        (str(status.get("message") or "error") if failed else None),
        bool(get("droppedAttributesCount", "dropped_attributes_count")),
    )


def _values(pairs: Any) -> dict[str, Any]:
    return {str(each["key"]): _value(each.get("value") or {}) for each in pairs or ()}


def _time(value: Any) -> int:
    time = int(value or 0)
    if not 0 <= time < 2**63:
        raise ValueError(f"{time} is not a time in nanoseconds")
    return time


def _value(value: Mapping[str, Any]) -> Any:
    """A value of OTLP: integers are text in its JSON."""
    for kind, content in value.items():
        if kind in {"intValue", "int_value"}:
            return int(content)
        if kind in {"arrayValue", "array_value"}:
            return [_value(each) for each in content.get("values") or ()]
        if kind in {"kvlistValue", "kvlist_value"}:
            return _values(content.get("values"))
        return content
    return None


def _name_apart(spans: list[_Span]) -> None:
    """Number further spans of the same name, in order of time."""
    seen: Counter[str] = Counter()
    for span in sorted(spans, key=lambda each: each.start):
        seen[span.name] += 1
        if seen[span.name] > 1:
            span.name = f"{span.name} {seen[span.name]}"


def _linked(spans: list[_Span]) -> list[_Span]:
    """The roots, with children in order of time."""
    by_id = {span.id: span for span in spans}
    roots: list[_Span] = []
    for span in sorted(spans, key=lambda each: each.start):
        above = by_id.get(span.parent)
        (roots if above is None or above is span else above.children).append(span)
    return roots


def _stages(span: _Span, query: str = "") -> list[dict[str, Any]]:
    """The stages of a span and those below it, each after the stages it takes documents from."""
    own = _text(span.attributes) or query
    below = [row for child in span.children for row in _stages(child, own)]
    ends = _ends(below)
    documents = _documents(span.attributes)
    retrievers = [row for row in ends if row["kind"] == "retrieve"]
    kind = _KINDS.get(span.kind)
    if kind is None and len(retrievers) > 1:
        below_it = {doc_id for each in retrievers for doc_id in each["doc_ids"]}
        kind = None if below_it.isdisjoint(each.id for each in documents) else "fuse"
    if kind is None:
        return below
    row = _row(span, kind, documents)
    if kind == "retrieve":
        row["parents"] = []
        row["parse"] = own if query and own != query else None  # a rewritten query
        return [*below, row]
    row["parents"] = [each["stage"] for each in ends]
    return [*below, row]


def _ends(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stages whose documents no other one has taken yet.

    A reranker next to its retrievers, as most frameworks call it, takes those before it.
    """
    ends: list[dict[str, Any]] = []
    for row in rows:
        if row["kind"] != "retrieve":
            if not row["parents"]:
                row["parents"] = [each["stage"] for each in ends]
            ends = [each for each in ends if each["stage"] not in row["parents"]]
        ends.append(row)
    return ends


def _row(span: _Span, kind: str, documents: list[_Document]) -> dict[str, Any]:
    unique = list({each.id: each for each in reversed(documents)}.values())[::-1]
    scores = [each.score for each in unique]
    model = span.attributes.get("reranker.model_name")
    gaps = span.dropped and any(each.place != at for at, each in enumerate(documents))
    error = span.error or (_DROPPED if gaps else None)
    return {
        "stage": span.name,
        "kind": kind,
        "parents": [],
        "state": "failed" if error else None,
        "started_us": span.start // 1000,
        "latency_us": max(0, span.end - span.start) // 1000,
        "parameters": json.dumps({"model": model}) if model else None,
        "parse": None,
        "error": error,
        "doc_ids": [each.id for each in unique],
        "ranks": [each.place + 1 for each in unique],
        "scores": None if None in scores or not scores else scores,
        "parts": None,
    }


def _documents(attributes: Mapping[str, Any]) -> list[_Document]:
    """The documents of a span, best first."""
    listed = _listed(attributes.get("gen_ai.retrieval.documents")) or _listed(
        attributes.get("output.value")
    )
    for prefix in ("reranker.output_documents", "retrieval.documents"):
        at: dict[int, dict[str, Any]] = defaultdict(dict)
        for key, value in attributes.items():
            match = _INDEXED.fullmatch(key)
            if match and match[1] == prefix:
                at[int(match[2])][match[3]] = value
        rows = _with_id((place, at[place]) for place in sorted(at))
        if rows and len(rows) >= min(1 + max(at), 1 + len(listed)):
            return rows  # otherwise the SDK dropped some of them
    return listed


def _listed(value: Any) -> list[_Document]:
    """Documents as a list of objects or its JSON, which may be below ``documents``."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    if isinstance(value, dict):
        value = value.get("documents")
    return _with_id(enumerate(value)) if isinstance(value, list) else []


def _with_id(rows: Iterable[tuple[int, Any]]) -> list[_Document]:
    """Those that have an id; others keep their place."""
    found = []
    for place, row in rows:
        if isinstance(row, Mapping) and (doc_id := _doc_id(row)):
            score = row.get("score")
            if not (isinstance(score, int | float) and -1e300 < score < 1e300):
                score = None
            found.append(_Document(place, doc_id, None if score is None else float(score)))
    return found


def _doc_id(row: Mapping[str, Any]) -> str:
    """The document's id, else the one in its metadata."""
    metadata = row.get("metadata")
    if isinstance(metadata, str):
        try:
            metadata = json.loads(metadata)
        except (ValueError, RecursionError):
            metadata = None
    inner = metadata if isinstance(metadata, dict) else {}
    found = [row.get(key) for key in ("id", "doc_id", "_id")]
    found += [inner.get(key) for key in ("doc_id", "id", "source")]
    return next((str(each) for each in found if isinstance(each, str | int) and each != ""), "")


def _text(attributes: Mapping[str, Any]) -> str:
    for key in ("reranker.query", "gen_ai.retrieval.query.text", "input.value"):
        value = attributes.get(key)
        if isinstance(value, str) and value.strip():
            try:
                inner = json.loads(value)
            except ValueError:
                return value
            texts = map(inner.get, _TEXTS) if isinstance(inner, dict) else ()
            return next((text for text in texts if isinstance(text, str) and text), value)
    return ""


def _query_id(spans: list[_Span], roots: list[_Span], by_text: Mapping[str, str], name: str) -> str:
    for span in spans:
        for key in _QUERY_IDS:
            if span.attributes.get(key) not in {None, ""}:
                return str(span.attributes[key])
    texts = [text for span in [*roots, *spans] if (text := _text(span.attributes))]
    for text in texts:
        if _plain(text) in by_text:
            return by_text[_plain(text)]
    what = (
        f"asks {texts[0][:80]!r}, which is not among the queries"
        if texts
        else "has no text of a query"
    )
    raise InputError(
        f"the trace {spans[0].trace} {what}",
        file=name,
        fix="--queries FILE with this text, or the attribute karat.query_id on a span",
    )


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
