"""Pools asked live, from real engines over SQLite and over HTTP, and the documents to judge."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contracts.search_server import SearchServer, serving

from karat.errors import KaratError
from karat.formats.own.engines import read_engine
from karat.store.sql import documents, pairs
from karat.tables.engines import EngineConfig
from karat.workflows.golden.engine_documents import fetch_documents, fetched_notes
from karat.workflows.golden.engine_pooling import pool_engines
from karat.workflows.golden.import_ import import_from
from karat.workflows.golden.pooling import enqueue, pool
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]
PAGES = [
    ("lists", "Lists", "join, sort and slice a list"),
    ("files", "Files", "read and write a file"),
    ("both", "Both", "read a list from a file"),
]


def _settings(order: str) -> str:
    select = f"SELECT id, -bm25(pages) AS score FROM pages WHERE pages MATCH {{words}} {order}"
    where = 'kind = "sqlite"\nurl = "../pages.db"\nindex = "pages"\n'
    return f'{where}template = "{select} LIMIT {{size}}"'


@pytest.fixture
def declare(tmp_path: Path) -> Callable[..., EngineConfig]:
    """``declare(name, settings)`` is an engine of a karat.toml, which has nothing else."""
    with sqlite3.connect(tmp_path / "pages.db") as made:
        made.execute("CREATE VIRTUAL TABLE pages USING fts5(id UNINDEXED, title, body)")
        made.executemany("INSERT INTO pages VALUES (?, ?, ?)", PAGES)

    def declared(name: str, settings: str = "") -> EngineConfig:
        folder = tmp_path / "declared"
        folder.mkdir(exist_ok=True)
        settings = settings or _settings("ORDER BY score DESC, id")
        (folder / "karat.toml").write_text(f"[engine.{name}]\n{settings}\n", encoding="utf-8")
        return read_engine(name, folder)

    return declared


@pytest.fixture
def asked(shop: Workspace, tick: Tick, tmp_path: Path) -> Workspace:
    """Two queries."""
    (tmp_path / "queries.csv").write_text("query_id,text\nq1,sort list\nq2,read file\n")
    import_from(shop, tmp_path / "queries.csv", now=tick())
    return shop


def stored(opened: Workspace) -> dict[str, tuple[str | None, str | None]]:
    """Title and text of each document of the workspace."""
    with opened.store.read() as c:
        frame = documents.frame(c, opened.golden.id)
    rows = frame.select("doc_id", "title", "text").iter_rows()
    return {doc_id: (title, text) for doc_id, title, text in rows}


def queued(opened: Workspace) -> set[tuple[str, str]]:
    """Every pair of the queue."""
    with opened.store.read() as c:
        return set(pairs.frame(c, opened.golden.id).select("query_id", "doc_id").iter_rows())


def test_the_top_of_an_engine_is_queued_with_its_documents(
    asked: Workspace, tick: Tick, declare: Callable[..., EngineConfig]
) -> None:
    made = pool_engines(asked, [declare("fts")], [], now=tick(), k=1)
    # "sort" is in one page only, and so it is the best for q1; "both" and "files" have both words
    # of q2, and "files" is shorter.
    assert queued(asked) == {("q1", "lists"), ("q2", "files")}
    assert stored(asked) == {row[0]: row[1:] for row in PAGES[:2]}
    assert made.notes[-1] == "2 documents to judge taken over"
    pool_engines(asked, [declare("fts")], [], now=tick(), k=3)
    assert stored(asked) == {row[0]: row[1:] for row in PAGES}


def test_two_engines_make_one_pool(
    asked: Workspace, tick: Tick, declare: Callable[..., EngineConfig]
) -> None:
    worst = declare("worst", _settings("ORDER BY score, id"))
    pool_engines(asked, [declare("fts"), worst], [], now=tick(), k=1)
    # "both" is the worse of the two pages that have a word of each query.
    assert queued(asked) == {("q1", "lists"), ("q1", "both"), ("q2", "files"), ("q2", "both")}


def test_documents_by_id_over_http(
    asked: Workspace, tick: Tick, declare: Callable[..., EngineConfig], tmp_path: Path
) -> None:
    rows = "query_id,doc_id\nq1,lists\nq1,gone\nq2,files\nq2,..\n"
    (tmp_path / "pairs.csv").write_text(rows, encoding="utf-8")
    enqueue(asked, tmp_path / "pairs.csv", now=tick())
    with serving(
        SearchServer(tmp_path / "pages.db", "", "SELECT * FROM pages WHERE id = ?")
    ) as server:
        settings = (
            f'kind = "http"\nurl = "{server.url}/search?q={{query}}"\ntext = "$.body"\n'
            f'document = "{server.url}/documents/{{id}}"'
        )
        fetched = fetch_documents(asked, [declare("web", settings)], now=tick())
    assert (fetched.asked, fetched.found, sorted(fetched.unknown)) == (4, 2, ["..", "gone"])
    assert stored(asked) == {row[0]: row[1:] for row in PAGES[:2]}
    assert list(fetched_notes(fetched))[-1].startswith("raters see only the id of 2 documents (")


def test_an_engine_that_has_no_documents_is_named(
    asked: Workspace, tick: Tick, declare: Callable[..., EngineConfig], tmp_path: Path
) -> None:
    (tmp_path / "pairs.csv").write_text("query_id,doc_id\nq1,lists\n", encoding="utf-8")
    enqueue(asked, tmp_path / "pairs.csv", now=tick())
    without = declare("plain", _settings("ORDER BY id").replace('index = "pages"\n', ""))
    fetched = fetch_documents(asked, [without, declare("fts")], now=tick())
    assert fetched.found == 1
    assert fetched.notes == [
        "plain gave no documents: [engine.plain] has no index, so documents cannot be found by id"
    ]


def test_nothing_is_queued_if_an_engine_answers_nothing(
    asked: Workspace, tick: Tick, declare: Callable[..., EngineConfig]
) -> None:
    broken = declare("broken", _settings("ORDER BY nowhere"))
    with pytest.raises(KaratError, match="no such column: nowhere"):
        pool_engines(asked, [declare("fts"), broken], [], now=tick())
    assert queued(asked) == set()


def test_a_run_is_pooled_with_the_documents_of_the_engine_that_answered_it(
    asked: Workspace, tick: Tick, declare: Callable[..., EngineConfig], tmp_path: Path
) -> None:
    with (asked.workspace.root / "karat.toml").open("a", encoding="utf-8") as file:
        settings = _settings("ORDER BY score DESC, id").replace("../pages.db", "pages.db")
        file.write(f"\n[engine.fts]\n{settings}\n")
    (tmp_path / "pages.db").rename(asked.workspace.root / "pages.db")
    rows = [{"query_id": "q1", "doc_id": "lists", "score": 1.0}]
    run = {"about": {"engine": "fts"}}
    text = "\n".join(json.dumps(row) for row in [run, *rows])
    (tmp_path / "run.jsonl").write_text(text, encoding="utf-8")
    made = pool(asked, [tmp_path / "run.jsonl"], now=tick())
    assert made.notes[-1] == "1 document to judge taken over"
    assert stored(asked) == {"lists": PAGES[0][1:]}
    (tmp_path / "run.jsonl").write_text(text.replace('"fts"', '"other"'), encoding="utf-8")
    assert pool(asked, [tmp_path / "run.jsonl"], now=tick()).notes == []
    # Pairs of a file: from any declared engine that has them.
    (tmp_path / "pairs.csv").write_text("query_id,doc_id\nq2,files\n", encoding="utf-8")
    assert enqueue(asked, tmp_path / "pairs.csv", now=tick()).notes == [
        "1 document to judge taken over"
    ]
    assert stored(asked)["files"] == PAGES[1][1:]
