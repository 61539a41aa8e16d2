"""What a format is (one module of this folder, one entry of ``catalogue.FORMATS``), and the checks
that writers share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

import polars as pl

from karat.errors import InputError, UsageError, nearest
from karat.formats.tables.source import Source
from karat.tables import Qrels, Run

ROLES = ("qrels", "run", "queries", "documents")  # roles that a file can be read as


@dataclass(frozen=True, slots=True)
class Rows:
    """The result of a reader: rows in file order, which may be read once."""

    batches: Iterable[pl.DataFrame]
    answers: pl.DataFrame | None = None
    about: Callable[[], dict[str, str]] = dict


@dataclass(frozen=True, slots=True)
class Place:
    line: int
    ids: tuple[str, ...]


Reader = Callable[[Source], Rows]
Writer = Callable[[Any, IO[bytes]], None]
Places = Callable[[Source, str], Iterator[Place]]


@dataclass(frozen=True, slots=True)
class Format:
    """One format."""

    name: str
    what: str
    extensions: tuple[str, ...] = ()
    readers: Mapping[str, Reader] = field(default_factory=dict)
    writers: Mapping[str, Writer] = field(default_factory=dict)
    places: Places | None = None  # lists rows with their lines, for errors; None for binary formats
    keeps: frozenset[str] = frozenset()

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(role for role in ROLES if role in self.readers)


def format_of(
    formats: Mapping[str, Format], name: str, role: str, *, writes: bool = False
) -> Format:
    """The format of that name, which must read (or write) the role."""
    can = [
        each.name for each in formats.values() if role in (each.writers if writes else each.readers)
    ]
    fix = f"formats of {role}: {', '.join(can)}"
    if name not in formats:
        raise UsageError(f"unknown format {name!r}", nearest=nearest(name, formats, 1), fix=fix)
    if name not in can:
        raise UsageError(f"the format {name} does not support {role}", fix=fix)
    return formats[name]


def frame_writers(write: Callable[[pl.DataFrame, IO[bytes]], None]) -> dict[str, Writer]:
    """The writers, by role, of a format that can store any frame."""
    return {
        "qrels": lambda qrels, stream: write(qrels.rows, stream),
        "queries": lambda queries, stream: write(queries.frame, stream),
        "documents": lambda documents, stream: write(documents.frame, stream),
        "pairs": lambda pairs, stream: write(pairs.frame, stream),
    }


class RunInParts(Run):
    """A run that is not in memory as a whole."""

    def parts(self) -> Iterator[Run]:
        """Its queries with documents, then the others, some at a time."""
        raise NotImplementedError


def parts_of(run: Run) -> Iterable[Run]:
    """The parts of a run to write one after the other."""
    return run.parts() if isinstance(run, RunInParts) else [run]


def answered(run: Run) -> Iterator[pl.DataFrame]:
    """The parts of a run with the state of each query, if that adds anything to its rows.

    Columns ``query_id``, ``doc_id``, ``score``, ``rank``; and ``state`` (and ``latency_us``,
    ``error``, ``repeated``) if a query returned nothing, failed, was timed, or returned a document
    twice. A query without documents has one row.
    """
    details = details_of(run)
    bare = not details and (run.answers["state"] == "ok").all()
    for part in parts_of(run):
        frame = part.frame()
        if bare:
            yield frame
            continue
        answers = part.answers.select("query_id", "state", *details)
        with_rows = frame.join(answers, on="query_id", how="left", maintain_order="left")
        without = answers.join(frame, on="query_id", how="anti", maintain_order="left")
        yield pl.concat([with_rows, without], how="diagonal")


def details_of(run: Run) -> list[str]:
    """The columns of a run's answers, other than the state, that are not empty."""
    return [
        column
        for column in ("latency_us", "error", "repeated")
        if column in run.answers.columns and run.answers[column].null_count() < len(run.answers)
    ]


def refuse_failed(run: Run, what: str) -> None:
    """Refuse a run with failed queries if the format cannot distinguish failed from missing."""
    failed = run.answers.filter(pl.col("state") == "failed")
    if failed.height:
        raise InputError(
            f"the query failed, and {what} cannot store that: it would be read as missing, score 0",
            file=run.source,
            query=failed["query_id"][0],
            fix="write .jsonl, .csv, .parquet or .json",
        )


def refuse_subtopics(qrels: Qrels, what: str) -> None:
    """Refuse judgments by subtopic if the format stores one grade per document."""
    if qrels.subtopics is not None:
        row = qrels.subtopics.row(0, named=True)
        raise InputError(
            f"document {row['doc_id']} is judged for subtopic {row['subtopic']}, and {what} "
            "cannot store subtopics",
            file=qrels.source,
            query=row["query_id"],
            fix="write .qrels, .jsonl, .csv or .parquet; or write karat.Qrels(qrels.frame), "
            "without subtopics",
        )


def refuse_unwritable(
    frame: pl.DataFrame, columns: tuple[str, ...], pattern: str, what: str, source: str
) -> None:
    """Refuse cells that a format would read back as something else."""
    for column in columns:
        if column not in frame.columns:
            continue
        bad = frame[column].str.contains(pattern).fill_null(value=False)
        if bad.any():
            row = frame.row(int(bad.arg_max() or 0), named=True)
            raise InputError(
                f"the {column} {_short(row[column])} cannot be stored in {what}",
                file=source,
                query=row.get("query_id"),
                doc_id=row.get("doc_id"),
                fix="write .jsonl or .parquet, which store any text",
            )


def whole(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """The column as integers, if all its values are whole."""
    values = frame[column]
    if (values.is_finite() & (values == values.round()) & (values.abs() < 1e15)).all():
        return frame.with_columns(pl.col(column).cast(pl.Int64))
    return frame


def _short(text: str) -> str:
    return repr(text[:60] + "…" if len(text) > 60 else text)
