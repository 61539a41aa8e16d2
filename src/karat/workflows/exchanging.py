"""Exchanging: what other tools hold into a golden set, and a golden set out to them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from karat.errors import InputError, UsageError
from karat.formats import read_documents, read_queries
from karat.formats.exchange.catalogue import read_exchange, write_exchange
from karat.formats.exchange.detect import detect
from karat.formats.exchange.opened import opened as open_exchange
from karat.formats.source import Source
from karat.store import documents, imports, judgments, queries
from karat.tables import Run
from karat.tables.exchange import Exchange
from karat.tables.scale import Scale
from karat.workflows.choosing import put_queries
from karat.workflows.editions import LEAST, content_of, weighed
from karat.workflows.kept_runs import keep_in
from karat.workflows.known_queries import over, same_queries
from karat.workflows.linting import roles
from karat.workflows.workspace import Opened

_TEXTS = ("queries", "documents")
NOBODY = "import"
"""Who judged, where a file names nobody."""


@dataclass(frozen=True)
class TakenIn:
    """What became of a file.

    Attributes:
        exchange: What it held, and what was kept, assumed and lost.
        queries: Queries that are new in the golden set.
        documents: Documents that are new.
        judgments: Judgments that are new.
        changed: Queries and documents that were there and are not as they were.
        runs: Names of the runs it held.
    """

    exchange: Exchange
    queries: int
    documents: int
    judgments: int
    changed: int
    runs: list[str]


def take_in(
    opened: Opened,
    path: str | Path,
    *,
    now: int,
    format: str | None = None,  # noqa: A002 - as it is typed
    rater: str | None = None,
) -> TakenIn:
    """Import a file of karat's formats or of another tool: all of it, or nothing.

    A query whose text the golden set has is that query, whatever id the file gives it. What a
    query or document lacks in the file stays as it was.

    Args:
        opened: The workspace.
        path: The file, or a BEIR folder, which needs no judgments.
        now: Microseconds UTC.
        format: A name of ``karat.formats.exchange.catalogue.EXCHANGES``, or ``queries`` or
            ``documents`` for a file of these; told by content if None.
        rater: Who judged, where the file names nobody.

    Raises:
        InputError: it cannot be read, is damaged, or a grade is off the scale.
        UsageError: there is no such format.
    """
    found = _read(path, format)
    golden = opened.golden
    if found.judgments is not None:
        _check_scale(found.judgments, golden.scale, str(path))
    with opened.store.begin() as connection:
        there = queries.frame(connection, golden.id, dropped=True).drop("dropped_us")
        asked = _asked(found)
        ids = same_queries(there, asked)
        renamed = [_renamed(frame, ids) for frame in (asked, found.judgments)]
        put = put_queries(connection, golden.id, over(there, renamed[0], "query_id"), now)
        held, changed = 0, put.changed
        if found.documents is not None:
            known = documents.frame(connection, golden.id).drop("sha256")
            given = over(known, found.documents, "doc_id")
            placed = documents.put(connection, golden.id, given, now)
            held, changed = placed.added, changed + placed.changed
        count = 0
        said = renamed[1]
        if said is not None and said.height:
            import_id = imports.put(
                connection,
                golden.id,
                file=str(path),
                format=found.format,
                sha256=_sha256(path),
                report={"kept": found.kept, "assumed": found.assumed, "lost": found.lost},
                now=now,
            )
            count = judgments.record(connection, golden.id, _facts(said, rater, now), import_id)
        kept = [Run.from_frame(_renamed(frame, ids), name) for name, frame in found.runs.items()]
        keep_in(connection, opened, kept, now=now)
    return TakenIn(found, put.added, held, count, changed, list(found.runs))


def give_out(
    opened: Opened,
    path: str | Path,
    format: str,  # noqa: A002 - as it is typed
    *,
    edition: str | None = None,
    each_rater: bool = False,
) -> Exchange:
    """Export an edition, or the golden set as it stands, for another tool.

    Args:
        opened: The workspace.
        path: The file, a folder for ``beir``; ``-`` is standard output.
        format: A name of ``karat.formats.exchange.catalogue.EXCHANGES``.
        edition: Its name; the golden set as it stands if None.
        each_rater: Every rater's judgment, rather than the grade the rule makes of them.

    Returns:
        What was written, with what was kept, assumed and lost.

    Raises:
        InputError: the format cannot hold it, or it cannot be written.
        UsageError: there is no such format or edition, or every rater's judgment is asked of an
            edition.
    """
    if each_rater and edition is not None:
        raise UsageError(
            "an edition holds grades, not who gave them",
            fix="leave out --edition, or --each-rater",
        )
    content = content_of(opened, edition)
    with opened.store.read() as connection:
        held = documents.frame(connection, opened.golden.id).drop("sha256")
        said = judgments.current(connection, opened.golden.id).of(content.queries["query_id"])
    if each_rater:
        rows = said.frame.filter((pl.col("kind") == "rating") & (pl.col("source") == "human"))
        facts = rows.select("query_id", "doc_id", "grade", "rater", "reason")
    else:
        nobody = pl.lit(None, dtype=pl.String)
        facts = content.grades.select(
            "query_id", "doc_id", "grade", nobody.alias("rater"), nobody.alias("reason")
        )
    named = held.filter(pl.col("doc_id").is_in(facts["doc_id"].unique().implode()))
    asked, unknown = weighed(content.queries)
    if "no_answer" in asked.columns and not asked["no_answer"].any():
        asked = asked.drop("no_answer")  # it says nothing
    told = write_exchange(
        Exchange(
            format="karat",
            queries=asked,
            documents=named if named.height else None,
            judgments=facts,
        ),
        path,
        format,
    )
    if unknown:
        some = "1 query" if unknown == 1 else f"{unknown:,} queries"
        told.assumed.append(f"weight {LEAST:g} of {some} that no log counted: no part in means")
    return told


def _read(path: str | Path, name: str | None) -> Exchange:
    """The file as what it was called, or as what its content tells."""
    where = Path(path)
    if name is None and where.is_dir():
        held = {role: file for file, role in roles.of_folder(where)}
        if "qrels" not in held:
            return _texts(held)
    elif name is None and where.is_file():
        try:
            name = detect(open_exchange(path))
        except InputError:
            with Source(path) as source:
                name = roles.told(source)
                in_lines = source.head.lstrip()[:1] not in (b"{", b"[")
            if name == "run" and in_lines:
                raise InputError(
                    "this is a run, not judgments, queries or documents",
                    file=str(path),
                    fix=f"karat golden pool {path}",
                ) from None
            if name not in _TEXTS:
                raise
    return _texts({name: path}) if name in _TEXTS else read_exchange(path, name)


def _texts(files: Mapping[str, str | Path]) -> Exchange:
    """Queries and documents of karat's own formats, without judgments."""
    asked, held = (files.get(role) for role in _TEXTS)
    found = Exchange(
        " and ".join(files),
        queries=None if asked is None else read_queries(asked).frame,
        documents=None if held is None else read_documents(held).frame,
    )
    for what, frame in zip(_TEXTS, (found.queries, found.documents), strict=True):
        if frame is not None:
            found.kept.append(f"{frame.height:,} {what}")
    return found


