"""OpenSearch's API over a real socket: osmem-server, which keeps an index in memory.

It has OpenSearch's shapes, paging, analysis and errors, but its scores are not Lucene's: nothing
here compares numbers but with its own answer to one large request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import polars as pl
import pytest
from tests.quepid_case import opensearch

from karat import formats
from karat.engines.search.engine import EngineError
from karat.engines.search.opening import open_search_engine
from karat.errors import KaratError
from karat.formats.own.engines import read_engine
from karat.tables import Queries
from karat.tables.engines import EngineConfig, EngineQuery
from karat.workflows.engines.check import check_engine
from karat.workflows.engines.live import search_engine

Declare = Callable[..., EngineConfig]
TEMPLATE = {
    "query": {
        "bool": {
            "must": [
                {"multi_match": {"query": "{query}", "fields": ["title^{params.boost}", "body"]}}
            ],
            "filter": [{"term": {"shelf": "{filters.shelf}"}}],
        }
    }
}


@pytest.fixture(scope="module")
def osmem() -> Iterator[str]:
    """The address of a server with an index ``docs`` of 120 documents."""
    with opensearch() as url:
        properties = {
            "title": {"type": "text"},
            "body": {"type": "text"},
            "shelf": {"type": "keyword"},
        }
        httpx2.put(f"{url}/docs", json={"mappings": {"properties": properties}})
        lines: list[dict[str, Any]] = []
        for n in range(120):
            fields = {
                "title": f"page {n}",
                "body": "red shoes " * (n % 7) + "blue",
                "shelf": "ab"[n % 2],
            }
            lines += [{"index": {"_id": f"d{n}"}}, fields]
        httpx2.post(
            f"{url}/docs/_bulk?refresh=true",
            content="".join(json.dumps(line) + "\n" for line in lines),
            headers={"content-type": "application/x-ndjson"},
        ).raise_for_status()
        yield url


@pytest.fixture
def declare(osmem: str, tmp_path: Path) -> Declare:
    """``declare(settings)`` is an engine of this server."""

    def declared(settings: str = "", index: str = "docs") -> EngineConfig:
        (tmp_path / "template.json").write_text(json.dumps(TEMPLATE), encoding="utf-8")
        (tmp_path / "karat.toml").write_text(
            f'[engine.os]\nkind = "opensearch"\nurl = "{osmem}"\nindex = "{index}"\n{settings}\n'
        )
        return read_engine("os", tmp_path)

    return declared


def test_pages_make_the_list_of_one_large_request(declare: Declare, osmem: str) -> None:
    engine = open_search_engine(declare("page = 16"))
    answer = engine.search(EngineQuery("red shoes"), 100)
    body = {"size": 100, "query": {"multi_match": {"query": "red shoes"}}}
    hits = httpx2.post(f"{osmem}/docs/_search", json=body).json()["hits"]["hits"]
    assert [hit.id for hit in answer.hits] == [hit["_id"] for hit in hits]
    assert len(answer.hits) == 100
    assert answer.hits[0].title == hits[0]["_source"]["title"]
    engine.close()


def test_a_run_with_filters_and_parameters(declare: Declare, osmem: str, tmp_path: Path) -> None:
    config = declare('template = "template.json"\nparams = { boost = 3 }\ndepth = 200')
    frame = {"query_id": ["q1", "q2"], "text": ["red", "page 7"], "shelf": ["a", None]}
    queries = Queries(pl.DataFrame(frame))
    found = search_engine(queries, config, tmp_path / "run.jsonl", concurrency=2)
    run = formats.read_run(tmp_path / "run.jsonl")
    # Odd documents are on shelf b, and a seventh of the documents does not have "red"; without a
    # shelf, the filter is left out of its list, and every title has "page".
    red = {f"d{n}" for n in range(0, 120, 2) if n % 7}
    rows = run.frame()
    assert set(rows.filter(pl.col("query_id") == "q1")["doc_id"]) == red
    assert rows.filter(pl.col("query_id") == "q2").height == 120
    assert rows.filter(pl.col("query_id") == "q2")["doc_id"][0] == "d7"
    assert found.failed == 0
    assert run.about["engine_version"].startswith("opensearch ")


def test_checks_and_documents(declare: Declare) -> None:
    config = declare()
    checks = {check.check: check for check in check_engine(config)}
    assert {name: check.state for name, check in checks.items()} == {
        "version": "ok",
        "index": "ok",
        "query": "ok",
        "explain": "ok",
    }
    assert checks["index"].detail == "docs: 120 documents"
    engine = open_search_engine(config)
    assert engine.documents(["d1", "gone"]) == [
        {"doc_id": "d1", "title": "page 1", "text": "red shoes blue", "url": None}
    ]
    engine.close()


def test_a_changed_index_has_another_fingerprint(declare: Declare, osmem: str) -> None:
    engine = open_search_engine(declare(index="other"))
    with pytest.raises(EngineError, match="404: no such index"):
        engine.facts()
    marks = []
    for n in range(2):
        httpx2.put(f"{osmem}/other/_doc/{n}?refresh=true", json={"title": "x"})
        marks.append(engine.facts().fingerprint)
    assert marks[0] != marks[1]
    engine.close()


def test_the_engines_own_reason_is_shown(declare: Declare, tmp_path: Path) -> None:
    config = declare('template = """{"query": {"metch": {"title": "{query}"}}}"""')
    queries = Queries(pl.DataFrame({"query_id": ["q1"], "text": ["red"]}))
    with pytest.raises(KaratError, match=r"answered 400: .*metch"):
        search_engine(queries, config, tmp_path / "run.jsonl")
    assert not (tmp_path / "run.jsonl").exists()
