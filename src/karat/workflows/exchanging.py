"""Exchanging: what other tools hold into a golden set, and a golden set out to them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from karat.formats.exchange.catalogue import read_exchange, write_exchange
from karat.store import documents, imports, judgments, queries
from karat.tables import Run
from karat.tables.exchange import Exchange
from karat.workflows.editions import content_of
from karat.workflows.kept_runs import keep_runs
from karat.workflows.workspace import Opened

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
        runs: Names of the runs it held.
    """

    exchange: Exchange
    queries: int
    documents: int
    judgments: int
    runs: list[str]


def take_in(
    opened: Opened,
    path: str | Path,
    *,
    now: int,
    format: str | None = None,  # noqa: A002 - as it is typed
    rater: str | None = None,
) -> TakenIn:
    """Import a file of another tool: all of it, or nothing.

    A query whose text the golden set has is that query, whatever id the file gives it. What a
    query or document lacks in the file stays as it was.

    Args:
        opened: The workspace.
        path: The file.
        now: Microseconds UTC.
        format: A name of ``karat.formats.exchange.catalogue.EXCHANGES``; told by content if None.
        rater: Who judged, where the file names nobody.

    Raises:
        InputError: it cannot be read, is damaged, or a grade is off the scale.
        UsageError: there is no such format.
    """
    found = read_exchange(path, format)
    golden = opened.golden
    with opened.store.begin() as connection:
        there = queries.frame(connection, golden.id, dropped=True).drop("dropped_us")
        asked = _asked(found)
        ids = _same_queries(there, asked)
        renamed = [_renamed(frame, ids) for frame in (asked, found.judgments)]
        put = queries.put(connection, golden.id, _over(there, renamed[0], "query_id"), now)
        held = 0
        if found.documents is not None:
            known = documents.frame(connection, golden.id).drop("sha256")
            given = _over(known, found.documents, "doc_id")
            held = documents.put(connection, golden.id, given, now).added
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
    keep_runs(opened, kept, now=now)
    return TakenIn(found, put.added, held, count, list(found.runs))


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
        UsageError: there is no such format or edition.
    """
    content = content_of(opened, edition)
    with opened.store.read() as connection:
        held = documents.frame(connection, opened.golden.id).drop("sha256")
        said = judgments.current(connection, opened.golden.id)
    if each_rater:
        rows = said.frame.filter(pl.col("kind") == "rating")
        facts = rows.select("query_id", "doc_id", "grade", "rater", "reason")
    else:
        nobody = pl.lit(None, dtype=pl.String)
        facts = content.grades.select(
            "query_id", "doc_id", "grade", nobody.alias("rater"), nobody.alias("reason")
        )
    named = held.filter(pl.col("doc_id").is_in(facts["doc_id"].unique().implode()))
    return write_exchange(
        Exchange(
            format="karat",
            queries=content.queries,
            documents=named if named.height else None,
            judgments=facts,
        ),
        path,
        format,
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


def _same_queries(there: pl.DataFrame, asked: pl.DataFrame) -> dict[str, str]:
    """The id in the golden set of each query of a file."""
    by_text = {
        text: query
        for query, text in there.select("query_id", "text").iter_rows()
        if text is not None
    }
    texts = dict(there.select("query_id", "text").iter_rows())
    taken, ids = set(texts), {}
    names = ["query_id", *(["text"] if "text" in asked.columns else [])]
    for query, *said in asked.select(names).iter_rows():
        text = said[0] if said else None
        new = query
        if text is not None and text in by_text:
            new = by_text[text]
        elif text is not None and texts.get(query) not in {None, text}:
            # The id is another query's here.
            number = 2
            while f"{query}-{number}" in taken:
                number += 1
            new = f"{query}-{number}"
        taken.add(new)
        ids[query] = new
    return ids


def _over(there: pl.DataFrame, given: pl.DataFrame, key: str) -> pl.DataFrame:
    """What a file says of each row it has, over what was known of it."""
    given = given.unique(key, keep="first", maintain_order=True)
    both = given.join(there, on=key, how="left", suffix="_there", maintain_order="left")
    shared = [name for name in given.columns if name != key and name in there.columns]
    told = [pl.coalesce(name, f"{name}_there").alias(name) for name in shared]
    return both.with_columns(told).drop(f"{name}_there" for name in shared)


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
