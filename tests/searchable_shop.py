"""The documents of the small shop (tests/web/conftest.py) as a database, and engines over it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

SQL = (
    "SELECT id, title, -bm25(docs, 0, {params.title}, 1) AS score FROM docs "
    "WHERE docs MATCH {words} ORDER BY score DESC, id LIMIT {size}"
)
ENGINES = f'''
[engine.shop]
kind = "sqlite"
url = "docs.db"
index = "docs"
template = "{SQL}"
params = {{ title = 1.0 }}

[engine.titles]
kind = "python"
function = "tests.searchable_shop:search"

[engine.away]
kind = "solr"
url = "http://127.0.0.1:9/solr"
index = "docs"
timeout = 2
'''
DOCUMENTS = [
    ("d1", "Red shoes", "red shoes for walking"),
    ("d2", "Garden hose", "a hose for the garden, red; not shoes"),
    ("d3", "Tall ladder", "a ladder"),
    ("d4", "Wool hat", "a hat of wool, red as shoes"),
    ("d5", "Hats, hoses, shoes", "wool hat, tall hose, shoes shoes shoes"),
]


def search(text: str) -> list[str]:
    """The engine ``titles``: documents that have a word of the query in their title."""
    words = set(text.lower().split())
    return [i for i, title, _ in DOCUMENTS if words & set(title.lower().replace(",", "").split())]


def declare(root: Path) -> None:
    """Declare engines in a workspace: ``shop`` (SQLite), ``titles`` (Python), ``away`` (down)."""
    with sqlite3.connect(root / "docs.db") as database:
        database.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title, text)")
        database.executemany("INSERT INTO docs VALUES (?, ?, ?)", DOCUMENTS)
    database.close()
    with (root / "karat.toml").open("a", encoding="utf-8") as file:
        file.write(ENGINES)
