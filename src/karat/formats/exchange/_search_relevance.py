"""OpenSearch's Search Relevance Workbench: judgment lists and query sets.

Source: ``ImportJudgmentsProcessor.java``, ``RestPutJudgmentAction.java`` and
``RestPutQuerySetAction.java`` of the plugin. Ratings are numbers as strings.
"""

from __future__ import annotations

import json
import re
from typing import Any

from karat.errors import InputError
from karat.formats.exchange.export import Export, dumped
from karat.formats.exchange.import_ import ImportBuilder
from karat.formats.exchange.source_file import Node, SourceFile
from karat.formats.tables.jsonl import parsed

_LINE = re.compile(r'query:\s*("(?:[^"\\]|\\.)*")(?:\s*,\s*answer:\s*("(?:[^"\\]|\\.)*"))?\s*,?')
_QUERY = {"queryText": "text", "query": "text", "referenceAnswer": "reference_answer"}
_OURS = {"query_id", "text", "weight", "no_answer"}
_RATERS = {"LLM_JUDGMENT": ("llm", "modelId"), "UBI_JUDGMENT": ("clicks", "clickModel")}


def read_judgments(gathered: ImportBuilder, foreign: SourceFile) -> None:
    """A judgment list as sent or stored, alone or as the only hit of a search."""
    root = _stored(foreign.json(), "judgment list")
    gathered.leave(root, ("judgmentRatings", "type", "id", "status", "timestamp"), "the list")
    rater = _rater(gathered, root)
    for item in root.need("judgmentRatings").list():
        query = gathered.entry(item.need("query").text())
        gathered.leave(item, ("query", "ratings", "failures"), "a query")
        for rating in item.each("ratings"):
            doc = rating.need("docId").identifier()
            gathered.leave(rating, ("docId", "rating"), "a rating")
            grade = rating.need("rating")
            gathered.judge(query, doc, grade.number(), rater, node=grade)
        for _ in item.each("failures"):
            gathered.lose("documents that could not be judged")


def _stored(root: Node, what: str) -> Node:
    """The document within a search response or a get response."""
    response_hits = root.get("hits")
    if response_hits is not None and response_hits.has("hits"):
        hits = list(response_hits.need("hits").list())
        if len(hits) != 1:
            raise InputError(
                f"expected one {what}, got {len(hits)} hits",
                file=root.file,
                fix="request one by its id",
            )
        root = hits[0]
    return root.get("_source") or root


def _rater(gathered: ImportBuilder, root: Node) -> str | None:
    """The rater, if it is not a person."""
    kind = root.get("type")
    if kind is None or kind.value == "IMPORT_JUDGMENT":
        return None
    if kind.text() not in _RATERS:
        raise kind.wrong(f"one of IMPORT_JUDGMENT, {', '.join(_RATERS)}")
    kind_of_rater, key = _RATERS[kind.value]
    metadata = root.get("metadata")
    name = root.get(key) or (metadata.get(key) if metadata else None)
    rater = f"{kind_of_rater} {name.text()}" if name else kind_of_rater
    gathered.assumed.append(f"the judgments are not by a person: the rater is called {rater!r}")
    return rater


def write_judgments(leaving: Export) -> bytes:
    """A body for ``PUT /_plugins/_search_relevance/judgments``."""
    ratings = [
        {
            "query": text,
            "ratings": [
                {"docId": doc, "rating": str(grade)} for doc, grade in leaving.grades(query)
            ],
        }
        for query, text in leaving.texts.items()
    ]
    head = {"name": "karat", "description": "judgments of karat", "type": "IMPORT_JUDGMENT"}
    return dumped({**head, "judgmentRatings": ratings})