def _check_scale(said: pl.DataFrame, scale: Scale, file: str) -> None:
    low, high = scale
    off = said.filter(~pl.col("grade").is_between(low, high))
    if off.height:
        row = off.row(0, named=True)
        raise InputError(
            f"grade {row['grade']:g} of {row['doc_id']} is not on the golden set's scale from "
            f"{low:g} to {high:g}",
            file=file,
            query=row["query_id"],
            doc_id=row["doc_id"],
            fix="karat init DIR --scale LOW-HIGH makes a golden set of another scale",
        )


def _renamed(frame: pl.DataFrame | None, ids: Mapping[str, str]) -> pl.DataFrame:
    """The frame with other ids of queries; empty for None."""
    if frame is None:
        return pl.DataFrame(schema={"query_id": pl.String})
    return frame.with_columns(pl.col("query_id").replace(dict(ids)))


def _asked(found: Exchange) -> pl.DataFrame:
    """Every query the file is about, those that only judgments or runs name included."""
    frames = [] if found.queries is None else [found.queries]
    named = [found.judgments, *found.runs.values()]
    ids = [frame.select("query_id") for frame in named if frame is not None]
    known = frames[0]["query_id"] if frames else pl.Series("query_id", [], pl.String)
    for frame in ids:
        new = frame.unique(maintain_order=True).filter(~pl.col("query_id").is_in(known.implode()))
        frames.append(new)
        known = pl.concat([known, new["query_id"]])
    if not frames:
        return pl.DataFrame(schema={"query_id": pl.String})
    return pl.concat(frames, how="diagonal_relaxed")


def _facts(said: pl.DataFrame, rater: str | None, now: int) -> pl.DataFrame:
    nobody = pl.col("rater").is_null()
    return said.with_columns(
        source=pl.when(nobody & pl.lit(rater is None))
        .then(pl.lit("import"))
        .otherwise(pl.lit("human")),
        rater=pl.col("rater").fill_null(rater or NOBODY),
        time_us=pl.lit(now),
    )


def _sha256(path: str | Path) -> str:
    where = Path(path)
    if where.is_file():
        with where.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    return ""
