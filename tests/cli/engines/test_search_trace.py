"""``karat search --trace``: the run, then what each stage of the engine returns."""

from __future__ import annotations

import json
import sqlite3

import pytest

WHOLE = "SELECT id, -bm25(docs) AS score FROM docs WHERE docs MATCH {words} LIMIT {size}"


@pytest.fixture
def search(typed, tmp_path, monkeypatch):
    """``karat search prod queries.jsonl -o run.jsonl …`` with these stages."""
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect("docs.db") as made:
        made.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title)")
        made.executemany("INSERT INTO docs VALUES (?, ?)", [("a", "red"), ("b", "blue red")])
    (tmp_path / "queries.jsonl").write_text(json.dumps({"query_id": "q", "text": "red"}))

    def run(more, stages="{}", code=0):
        (tmp_path / "karat.toml").write_text(
            f'[engine.prod]\nkind = "sqlite"\nurl = "docs.db"\ntemplate = "{WHOLE}"\n'
            f"stages = {stages}\n"
        )
        return typed(f"search prod queries.jsonl -o run.jsonl {more}", code=code)

    return run


def test_the_command_writes_the_trace_and_names_the_next_one(search, tmp_path):
    found = json.loads(search("--trace t.jsonl --trace-depth 1 --format json").out)
    assert found["trace"] == "t.jsonl"
    assert found["next"] == "karat diagnose QRELS run.jsonl --trace t.jsonl"
    [line] = (tmp_path / "t.jsonl").read_text().splitlines()
    assert json.loads(line)["stage"] == "retrieval"
    assert len(json.loads(line)["candidates"]) == 1


def test_a_stage_that_answers_nothing_ends_it_with_its_error_after_the_run(search, tmp_path):
    done = search("--trace t.jsonl", '{ wrong = "SELECT id FROM nowhere WHERE {query}" }', 4)
    assert "the stage wrong of prod answered none of 1 query" in done.err
    assert "no such table: nowhere" in done.err
    assert (tmp_path / "run.jsonl").exists()
    assert not (tmp_path / "t.jsonl").exists()


@pytest.mark.parametrize(
    ("more", "stages", "message"),
    [
        ("--trace t.txt", "{}", "neither .jsonl nor .parquet"),
        ("--trace t.jsonl --trace-depth 0", "{}", "from 1 to 10,000, got 0"),
        ("--trace t.jsonl", '{ a = "gone.sql" }', "stages: gone.sql cannot be read"),
        ("--trace t.jsonl", "{ a = 1 }", "stages: 1 is neither a file nor a table"),
    ],
)
def test_what_cannot_be_traced_is_refused_before_any_query(more, stages, message, search, tmp_path):
    done = search(more, stages, 2)
    assert message in done.err
    assert not (tmp_path / "run.jsonl").exists()
