"""OpenSearch and Elasticsearch, by ``_search``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from karat.engines.search.engine import EngineError, document, field, fingerprint
from karat.engines.search.explanations import parts_of
from karat.engines.search.http import Calls
from karat.engines.search.template import Values, check_params, fill_json
from karat.errors import UsageError
from karat.tables.engines import EngineAnswer, EngineConfig, EngineFacts, EngineQuery, Hit

_DECLARE = "exact = { NAME = VALUE }, the params under which the search is exact"
# As in "Exact, brute-force kNN" of the reference of Elasticsearch; the order is that of _score.
_SCRIPTS = {
    "cosine": "cosineSimilarity(params.vector, '{field}') + 1.0",
    "dot_product": "dotProduct(params.vector, '{field}') + 1.0",
    "max_inner_product": "Math.exp(Math.min(dotProduct(params.vector, '{field}'), 700.0))",
    "l2_norm": "1 / (1 + l2norm(params.vector, '{field}'))",
}
_WINDOW = 10_000  # index.max_result_window, as both set it


class OpenSearch:
    """An engine of kind ``opensearch`` or ``elasticsearch``.

    ``size`` and ``from`` are added to a template that does not have them. Without a template all
    fields, or those of ``fields``, are searched by ``multi_match``.
    """

    def __init__(self, config: EngineConfig) -> None:
        if not config.index:
            raise UsageError(f"[engine.{config.name}] has no index", fix='index = "docs"')
        self._calls, self._config = Calls(config), config
        template = config.template
        if template is None:
            match: dict[str, Any] = {"query": "{query}"}
            template = {
                "query": {
                    "multi_match": match
                    | ({"fields": list(config.fields)} if config.fields else {})
                }
            }
        if not isinstance(template, Mapping):
            raise UsageError(
                f"[engine.{config.name}] template is not a JSON object", fix='{"query": …}'
            )
        check_params(template, config.params, f"[engine.{config.name}]")
        self._own_id = config.id if config.id not in {"", "_id"} else ""
        self._title = config.title or "title"
        source = [name for name in (self._own_id, self._title) if name]
        self._template = {"size": "{size}", "from": "{from}", "_source": source} | dict(template)
        self._index = f"{self._calls.base}/{quote(config.index, safe=',*')}"

    def search(self, query: EngineQuery, size: int, *, explain: bool = False) -> EngineAnswer:
        """The first ``size`` documents, page by page."""
        hits: list[Hit] = []
        took = 0
        while True:
            want = min(size - len(hits), self._config.page, _WINDOW - len(hits))
            values = Values(query, want, len(hits), self._config.params)
            body = fill_json(self._template, values) | ({"explain": True} if explain else {})
            reply = self._calls.json("POST", f"{self._index}/_search", body)
            page = self._read(reply)
            hits += page
            took += int(reply.get("took") or 0)
            if (
                len(hits) >= min(size, _WINDOW)
                or len(page) < want
                or self._template["from"] != "{from}"
            ):
                return EngineAnswer(hits[:size], took * 1000)

    def _read(self, reply: Any) -> list[Hit]:
        try:
            rows = reply["hits"]["hits"]
            shards = reply.get("_shards") or {}
        except (KeyError, TypeError):
            raise EngineError("the reply has no hits.hits", fix="check url and index") from None
        if reply.get("timed_out") or shards.get("failed"):
            raise EngineError(
                f"only a part of the index answered: {shards.get('failed', 0)} shards failed"
                + (", and the search timed out" if reply.get("timed_out") else ""),
                again=True,
            )
        return [self._hit(row) for row in rows]

    def _hit(self, row: Mapping[str, Any]) -> Hit:
        source = row.get("_source") or {}
        doc_id = field(source, self._own_id) if self._own_id else row.get("_id")
        if doc_id is None:
            raise EngineError(
                f"document {row.get('_id')} has no field {self._own_id}",
                fix=f"check id in [engine.{self._config.name}]; without it, _id is taken",
            )
        score, title = row.get("_score"), field(source, self._title)
        return Hit(
            str(doc_id),
            None if score is None else float(score),
            None if title is None else str(title),
            parts_of(row["_explanation"]) if "_explanation" in row else None,
        )

    def exact_template(self) -> dict[str, Any]:
        """Its template with script_score over all vectors in place of each knn clause."""
        where = f"[engine.{self._config.name}]"
        template = dict(self._template)
        top = template.pop("knn", None)  # of Elasticsearch
        if top is not None and ("query" in template or not isinstance(top, Mapping)):
            raise UsageError(f"{where}: a knn next to a query has no exact form", fix=_DECLARE)
        if top is not None:
            template["query"] = {"knn": top}
        fields: list[str] = []
        exact = self._exact(template, fields)
        if not fields:
            raise UsageError(f"{where}: the template has no knn", fix=_DECLARE)
        return dict(exact)

    def _exact(self, part: Any, fields: list[str]) -> Any:
        if isinstance(part, list):
            return [self._exact(each, fields) for each in part]
        if not isinstance(part, Mapping):
            return part
        if set(part) == {"knn"} and isinstance(part["knn"], Mapping):
            knn = part["knn"]
            if "field" in knn:
                name, vector = str(knn["field"]), knn.get("query_vector", "{vector}")
            else:
                (name, knn), *_ = knn.items()
                vector = knn["vector"]
            fields.append(name)
            every: Any = [{"exists": {"field": name}}]
            allowed = knn.get("filter", [])
            every += allowed if isinstance(allowed, list) else [allowed]
            score = {"query": {"bool": {"filter": every}}, "script": self._script(name, vector)}
            return {"script_score": score}
        return {key: self._exact(value, fields) for key, value in part.items()}

    def _script(self, name: str, vector: Any) -> dict[str, Any]:
        """The script that scores a vector as the index does."""
        mapping = next(iter(self._calls.json("GET", self._index).values()))["mappings"]
        for key in name.split("."):
            mapping = mapping.get("properties", {}).get(key, {})
        if self._config.kind == "opensearch":
            space = mapping.get("space_type") or mapping.get("method", {}).get("space_type", "l2")
            values = {"field": name, "query_value": vector, "space_type": space}
            return {"source": "knn_score", "lang": "knn", "params": values}
        source = _SCRIPTS.get(mapping.get("similarity", "cosine"), _SCRIPTS["cosine"])
        return {"source": source.format(field=name), "params": {"vector": vector}}

    def facts(self) -> EngineFacts:
        """Version; count, mapping and settings of the index."""
        root = self._calls.json("GET", f"{self._calls.base}/")
        version = root.get("version", {}) if isinstance(root, dict) else {}
        number = version.get("number")
        count = self._calls.json("GET", f"{self._index}/_count").get("count")
        index = self._calls.json("GET", self._index)
        return EngineFacts(
            f"{version.get('distribution', 'elasticsearch')} {number}" if number else None,
            count,
            fingerprint(count, index),
            explains=True,
            size=self._size(),
        )

    def _size(self) -> int | None:
        """Bytes of the index without its replicas; None if the engine does not say."""
        with suppress(EngineError, KeyError, TypeError, ValueError):
            stats = self._calls.json("GET", f"{self._index}/_stats/store")
            return int(stats["_all"]["primaries"]["store"]["size_in_bytes"])
        return None

    def documents(self, doc_ids: Sequence[str]) -> list[dict[str, str | None]]:
        ids = list(doc_ids)
        query: Any = {"terms": {self._own_id: ids}} if self._own_id else {"ids": {"values": ids}}
        reply = self._calls.json(
            "POST", f"{self._index}/_search", {"size": min(len(ids), _WINDOW), "query": query}
        )
        hits = self._read(reply)
        return [
            document(self._config, hit.id, row.get("_source") or {})
            for hit, row in zip(hits, reply["hits"]["hits"], strict=True)
        ]

    def close(self) -> None:
        self._calls.close()
