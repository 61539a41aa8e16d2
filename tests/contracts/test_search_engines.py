"""Every kind of search engine, against the real one: the run equals the engine's own answer.

SQLite, PostgreSQL with pgvector, and a search API over SQLite run here. OpenSearch, Elasticsearch
and Solr do not: ``test_search_cassettes.py`` holds their documented requests and replies.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import psycopg
import pytest
from tests.contracts.search_server import SearchServer, serving

from karat import formats
from karat.engines.search.engine import EngineError
from karat.engines.search.opening import open_search_engine
from karat.errors import InputError, KaratError, UsageError
from karat.formats.own.engines import read_engine, read_engines, with_params, with_secrets
from karat.tables import Queries
from karat.tables.engines import EngineQuery
from karat.workflows.engines import _journal
from karat.workflows.engines.check import check_engine, exit_code
from karat.workflows.engines.live import open_live, search_engine

FTS = (
    "SELECT id, -bm25(docs) AS score, title FROM docs WHERE docs MATCH :p0 "
    "ORDER BY bm25(docs), id LIMIT :p1 OFFSET :p2"
)
DOCUMENTS = [
    (f"d{n}", f"page {n}", "red shoes " * (n % 7) + f"number {n} blue") for n in range(250)
]


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("fts") / "docs.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title, text)")
        made.executemany("INSERT INTO docs VALUES (?, ?, ?)", DOCUMENTS)
    return path


@pytest.fixture
def declared(tmp_path, database):
    """``declared(toml)`` is the engine ``e`` of a karat.toml with these settings."""

    def declare(settings, name="e"):
        (tmp_path / "karat.toml").write_text(f"[engine.{name}]\n{settings}\n", encoding="utf-8")
        (tmp_path / "docs.db").unlink(missing_ok=True)
        (tmp_path / "docs.db").symlink_to(database)
        return read_engine(name, tmp_path)

    return declare


@pytest.fixture
def server(database):
    with serving(SearchServer(database, FTS)) as started:
        yield started


def http(server, extra=""):
    return (
        f'kind = "http"\nurl = "{server.url}/search?q={{query}}&n={{size}}&from={{from}}"\n'
        'hits = "$.results[*]"\nscore = "$.rank.score"\ntitle = "$.title"\n'
        f'took = "$.took_ms"\n{extra}'
    )


SQLITE = (
    'kind = "sqlite"\nurl = "docs.db"\nindex = "docs"\ntemplate = """'
    "SELECT id, -bm25(docs) AS score, title FROM docs WHERE docs MATCH {words} "
    'ORDER BY bm25(docs), id LIMIT {size} OFFSET {from}"""\n'
)


def own_answer(database, text, size):
    words = " OR ".join(f'"{word}"' for word in text.split())
    return sqlite3.connect(database).execute(FTS, {"p0": words, "p1": size, "p2": 0}).fetchall()


# --- the same answer ---


@pytest.mark.parametrize("kind", ["http", "sqlite"])
@pytest.mark.parametrize(("size", "page"), [(10, 1000), (100, 30), (400, 64)])
def test_the_hits_are_those_of_the_engine_at_every_depth(
    kind, size, page, declared, server, database
):
    config = declared(f"{http(server) if kind == 'http' else SQLITE}page = {page}")
    engine = open_search_engine(config)
    answer = engine.search(EngineQuery("red blue"), size)
    engine.close()
    own = own_answer(database, "red blue", size)
    assert [(hit.id, hit.score, hit.title) for hit in answer.hits] == own
    assert len(own) == min(size, 250)
    if kind == "http":  # 1.5 ms a page
        pages = len([path for path in server.asked if "red" in path])
        assert answer.server_us == 1500 * pages


