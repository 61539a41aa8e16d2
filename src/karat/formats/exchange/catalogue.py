"""The formats of other tools that karat reads and writes."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from karat.errors import InputError, UsageError, but, check_known
from karat.formats.exchange import (
    _golden_sets,
    _quepid_cases,
    _rank_eval,
    _search_relevance,
    quepid,
    quepid_books,
    quepid_snapshots,
    rre,
)
from karat.formats.exchange import plain as tables
from karat.formats.exchange.detect import detect
from karat.formats.exchange.export import Export, Holds
from karat.formats.exchange.import_ import ImportBuilder, held
from karat.formats.exchange.source_file import SourceFile, open_source_file
from karat.formats.tables.writing import beside
from karat.tables.golden.golden_sets import Exchange


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    what: str
    reads: tuple[str, ...]
    read: Callable[[ImportBuilder, SourceFile], Exchange | None]
    writes: tuple[str, ...] = ()
    write: Callable[[Export], bytes | dict[str, bytes]] | None = None
    holds: Holds = field(default_factory=Holds)


_JUDGED = ("queries", "judgments")
_ABOUT = ("need", "notes", "options")
_BEIR = ("queries.jsonl", "corpus.jsonl", "qrels", "qrels/test.tsv")  # what plain.write_beir makes


def _folder(_: ImportBuilder, content: SourceFile) -> Exchange:
    raise InputError(
        "expected a BEIR folder, got a file",
        file=content.name,
        fix="give the folder with queries.jsonl and qrels/, or a ZIP file of it",
    )


# Name, description, what is read, reader; what is written, writer, and what it can store. A reader
# fills the builder, or returns an exchange of its own.
EXCHANGES: Mapping[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("quepid-csv", "Quepid's and OpenSearch's ratings as CSV: query,docid,rating",
             _JUDGED, quepid.read_csv, _JUDGED, quepid.write_csv),
        Peer("quepid-json", "Quepid's ratings as JSON",
             _JUDGED, quepid.read_json, _JUDGED, quepid.write_json),
        Peer("quepid-api", "Quepid's ratings import API: hash, rre or ltr (written as hash)",
             _JUDGED, quepid.read_api, _JUDGED, quepid.write_api),
        Peer("quepid-ltr", "learning-to-rank lines: 3 qid:1 # 1370 star trek",
             _JUDGED, quepid.read_ltr, ("judgments",), quepid.write_ltr,
             Holds(ids=True, bare=False)),
        Peer("quepid-book-csv", "a Quepid book as CSV: query,docid and one column per judge",
             _JUDGED, quepid_books.read_csv, ("judgments",), quepid_books.write_csv,
             Holds(bare=False, raters=True)),
        Peer("quepid-book", "a Quepid book as JSON, or in a ZIP file",
             (*_JUDGED, "documents"), quepid_books.read,
             (*_JUDGED, "documents"), quepid_books.write,
             Holds(columns=_ABOUT, bare=False, raters=True, reasons=True, unjudged=True,
                   documents=True)),
        Peer("quepid-case", "a Quepid case as JSON",
             _JUDGED, _quepid_cases.read, _JUDGED, _quepid_cases.write,
             Holds(columns=_ABOUT, named=True)),
        Peer("quepid-case-csv",
             "a Quepid case as CSV: the general, detailed or information need export",
             (*_JUDGED, "documents", "runs"), _quepid_cases.read_csv),
        Peer("quepid-snapshot-csv", "Quepid's snapshots as CSV",
             ("queries", "documents", "runs"), quepid_snapshots.read_csv,
             ("runs", "documents"), quepid_snapshots.write_csv,
             Holds(bare=False, judgments=False, documents=True, runs=True)),
        Peer("quepid-snapshot", "Quepid's snapshots as JSON",
             (*_JUDGED, "documents", "runs"), quepid_snapshots.read,
             ("runs", "documents"), quepid_snapshots.write,
             Holds(bare=False, judgments=False, documents=True, runs=True)),
        Peer("rre", "RRE's ratings",
             _JUDGED, rre.read, _JUDGED, rre.write,
             Holds(columns=("topic", "group", "template", "placeholders"), whole=True)),
        Peer("rank-eval", "a _rank_eval request of Elasticsearch or OpenSearch",
             (*_JUDGED, "documents"), _rank_eval.read_request,
             _JUDGED, _rank_eval.write_request,
             Holds(ids=True, columns=("request", "template_id", "params", "summary_fields"),
                   whole=True, documents=("index",))),
        Peer("rank-eval-response", "a _rank_eval response",
             (*_JUDGED, "documents", "runs"), _rank_eval.read_response),
        Peer("opensearch-judgments", "a judgment list of OpenSearch's Search Relevance Workbench",
             _JUDGED, _search_relevance.read_judgments,
             _JUDGED, _search_relevance.write_judgments),
        Peer("opensearch-queries",
             "a query set of OpenSearch's Search Relevance Workbench: JSON, NDJSON or lines",
             ("queries",), _search_relevance.read_queries,
             ("queries",), _search_relevance.write_queries,
             Holds(columns=True, judgments=False)),
        Peer("rankquest", "Rankquest's test cases", _JUDGED, tables.read_rankquest),
        Peer("golden", "karat's golden set: queries, attributes, judgments and the scale",
             _JUDGED, _golden_sets.read, _JUDGED, _golden_sets.write,
             Holds(ids=True, columns=True, scale=True)),
        Peer("golden-list", "a JSON list of query, relevant_docs, category and difficulty",
             _JUDGED, _golden_sets.read, _JUDGED, _golden_sets.write_list,
             Holds(columns=("category", "difficulty"), bare=False)),
        Peer("beir", "a BEIR folder",
             (*_JUDGED, "documents"), _folder, (*_JUDGED, "documents"), tables.write_beir,
             Holds(ids=True, columns=True, documents=True, corpus=True)),
        Peer("trec", "TREC qrels",
             ("judgments",), tables.read_trec, ("judgments",), tables.write_trec,
             Holds(ids=True, text=False, bare=False)),
        Peer("csv", "one row per judgment: query_id,query,doc_id,grade,rater,reason",
             _JUDGED, tables.read_csv, _JUDGED, tables.write_csv,
             Holds(ids=True, raters=True, reasons=True, unjudged=True)),
    )
}  # fmt: skip
"""The formats by name."""


def read_exchange(path: str | Path, format: str | None = None) -> Exchange:  # noqa: A002
    """Read a file of another tool."""
    if format is not None:
        _peer(format)
    if os.path.isdir(path):  # noqa: PTH112 - False, not an error, for any odd name
        if format not in (None, "beir"):
            raise InputError("expected a file, got a folder", file=str(path))
        exchange = tables.read_beir(Path(path))
    else:
        content = open_source_file(path)
        try:
            peer = EXCHANGES[format or detect(content)]
            gathered = ImportBuilder(peer.name, content.name)
            exchange = peer.read(gathered, content) or gathered.exchange()
        except RecursionError:
            raise InputError("objects are nested too deeply", file=content.name) from None
        except InputError as error:
            if format is None or error.fix is not None:
                raise
            raise but(error, fix=_other(content, format)) from None
    if not exchange.kept:
        exchange.kept.extend(held(exchange))
    return exchange


def _other(content: SourceFile, name: str) -> str | None:
    """The fix for a file that cannot be read in a format: the format that it is in."""
    try:
        detected = detect(content)
    except (InputError, RecursionError):
        return f"{name} is {EXCHANGES[name].what}: choose another format, or have it detected"
    if detected == name:
        return None
    return f"this looks like {detected}: choose that format"


def write_exchange(
    exchange: Exchange,
    path: str | Path,
    format: str,  # noqa: A002
    *,
    replace: bool = False,
) -> Exchange:
    """Write a file for another tool, completely or not at all."""
    peer = _peer(format)
    if peer.write is None:
        can = ", ".join(each.name for each in EXCHANGES.values() if each.write)
        raise UsageError(f"{format} can only be read", fix=f"formats that can be written: {can}")
    leaving = Export(exchange, format, peer.holds, str(path))
    try:
        content = peer.write(leaving)
    except ValueError as error:  # NaN or infinity in a column of a document
        raise InputError(f"cannot be written: {error}", file=str(path)) from None
    if isinstance(content, dict):
        if str(path) == "-":
            raise UsageError(f"{format} is a folder and cannot be written to standard output")
        _write_folder(content, Path(path), replace=replace)
    elif str(path) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        with beside(Path(path)) as stream:
            stream.write(content)
    return leaving.told()


def _peer(name: str) -> Peer:
    check_known(name, EXCHANGES, f"unknown exchange format {name!r}", "formats: {}")
    return EXCHANGES[name]


def _write_folder(files: Mapping[str, bytes], folder: Path, *, replace: bool) -> None:
    """Write a folder under a temporary name, and rename it when it is complete."""
    there = folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))
    if there:
        refuse_there(folder, replace=replace)
        folder = folder.resolve()  # follow links
    hidden = f".{folder.name[:80]}.{secrets.token_hex(4)}"
    part, old = folder.with_name(f"{hidden}.part"), folder.with_name(f"{hidden}.old")
    try:
        part.mkdir()
        for name, data in files.items():
            file = part / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        if there:
            folder.replace(old)
        try:
            part.replace(folder)
        except OSError:
            if there:
                old.replace(folder)
            raise
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(folder)) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)  # already renamed on success
    shutil.rmtree(old, ignore_errors=True)


def refuse_there(folder: Path, *, replace: bool) -> None:
    """Refuse an existing file or folder, unless it is a BEIR folder and ``replace`` is set."""
    if not folder.is_dir():
        raise InputError(
            "expected a folder, and there is a file of this name",
            file=str(folder),
            fix="name another folder",
        )
    if not replace:
        raise InputError(
            "the folder already exists", file=str(folder), fix="--force replaces a BEIR folder"
        )
    inside = sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*"))
    other = next((name for name in inside if name not in _BEIR), None)
    if other is not None:
        raise InputError(
            f"replacing the folder would delete other files in it, such as {other}",
            file=str(folder),
            fix="name another folder",
        )
