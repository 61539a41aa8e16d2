"""The demo's documents: the documentation of this Python's standard library.

Every documented module, class, function and method is one document. Its id is its public name
(`json.dumps`, `pathlib.Path.glob`, `os.path.join`); built-ins have no prefix (`print`,
`str.split`). Source files are read, not run (`karat.demo._library`); only a fixed list of
modules without source is imported (`karat.demo._compiled`).
"""

from __future__ import annotations

import gc
import sysconfig
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from karat.demo import _compiled
from karat.demo._library import Entry, Library

if TYPE_CHECKING:
    import polars as pl


def find_entries(directory: Path | None = None) -> list[Entry]:
    """All documents of the library in `directory` (default: of the running Python), by doc_id."""
    library = Library(directory or Path(sysconfig.get_path("stdlib")))
    collecting = gc.isenabled()
    gc.disable()  # twice as fast: syntax trees are millions of small objects, none of them garbage
    try:
        from_source = list(library.entries())
    finally:
        if collecting:
            gc.enable()
    exports: dict[str, Collection[str]] = {}
    for name in library.public_modules():
        source = library.source(name)
        listed = library.exports(source) if source else None
        if listed:
            exports[name] = frozenset(listed)
    # If both have a docstring, C wins for callables (as in help()), source for modules.
    modules = [entry for entry in from_source if entry.kind == "module"]
    kept: dict[str, Entry] = {}
    for entry in (*modules, *_compiled.entries(exports), *from_source):
        # A docstring may contain half a surrogate pair, which cannot be encoded.
        text = entry.text.encode("utf-8", "replace").decode("utf-8")
        kept.setdefault(entry.doc_id, entry._replace(text=text))
    return [kept[doc_id] for doc_id in sorted(kept)]


def collect(directory: Path | None = None) -> pl.DataFrame:
    """The documents as a table: doc_id, title (name and signature), text, kind, module."""
    import polars as pl

    columns = ("doc_id", "title", "text", "kind", "module")
    entries = find_entries(directory)
    rows = [(e.doc_id, e.doc_id + e.signature, e.text, e.kind, e.module) for e in entries]
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
