"""The demo's systems as engines: declared in karat.toml, so that they can be asked anything.

``engines.db`` holds the full-text index of ``bm25``, and the vectors of ``semantic``.
"""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from karat.demo import _semantic, bm25
from karat.formats.own.workspace import NAME

FILE, MODULE = "engines.db", "demo_semantic.py"
_ARRAYS = ("rarity", "axes", "vectors")
_WORDS = '''
[engine.bm25]  # karat try bm25 'read a file'; or Offline, Playground in the browser
kind = "sqlite"
url = "engines.db"
index = "pages"
id = "doc_id"
template = """
SELECT doc_id, title, -bm25(pages, 0, {params.title_weight}, 1) AS score
FROM pages WHERE pages MATCH {words}
ORDER BY score DESC, doc_id DESC
LIMIT {size}"""
params = { title_weight = 1.0 }
'''
_MEANING = """
[engine.semantic]
kind = "python"
function = "demo_semantic:search"
"""
_FUNCTION = '''\
"""The semantic search of the demo, as karat.toml declares it: from a query to documents."""

from pathlib import Path

from karat.demo.engines import semantic

search = semantic(Path(__file__).with_name("engines.db"))
'''


def write(directory: Path, documents: pl.DataFrame, space: _semantic.Space | None) -> None:
    """Write the index of documents (doc_id, title, text); without a space only that of words."""
    path = directory / FILE
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        bm25.index(connection, documents)
        connection.execute("CREATE TABLE semantic (name TEXT PRIMARY KEY, data BLOB)")
        if space is not None:
            names = {"doc_ids": space.doc_ids, "columns": list(space.columns)}
            rows = [(name, json.dumps(held).encode()) for name, held in names.items()]
            for name in _ARRAYS:
                data = io.BytesIO()
                np.save(data, getattr(space, name))
                rows.append((name, data.getvalue()))
            connection.executemany("INSERT INTO semantic VALUES (?, ?)", rows)
    if space is not None:
        (directory / MODULE).write_text(_FUNCTION, encoding="utf-8")


def declare(directory: Path) -> None:
    """Declare the engines in the demo's karat.toml, unless it has some."""
    path = directory / NAME
    text = path.read_text(encoding="utf-8")
    if "[engine." not in text:
        meaning = _MEANING if (directory / MODULE).exists() else ""
        path.write_text(f"{text}{_WORDS}{meaning}", encoding="utf-8")


def semantic(path: Path) -> Callable[[str], list[tuple[str, float]]]:
    """The semantic search over what ``write`` wrote."""

    @cache
    def space() -> _semantic.Space:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            held = dict(connection.execute("SELECT name, data FROM semantic"))
        arrays = {name: np.load(io.BytesIO(held[name])) for name in _ARRAYS}
        columns = {name: at for at, name in enumerate(json.loads(held["columns"]))}
        return _semantic.Space.of(json.loads(held["doc_ids"]), columns, **arrays)

    return lambda text: space().nearest(text)
