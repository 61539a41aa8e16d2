"""The demo's documents: the docstrings of Python's standard library, from ``corpus/``.

Every documented module, class, function and method is one document. Its id is its public name
(`json.dumps`, `pathlib.Path.glob`, `os.path.join`); built-ins have no prefix (`print`,
`str.split`).
"""

from __future__ import annotations

import gzip
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

PYTHON = "3.11.7"
"""The Python whose documentation it is."""


def collect() -> pl.DataFrame:
    """The documents as a table: doc_id, title (name and signature), text, kind, module."""
    import polars as pl

    packed = (files("karat.demo") / "corpus" / "documents.jsonl.gz").read_bytes()
    columns = dict.fromkeys(("doc_id", "title", "text", "kind", "module"), pl.String())
    return pl.read_ndjson(gzip.decompress(packed), schema=columns)
