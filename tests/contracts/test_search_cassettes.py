"""OpenSearch, Elasticsearch and Solr, whose servers do not run here: recorded requests and replies.

A server replays each cassette, and refuses any request that is not in it. The shapes are those of
the documentation named in each; ``KARAT_TEST_OPENSEARCH`` (a URL with an index ``docs``) runs the
last test against a real server.
"""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.search_server import serving

from karat.engines.search.engine import EngineError
from karat.engines.search.opening import open_search_engine
from karat.formats.own.engines import read_engine
from karat.tables.engines import EngineQuery, Hit
from karat.workflows.engines.live import open_live

Cassette = dict[tuple[str, str, str], Any]
"""From method, path and body (as JSON with sorted keys) to the reply."""


class Replay(ThreadingHTTPServer):
    """Replays a cassette."""

    daemon_threads = True

    def __init__(self, cassette: Cassette) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.cassette = cassette


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Replay

    def _answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(size).decode()
        body = json.dumps(json.loads(text), sort_keys=True) if text else ""
        reply = self.server.cassette.get((self.command, self.path, body))
        status = 200 if reply is not None else 418
        if isinstance(reply, tuple):
            status, reply = reply
        data = json.dumps(
            reply if reply is not None else {"error": f"not recorded: {body}"}
        ).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = _answer  # noqa: N815 - names that http.server asks for

    def log_message(self, *_args: object) -> None: ...


def sent(body: Any) -> str:
    return json.dumps(body, sort_keys=True)


@pytest.fixture
def engine(tmp_path):
    """``engine(kind, settings, cassette)`` is an open engine, whose server replays a cassette."""
    opened: list[Any] = []

    def declare(kind, settings, cassette, path=""):
        server = serving(Replay(cassette))
        url = f"http://127.0.0.1:{server.__enter__().server_address[1]}{path}"
        text = f'[engine.e]\nkind = "{kind}"\nurl = "{url}"\nindex = "docs"\n{settings}\n'
        (tmp_path / "karat.toml").write_text(text)
        made = open_search_engine(read_engine("e", tmp_path))
        opened.extend([made, server])
        return made

    yield declare
    for each in opened:
        each.close() if hasattr(each, "close") else each.__exit__(None, None, None)


def os_hit(doc_id, score, title):
    return {"_index": "docs", "_id": doc_id, "_score": score, "_source": {"title": title}}


def os_reply(*hits, took=3):
    shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    total = {"value": len(hits), "relation": "eq"}
    inner = {"total": total, "max_score": hits[0]["_score"] if hits else None, "hits": list(hits)}
    return {"took": took, "timed_out": False, "_shards": shards, "hits": inner}


# Shape of the request and the reply: "Search API" in the reference of OpenSearch 3 and of
# Elasticsearch 9 (POST /{index}/_search).


@pytest.mark.parametrize("kind", ["opensearch", "elasticsearch"])
def test_without_a_template_all_fields_are_searched(kind, engine):
    match = {"multi_match": {"query": "red shoes", "fields": ["title^3", "body"]}}
    body = {"size": 2, "from": 0, "_source": ["title"], "query": match}
    hits = [os_hit("a", 2.5, "A"), os_hit("b", 1.25, "B")]
    cassette = {("POST", "/docs/_search", sent(body)): os_reply(*hits)}
    answer = engine(kind, 'fields = ["title^3", "body"]', cassette).search(
        EngineQuery("red shoes"), 2
    )
    assert answer.hits == [Hit("a", 2.5, "A"), Hit("b", 1.25, "B")]
    assert answer.server_us == 3000


