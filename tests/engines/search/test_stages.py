from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from karat.engines.search.stages import stages_of
from karat.tables.engines import EngineConfig

MATCH = {"match": {"title": "{query}"}}
KNN = {"field": "vector", "query_vector": "{vector}", "k": 50, "num_candidates": 200}


def config(kind, template, **more):
    return EngineConfig(
        name="prod", kind=kind, root=Path(), depth=100, url="http://x", index="docs",
        template=template, **more,
    )  # fmt: skip


def plan(kind, template, size=500):
    """Stage → kind, parents and template; and what makes the answer."""
    stages, last = stages_of(config(kind, template), size)
    return {s.name: (s.kind, s.parents, s.config.template) for s in stages}, last


def test_an_engine_of_one_part_is_one_stage():
    template = {"query": MATCH}
    assert plan("opensearch", template) == ({"retrieval": ("retrieve", (), template)}, None)
    assert plan("http", {"q": "{query}"})[1] is None


def test_sub_queries_of_a_hybrid_are_asked_alone_with_more_neighbours():
    knn = {"knn": {"vector": {"vector": "{vector}", "k": 10}}}
    template = {
        "query": {"hybrid": {"queries": [MATCH, knn, MATCH]}},
        "search_pipeline": "norm",
        "post_filter": {"term": {"lang": "en"}},
    }
    found, last = plan("opensearch", template)
    kept = {"post_filter": {"term": {"lang": "en"}}}
    deeper = {"knn": {"vector": {"vector": "{vector}", "k": 500}}}
    assert found == {
        "match": ("retrieve", (), kept | {"query": MATCH}),
        "knn": ("retrieve", (), kept | {"query": deeper}),
        "match-2": ("retrieve", (), kept | {"query": MATCH}),
    }
    assert last == "fuse"


def test_the_filter_of_a_hybrid_holds_for_each_sub_query():
    lang = {"term": {"lang": "en"}}
    found, _ = plan("opensearch", {"query": {"hybrid": {"queries": [MATCH], "filter": lang}}})
    assert found["match"][2] == {"query": {"bool": {"must": [MATCH], "filter": lang}}}


def test_a_reranker_of_rrf_has_the_retrievers_then_the_fusion_then_itself():
    lang = {"term": {"lang": "en"}}
    rrf = {
        "rrf": {
            "retrievers": [
                {"standard": {"query": MATCH}},
                {"retriever": {"knn": KNN}, "weight": 2},
            ],
            "filter": lang,
            "rank_window_size": 50,
        }
    }
    template = {"retriever": {"text_similarity_reranker": {"retriever": rrf, "field": "text"}}}
    found, last = plan("elasticsearch", template)
    standard = {"standard": {"query": MATCH, "filter": lang}}
    # 500 neighbours need as many candidates.
    knn = {"knn": KNN | {"filter": lang, "k": 500, "num_candidates": 500}}
    assert found == {
        "match": ("retrieve", (), {"retriever": standard}),
        "knn": ("retrieve", (), {"retriever": knn}),
        "rrf": ("fuse", ("match", "knn"), {"retriever": rrf}),
    }
    assert last == "rerank"


def test_knn_next_to_a_query_is_a_fusion_and_rescore_a_reranker():
    template = {"query": MATCH, "knn": KNN, "rescore": {"window_size": 50}, "size": "{size}"}
    found, last = plan("elasticsearch", template, size=20)
    assert {name: (kind, parents) for name, (kind, parents, _) in found.items()} == {
        "query": ("retrieve", ()),
        "knn": ("retrieve", ()),
        "before rescore": ("fuse", ("query", "knn")),
    }
    assert found["knn"][2] == {"size": "{size}", "knn": KNN}
    assert found["before rescore"][2] == {"size": "{size}", "query": MATCH, "knn": KNN}
    assert last == "rerank"


def test_rescore_alone_has_one_stage_before_it():
    found, last = plan("opensearch", {"query": MATCH, "rescore": {"window_size": 50}})
    assert found == {"before rescore": ("retrieve", (), {"query": MATCH})}
    assert last == "rerank"


def test_solr_combines_named_queries_and_reranks():
    queries = {"lexical": {"lucene": {"query": "{query}"}}, "vector": {"knn": {"topK": 10}}}
    params = {"combiner": True, "combiner.query": ["lexical", "vector"], "fl": "id"}
    template = {"queries": queries, "limit": "{size}", "params": params | {"rq": "{!rerank}"}}
    found, last = plan("solr", template)
    rest = {"limit": "{size}", "params": {"fl": "id"}}
    assert found == {
        "lexical": ("retrieve", (), rest | {"query": queries["lexical"]}),
        "vector": ("retrieve", (), rest | {"query": queries["vector"]}),
        "before rq": (
            "fuse",
            ("lexical", "vector"),
            {"limit": "{size}", "queries": queries, "params": params},
        ),
    }
    assert last == "rerank"


@pytest.mark.parametrize(
    ("kind", "value", "asked"),
    [
        ("sqlite", "SELECT 1", {"template": "SELECT 1"}),
        ("python", "mine:bm25", {"function": "mine:bm25"}),
        ("http", "http://x/bm25?q={query}", {"url": "http://x/bm25?q={query}", "template": None}),
    ],
)
def test_declared_stages_go_before_those_of_the_template(kind, value, asked):
    whole = config(kind, None, stages={"bm25": value, "other": value})
    stages, last = stages_of(whole, 10)
    assert [stage.name for stage in stages] == ["bm25", "other"]
    assert {key: getattr(stages[0].config, key) for key in asked} == asked
    assert last == "fuse"
    assert stages_of(replace(whole, stages={"bm25": value}), 10)[1] == "rerank"
