"""``_rank_eval`` of Elasticsearch and OpenSearch: requests with ratings, responses with hits."""

from __future__ import annotations

import json
import math
from typing import Any

from karat.errors import InputError
from karat.formats.exchange.export import Export, dumped, unpacked
from karat.formats.exchange.import_ import ImportBuilder
from karat.formats.exchange.source_file import Node, SourceFile
from karat.tables.golden.golden_sets import Exchange

_ASKED = ("request", "template_id", "params", "summary_fields")
_TEMPLATE = {
    "id": "karat",
    "template": {"inline": {"query": {"match": {"text": "{{query_string}}"}}}},
}


class _Indices:
    """The index of each document; karat identifies documents by their id alone."""

    def __init__(self, gathered: ImportBuilder) -> None:
        self.gathered = gathered
        self.of: dict[str, str] = {}

    def document(self, node: Node) -> str:
        """The id of ``{"_index": …, "_id": …}``."""
        doc = node.need("_id").identifier()
        if (index := node.get("_index")) is not None:
            name = index.text()
            if self.of.setdefault(doc, name) != name:
                raise InputError(
                    f"document {doc} is in the indices {self.of[doc]} and {name}, but karat "
                    "identifies documents by their id alone",
                    file=node.file,
                    doc_id=doc,
                    fix="write one file per index",
                )
            self.gathered.document(doc, {"index": name})
        return doc


def read_request(gathered: ImportBuilder, foreign: SourceFile) -> Exchange:
    """A request: ``{"requests": [{"id", "request", "ratings"}], "metric": …}``."""
    root, indices = foreign.json(), _Indices(gathered)
    gathered.leave(root, ("requests",), "the file")
    for item in root.need("requests").list():
        query = item.need("id").identifier()
        fields = {key: node.value for key in _ASKED if (node := item.get(key)) is not None}
        text = _typed(item.get("params"))
        gathered.entry(text, query, **{key: _text(value) for key, value in fields.items()})
        gathered.leave(item, ("id", "ratings", *_ASKED), "a request")
        for rating in item.each("ratings"):
            gathered.leave(rating, ("_index", "_id", "rating"), "a rating")
            grade = rating.need("rating")
            gathered.judge(query, indices.document(rating), grade.number(), node=grade)
    result = gathered.exchange()
    if result.queries is not None and "text" not in result.queries.columns:
        result.assumed.append("requests do not have the query text in a fixed place: no text")
    return result


def _typed(params: Node | None) -> str | None:
    """The query text, if a template has it under the usual name."""
    if params is None or not isinstance(params.value, dict):
        return None
    value = params.value.get("query_string")
    return value if isinstance(value, str) and value.strip() else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def write_request(leaving: Export) -> bytes:
    requests, templated, unnamed = [], False, False
    for query, text in leaving.texts.items():
        row = leaving.queries[query]
        fields = {key: unpacked(row[key]) for key in _ASKED if key in row}
        if not fields.keys() & {"request", "template_id"}:
            fields |= {"template_id": _TEMPLATE["id"], "params": {"query_string": text}}
        templated |= fields.get("template_id") == _TEMPLATE["id"]
        ratings = []
        for doc, grade in leaving.grades(query):
            index = leaving.documents.get(doc, {}).get("index")
            unnamed |= index is None
            ratings.append({"_index": index or "index", "_id": doc, "rating": grade})
        requests.append({"id": query, **fields, "ratings": ratings})
    out: dict[str, Any] = {"requests": requests}
    if templated:
        out["templates"] = [_TEMPLATE]
        leaving.assumed.append("the template searches the field 'text': replace it by your query")
    if unnamed:
        leaving.assumed.append("documents are in the index 'index': replace it by yours")
    leaving.assumed.append("the metric is nDCG@10")
    out["metric"] = {"dcg": {"k": 10, "normalize": True}}
    return dumped(out)


def read_response(gathered: ImportBuilder, foreign: SourceFile) -> None:
    """A response: hits with their ratings, that is a run and judgments."""
    root, indices = foreign.json(), _Indices(gathered)
    root = root.get("rank_eval") or root  # before version 6.3
    gathered.run(foreign.stem)
    for query, detail in root.need("details").items():
        if not query.strip():
            raise detail.wrong("the response to a request: its id is empty")
        gathered.query(None, query)
        hits = list(detail.each("hits"))
        if not hits:
            gathered.lose("queries without results")
        for hit in hits:
            found = hit.need("hit")
            doc = indices.document(found)
            score = found.get("_score")
            gathered.rank(foreign.stem, query, doc, None if score is None else _score(score))
            gathered.leave(found, ("_index", "_id", "_score", "_type"), "a hit")
            if (rating := hit.get("rating")) is not None:
                gathered.judge(query, doc, rating.number(), node=rating)
        if any(detail.has(key) for key in ("metric_score", "quality_level", "metric_details")):
            gathered.lose("the score of a query, which karat computes itself")
    if (failures := root.get("failures")) is not None:
        for query in dict(failures.items()):
            gathered.lose(f"that the query {query} failed")


def _score(node: Node) -> float | None:
    """A score; hits sorted by a field have NaN."""
    nan = node.value == "NaN" or (isinstance(node.value, float) and math.isnan(node.value))
    return None if nan else node.number()