# "Explain" of both: `explain: true` in the body, `_explanation` in each hit.
@pytest.mark.parametrize("kind", ["opensearch", "elasticsearch"])
def test_explained_hits_have_the_parts_of_their_scores(kind, engine):
    match = {"multi_match": {"query": "red"}}
    body = {"size": 1, "from": 0, "_source": ["title"], "query": match, "explain": True}
    tree = {"value": 2.5, "description": "weight(title:red in 4) [PerFieldSimilarity], result of:"}
    hit = os_hit("a", 2.5, "A") | {"_explanation": tree | {"details": []}}
    cassette = {("POST", "/docs/_search", sent(body)): os_reply(hit)}
    answer = engine(kind, "", cassette).search(EngineQuery("red"), 1, explain=True)
    assert answer.hits == [Hit("a", 2.5, "A", {"title:red": 2.5})]


# "Debugging" of Solr 9: debug=results with debug.explain.structured=true.
def test_solr_explains_by_the_id_of_the_document(engine):
    params = {"defType": "edismax", "debug": "results", "debug.explain.structured": True}
    body = {"limit": 1, "offset": 0, "fields": ["id", "score", "title"], "query": "red",
            "params": params}  # fmt: skip
    tree = {"match": True, "value": 1.5, "description": "weight(title:red in 4) [X], result of:"}
    reply = {
        "responseHeader": {"status": 0, "QTime": 1},
        "response": {"numFound": 1, "docs": [{"id": "a", "score": 1.5, "title": "A"}]},
        "debug": {"explain": {"a": tree}},
    }
    cassette = {("POST", "/solr/docs/query", sent(body)): reply}
    answer = engine("solr", "", cassette, "/solr").search(EngineQuery("red"), 1, explain=True)
    assert answer.hits == [Hit("a", 1.5, "A", {"title:red": 1.5})]


def test_pages_are_asked_until_the_depth_is_reached(engine):
    def body(size, start):
        match = {"multi_match": {"query": "x"}}
        return sent({"size": size, "from": start, "_source": ["title"], "query": match})

    cassette = {
        ("POST", "/docs/_search", body(2, 0)): os_reply(os_hit("a", 3, "A"), os_hit("b", 2, "B")),
        ("POST", "/docs/_search", body(1, 2)): os_reply(os_hit("c", 1, "C"), took=4),
    }
    answer = engine("opensearch", "page = 2", cassette).search(EngineQuery("x"), 3)
    assert [hit.id for hit in answer.hits] == ["a", "b", "c"]
    assert answer.server_us == 7000


# "Hybrid search" of OpenSearch: a hybrid query, its pipeline named in the body (since 2.17).
def test_a_hybrid_query_with_filters_and_a_vector(engine, tmp_path):
    template = {
        "search_pipeline": "{params.pipeline}",
        "query": {
            "hybrid": {
                "queries": [
                    {"bool": {"must": [{"match": {"body": "{query}"}}]}},
                    {"knn": {"v": {"vector": "{vector}", "k": "{size}"}}},
                ],
                "filter": {"bool": {"must": [{"term": {"lang": "{filters.lang}"}}]}},
            }
        },
    }
    (tmp_path / "t.json").write_text(json.dumps(template))
    queries = [
        {"bool": {"must": [{"match": {"body": "x"}}]}},
        {"knn": {"v": {"vector": [0.5, 1.0], "k": 1}}},
    ]

    def body(must):
        hybrid = {"queries": queries, "filter": {"bool": {"must": must}}}
        head = {"size": 1, "from": 0, "_source": ["sku", "name"], "search_pipeline": "rrf"}
        return sent(head | {"query": {"hybrid": hybrid}})

    hit = {"_id": "7", "_score": 0.9, "_source": {"sku": "S7", "name": "N"}}
    cassette = {
        ("POST", "/docs/_search", body([{"term": {"lang": "de"}}])): os_reply(hit),
        ("POST", "/docs/_search", body([])): os_reply(hit),
    }
    settings = (
        'template = "t.json"\nparams = { pipeline = "rrf" }\nid = "sku"\ntitle = "name"\n'
        'embed = "e:e"\npage = 1'
    )
    opened = engine("opensearch", settings, cassette)
    for filters in ({"lang": "de"}, {}):
        answer = opened.search(EngineQuery("x", filters, [0.5, 1.0]), 1)
        assert answer.hits == [Hit("S7", 0.9, "N")]


