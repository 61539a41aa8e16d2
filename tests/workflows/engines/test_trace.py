"""Traces of SQLite with FTS5: its stages asked alone, then the fusion of the run."""

from __future__ import annotations

import json
import sqlite3

import polars as pl
import pytest

from karat.formats.own.engines import read_engine
from karat.formats.own.traces import read_trace
from karat.tables import Queries
from karat.workflows.engines.live import search_engine
from karat.workflows.engines.trace import trace_search

DOCUMENTS = [
    (f"d{n}", "red " * (n % 3) + f"page {n}", "shoes " * (n % 5) + "blue") for n in range(60)
]
ALONE = (
    "SELECT id, -bm25(docs) AS score FROM docs WHERE docs MATCH '{column} : (' || {{words}} || ')' "
    "ORDER BY score DESC, id LIMIT {{size}}"
)
FUSED = """
WITH a AS (SELECT id, -bm25(docs) AS s FROM docs WHERE docs MATCH 'title : (' || {words} || ')'),
     b AS (SELECT id, -bm25(docs) AS s FROM docs WHERE docs MATCH 'text : (' || {words} || ')')
SELECT id, coalesce(a.s, 0) + {params.boost} * coalesce(b.s, 0) AS score, a.s AS title, b.s AS text
FROM a FULL JOIN b USING (id) ORDER BY score DESC, id LIMIT {size}
"""
QUERIES = {"q1": "red shoes", "q2": "blue", "q3": "nothing"}


@pytest.fixture
def declared(tmp_path):
    """``declared(stages)`` is the engine ``prod`` with these stages."""
    with sqlite3.connect(tmp_path / "docs.db") as made:
        made.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title, text)")
        made.executemany("INSERT INTO docs VALUES (?, ?, ?)", DOCUMENTS)
    for name in ("title", "text"):
        (tmp_path / f"{name}.sql").write_text(ALONE.format(column=name))
    (tmp_path / "fused.sql").write_text(FUSED)

    def declare(stages='{ titles = "title.sql", texts = "text.sql" }', template="fused.sql"):
        (tmp_path / "karat.toml").write_text(
            '[engine.prod]\nkind = "sqlite"\nurl = "docs.db"\ndepth = 5\n'
            f'template = "{template}"\nparams = {{ boost = 2 }}\nstages = {stages}\n'
        )
        return read_engine("prod", tmp_path)

    return declare


def traced(config, folder, file="trace.parquet", **more):
    rows = [{"query_id": query, "text": text} for query, text in QUERIES.items()]
    queries = Queries(pl.DataFrame(rows))
    found = search_engine(queries, config, folder / "run.parquet", progress=False)
    found = trace_search(queries, config, found, folder / file, progress=False, **more)
    return found, read_trace(folder / file)


@pytest.mark.parametrize("file", ["trace.parquet", "trace.jsonl"])
def test_each_stage_has_what_the_engine_returns_for_it_alone(file, declared, tmp_path):
    found, trace = traced(declared(), tmp_path, file)
    stages = [(stage.name, stage.kind, stage.parents, stage.depth) for stage in trace.stages]
    # 5 documents of the run, 25 of each stage; 40 of 60 titles have red, 48 texts shoes.
    assert stages == [
        ("titles", "retrieve", (), 25),
        ("texts", "retrieve", (), 25),
        ("prod", "fuse", ("titles", "texts"), 5),
    ]
    sql = ALONE.format(column="title").replace("{words}", ":words").replace("{size}", ":size")
    own = sqlite3.connect(tmp_path / "docs.db").execute(
        sql, {"words": '"red" OR "shoes"', "size": 25}
    )
    # Documents with equal scores are in karat's order.
    rows = trace.candidates("titles", ["q1"]).select("doc_id", "score").rows()
    assert sorted(rows) == sorted(own)
    served = found.run.frame().select("query_id", "doc_id", "rank")
    assert trace.candidates("prod").select("query_id", "doc_id", "rank").rows() == served.rows()
    states = trace.frame.filter(pl.col("query_id") == "q3")["state"].to_list()
    assert states == ["empty", "empty", "empty"]


def test_further_numbers_of_a_row_are_parts_of_the_score(declared, tmp_path):
    _, trace = traced(declared(), tmp_path)
    row = trace.frame.row(by_predicate=(pl.col("query_id") == "q2") & (pl.col("stage") == "prod"),
                          named=True)  # fmt: skip
    parts = [json.loads(part) for part in row["parts"]]
    # No title has blue: the score is twice the part of the text.
    assert [2 * part["text"] for part in parts] == pytest.approx(row["scores"])
    assert all(set(part) == {"text"} for part in parts)


def test_an_engine_without_stages_is_one_that_is_asked_deeper(declared, tmp_path):
    _, trace = traced(declared("{}", "title.sql"), tmp_path, depth=12)
    [stage] = trace.stages
    assert (stage.name, stage.kind, stage.depth) == ("retrieval", "retrieve", 12)
