"""Files to import: their formats detected, their judgments checked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import InputError
from karat.formats import read_documents, read_queries
from karat.formats.exchange.catalogue import EXCHANGES, read_exchange
from karat.formats.exchange.detect import detect
from karat.formats.exchange.import_ import ImportedExchange, held
from karat.formats.exchange.packed import beir_in
from karat.formats.exchange.source_file import open_source_file
from karat.formats.tables.catalogue import FORMATS
from karat.formats.tables.delimited import is_semicolon_header
from karat.formats.tables.folder import in_folder
from karat.formats.tables.source import Source
from karat.tables.golden.golden_sets import Exchange
from karat.tables.judgments import UNNAMED_RATER
from karat.tables.schema import Scale
from karat.workflows.lint import roles

_TEXTS = ("queries", "documents")


def check_there(paths: Iterable[str | Path]) -> None:
    """Refuse paths that do not exist, before anything is imported."""
    for path in paths:
        if str(path) != "-" and not os.path.exists(path):  # noqa: PTH110 - False for any odd name
            Source(path).close()


def read_file(path: str | Path, name: str | None = None) -> Exchange:
    """Read a file in a format that is named, or detected from its content."""
    where = Path(path)
    if name in (None, "beir"):
        with beir_in(where) as folder:
            if folder is not None:
                return read_file(folder, name)
    if name is None and where.is_dir():
        by_role = {role: file for file, role in roles.of_folder(where)}
        if "qrels" not in by_role:
            return _texts(by_role)
    elif name is None and where.is_file():
        try:
            name = detect(open_source_file(path))
        except InputError:
            with Source(path) as source:
                if b"\x00" in source.head and not source.head.startswith(b"PAR1"):
                    raise  # binary: no format of text would fit
                name = roles.told(source)
                in_lines = source.head.lstrip()[:1] not in (b"{", b"[")
            if name == "run" and in_lines:
                raise InputError(
                    "this is a run, not judgments, queries or documents",
                    file=str(path),
                    fix="pool the pairs that it returns instead",
                ) from None
            if name not in _TEXTS:
                raise
    return _texts({name: path}) if name in _TEXTS else read_exchange(path, name)


def _texts(files: Mapping[str, str | Path]) -> Exchange:
    """Queries and documents of karat's own formats, without judgments."""
    # Detected here, so that it can be reported.
    semicolon = {role: _semicolons(file) for role, file in files.items()}
    sources = {role: (file, "csv" if semicolon[role] else None) for role, file in files.items()}
    content = Exchange(
        " and ".join(files),
        queries=read_queries(*sources["queries"]).frame if "queries" in sources else None,
        documents=read_documents(*sources["documents"]).frame if "documents" in sources else None,
    )
    content.kept.extend(held(content))
    content.assumed.extend(
        f"{role}: semicolons separate the cells" for role in files if semicolon[role]
    )
    return content


def _semicolons(path: str | Path) -> bool:
    """Whether a file is CSV separated by semicolons."""
    if not Path(path).is_file():
        return False
    with Source(path) as source:
        first = source.head.lstrip().partition(b"\n")[0]
    other = first.startswith((b"{", b"[", b"PAR1")) or b"\t" in first or b"\x00" in first
    return not other and is_semicolon_header(first.decode("utf-8", "replace"))


def check_judgments(content: Exchange, scale: Scale, file: str) -> None:
    """Refuse grades off the scale, and the reserved name of a rater."""
    if content.judgments is None:
        return
    low, high = scale
    off_scale = content.judgments.filter(~pl.col("grade").is_between(low, high))
    if off_scale.height:
        row = off_scale.row(0, named=True)
        grades = [low, high, *off_scale["grade"]]
        raise _refused(
            content,
            f"grade {row['grade']:g} for document {row['doc_id']!r} is not on the golden set's "
            f"scale from {low:g} to {high:g}",
            file,
            row,
            "correct the grade in the file, or import it into a new golden set with its scale",
            f"karat init --scale {min(grades):g}-{max(grades):g} DIR",
        )
    named = pl.col("rater").str.strip_chars().str.to_lowercase()
    reserved = content.judgments.filter(named == UNNAMED_RATER)
    if reserved.height:
        row = reserved.row(0, named=True)
        raise _refused(
            content,
            f"the name of a rater is {row['rater']!r}, which is reserved for judgments without a "
            "rater",
            file,
            row,
            "leave the rater out, or give another name",
        )


def _refused(
    content: Exchange,
    problem: str,
    file: str,
    row: Mapping[str, Any],
    fix: str,
    command: str | None = None,
) -> InputError:
    """The error for a judgment that cannot be imported, with its place."""
    query = row["query_id"]
    peer = EXCHANGES.get(content.format)
    if peer is not None and not peer.holds.ids and content.queries is not None:
        query = content.queries.row(by_predicate=pl.col("query_id") == query, named=True)["text"]
    key = (row["query_id"], row["doc_id"], row["rater"])
    place = content.places.get(key) if isinstance(content, ImportedExchange) else None
    return InputError(
        f"{place}: {problem}" if place else problem,
        file=file,
        line=_line(content, file, *key),
        query=query,
        doc_id=row["doc_id"],
        fix=fix,
        command=command,
    )


def _line(content: Exchange, file: str, query: str, doc: str, rater: str | None) -> int | None:
    """The line of a judgment, if the file has lines."""
    if (query, doc, rater) in content.lines:
        return content.lines[query, doc, rater]
    where = Path(file)
    list_places = FORMATS[content.format].places if content.format in ("trec", "beir") else None
    if list_places is None or not where.exists():
        return None
    try:
        with Source(in_folder(where, "qrels") if where.is_dir() else where) as source:
            places = list_places(source, "qrels")
            return next((place.line for place in places if place.ids[:2] == (query, doc)), None)
    except InputError:  # for example, it was in a ZIP file
        return None