def test_an_error_of_the_engine_gives_its_own_reason(engine):
    # "Error responses": error.root_cause[].reason; a missing index is 404.
    cause = {"type": "index_not_found_exception", "reason": "no such index [docs]"}
    reply = (404, {"error": {"root_cause": [cause], **cause}, "status": 404})
    body = {"size": 1, "from": 0, "_source": ["title"], "query": {"multi_match": {"query": "x"}}}
    opened = engine("opensearch", "", {("POST", "/docs/_search", sent(body)): reply})
    with pytest.raises(EngineError, match=r"answered 404: no such index \[docs\]") as error:
        opened.search(EngineQuery("x"), 1)
    assert not error.value.again
    assert error.value.fix == "check index and url"


@pytest.mark.parametrize("change", [{"timed_out": True}, {"_shards": {"total": 2, "failed": 1}}])
def test_a_part_of_the_index_is_not_an_answer(change, engine):
    body = {"size": 1, "from": 0, "_source": ["title"], "query": {"multi_match": {"query": "x"}}}
    reply = os_reply(os_hit("a", 1, "A")) | change
    opened = engine("opensearch", "", {("POST", "/docs/_search", sent(body)): reply})
    with pytest.raises(EngineError, match="only a part of the index answered"):
        opened.search(EngineQuery("x"), 1)


def test_facts_change_with_the_count_and_the_mapping(engine):
    def cassette(count, fields):
        version = {"distribution": "opensearch", "number": "3.2.0"}
        return {
            ("GET", "/", ""): {"version": version},
            ("GET", "/docs/_count", ""): {"count": count, "_shards": {}},
            # "Index stats", of the metric store
            ("GET", "/docs/_stats/store", ""): {
                "_all": {"primaries": {"store": {"size_in_bytes": 5120}}, "total": {}}
            },
            ("GET", "/docs", ""): {"docs": {"mappings": {"properties": fields}}},
        }

    marks = []
    for count, fields in ((5, {}), (5, {}), (6, {}), (5, {"t": {"type": "text"}})):
        facts = engine("opensearch", "", cassette(count, fields)).facts()
        assert (facts.version, facts.documents, facts.explains) == ("opensearch 3.2.0", count, True)
        assert facts.size == 5120
        marks.append(facts.fingerprint)
    assert marks[0] == marks[1]
    assert len(set(marks)) == 3


def test_known_documents_are_looked_up_by_id(engine):
    ids = {"size": 2, "query": {"ids": {"values": ["a", "b"]}}}
    cassette = {("POST", "/docs/_search", sent(ids)): os_reply(os_hit("a", 1.0, "A"))}
    assert engine("elasticsearch", "", cassette).documents(["a", "b"]) == [
        {"doc_id": "a", "title": "A", "text": None, "url": None}
    ]


# "JSON Request API" of Solr 9: POST /solr/{collection}/query.


def test_solr(engine):
    params = {"defType": "edismax", "qf": "title^3 body"}
    body = {"query": "x", "params": params, "limit": 2, "offset": 0}
    docs = [{"id": "a", "score": 2.0, "title": ["A", "B"]}, {"id": "b", "score": 1.0}]
    reply = {"responseHeader": {"status": 0, "QTime": 2}, "response": {"numFound": 2, "docs": docs}}
    body["fields"] = ["id", "score", "title"]
    cassette = {
        ("POST", "/solr/docs/query", sent(body)): reply,
        ("GET", "/solr/admin/info/system?wt=json", ""): {"lucene": {"solr-spec-version": "9.8.0"}},
        ("GET", "/solr/docs/admin/luke?numTerms=0&wt=json", ""): {"index": {"numDocs": 2}},
    }
    opened = engine("solr", 'fields = ["title^3", "body"]', cassette, path="/solr")
    answer = opened.search(EngineQuery("x"), 2)
    assert answer.hits == [Hit("a", 2.0, "A"), Hit("b", 1.0, None)]
    assert answer.server_us == 2000
    assert (opened.facts().version, opened.facts().documents) == ("solr 9.8.0", 2)