def read_queries(gathered: ImportBuilder, foreign: SourceFile) -> None:
    """A query set: as sent or stored, NDJSON, ``query: "…"`` lines, or plain lines."""
    data = foreign.data.lstrip()
    if not data.startswith((b"{", b"[")):
        _lines(gathered, foreign)
        return
    first = data.partition(b"\n")[0]
    if data.startswith(b"{") and (b'"queryText"' in first or b'"query"' in first):
        items = _ndjson(foreign)
    elif data.startswith(b"["):
        items = list(foreign.json().list())
    else:
        root = _stored(foreign.json(), "query set")
        gathered.leave(root, ("querySetQueries", "id", "timestamp"), "the query set")
        items = list(root.need("querySetQueries").list())
    for item in items:
        _entry(gathered, item)


def _ndjson(foreign: SourceFile) -> list[Node]:
    """One object per line, or one object over several lines."""
    try:
        root = foreign.json()
    except InputError:
        pass
    else:
        root = _stored(root, "query set")
        return list(root.each("querySetQueries")) if root.has("querySetQueries") else [root]
    return [
        Node(parsed(text.encode(), foreign.name, line), f"line {line}: the object", foreign.name)
        for line, text in foreign.lines()
    ]


def _entry(gathered: ImportBuilder, item: Node) -> None:
    if isinstance(item.value, str):
        gathered.entry(item.text())
        return
    text = item.get("queryText") or item.need("query")
    others: dict[str, Any] = {}
    for key, value in item.items():
        if key in ("queryText", "query") or value.value in (None, "", [], {}):
            continue
        column = _QUERY.get(key, f"field.{key}" if key in _OURS else key)
        nested = isinstance(value.value, dict | list)
        others[column] = json.dumps(value.value, ensure_ascii=False) if nested else value.value
    gathered.more(gathered.entry(text.text()), others)


def _lines(gathered: ImportBuilder, foreign: SourceFile) -> None:
    for line, text in foreign.lines():
        match = _LINE.fullmatch(text)
        if match is None:
            gathered.entry(text)
            continue
        parts = [_string(part, foreign.name, line) for part in match.groups()]
        if not (parts[0] or "").strip():
            raise foreign.wrong("the query is empty", line=line)
        gathered.entry(parts[0], reference_answer=parts[1])


def _string(quoted: str | None, name: str, line: int) -> str | None:
    return None if quoted is None else str(parsed(quoted.encode(), name, line))


def write_queries(leaving: Export) -> bytes:
    """A query set: NDJSON for .ndjson and .jsonl, lines for .txt, otherwise a request body."""
    entries: list[dict[str, Any]] = []
    for query, text in leaving.texts.items():
        entry: dict[str, Any] = {"queryText": text}
        for name, value in leaving.queries[query].items():
            if name != "text":
                key = "referenceAnswer" if name == "reference_answer" else name
                entry[key.removeprefix("field.")] = value if isinstance(value, str) else str(value)
        entries.append(entry)
    ending = leaving.file.lower().rpartition(".")[2]
    if ending in ("ndjson", "jsonl"):
        return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in entries).encode()
    if ending == "txt":
        return _text_lines(leaving, entries)
    head = {"name": "karat", "description": "queries of karat", "sampling": "manual"}
    return dumped({**head, "querySetQueries": entries})


def _text_lines(leaving: Export, entries: list[dict[str, Any]]) -> bytes:
    answers = any("referenceAnswer" in entry for entry in entries)
    others = {key for entry in entries for key in entry} - {"queryText", "referenceAnswer"}
    leaving.lost += [f"{key!r} of queries" for key in sorted(others)]
    out = []
    for entry in entries:
        text = entry["queryText"]
        if text != text.strip() or "\n" in text or "\r" in text or _LINE.fullmatch(text) or answers:
            line = f"query: {json.dumps(text, ensure_ascii=False)}"
            if "referenceAnswer" in entry:
                line += f", answer: {json.dumps(entry['referenceAnswer'], ensure_ascii=False)}"
            text = line
        out.append(f"{text}\n")
    return "".join(out).encode()
