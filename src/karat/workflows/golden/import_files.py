"""Files to import: read as what their content tells, and refused where they cannot be meant."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import Advice, InputError
from karat.formats import read_documents, read_queries
from karat.formats.exchange.catalogue import EXCHANGES, read_exchange
from karat.formats.exchange.detect import detect
from karat.formats.exchange.import_ import Gathered, held
from karat.formats.exchange.packed import beir_in
from karat.formats.exchange.source_file import open_foreign
from karat.formats.tables.catalogue import FORMATS
from karat.formats.tables.delimited import semicolons
from karat.formats.tables.folder import in_folder
from karat.formats.tables.source import Source
from karat.tables.golden.exchange import Exchange
from karat.tables.judgments import NOBODY
from karat.tables.scale import Scale
from karat.workflows.lint import roles

_TEXTS = ("queries", "documents")


def check_there(paths: Iterable[str | Path]) -> None:
    """Refuse the first path at which nothing is, before anything is taken in.

    Raises:
        InputError: there is no such file; with the one that may be meant.
    """
    for path in paths:
        if str(path) != "-" and not os.path.exists(path):  # noqa: PTH110 - False for any odd name
            Source(path).close()


def read_file(path: str | Path, name: str | None = None) -> Exchange:
    """A file as what it is called, or as what its content tells.

    Args:
        path: The file, or a BEIR folder, which may lie in a ZIP file.
        name: A name of ``EXCHANGES``, or ``queries`` or ``documents``.

    Raises:
        InputError: it cannot be read, is damaged, is a run, or is none of what can be told.
        UsageError: there is no such format.
    """
    where = Path(path)
    if name in (None, "beir"):
        with beir_in(where) as folder:
            if folder is not None:
                return read_file(folder, name)
    if name is None and where.is_dir():
        held = {role: file for file, role in roles.of_folder(where)}
        if "qrels" not in held:
            return _texts(held)
    elif name is None and where.is_file():
        try:
            name = detect(open_foreign(path))
        except InputError:
            with Source(path) as source:
                if b"\x00" in source.head and not source.head.startswith(b"PAR1"):
                    raise  # no text, so that nothing of it would be told
                name = roles.told(source)
                in_lines = source.head.lstrip()[:1] not in (b"{", b"[")
            if name == "run" and in_lines:
                raise InputError(
                    "this is a run, not judgments, queries or documents",
                    file=str(path),
                    fix=Advice(
                        f"karat golden pool {path}",
                        page="bring it as a run, and then have the pairs judged that it returns",
                    ),
                ) from None
            if name not in _TEXTS:
                raise
    return _texts({name: path}) if name in _TEXTS else read_exchange(path, name)


def _texts(files: Mapping[str, str | Path]) -> Exchange:
    """Queries and documents of karat's own formats, without judgments."""
    # CSV with semicolons is told here, so that it can be said.
    semis = {role: _semicolons(file) for role, file in files.items()}
    given = {role: (file, "csv" if semis[role] else None) for role, file in files.items()}
    found = Exchange(
        " and ".join(files),
        queries=read_queries(*given["queries"]).frame if "queries" in given else None,
        documents=read_documents(*given["documents"]).frame if "documents" in given else None,
    )
    found.kept.extend(held(found))
    found.assumed.extend(f"{role}: semicolons separate the cells" for role in files if semis[role])
    return found


def _semicolons(path: str | Path) -> bool:
    """Whether a file is CSV with semicolons."""
    if not Path(path).is_file():
        return False
    with Source(path) as source:
        first = source.head.lstrip().partition(b"\n")[0]
    other = first.startswith((b"{", b"[", b"PAR1")) or b"\t" in first or b"\x00" in first
    return not other and semicolons(first.decode("utf-8", "replace"))


def check_judgments(found: Exchange, scale: Scale, file: str) -> None:
    """Refuse grades that are off the scale, and raters whose name means nobody.

    Args:
        found: What the file held.
        scale: Lowest and highest grade of the golden set.
        file: What messages call it.

    Raises:
        InputError: there is one; with the line, or the place in its JSON.
    """
    if found.judgments is None:
        return
    low, high = scale
    off = found.judgments.filter(~pl.col("grade").is_between(low, high))
    if off.height:
        row = off.row(0, named=True)
        raise _refused(
            found,
            f"grade {row['grade']:g} for document {row['doc_id']!r} is not on the golden set's "
            f"scale from {low:g} to {high:g}",
            file,
            row,
            Advice(
                "karat init DIR --scale LOW-HIGH makes a golden set of another scale",
                page="correct the grade in the file: the scale of a golden set is fixed",
            ),
        )
    named = pl.col("rater").str.strip_chars().str.to_lowercase()
    nobody = found.judgments.filter(named == NOBODY)
    if nobody.height:
        row = nobody.row(0, named=True)
        raise _refused(
            found,
            f"a rater is called {row['rater']!r}, which is reserved for judgments that nobody is "
            "named for",
            file,
            row,
            "leave the rater out, or give another name",
        )


def _refused(found: Exchange, what: str, file: str, row: Mapping[str, Any], fix: str) -> InputError:
    """The error that a judgment cannot be taken in, with its place."""
    query = row["query_id"]
    peer = EXCHANGES.get(found.format)
    if peer is not None and not peer.holds.ids and found.queries is not None:
        query = found.queries.row(by_predicate=pl.col("query_id") == query, named=True)["text"]
    key = (row["query_id"], row["doc_id"], row["rater"])
    place = found.places.get(key) if isinstance(found, Gathered) else None
    return InputError(
        f"{place}: {what}" if place else what,
        file=file,
        line=_line(found, file, *key),
        query=query,
        doc_id=row["doc_id"],
        fix=fix,
    )


def _line(found: Exchange, file: str, query: str, doc: str, rater: str | None) -> int | None:
    """The line a judgment stands on, where the file has lines."""
    if (query, doc, rater) in found.lines:
        return found.lines[query, doc, rater]
    where = Path(file)
    list_places = FORMATS[found.format].places if found.format in ("trec", "beir") else None
    if list_places is None or not where.exists():
        return None
    try:
        with Source(in_folder(where, "qrels") if where.is_dir() else where) as source:
            places = list_places(source, "qrels")
            return next((place.line for place in places if place.ids[:2] == (query, doc)), None)
    except InputError:  # it was in a ZIP file, say
        return None
