"""``karat search --exact``: approximate neighbours against the engine's own exact search."""

from __future__ import annotations

import json
import statistics
import zlib

import numpy as np
import polars as pl
import psycopg
import pytest
from tests.contracts.search_server import serving
from tests.contracts.test_search_cassettes import (  # noqa: F401
    Replay,
    engine,
    os_hit,
    os_reply,
    sent,
)

from karat.errors import KaratError, UsageError
from karat.formats.own.engines import read_engine
from karat.reports.charts.drawing import to_svg
from karat.reports.engines import exact as report
from karat.tables import Queries
from karat.tables.engines import EngineQuery
from karat.workflows.engines.exact import search_exact

DIMENSIONS, DOCUMENTS, QUERIES = 12, 3000, 40


@pytest.fixture(scope="module")
def places():
    return np.random.default_rng(7).normal(size=(DOCUMENTS, DIMENSIONS))


@pytest.fixture(scope="module")
def asked():
    return np.random.default_rng(8).normal(size=(QUERIES, DIMENSIONS))


@pytest.fixture
def pgvector(postgres, places, asked, tmp_path):
    """An engine with an HNSW index that was built for speed, and the URL of its database."""
    url = postgres.set(drivername="postgresql").render_as_string(hide_password=False)
    (tmp_path / "exact_encoder.py").write_text(
        f"VECTORS = {json.dumps(asked.tolist())}\n\n"
        "def embed(text):\n    return VECTORS[int(text)]\n"
    )
    (tmp_path / "karat.toml").write_text(
        f'[engine.e]\nkind = "postgres"\nurl = "{url}"\nindex = "near"\n'
        'template = "SELECT id, -(place <-> {vector}::vector) AS score FROM near '
        'ORDER BY place <-> {vector}::vector LIMIT {size}"\nembed = "exact_encoder:embed"\n'
        'params = { ef = 40 }\nsettings = { "hnsw.ef_search" = "{params.ef}" }\n'
    )
    with psycopg.connect(url, autocommit=True) as c:
        c.execute("CREATE EXTENSION IF NOT EXISTS vector")
        c.execute(f"CREATE TABLE near (id text PRIMARY KEY, place vector({DIMENSIONS}))")
        with c.cursor() as cursor, cursor.copy("COPY near FROM STDIN") as copy:
            for n, place in enumerate(places.tolist()):
                copy.write_row((f"d{n}", str(place)))
        c.execute(
            "CREATE INDEX near_hnsw ON near USING hnsw (place vector_l2_ops) "
            "WITH (m = 4, ef_construction = 8)"
        )
        c.execute("ANALYZE near")
        yield url
        c.execute("DROP TABLE near")


SET = Queries(
    pl.DataFrame(
        {
            "query_id": [f"q{n}" for n in range(QUERIES)],
            "text": [str(n) for n in range(QUERIES)],
        }
    )
)


def test_recall_of_pgvector_is_that_of_its_index_against_all_distances(
    pgvector, places, asked, tmp_path
):
    config = read_engine("e", tmp_path)
    found = search_exact(SET, config, {"ef": "10,400"}, depth=10)
    assert [row.setting for row in found.rows] == ["exact", "ef=10", "ef=400"]
    # All distances by NumPy, as single precision, which pgvector stores.
    single = places.astype(np.float32)
    recalls = []
    with psycopg.connect(pgvector, autocommit=True) as c:
        c.execute("SET hnsw.ef_search = 10")
        sql = "SELECT id FROM near ORDER BY place <-> %s::vector LIMIT 10"
        for vector in asked:
            distances = ((single - vector.astype(np.float32)) ** 2).sum(axis=1)
            nearest = {f"d{n}" for n in np.argsort(distances)[:10]}
            own = {row[0] for row in c.execute(sql, [str(vector.tolist())]).fetchall()}
            recalls.append(len(own & nearest) / 10)
    fast, careful = found.rows[1:]
    assert fast.recall == pytest.approx(statistics.mean(recalls))
    by_query = {each.query_id: each.recall for each in found.queries if each.setting == "ef=10"}
    assert by_query == pytest.approx({f"q{n}": value for n, value in enumerate(recalls)})
    assert fast.recall < 0.9 < careful.recall
    assert fast.ci_low < fast.recall < fast.ci_high
    assert fast.n == QUERIES
    assert fast.p50_us > 0
    assert found.how == "with enable_indexscan = off"
    assert found.vectors.startswith(
        "near_hnsw: hnsw (place vector_l2_ops) WITH (m='4', ef_construction='8'), "
    )
    picture = to_svg(report.chart(found))
    assert picture.startswith("<svg")
    assert "ef=400" in picture