@pytest.mark.deep
def test_a_run_of_cranfield_equals_the_answers_of_sqlite(declared, field_data, tmp_path):
    folder = field_data / "cranfield"
    lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    corpus = [json.loads(line) for line in lines]
    path = tmp_path / "cranfield.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title, text)")
        rows = [(d["_id"], d["title"], d["text"]) for d in corpus]
        made.executemany("INSERT INTO docs VALUES (?, ?, ?)", rows)
    config = declared(SQLITE.replace("docs.db", path.name) + "depth = 50")
    queries = formats.read_queries(folder / "queries.jsonl")
    found = search_engine(queries, config, tmp_path / "run.parquet", concurrency=4)
    assert (found.queries, found.failed) == (225, 0)
    run = formats.read_run(tmp_path / "run.parquet")
    for query, text in list(queries.texts().items())[::25]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        own = sqlite3.connect(path).execute(FTS, {"p0": words, "p1": 50, "p2": 0}).fetchall()
        rows = run.frame().filter(pl.col("query_id") == query)
        assert dict(zip(rows["doc_id"], rows["score"], strict=True)) == {i: s for i, s, _ in own}
    assert run.about["engine"] == "e"
    assert run.about["engine_version"].startswith("sqlite 3.")
    assert len(run.about["index_fingerprint"]) == 16


@pytest.fixture
def database_of_postgres(postgres):
    """A table with full text and vectors, and the URL of its database."""
    url = postgres.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as c:
        c.execute("CREATE EXTENSION IF NOT EXISTS vector")
        c.execute("DROP TABLE IF EXISTS docs")
        c.execute("CREATE TABLE docs (id text PRIMARY KEY, title text, body text, place vector(2))")
        with c.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO docs VALUES (%s, %s, %s, %s::vector)",
                [(i, t, b, f"[{n},{n % 5}]") for n, (i, t, b) in enumerate(DOCUMENTS)],
            )
        c.execute("ANALYZE docs")
        yield url
        c.execute("DROP TABLE docs")


HYBRID = """
WITH words AS (
  SELECT id, row_number() OVER (ORDER BY ts_rank(to_tsvector('simple', body), q) DESC, id) AS r
  FROM docs, websearch_to_tsquery('simple', {query}) q WHERE to_tsvector('simple', body) @@ q
  LIMIT 100
), near AS (
  SELECT id, row_number() OVER (ORDER BY place <-> {vector}::vector, id) AS r FROM docs LIMIT 100
)
SELECT id, title, sum(1.0 / ({params.k} + r)) AS score
FROM (SELECT * FROM words UNION ALL SELECT * FROM near) both_lists JOIN docs USING (id)
WHERE 7 % 4 = 3 AND title LIKE 'page%' GROUP BY id, title ORDER BY score DESC, id LIMIT {size}
"""


def test_postgresql_fuses_full_text_and_vectors_in_sql(declared, database_of_postgres, tmp_path):
    (tmp_path / "encoder.py").write_text("def embed(text):\n    return [len(text), 1]\n")
    (tmp_path / "hybrid.sql").write_text(HYBRID)
    config = declared(
        f'kind = "postgres"\nurl = "{database_of_postgres}"\nindex = "docs"\n'
        'template = "hybrid.sql"\nembed = "encoder:embed"\nparams = { k = 60 }\ndepth = 20'
    )
    queries = Queries(pl.DataFrame({"query_id": ["q1", "q2"], "text": ["red shoes", "blue 'x"]}))
    search_engine(queries, config, tmp_path / "run.jsonl", concurrency=2)
    run = formats.read_run(tmp_path / "run.jsonl")
    sql = HYBRID.replace("%", "%%")
    for name, mark in {"query": "q", "vector": "v", "params.k": "k", "size": "n"}.items():
        sql = sql.replace(f"{{{name}}}", f"%({mark})s")
    for query, text in queries.texts().items():
        bound = {"q": text, "v": f"[{len(text)},1]", "k": 60, "n": 20}
        with psycopg.connect(database_of_postgres) as c:
            own = {i: float(score) for i, _, score in c.execute(sql, bound).fetchall()}
        rows = run.frame().filter(pl.col("query_id") == query)
        assert dict(zip(rows["doc_id"], rows["score"], strict=True)) == pytest.approx(own)
        assert len(own) == 20
    assert run.about["parameters.k"] == "60"
    engine = open_search_engine(config)
    assert engine.documents(["d8", "no such"]) == [
        dict(zip(("doc_id", "title", "text"), DOCUMENTS[8], strict=True)) | {"url": None}
    ]
    engine.close()
    assert run.about["engine_version"].startswith("postgresql ")


