"""Reads tables from files, BEIR folders and standard input."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Self

import polars as pl

from karat.errors import InputError, but
from karat.formats.tables import sidecar
from karat.formats.tables.catalogue import FORMATS
from karat.formats.tables.detect import detect, refuse_binary, refuse_kind
from karat.formats.tables.folder import in_folder
from karat.formats.tables.format import Reader, format_of
from karat.formats.tables.lines import ahead
from karat.formats.tables.source import EmptyFile, Source, shown
from karat.tables import Documents, Pairs, Qrels, Queries, Run

_PACKED = (".gz", ".zst", ".bz2")
_FURTHER = (".res", ".tsv", ".results")  # usual suffixes of runs that karat does not write


def read_qrels(path: str | Path, input_format: str | None = None) -> Qrels:
    """Read judgments.

    Args:
        path: A file, a BEIR folder (its ``test`` split, or the only one), or ``-`` for standard
            input. Plain or gzip, zstd, bzip2.
        input_format: A name of ``FORMATS``; detected by content if None.

    Raises:
        InputError: the file cannot be read; with the line, if there is one.
        UsageError: an unknown format, or one without qrels.
    """
    with _Opened(path, "qrels", input_format) as opened:
        if str(path) == "-" and opened.format.name == "golden":
            raise InputError(
                "a golden set has queries and judgments, and standard input can be read only once",
                file=opened.source.name,
                fix="give the file by name",
            )
        frame = opened.frame()
        opened.unmarked(frame["query_id"])
        try:
            low, _, high = opened.about.get("scale", "").partition(" ")
            scale = (float(low), float(high)) if high else None
            without = [str(query) for query in json.loads(opened.about.get("without", "[]"))]
        except (TypeError, ValueError):
            raise InputError(
                "the scale in the file's metadata is invalid", file=opened.source.name
            ) from None
        qrels = Qrels(frame, source=opened.source.name, scale=scale, without=without)
        qrels.file = None if opened.source.again is None else str(opened.source.again)
        if "clicks" in opened.about and opened.source.again is not None:
            from karat.formats.own.click_grades import provenance_in

            qrels.provenance = provenance_in(opened.about["clicks"], opened.source.again)
        return qrels


def read_run(
    path: str | Path,
    input_format: str | None = None,
    name: str | None = None,
    watch: Callable[[str, int], None] | None = None,
    *,
    may_be_empty: bool = False,
) -> Run:
    """Read a run, with the description in its file or its sidecar (see ``write_run``).

    Args:
        path: A file, or ``-`` for standard input. Plain or gzip, zstd, bzip2.
        input_format: A name of ``FORMATS``; detected by content if None.
        name: Name in results; the file's stem if None, ``stdin`` for standard input.
        watch: Called with the file's name and the bytes read since the last call; not for Parquet.
        may_be_empty: Return a run without queries for an empty file, instead of raising an error.

    Raises:
        InputError: the file cannot be read; with the line, if there is one.
        UsageError: an unknown format, or one without runs.
    """
    try:
        return _run(path, input_format, name, watch)
    except EmptyFile as error:
        if not may_be_empty:
            raise
        return Run(stem(path) if name is None else name, [], source=error.file)


def _run(
    path: str | Path,
    input_format: str | None,
    name: str | None,
    watch: Callable[[str, int], None] | None,
) -> Run:
    with _Opened(path, "run", input_format) as opened:
        if watch is not None:
            opened.source.watch = partial(watch, opened.source.name)
        rows = opened.reader(opened.source)
        about, answers = sidecar.read(path)
        run = Run.from_batches(
            stem(path) if name is None else name,
            rows.batches,
            answers=rows.answers if answers is None else answers,
            source=opened.source.name,
            mapped=ahead,
        )
        if answers is not None:
            sidecar.refuse_without_rows(answers, run.query_ids, path)
        if not len(run) and not run.answers.height:
            raise opened.nothing()
        opened.unmarked(pl.Series("query_id", run.query_ids, dtype=pl.String))
        run.about.update(rows.about() | about)
        return run


def read_queries(path: str | Path, input_format: str | None = None) -> Queries:
    """Read queries: every column that is not the id or the text becomes an attribute.

    Args:
        path: A file, a BEIR folder (``queries.jsonl``), or ``-`` for standard input.
        input_format: A name of ``FORMATS``; detected by content if None.

    Raises:
        InputError: the file cannot be read; with the line, if there is one.
        UsageError: an unknown format, or one without queries.
    """
    with _Opened(path, "queries", input_format) as opened:
        frame = opened.frame()
        opened.unique(frame, "query_id", "duplicate query id")
        return Queries(frame, source=opened.source.name)


def read_documents(path: str | Path, input_format: str | None = None) -> Documents:
    """Read documents: every column that is not the id, title or text becomes an attribute.

    Args:
        path: A file, a BEIR folder (``corpus.jsonl``), or ``-`` for standard input.
        input_format: A name of ``FORMATS``; detected by content if None.

    Raises:
        InputError: the file cannot be read; with the line, if there is one.
        UsageError: an unknown format, or one without documents.
    """
    with _Opened(path, "documents", input_format) as opened:
        frame = opened.frame()
        opened.unique(frame, "doc_id", "duplicate document {}")
        return Documents(frame, source=opened.source.name)


def read_pairs(path: str | Path, input_format: str | None = None) -> Pairs:
    """Read pairs to be judged, as written by ``karat compare --judge-file``."""
    # As documents, with the query as an attribute.
    with _Opened(path, "documents", input_format) as opened:
        return Pairs(opened.frame(), source=opened.source.name)


def holds_queries(path: str | Path) -> bool:
    """Whether a source of judgments contains their queries too: a BEIR folder or a golden set."""
    if str(path) == "-":
        return False
    if os.path.isdir(path):  # noqa: PTH112 - False, not an error, for any odd name
        return any(Path(path).glob("queries.jsonl*"))
    with Source(path) as source:
        return detect(source, "qrels") == "golden"


def stem(path: str | Path) -> str:
    """The name of a run from its path: bm25 for ``runs/bm25.trec.gz``, stdin for ``-``."""
    if str(path) == "-":
        return "stdin"
    name = shown(Path(path).name)
    formats = {ending for entry in FORMATS.values() for ending in entry.extensions}
    for endings in (_PACKED, (*formats, *_FURTHER)):
        ending = Path(name).suffix
        if ending.lower() in endings and name != ending:
            name = name.removesuffix(ending)
    return name


class _Opened:
    """A file opened for a role, its format detected; adds lines to errors of tables."""

    def __init__(self, path: str | Path, role: str, input_format: str | None) -> None:
        self.role = role
        self.about: dict[str, str] = {}
        if input_format is not None:
            format_of(FORMATS, input_format, role)
        if os.path.isdir(path):  # noqa: PTH112 - False, not an error, for any odd name
            path = in_folder(Path(path), role)
        self.source = Source(path)
        try:
            name = input_format or detect(self.source, role)
            if name != "parquet":
                refuse_binary(self.source)
                refuse_kind(self.source, role)
        except BaseException:
            self.source.close()
            raise
        self.format = FORMATS[name]

    @property
    def reader(self) -> Reader:
        return self.format.readers[self.role]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.source.close()
        if not isinstance(error, InputError) or error.file != self.source.name:
            return
        line = error.line
        if line is None:
            ids = (error.query, error.doc_id, getattr(error, "subtopic", None))
            line = self._line(tuple(part for part in ids if part is not None))
        lint = None
        everywhere = self.source.again is not None and self.format.name != "golden"
        if error.fix is None and line is not None and everywhere:
            lint = "correct it, and check for others"
        if lint is not None or line != error.line:
            more = (
                {"command": f"karat lint {self.source.name} lists all such lines"} if lint else {}
            )
            raise but(error, line=line, fix=error.fix or lint, **more) from None

    def frame(self) -> pl.DataFrame:
        rows = self.reader(self.source)
        frames = [batch for batch in rows.batches if batch.height]
        self.about = rows.about()
        if not frames:
            raise self.nothing()
        if len(frames) == 1:
            return frames[0]
        alike = all(frame.columns == frames[0].columns for frame in frames)
        return pl.concat(frames, how="vertical_relaxed" if alike else "diagonal_relaxed")

    def nothing(self) -> EmptyFile:
        what = {"run": "no ranking", "qrels": "no judgment"}.get(self.role, "no row")
        fix = None
        if self.format.name == "golden" and self.role == "qrels":
            fix = "import it into a golden set, and judge what a run returns for its queries"
        return EmptyFile(f"the file contains {what}", file=self.source.name, fix=fix)

    def unmarked(self, ids: pl.Series) -> None:
        """Refuse an id that begins with a byte order mark: it would never match."""
        marked = ids.str.starts_with("\ufeff")
        if marked.any():
            bad = ids[int(marked.arg_max() or 0)]
            raise InputError(
                f"the {ids.name} {bad!r} begins with a byte order mark",
                file=self.source.name,
                line=self._line((bad,)),
                fix="were files with byte order marks concatenated? Remove the marks",
            )

    def unique(self, frame: pl.DataFrame, column: str, what: str) -> None:
        if frame[column].dtype == pl.String:
            self.unmarked(frame[column])
        twice = ~frame[column].is_first_distinct()
        if twice.any():
            value = str(frame[column][int(twice.arg_max() or 0)])
            query = value if self.role == "queries" else None
            raise InputError(
                what.format(value), file=self.source.name, query=query, line=self._line((value,))
            )

    def _line(self, ids: tuple[str, ...]) -> int | None:
        """The line with these ids; the second, if there are two."""
        if not ids or self.format.places is None or self.source.again is None:
            return None
        found: int | None = None
        try:
            with Source(self.source.again) as source:
                for place in self.format.places(source, self.role):
                    if place.ids[: len(ids)] == ids:
                        if found is not None:
                            return place.line
                        found = place.line
        except InputError:
            return found
        return found
