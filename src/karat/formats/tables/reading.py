"""Reading: a path, a BEIR folder or standard input to a table."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Self

import polars as pl

from karat.errors import Advice, InputError
from karat.formats.tables import sidecar
from karat.formats.tables.catalogue import FORMATS
from karat.formats.tables.detect import detect, refuse_binary, refuse_kind
from karat.formats.tables.folder import in_folder
from karat.formats.tables.format import Reader, format_of
from karat.formats.tables.prefetch import ahead
from karat.formats.tables.source import NothingIn, Source, shown
from karat.tables import Documents, Pairs, Qrels, Queries, Run

_PACKED = (".gz", ".zst", ".bz2")
_FURTHER = (".res", ".tsv", ".results")  # usual suffixes of runs besides those karat writes


def read_qrels(path: str | Path, input_format: str | None = None) -> Qrels:
    """Read judgments.

    Args:
        path: A file, a BEIR folder (its ``test`` split, or the only one), or ``-`` for standard
            input. Plain or gzip, zstd, bzip2.
        input_format: A name of ``FORMATS``; told by content if None.

    Raises:
        InputError: a file that cannot be read, with its line where there is one.
        UsageError: an unknown format, or one that holds no qrels.
    """
    with _Opened(path, "qrels", input_format) as opened:
        if str(path) == "-" and opened.format.name == "golden":
            raise InputError(
                "a golden set holds queries as well as judgments, and standard input can be read "
                "only once",
                file=opened.source.name,
                fix="give its file by name",
            )
        frame = opened.frame()
        opened.unmarked(frame["query_id"])
        try:
            low, _, high = opened.about.get("scale", "").partition(" ")
            scale = (float(low), float(high)) if high else None
            without = [str(query) for query in json.loads(opened.about.get("without", "[]"))]
        except (TypeError, ValueError):
            raise InputError(
                "what the file says of its scale cannot be read", file=opened.source.name
            ) from None
        made = Qrels(frame, source=opened.source.name, scale=scale, without=without)
        made.file = None if opened.source.again is None else str(opened.source.again)
        return made


def read_run(
    path: str | Path,
    input_format: str | None = None,
    name: str | None = None,
    watch: Callable[[str, int], None] | None = None,
    *,
    may_be_empty: bool = False,
) -> Run:
    """Read a run, with what its file, or the file beside it (``write_run``), says about it.

    Args:
        path: A file, or ``-`` for standard input. Plain or gzip, zstd, bzip2.
        input_format: A name of ``FORMATS``; told by content if None.
        name: What results call it; the file's stem if None, ``stdin`` for standard input.
        watch: Told the file's name and the bytes read since the last call; not for Parquet.
        may_be_empty: Whether a file that holds nothing is a run without a query (a gate has
            something to say of it), and no error.

    Raises:
        InputError: a file that cannot be read, with its line where there is one.
        UsageError: an unknown format, or one that holds no runs.
    """
    try:
        return _run(path, input_format, name, watch)
    except NothingIn as error:
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
        input_format: A name of ``FORMATS``; told by content if None.

    Raises:
        InputError: a file that cannot be read, with its line where there is one.
        UsageError: an unknown format, or one that holds no queries.
    """
    with _Opened(path, "queries", input_format) as opened:
        frame = opened.frame()
        opened.unique(frame, "query_id", "the query stands twice")
        return Queries(frame, source=opened.source.name)


def read_documents(path: str | Path, input_format: str | None = None) -> Documents:
    """Read documents: every column that is not the id, title or text becomes an attribute.

    Args:
        path: A file, a BEIR folder (``corpus.jsonl``), or ``-`` for standard input.
        input_format: A name of ``FORMATS``; told by content if None.

    Raises:
        InputError: a file that cannot be read, with its line where there is one.
        UsageError: an unknown format, or one that holds no documents.
    """
    with _Opened(path, "documents", input_format) as opened:
        frame = opened.frame()
        opened.unique(frame, "doc_id", "document {} stands twice")
        return Documents(frame, source=opened.source.name)


def read_pairs(path: str | Path, input_format: str | None = None) -> Pairs:
    """Read pairs to be judged, as ``karat compare --judge-file`` writes them.

    Args:
        path: A file with the columns ``query_id`` and ``doc_id``; ``-`` for standard input.
        input_format: A name of ``FORMATS``; told by content if None.

    Raises:
        InputError: a file that cannot be read, with its line where there is one.
        UsageError: an unknown format, or one that holds no attributes of documents.
    """
    # As documents with attributes, of which the query is one.
    with _Opened(path, "documents", input_format) as opened:
        return Pairs(opened.frame(), source=opened.source.name)


def holds_queries(path: str | Path) -> bool:
    """Whether what holds judgments holds their queries too: a BEIR folder, or a golden set."""
    if str(path) == "-":
        return False
    if os.path.isdir(path):  # noqa: PTH112 - False, not an error, for any odd name
        return any(Path(path).glob("queries.jsonl*"))
    with Source(path) as source:
        return detect(source, "qrels") == "golden"


def stem(path: str | Path) -> str:
    """The name of a run: ``runs/bm25.trec.gz`` is bm25, standard input is stdin."""
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
    """A file opened for a role, its format known; errors of tables get their line."""

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
            said = (error.query, error.doc_id, getattr(error, "subtopic", None))
            line = self._line(tuple(part for part in said if part is not None))
        lint = None
        everywhere = self.source.again is not None and self.format.name != "golden"
        if error.fix is None and line is not None and everywhere:
            lint = Advice(
                f"karat lint {self.source.name} names every such line",
                page="correct it, and look for more such",
            )
        if lint is not None or line != error.line:
            raise InputError(
                error.what,
                file=error.file,
                line=line,
                query=error.query,
                doc_id=error.doc_id,
                fix=error.fix or lint,
            ) from None

    def frame(self) -> pl.DataFrame:
        """All rows at once."""
        rows = self.reader(self.source)
        frames = [batch for batch in rows.batches if batch.height]
        self.about = rows.about()
        if not frames:
            raise self.nothing()
        if len(frames) == 1:
            return frames[0]
        alike = all(frame.columns == frames[0].columns for frame in frames)
        return pl.concat(frames, how="vertical_relaxed" if alike else "diagonal_relaxed")

    def nothing(self) -> NothingIn:
        what = {"run": "no ranking", "qrels": "no judgment"}.get(self.role, "no row")
        fix = None
        if self.format.name == "golden" and self.role == "qrels":
            fix = Advice(
                "judge what a run returns for its queries: karat golden import, pool and judge",
                page="import it into a golden set, and judge what a run returns for its queries",
            )
        return NothingIn(f"the file holds {what}", file=self.source.name, fix=fix)

    def unmarked(self, ids: pl.Series) -> None:
        """Refuse an id that begins with a byte order mark: it would match nothing."""
        marked = ids.str.starts_with("\ufeff")
        if marked.any():
            bad = ids[int(marked.arg_max() or 0)]
            raise InputError(
                f"the {ids.name} {bad!r} begins with a byte order mark",
                file=self.source.name,
                line=self._line((bad,)),
                fix="were files with such marks put together? Remove the marks within",
            )

    def unique(self, frame: pl.DataFrame, column: str, what: str) -> None:
        """Refuse an id that stands twice, naming its line."""
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
        """The line the ids stand on together: the second if there are two."""
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