def test_postgresql_is_read_only_as_far_as_asked(declared, database_of_postgres):
    """All of the 100 million rows would not be there before the timeout."""
    config = declared(
        f'kind = "postgres"\nurl = "{database_of_postgres}"\ntimeout = 2\n'
        'template = "SELECT a::text AS id FROM generate_series(1, 10000) a, '
        "generate_series(1, 10000) b WHERE {query} <> ''\""
    )
    engine = open_search_engine(config)
    assert [hit.id for hit in engine.search(EngineQuery("x"), 3).hits] == ["1", "1", "1"]
    assert [hit.id for hit in engine.search(EngineQuery("x"), 1).hits] == ["1"]
    engine.close()


def test_a_template_cannot_write(declared, database_of_postgres):
    config = declared(
        f'kind = "postgres"\nurl = "{database_of_postgres}"\n'
        'template = "DELETE FROM docs WHERE id = {query} RETURNING id"'
    )
    engine = open_search_engine(config)
    with pytest.raises(EngineError, match="read-only transaction"):
        engine.search(EngineQuery("d1"), 10)
    engine.close()


def test_what_a_template_sets_ends_with_its_query(declared, database_of_postgres):
    config = declared(
        f'kind = "postgres"\nurl = "{database_of_postgres}"\n'
        "template = \"SELECT set_config('default_transaction_read_only', 'off', false) || "
        "current_setting('statement_timeout') AS id WHERE {query} != ''\""
    )
    engine = open_search_engine(config)
    assert engine.search(EngineQuery("d1"), 10).hits[0].id == "off10s"
    assert engine.rows("SHOW default_transaction_read_only")[0] == {
        "default_transaction_read_only": "on"
    }
    engine.close()


def test_sqlite_is_opened_read_only(declared):
    engine = open_search_engine(declared(SQLITE))
    with pytest.raises(EngineError, match="readonly"):
        engine.rows("DELETE FROM docs")
    engine.close()


def test_a_function_gives_documents_by_id(declared, tmp_path):
    (tmp_path / "shop.py").write_text(
        "def run(text):\n    return []\n\n"
        "PAGES = {'a': {'meta': {'name': ['A']}, 'content': 'b'}}\npage = PAGES.get\n"
    )
    config = declared(
        'kind = "python"\nfunction = "shop:run"\ndocument = "shop:page"\ntitle = "$.meta.name"'
    )
    with open_live(config) as engine:
        assert engine.documents(["a", "b"]) == [
            {"doc_id": "a", "title": "A", "text": "b", "url": None}
        ]
    (tmp_path / "shut.py").write_text("def run(text):\n    return []\n\ndef page(i):\n    1 / 0\n")
    config = declared('kind = "python"\nfunction = "shut:run"\ndocument = "shut:page"')
    with open_live(config) as engine, pytest.raises(EngineError, match="raised ZeroDivisionError"):
        engine.documents(["a"])


def test_documents_are_asked_on_the_server_of_the_engine_only(declared):
    settings = 'kind = "http"\nurl = "http://a/s?q={query}"\ndocument = "http://b/d/{id}"'
    with pytest.raises(UsageError, match="on the server of url"):
        open_search_engine(declared(settings))


# --- trouble ---

ONE = Queries(pl.DataFrame({"query_id": ["q1"], "text": ["red"]}))
FEW = Queries(pl.DataFrame({"query_id": [f"q{n}" for n in range(8)], "text": ["red"] * 8}))
MANY = Queries(pl.DataFrame({"query_id": [f"q{n}" for n in range(60)], "text": ["red"] * 60}))


def test_a_busy_engine_is_asked_again_after_the_time_it_names(declared, server, tmp_path):
    server.trouble = [(429, {"error": "slow down"}, {"Retry-After": "1"})]
    began = time.monotonic()
    found = search_engine(ONE, declared(http(server)), tmp_path / "run.jsonl", retries=2)
    assert time.monotonic() - began >= 1.0
    assert found.ok == 1
    assert len(server.asked) == 2


