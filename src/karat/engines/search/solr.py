"""Solr, by its JSON request API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from karat.engines.search.engine import EngineError, document, field, fingerprint
from karat.engines.search.explanations import parts_of
from karat.engines.search.http import Calls
from karat.engines.search.template import Values, check_params, fill_json
from karat.errors import UsageError
from karat.tables.engines import EngineAnswer, EngineConfig, EngineFacts, EngineQuery, Hit

_EXPLAIN = {"debug": "results", "debug.explain.structured": True}


class Solr:
    """An engine of kind ``solr``; ``url`` ends with ``/solr``, ``index`` is the collection.

    ``limit``, ``offset`` and ``fields`` are added to a template that does not have them. Without a
    template the query parser ``edismax`` searches ``fields``.
    """

    def __init__(self, config: EngineConfig) -> None:
        if not config.index:
            raise UsageError(f"[engine.{config.name}] has no index", fix='index = "docs"')
        self._calls, self._config = Calls(config), config
        template = config.template
        if template is None:
            params = {"defType": "edismax"} | (
                {"qf": " ".join(config.fields)} if config.fields else {}
            )
            template = {"query": "{query}", "params": params}
        if not isinstance(template, Mapping):
            raise UsageError(
                f"[engine.{config.name}] template is not a JSON object", fix='{"query": …}'
            )
        check_params(template, config.params, f"[engine.{config.name}]")
        self._id, self._title = config.id or "id", config.title or "title"
        added = {"limit": "{size}", "offset": "{from}", "fields": [self._id, "score", self._title]}
        self._template = added | dict(template)
        self._index = f"{self._calls.base}/{quote(config.index, safe='')}"

    def search(self, query: EngineQuery, size: int, *, explain: bool = False) -> EngineAnswer:
        """The first ``size`` documents, page by page."""
        hits: list[Hit] = []
        took = 0
        while True:
            want = min(size - len(hits), self._config.page)
            values = Values(query, want, len(hits), self._config.params)
            body = fill_json(self._template, values)
            if explain:
                body["params"] = {**body.get("params", {}), **_EXPLAIN}
            reply = self._calls.json("POST", f"{self._index}/query", body)
            page = self._read(reply)
            hits += page
            took += int(reply.get("responseHeader", {}).get("QTime") or 0)
            if len(hits) >= size or len(page) < want or self._template["offset"] != "{from}":
                return EngineAnswer(hits[:size], took * 1000)

    def _read(self, reply: Any) -> list[Hit]:
        try:
            rows = reply["response"]["docs"]
        except (KeyError, TypeError):
            raise EngineError("the reply has no response.docs", fix="check url and index") from None
        if reply.get("responseHeader", {}).get("partialResults"):
            raise EngineError("only a part of the collection answered", again=True)
        explained = reply.get("debug", {}).get("explain", {})
        hits = []
        for row in rows:
            if self._id not in row:
                raise EngineError(
                    f"a document has no field {self._id}",
                    fix=f"check id in [engine.{self._config.name}]",
                )
            score, title = row.get("score"), field(row, self._title)
            hits.append(
                Hit(
                    str(row[self._id]),
                    None if score is None else float(score),
                    None if title is None else str(title),
                    parts_of(explained[row[self._id]]) if row[self._id] in explained else None,
                )
            )
        return hits

    def facts(self) -> EngineFacts:
        system = self._calls.json("GET", f"{self._calls.base}/admin/info/system?wt=json")
        version = system.get("lucene", {}).get("solr-spec-version")
        luke = self._calls.json("GET", f"{self._index}/admin/luke?numTerms=0&wt=json")
        index = luke.get("index", {})
        parts = (
            index.get("numDocs"),
            index.get("version"),
            index.get("lastModified"),
            luke.get("fields"),
        )
        return EngineFacts(
            f"solr {version}" if version else None,
            index.get("numDocs"),
            fingerprint(parts),
            explains=True,
        )

    def documents(self, doc_ids: Sequence[str]) -> list[dict[str, str | None]]:
        """Those of these documents that the collection has."""
        query = f"{{!terms f={self._id} separator='\u001f'}}" + "\u001f".join(doc_ids)
        reply = self._calls.json(
            "POST", f"{self._index}/query", {"query": query, "limit": len(doc_ids), "fields": ["*"]}
        )
        hits = self._read(reply)
        return [
            document(self._config, hit.id, row)
            for hit, row in zip(hits, reply["response"]["docs"], strict=True)
        ]

    def close(self) -> None:
        self._calls.close()