def test_solr_gives_its_own_reason(engine):
    params = {"defType": "edismax"}
    body = {"query": "x", "params": params, "limit": 1, "offset": 0}
    body["fields"] = ["id", "score", "title"]
    reply = (400, {"error": {"msg": "undefined field titel", "code": 400}})
    opened = engine("solr", "", {("POST", "/solr/docs/query", sent(body)): reply}, path="/solr")
    with pytest.raises(EngineError, match="answered 400: undefined field titel"):
        opened.search(EngineQuery("x"), 1)


PAGE = Path(__file__).parents[2] / "docs/how-to/search-engines.md"


def declared_on_the_page(name, cassette, tmp_path, stack):
    """The engine that a how-to page declares, at a server that replays a cassette."""
    blocks = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (text,) = [block for block in blocks if f"[engine.{name}]" in block]
    server = stack.enter_context(serving(Replay(cassette)))
    place = f"127.0.0.1:{server.server_address[1]}"
    (tmp_path / "karat.toml").write_text(re.sub(r"localhost:\d+", place, text))
    (tmp_path / "encoder.py").write_text("def embed(text):\n    return [0.5, float(len(text))]\n")
    stack.callback(sys.modules.pop, "encoder", None)
    return stack.enter_context(open_live(read_engine(name, tmp_path), depth=2))


# "Query points" of Qdrant's API: POST /collections/{collection_name}/points/query.
def test_the_recipe_for_qdrant(tmp_path, monkeypatch):
    monkeypatch.setenv("QDRANT_KEY", "secret")
    body = {"query": [0.5, 3.0], "limit": 2, "offset": 0, "with_payload": ["title"]}
    points = [
        {"id": 4, "version": 3, "score": 0.75, "payload": {"title": "Four"}},
        {"id": "5c56c793", "version": 3, "score": 0.5, "payload": {}},
    ]
    reply = {"result": {"points": points}, "status": "ok", "time": 0.0003}
    cassette = {("POST", "/collections/docs/points/query", sent(body)): reply}
    with ExitStack() as stack:
        engine = declared_on_the_page("qdrant", cassette, tmp_path, stack)
        assert engine.call(EngineQuery("red")) == [("4", 0.75), ("5c56c793", 0.5)]


# "Search" of Typesense's API: GET /collections/{collection}/documents/search.
def test_the_recipe_for_typesense(tmp_path, monkeypatch):
    monkeypatch.setenv("TYPESENSE_KEY", "secret")
    document = {"id": "124", "title": "Red shoes", "body": "…"}
    hit = {"document": document, "highlights": [], "text_match": 130916}
    reply = {"found": 1, "out_of": 9, "page": 1, "search_time_ms": 3, "hits": [hit]}
    path = "/collections/docs/documents/search?q=red%20%26%20blue&query_by=title,body&per_page=2"
    with ExitStack() as stack:
        engine = declared_on_the_page("typesense", {("GET", path, ""): reply}, tmp_path, stack)
        assert engine.call(EngineQuery("red & blue")) == [("124", 130916.0)]
        assert engine.server_us == [3000]


def test_a_real_server(tmp_path):
    url = os.environ.get("KARAT_TEST_OPENSEARCH")
    if not url:
        pytest.skip("needs the URL of an OpenSearch with an index docs in KARAT_TEST_OPENSEARCH")
    text = f'[engine.e]\nkind = "opensearch"\nurl = "{url}"\nindex = "docs"\n'
    (tmp_path / "karat.toml").write_text(text)
    opened = open_search_engine(read_engine("e", tmp_path))
    assert opened.facts().documents
    opened.search(EngineQuery("test"), 10)
    opened.close()