def test_a_wrong_request_is_not_repeated(declared, server, tmp_path):
    server.trouble = [(400, {"error": {"reason": "no mapping for [titel]"}})]
    found = search_engine(FEW, declared(http(server)), tmp_path / "run.jsonl", retries=3)
    assert (found.failed, len(server.asked)) == (1, 8)
    assert found.reasons[0].error == "127.0.0.1 answered 400: no mapping for [titel]"


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ((200, b"<html>"), "returned no JSON: <html>"),
        ((200, {"results": [{"sku": 1}]}), r"document 1 has no \$\.id; it has sku"),
        ((200, {"results": [{"id": "a", "rank": {"score": "x"}}]}), "score is 'x', not a number"),
        ((503, {}), "answered 503"),
        ((302, b"", {"Location": "http://example.org/"}), "answered 302"),
    ],
)
def test_a_reply_that_is_no_ranking_fails_its_query_only(
    trouble, message, declared, server, tmp_path
):
    server.trouble = [trouble]
    found = search_engine(FEW, declared(http(server)), tmp_path / "run.jsonl")
    assert (found.failed, found.ok) == (1, 7)
    assert re.search(message, found.reasons[0].error)


def test_a_slow_answer_fails_after_the_timeout(declared, server, tmp_path):
    server.trouble = [0.8]
    found = search_engine(FEW, declared(http(server, "timeout = 0.3")), tmp_path / "run.jsonl")
    assert (found.failed, found.reasons[0].error) == (1, "timeout after 0.3 s")


def test_an_engine_that_is_away_ends_the_search_with_its_error(declared, server, tmp_path):
    config = declared(http(server))
    server.shutdown()
    server.server_close()
    with pytest.raises(
        KaratError, match=r"e answers nothing: 20 requests failed.*cannot reach"
    ) as e:
        search_engine(MANY, config, tmp_path / "run.jsonl")
    assert e.value.exit_code == 4
    assert not (tmp_path / "run.jsonl").exists()


def test_an_interrupted_search_goes_on_where_it_stopped(declared, server, tmp_path):
    config = declared(http(server))
    out = tmp_path / "run.jsonl"
    real = _journal.Journal.write

    def write(self, query, reply):
        outcome = real(self, query, reply)
        if query == "q24":
            raise KeyboardInterrupt
        return outcome

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_journal.Journal, "write", write)
        with pytest.raises(KeyboardInterrupt):
            search_engine(MANY, config, out)
    assert not out.exists()
    before = len(server.asked)
    found = search_engine(MANY, config, out)
    assert len(server.asked) - before == 60 - 25
    assert found.ok == 60
    assert "25 queries had been answered before the search was interrupted" in found.notes
    assert not Path(f"{out}.partial").exists()


def test_an_engine_that_restarts_is_asked_again(declared, server, database, tmp_path):
    config = declared(http(server))
    with ExitStack() as stack:

        def start():
            port = server.server_address[1]
            stack.enter_context(serving(SearchServer(database, FTS, port=port)))

        def restart(done):
            if done == 10 and not server.trouble:
                server.trouble = ["drop"]  # its open connection
                server.shutdown()
                server.server_close()
                threading.Timer(0.3, start).start()

        found = search_engine(MANY, config, tmp_path / "run.jsonl", retries=9, watch=restart)
    assert (found.ok, found.failed) == (60, 0)
    assert found.notes[0].startswith("1 query answered only after a retry")


def test_another_template_does_not_go_on_with_the_old_replies(declared, server, tmp_path):
    Path(tmp_path / "run.jsonl.partial").write_text(
        '{"search": "0123"}\n["q1", ["x"], [1], 0, true, 5, 1]\n'
    )
    search_engine(ONE, declared(http(server)), tmp_path / "run.jsonl")
    assert len(server.asked) == 1


def test_the_rate_holds_over_all_threads(declared, server, tmp_path):
    began = time.monotonic()
    search_engine(MANY, declared(http(server, "rate = 100")), tmp_path / "r.jsonl", concurrency=8)
    # 60 requests at 100 a second: the last starts 590 ms after the first.
    assert time.monotonic() - began >= 0.59


# --- secrets ---


