"""Writes tables to temporary files that are then renamed, so no file is ever half-written."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from karat.errors import InputError, UsageError
from karat.formats.tables import sidecar as sidecars
from karat.formats.tables.catalogue import FORMATS
from karat.formats.tables.format import Format, format_of, refuse_failed, refuse_unwritable
from karat.tables import Documents, Pairs, Qrels, Queries, Run

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_BY_DEFAULT = {
    "qrels": "trec",
    "run": "trec",
    "queries": "jsonl",
    "documents": "jsonl",
    "pairs": "jsonl",
}
_DOCUMENTS_ALONE = {"trec": "a TREC run", "msmarco": "an MS MARCO run"}
_PACKED: dict[str, Callable[[IO[bytes]], IO[bytes]]] = {
    # Without name and time, so that the same table gives the same bytes.
    ".gz": lambda raw: cast(IO[bytes], gzip.GzipFile("", "wb", 6, raw, mtime=0)),
    ".zst": lambda raw: cast(IO[bytes], zstd.ZstdFile(raw, "wb")),
    ".bz2": lambda raw: cast(IO[bytes], bz2.BZ2File(raw, "wb")),
}


def write_qrels(qrels: Qrels, path: str | Path, output_format: str | None = None) -> list[str]:
    """Write judgments.

    Args:
        qrels: The judgments.
        path: The file; ``.gz``, ``.zst`` and ``.bz2`` compress it; ``-`` is standard output.
        output_format: A name of ``FORMATS``; by the file's name if None (TREC on ``-``).

    Returns:
        What the format cannot store, as sentences: a declared scale and queries without a
        relevant document, except in Parquet.

    Raises:
        UsageError: unknown format, or no format given by the file name.
        InputError: the format cannot store the table, or the file cannot be written.
    """
    _write(qrels, "qrels", path, output_format)
    if (output_format or _named(path, "qrels")) == "parquet":
        return []
    notes = []
    if qrels.declared is not None:
        low, high = qrels.declared
        notes.append(f"the scale {low:g}-{high:g}")
    if qrels.without:
        notes.append(f"queries without a relevant document: {len(qrels.without):,}")
    return notes


def write_run(
    run: Run,
    path: str | Path,
    output_format: str | None = None,
    *,
    sidecar: bool = True,
) -> None:
    """Write a run, with its ``about``.

    Parquet stores ``about`` as metadata, JSONL as its first line. For other formats a sidecar,
    ``bm25.trec.about.json``, stores what the run's file cannot: ``about``; for TREC, MS MARCO and
    nested JSON also the state, latency and error of each query. ``read_run`` reads both. There is
    no sidecar if it would be empty.

    Args:
        run: The run.
        path: The file; ``.gz``, ``.zst`` and ``.bz2`` compress it; ``-`` is standard output.
        output_format: A name of ``FORMATS``; by the file's name if None (TREC on ``-``).
        sidecar: Whether a sidecar may be written. Without one, as on standard output, TREC and MS
            MARCO omit queries that returned nothing and refuse queries that failed, and nested JSON
            omits latencies.

    Raises:
        UsageError: unknown format, or no format given by the file name.
        InputError: the format cannot store the table, or the file cannot be written.
    """
    _write(run, "run", path, output_format, sidecar=sidecar)


def check_run(query_ids: Sequence[str], path: str | Path, output_format: str | None) -> None:
    """Check that a run of these queries could be written, before it is created."""
    entry = format_of(FORMATS, output_format or _named(path, "run"), "run", writes=True)
    entry.writers["run"](Run.from_dict({query: {"x": 1.0} for query in query_ids}), io.BytesIO())
    if str(path) == "-":
        if "answers" not in entry.keeps:
            able = [entry_.name for entry_ in FORMATS.values() if "answers" in entry_.keeps]
            raise UsageError(
                f"{entry.name} on standard output cannot store which queries failed",
                fix=f"write a file, or one of {', '.join(able)}",
            )
        return
    target = Path(path).resolve()
    if target.is_dir():
        raise InputError("expected a file, got a folder", file=str(path))
    if target.is_file() or not target.exists():
        trial = target.with_name(f".{target.name[:80]}.{secrets.token_hex(4)}.part")
        try:
            trial.touch(exist_ok=False)
            trial.unlink()
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from None


def write_queries(queries: Queries, path: str | Path, output_format: str | None = None) -> None:
    """Write queries with their attributes (MS MARCO: id and text only).

    Args:
        queries: The queries.
        path: The file; ``.gz``, ``.zst`` and ``.bz2`` compress it; ``-`` is standard output.
        output_format: A name of ``FORMATS``; by the file's name if None (JSONL on ``-``).

    Raises:
        UsageError: unknown format, or no format given by the file name.
        InputError: the format cannot store the table, or the file cannot be written.
    """
    _write(queries, "queries", path, output_format)


def write_documents(
    documents: Documents, path: str | Path, output_format: str | None = None
) -> None:
    """Write documents with their attributes (MS MARCO: id and text only).

    Args:
        documents: The documents.
        path: The file; ``.gz``, ``.zst`` and ``.bz2`` compress it; ``-`` is standard output.
        output_format: A name of ``FORMATS``; by the file's name if None (JSONL on ``-``).

    Raises:
        UsageError: unknown format, or no format given by the file name.
        InputError: the format cannot store the table, or the file cannot be written.
    """
    _write(documents, "documents", path, output_format)


def write_pairs(pairs: Pairs, path: str | Path, output_format: str | None = None) -> None:
    """Write pairs to be judged, with their reasons.

    Args:
        pairs: The pairs.
        path: The file; ``.gz``, ``.zst`` and ``.bz2`` compress it; ``-`` is standard output.
        output_format: csv, tsv, jsonl or parquet; by the file's name if None (JSONL on ``-``).

    Raises:
        UsageError: unknown format, or no format given by the file name.
        InputError: the file cannot be written.
    """
    _write(pairs, "pairs", path, output_format)


def _write(
    table: Qrels | Run | Queries | Documents | Pairs,
    role: str,
    path: str | Path,
    name: str | None,
    *,
    sidecar: bool = False,
) -> None:
    entry = format_of(FORMATS, name or _named(path, role), role, writes=True)
    # A byte order mark would be lost at the start of a file, and is refused elsewhere.
    key = "doc_id" if role == "documents" else "query_id"
    ids = table.answers if isinstance(table, Run) else table.frame
    refuse_unwritable(
        ids, (key,), "^\ufeff", "a file: it begins with a byte order mark", table.source
    )
    target = Path(path)
    alone = not sidecar or str(path) == "-" or (target.exists() and not target.is_file())
    if isinstance(table, Run) and alone and entry.name in _DOCUMENTS_ALONE:
        refuse_failed(table, _DOCUMENTS_ALONE[entry.name])
    if str(path) == "-":
        entry.writers[role](table, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    sidecar_writer = None
    if isinstance(table, Run) and not alone:
        sidecar_writer = sidecars.writer(table, target, entry.keeps)
    with beside(target, first=sidecar_writer) as stream:
        entry.writers[role](table, stream)
    if sidecar and sidecar_writer is None and not alone:
        sidecars.remove(target)


@contextmanager
def beside(
    path: Path, *, secret: bool = False, first: Callable[[Path], None] | None = None
) -> Iterator[IO[bytes]]:
    """A temporary file, renamed to ``path`` at the end or removed on failure; compressed by name.

    Args:
        path: The target; with ``secret`` it must not exist.
        secret: Whether nothing may be left behind, even if the process is killed: if the system
            supports it, the file has no name until it is complete.
        first: Called with the finished file before it is renamed.
    """
    nameless = _nameless(path.resolve().parent) if secret else None
    with _renamed(path, first) if nameless is None else _linked(path, nameless) as raw:
        pack = _PACKED.get(path.suffix.lower())
        if pack is None:
            yield raw
        else:
            with pack(raw) as stream:
                yield stream


def _named(path: str | Path, role: str) -> str:
    if str(path) == "-":
        return _BY_DEFAULT[role]
    name = Path(path)
    if name.suffix.lower() in _PACKED:
        name = name.with_suffix("")
    endings = _endings(role)
    if (format_name := endings.get(name.suffix.lower())) is not None:
        return format_name
    raise UsageError(
        f"cannot tell the format for {role} from the name {Path(path).name}",
        fix=f"use the extension {', '.join(endings)}, or name a format: "
        f"{', '.join(e.name for e in FORMATS.values() if role in e.writers)}",
    )


def _endings(role: str) -> dict[str, str]:
    formats: list[Format] = [entry for entry in FORMATS.values() if role in entry.writers]
    return {ending: entry.name for entry in formats for ending in entry.extensions}


def _nameless(folder: Path) -> IO[bytes] | None:
    """A file without a name in a folder, deleted on close; None if not supported."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        return os.fdopen(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600), "w+b")
    except OSError:  # not supported by the file system; other errors recur with a named file
        return None


@contextmanager
def _linked(path: Path, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    """A file without a name that gets one at the end; nothing remains on failure."""
    target = path.resolve()
    try:
        with raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())
            folder = os.open(target.parent, os.O_RDONLY)
            try:  # Python follows the link to the file only with dst_dir_fd
                os.link(f"/proc/self/fd/{raw.fileno()}", target.name, dst_dir_fd=folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from None


@contextmanager
def _renamed(path: Path, first: Callable[[Path], None] | None) -> Iterator[IO[bytes]]:
    """A file next to ``path``, renamed to it at the end or removed on failure."""
    if path.exists() and not path.is_file():
        if path.is_dir():
            raise InputError("expected a file, got a folder", file=str(path))
        with path.open("wb") as device:  # a pipe or a device cannot be renamed onto
            yield device
        return
    target = path.resolve()  # follow links
    beside = target.with_name(f".{target.name[:80]}.{secrets.token_hex(4)}.part")
    try:
        raw = beside.open("xb")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from None
    try:
        with raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())
        if target.exists():
            beside.chmod(target.stat().st_mode & 0o7777)
        if first is not None:
            first(beside)
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from None
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