PYTHON = """
def near(text, ef=10):
    exact = [f"{text}.{n}" for n in range(4)]
    return exact if ef >= 100 else exact[: ef // 10] + ["x"]


def fails(text, ef=10):
    raise ValueError("no vectors")
"""


@pytest.fixture
def declared(tmp_path):
    def declare(settings, name="e"):
        module = f"exact_near_{zlib.crc32(str(tmp_path).encode())}"
        (tmp_path / f"{module}.py").write_text(PYTHON)
        settings = settings.replace("exact_near", module)
        (tmp_path / "karat.toml").write_text(f"[engine.{name}]\n{settings}\n")
        return read_engine(name, tmp_path)

    return declare


def test_an_exact_search_is_declared_by_its_parameters(declared):
    config = declared(
        'kind = "python"\nfunction = "exact_near:near"\nparams = { ef = 10 }\nexact = { ef = 500 }'
    )
    found = search_exact(SET, config, {"ef": "10,20,100"}, depth=4)
    assert [row.recall for row in found.rows] == [None, 0.25, 0.5, 1.0]
    assert found.how == "with ef=500"
    assert found.to_dict()["queries"][0] == {
        "setting": "ef=10",
        "query_id": "q0",
        "text": "0",
        "recall": 0.25,
    }
    # All are equal, so there is no interval.
    assert found.rows[1].ci_low is None
    assert search_exact(SET, config, {}).rows[1].setting == "declared"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('kind = "python"\nfunction = "exact_near:near"', "does not know how to search it exactly"),
        ('kind = "sqlite"\nurl = "x.db"\ntemplate = "SELECT {vector}"', "its recall is 1"),
    ],
)
def test_an_engine_without_exact_search_says_so(settings, message, declared):
    with pytest.raises(UsageError, match=message):
        search_exact(SET, declared(settings), {})


def test_a_query_that_fails_ends_it(declared):
    config = declared('kind = "python"\nfunction = "exact_near:fails"\nexact = { ef = 1 }')
    with pytest.raises(KaratError, match="query q0 failed in e: ValueError: no vectors"):
        search_exact(SET, config, {})


# Shapes: "Exact k-NN with scoring script" in the documentation of OpenSearch 3 (knn_score, with the
# space type of the mapping), and "Exact, brute-force kNN" in that of Elasticsearch 9.
KNN_OF_OPENSEARCH = {"query": {"knn": {"place": {"vector": "{vector}", "k": "{size}"}}}}
KNN_OF_ELASTICSEARCH = {
    "knn": {
        "field": "place",
        "query_vector": "{vector}",
        "k": "{size}",
        "num_candidates": "{params.ef}",
        "filter": {"term": {"lang": "en"}},
    }
}


def exact_query(filters, script):
    return {
        "script_score": {
            "query": {"bool": {"filter": [{"exists": {"field": "place"}}, *filters]}},
            "script": script,
        }
    }