def test_a_secret_comes_from_the_environment_and_is_not_stored(declared, server, monkeypatch):
    config = declared(http(server, 'headers = { Authorization = { env = "TOKEN" } }'))
    with pytest.raises(UsageError, match="the environment variable TOKEN is not set"):
        with_secrets(config)
    monkeypatch.setenv("TOKEN", "Bearer x")
    assert with_secrets(config).headers == {"Authorization": "Bearer x"}
    assert "Bearer" not in repr(with_secrets(config))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('kind = "htp"', "unknown kind 'htp'.*\n.*did you mean http"),
        ("depth = 5", "no kind.*\n.*one of http"),
        ('kind = "http"', "no url"),
        (
            'kind = "http"\nurl = "http://x/{query}"\nhit = "$.a"',
            "line 4.*unknown key 'hit'.*\n.*hits",
        ),
        (
            'kind = "http"\nurl = "http://x/{query}"\ndepth = 0',
            "line 4.*depth is 0, not a whole number",
        ),
        ('kind = "solr"\nurl = "http://x"\nfunction = "a:b"', "a setting of python, not of solr"),
        ('kind = "postgres"\nurl = "postgresql://u:secret@h/d"', "url contains a password"),
        (
            'kind = "http"\nurl = "http://x/{query}"\nheaders = { Authorization = "Bearer 1" }',
            "a secret, which does not belong in this file",
        ),
        ('kind = "solr"\nurl = "http://x"\ntemplate = "no.json"', "no.json cannot be read"),
        (
            'kind = "solr"\nurl = "http://x"\ntemplate = \'{"size": {size}}\'',
            "not valid JSON.*\n.*quotes",
        ),
    ],
)
def test_a_wrong_declaration_says_what_where_and_how(settings, message, declared):
    with pytest.raises(InputError, match=f"(?s){message}") as error:
        declared(settings)
    assert "secret" not in str(error.value) or "does not belong" in str(error.value)


def test_parameters_can_be_given_others_values(declared):
    config = declared('kind = "solr"\nurl = "http://x"\nparams = { boost = 3, mode = "and" }')
    assert with_params(config, {"boost": "2.5", "mode": "or"}).params == {
        "boost": 2.5,
        "mode": "or",
    }
    with pytest.raises(UsageError, match="no parameter 'bost'; did you mean boost"):
        with_params(config, {"bost": "1"})


def test_a_folder_without_engines_has_none(tmp_path):
    (tmp_path / "karat.toml").write_text("[workspace]")
    assert read_engines(tmp_path) == {}


# --- karat engine check ---


def states(checks):
    return {check.check: check.state for check in checks}


def test_a_sound_engine_passes_all_checks(declared):
    judged = {"q1": ["d6", "d13", "d20", "x"]}  # six times "red", as few words as any
    checks = check_engine(declared(SQLITE), queries=ONE, judged=judged)
    assert states(checks) == {
        "version": "ok",
        "index": "ok",
        "query": "ok",
        "ids": "ok",
        "explain": "unknown",
    }
    assert exit_code(checks) == 0


def test_ids_that_are_not_those_of_the_judgments_name_the_likely_cause(declared):
    judged = {"q1": [f"D{n}" for n in range(250)]}
    (ids,) = [
        c for c in check_engine(declared(SQLITE), queries=ONE, judged=judged) if c.check == "ids"
    ]
    assert (ids.state, ids.fix) == ("fail", "likely cause: the engine's ids have other capitals")
    assert exit_code([ids]) == 1


@pytest.mark.parametrize(
    ("change", "check", "fix"),
    [
        (('index = "docs"', 'index = "dcos"'), "reachable", "check index"),
        (("{words}", "{query}"), "query", "check the template"),
        (('url = "docs.db"', 'url = "none.db"'), "open", 'url = "docs.db"'),
    ],
)
def test_each_failure_has_its_fix(change, check, fix, declared):
    text = Queries(pl.DataFrame({"query_id": ["q"], "text": ['what"s']}))
    checks = check_engine(declared(SQLITE.replace(*change)), queries=text)
    assert (checks[-1].check, checks[-1].state) == (check, "fail")
    assert fix in checks[-1].fix
    assert exit_code(checks) == (1 if check == "open" else 4)
