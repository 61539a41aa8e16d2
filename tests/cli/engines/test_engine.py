"""``karat engine`` and ``karat search ENGINE``, as somebody types them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat import formats

Typed = Callable[..., Any]  # conftest.py

TOML = """
[engine.pages]
kind = "sqlite"
url = "pages.db"
index = "pages"
template = "SELECT id, -bm25(pages, 0, {params.w}) AS score FROM pages WHERE pages MATCH {words}"
params = { w = 1.0 }

[engine.away]
kind = "solr"
url = "http://127.0.0.1:9/solr"
index = "docs"
headers = { X-Key = { env = "KARAT_TEST_KEY" } }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect("pages.db") as database:
        database.execute("CREATE VIRTUAL TABLE pages USING fts5(id UNINDEXED, text)")
        database.executemany(
            "INSERT INTO pages VALUES (?, ?)", [("a", "open a file"), ("b", "join lists")]
        )
    database.close()
    Path("karat.toml").write_text(TOML)
    Path("queries.csv").write_text("query_id,text\nq1,lists\nq2,nothing at all\n")
    return tmp_path


def test_declared_engines_are_listed_without_their_secrets(folder, typed, monkeypatch):
    monkeypatch.setenv("KARAT_TEST_KEY", "hunter2")
    found = json.loads(typed("engine list -f json").out)
    assert [engine["name"] for engine in found["engines"]] == ["pages", "away"]
    assert "hunter2" not in typed("engine list").out + json.dumps(found)


@pytest.mark.parametrize(
    ("line", "code", "states"),
    [
        ("pages --query lists", 0, ["ok", "ok", "ok", "unknown"]),
        ("pages", 0, ["ok", "ok", "ok", "unknown"]),
        ("away", 4, ["fail"]),
    ],
)
def test_a_check_says_what_it_found(line, code, states, folder, typed, monkeypatch):
    monkeypatch.setenv("KARAT_TEST_KEY", "x")
    found = json.loads(typed(f"engine check {line} -f json", code=code).out)
    assert [check["state"] for check in found["checks"]] == states
    assert found["ok"] == (code == 0)


def test_a_run_says_what_was_asked(folder, typed):
    done = typed("search pages queries.csv -o run.jsonl --param w=2.5")
    assert "2 queries asked: 1 ok, 1 empty, 0 failed" in done.out
    run = formats.read_run(folder / "run.jsonl")
    assert run.about["engine"] == "pages"
    assert run.about["parameters.w"] == "2.5"
    assert run.about["template"].startswith("inline ")
    assert run.rows["doc_id"].to_list() == ["b"]


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("pagse queries.csv", 2, "no engine 'pagse' in karat.toml; did you mean pages?"),
        ("pages queries.csv --param ww=2", 2, "no parameter 'ww'; did you mean w?"),
        ("pages queries.csv --param w", 2, "--param 'w' is not NAME=VALUE"),
        ("pages queries.csv --python a:b", 2, "exclude each other"),
        ("away queries.csv", 2, "the environment variable KARAT_TEST_KEY is not set"),
    ],
)
def test_mistakes_name_their_fix(line, code, says, folder, typed):
    assert says in typed(f"search {line} -o run.jsonl", code=code).err
    assert not (folder / "run.jsonl").exists()


def test_an_engine_that_is_away_ends_with_4(folder, typed, monkeypatch):
    monkeypatch.setenv("KARAT_TEST_KEY", "x")
    done = typed("search away queries.csv -o run.jsonl", code=4)
    assert done.err.startswith("karat: away: cannot reach 127.0.0.1: ")