@pytest.mark.parametrize(
    ("kind", "template", "mapping", "query"),
    [
        (
            "opensearch",
            KNN_OF_OPENSEARCH,
            {"type": "knn_vector", "method": {"space_type": "innerproduct"}},
            exact_query(
                [],
                {
                    "source": "knn_score",
                    "lang": "knn",
                    "params": {
                        "field": "place",
                        "query_value": [1.0, 2.0],
                        "space_type": "innerproduct",
                    },
                },
            ),
        ),
        (
            "elasticsearch",
            KNN_OF_ELASTICSEARCH,
            {"type": "dense_vector", "similarity": "dot_product"},
            exact_query(
                [{"term": {"lang": "en"}}],
                {
                    "source": "dotProduct(params.vector, 'place') + 1.0",
                    "params": {"vector": [1.0, 2.0]},
                },
            ),
        ),
    ],
)
def test_a_knn_clause_becomes_a_script_over_all_vectors(kind, template, mapping, query, engine):  # noqa: F811
    body = {"size": 2, "from": 0, "_source": ["title"], "query": query}
    cassette = {
        ("GET", "/docs", ""): {"docs": {"mappings": {"properties": {"place": mapping}}}},
        ("POST", "/docs/_search", sent(body)): os_reply(os_hit("a", 2.5, "A")),
    }
    settings = f"params = {{ ef = 50 }}\ntemplate = '{json.dumps(template)}'\nembed = 'a:b'"
    opened = engine(kind, settings, cassette)
    exact = engine(kind, f"template = '''{json.dumps(opened.exact_template())}'''", cassette)
    answer = exact.search(EngineQuery("", vector=[1.0, 2.0]), 2)
    assert [hit.id for hit in answer.hits] == ["a"]


def test_a_knn_next_to_a_query_has_no_exact_form(engine):  # noqa: F811
    both = {**KNN_OF_ELASTICSEARCH, "query": {"match": {"title": "{query}"}}}
    opened = engine("elasticsearch", f"params = {{ ef = 50 }}\ntemplate = '{json.dumps(both)}'", {})
    with pytest.raises(UsageError, match="next to a query"):
        opened.exact_template()
    lexical = engine("opensearch", "", {})
    with pytest.raises(UsageError, match="has no knn"):
        lexical.exact_template()


def test_indexes_of_several_quantisations_have_their_size(tmp_path):
    """Each setting asks an index of its own, with a size of its own."""
    sizes = {"docs_float": 4096, "docs_int8": 1024}
    template = {"query": {"knn": {"place": {"vector": [1.0], "k": "{size}"}}}}
    cassette = {("GET", "/", ""): {"version": {"distribution": "opensearch", "number": "3.2.0"}}}
    for name, size in sizes.items():
        knn = {"knn": {"place": {"vector": [1.0], "k": 2}}}
        body = {"size": 2, "from": 0, "_source": ["title"], "query": knn}
        second = "b" if name == "docs_float" else "c"
        cassette |= {
            ("GET", f"/{name}/_count", ""): {"count": 3},
            ("GET", f"/{name}", ""): {name: {"mappings": {}}},
            ("GET", f"/{name}/_stats/store", ""): {
                "_all": {"primaries": {"store": {"size_in_bytes": size}}}
            },
            ("POST", f"/{name}/_search", sent(body)): os_reply(
                os_hit("a", 2, "A"), os_hit(second, 1, "B")
            ),
        }
    with serving(Replay(cassette)) as server:
        (tmp_path / "t.json").write_text(json.dumps(template))
        (tmp_path / "karat.toml").write_text(
            f'[engine.e]\nkind = "opensearch"\nurl = "http://127.0.0.1:{server.server_address[1]}"\n'
            'index = "docs_{params.store}"\nparams = { store = "float" }\ntemplate = "t.json"\n'
            'exact = { store = "float" }\n'
        )
        few = Queries(SET.frame.head(2))
        config = read_engine("e", tmp_path)
        found = search_exact(few, config, {"store": "float,int8"}, depth=2)
        with pytest.raises(UsageError, match=r"\{params.store\} of index is 'a/b'"):
            search_exact(few, config, {"store": "a/b"}, depth=2)
    assert [(row.setting, row.recall, row.index_bytes) for row in found.rows] == [
        ("exact", None, 4096),
        ("store=float", 1.0, 4096),
        ("store=int8", 0.5, 1024),
    ]
    columns = [column.name for column in report.table(found).columns]
    assert columns[-1] == "index_bytes"
