"""Lint: checks a set of files line by line, and against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import InputError
from karat.formats import ROLES
from karat.formats.own import golden
from karat.formats.tables import sidecar
from karat.formats.tables.detect import detect, own_kind, refuse_binary
from karat.formats.tables.lines import WITHIN
from karat.formats.tables.source import Source
from karat.formats.tables.trec import out_of_order
from karat.golden.query import judgment_frame
from karat.tables.findings import Finding, Findings, LintedFile
from karat.tables.id_spelling import likely_cause
from karat.tables.ranking import gathered
from karat.workflows.lint import _records, fields, roles
from karat.workflows.lint._checks import Rankings, Texts, absent, check_judgments
from karat.workflows.lint.fields import LineEnds, Piece
from karat.workflows.lint.tally import Tally

# Referenced files first: documents, queries, judgments, runs.
_ORDER = {"documents": 0, "queries": 1, "qrels": 2, "run": 3}

Watch = Callable[[str, int], None]


@dataclass(slots=True)
class _File:
    path: str
    tally: Tally = field(default_factory=Tally)
    role: str | None = None
    format: str | None = None
    rows: int = 0
    queries: Mapping[str, int] = field(default_factory=dict)
    texts: Mapping[str, int] | None = None  # queries, if the file has judgments and queries
    silent: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)  # queries in the sidecar file of a run

    @property
    def name(self) -> str:
        return "standard input" if self.path == "-" else self.path


def lint(
    files: Sequence[str | Path],
    roles_given: Mapping[str, str] | None = None,
    watch: Watch | None = None,
) -> Findings:
    roles_by_path = dict(roles_given or {})
    checked = [
        _File(path, role=roles_by_path.get(path, role))
        for given in files
        for path, role in _expanded(str(given))
    ]
    opened = [(file, source) for file in checked if (source := _opened(file)) is not None]
    opened.sort(key=lambda pair: _ORDER.get(pair[0].role or "", 0))
    documents: NDArray[np.uint64] | None = None
    silent: set[str] = set()
    for file, source in opened:
        with source:
            try:
                hashes = _read(file, source, documents, silent, watch or _unwatched)
            except InputError as error:
                _unreadable(file.tally, error, file.name)
                hashes = None
        if file.role == "documents" and hashes is not None:
            documents = hashes if documents is None else np.union1d(documents, hashes)
    _check_across([each for file in checked for each in _by_role(file)])
    findings: list[Finding] = []
    for file in checked:
        unit = {"parquet": "row", "json": "entry", "golden": "entry"}.get(file.format or "", "line")
        findings += file.tally.findings(file.name, unit)
    return Findings(
        files=[
            LintedFile(file.name, file.role, file.format, file.rows, len(file.queries))
            for file in checked
        ],
        findings=findings,
        queries=len({query for file in checked for query in (file.texts or file.queries)}),
    )


def _by_role(file: _File) -> Iterator[_File]:
    """The queries of a file by role; a golden set has two: judgments and texts."""
    if file.role is not None:
        yield file
    if file.texts is not None:
        yield replace(file, role="queries", queries=file.texts)


def _expanded(path: str) -> list[tuple[str, str | None]]:
    if path != "-" and Path(path).is_dir():
        return list(roles.of_folder(Path(path)))
    return [(path, None)]


def _opened(file: _File) -> Source | None:
    """The open file, with its role and format set; None, and a finding, if it cannot be read."""
    if file.path != "-" and not Path(file.path).exists():
        Source(file.path)  # raises, with the nearest name
    try:
        source = Source(file.path)
    except InputError as error:
        _unreadable(file.tally, error)
        return None
    try:
        if not source.head.startswith(b"PAR1"):
            refuse_binary(source)
        kind = own_kind(source)
        if kind == "the description of a run" or file.path.endswith(sidecar.ENDING):
            file.format = "about"
            source.close()
            sidecar.load(Path(file.path), file.name)
            return None
        if kind not in (None, "a golden set"):
            raise InputError(
                f"this is {kind}; lint checks qrels, runs, queries and documents",
                fix="leave it out: the command that reads it checks it",
            )
        file.role = file.role or roles.told(source)
        if file.role is None:
            raise InputError(
                "cannot detect whether the file has qrels, a run, queries or documents",
                fix=f"--role {file.path}={'|'.join(ROLES)}",
            )
        file.format = _format(file, source, file.role)
    except InputError as error:
        source.close()
        _unreadable(file.tally, error)
        return None
    if source.bom:
        file.tally.add("bom", [1])
    return source


def _format(file: _File, source: Source, role: str) -> str:
    try:
        return detect(source, role)
    except InputError as error:
        # Counting every line that does not fit says more than one error.
        line = next((raw for raw in source.head.split(b"\n") if raw.strip()), b"")
        if role in ("qrels", "run") and b"," not in line and len(line.split()) >= 3:
            if role != "run" or line.count(b"\t") != 2:
                return "trec"
            file.tally.add("ambiguous-format", count=1, says=error.what, fix=error.fix)
            return "msmarco"
        raise


def _unreadable(tally: Tally, error: InputError, name: str | None = None) -> None:
    in_sidecar = name is not None and error.file == f"{name}{sidecar.ENDING}"
    empty = error.what.endswith(("is empty", "holds nothing")) and error.line is None
    cut = "carriage-return" if error.what == WITHIN else "unreadable-file"
    tally.add(
        "empty-file" if empty else cut,
        [error.line] if error.line else [],
        count=1,
        says=f"{error.file}: {error.what}" if in_sidecar else error.what,
        fix=None if empty or cut == "carriage-return" else error.command or error.fix,
        query=error.query,
    )


def _read(
    file: _File,
    source: Source,
    documents: NDArray[np.uint64] | None,
    silent: set[str],
    watch: Watch,
) -> NDArray[np.uint64] | None:
    """Check one file; returns the sorted hashes of document ids for documents.

    Queries marked ``no_answer`` are added to ``silent``.
    """
    ends = LineEnds()

    def seen() -> Iterator[pl.DataFrame]:
        for piece in _pieces(file, source, ends):
            file.tally.merge(piece.tally)
            file.rows += piece.rows.height
            watch(file.name, piece.size)
            yield piece.rows

    hashes = None
    try:
        if file.role == "run":
            _run(file, source, seen(), documents)
        elif file.role == "qrels":
            parts = list(seen())
            silent |= file.silent
            _qrels(file, parts, documents, silent)
        else:
            hashes = _texts(file, seen())
            silent |= file.silent
    finally:
        ends.report(file.tally)
    if not file.rows and not any(f.severity == "error" for f in file.tally.findings("")):
        file.tally.add("empty-file", count=1, says="the file has no rows")
    return hashes


def _pieces(file: _File, source: Source, ends: LineEnds) -> Iterator[Piece]:
    assert file.role is not None
    assert file.format is not None
    if file.format == "golden":
        return _golden(file, source)
    layout = fields.LAYOUTS.get((file.format, file.role))
    if layout is not None:
        return fields.pieces(source, layout, ends)
    return _records.pieces(source, file.role, file.format, ends)


def _golden(file: _File, source: Source) -> Iterator[Piece]:
    """A golden set, read as by karat evaluate: the first fault is an error."""
    queries = golden.parse(source.whole(), source.name).queries
    # Judged queries without a relevant document need no further judgments either.
    file.silent = {q.query_id for q in queries if q.no_answer or (q.judged and not q.judgments)}
    if file.role == "queries":
        rows = pl.DataFrame({"id": [query.query_id for query in queries]}).with_columns(
            empty=pl.lit(value=False)
        )
    else:
        rows = judgment_frame(queries)
        file.texts = dict.fromkeys((query.query_id for query in queries), 0)
    yield Piece(rows.with_columns(line=pl.lit(0, pl.Int64)), Tally(), len(source.head))


def _run(
    file: _File,
    source: Source,
    pieces: Iterator[pl.DataFrame],
    documents: NDArray[np.uint64] | None,
) -> None:
    rankings = Rankings(documents)
    answered: dict[str, int] = {}
    kept: list[pl.DataFrame] = []

    def ranked(given: Iterator[pl.DataFrame], keep: bool) -> Iterator[pl.DataFrame]:
        for piece in given:
            bare = piece.filter(pl.col("doc_id").is_null())  # queries without results
            answered.update(bare.select("query_id", "line").iter_rows())
            rows = piece.filter(pl.col("doc_id").is_not_null()) if bare.height else piece
            if keep:
                kept.append(rows)
            yield rows

    answers = None
    if source.again is not None:
        _, answers = sidecar.read(source.again)
        file.answered = set() if answers is None else set(answers["query_id"])
    rankings.see(ranked(pieces, keep=source.again is None))
    rankings.report_scattered(file.tally)
    file.queries = {**answered, **rankings.first_line}
    if answers is not None:
        sidecar.refuse_without_rows(answers, rankings.first_line, file.path)
    if rankings.scattered:
        # Check it again, grouped by query, for the order, ties and duplicates of whole queries.
        if source.again is not None:
            with Source(source.again) as again:
                parts = (piece.rows for piece in _pieces(file, again, LineEnds()))
                kept = list(ranked(parts, keep=False))
        rankings = Rankings(documents)
        rankings.see([gathered(pl.concat(kept, how="diagonal"))])
    file.tally.merge(rankings.finish())


def _qrels(
    file: _File,
    pieces: Sequence[pl.DataFrame],
    documents: NDArray[np.uint64] | None,
    silent: set[str],
) -> None:
    rows = pl.concat(pieces)
    first = rows.group_by("query_id", maintain_order=True).agg(pl.col("line").first())
    file.queries = dict(first.iter_rows())
    if file.format in ("trec", "msmarco") and out_of_order(rows):
        file.tally.add("column-order", count=1, example=rows["doc_id"][0])
    check_judgments(rows, file.tally, silent)
    if documents is not None:
        missing = rows.filter(pl.Series(absent(rows["doc_id"], documents)))
        if missing.height:
            query, doc_id = missing.row(0)[:2]
            file.tally.add(
                "dangling-document", missing["line"].to_numpy(), query=query, example=doc_id
            )


def _texts(file: _File, pieces: Iterator[pl.DataFrame]) -> NDArray[np.uint64]:
    assert file.role is not None
    texts = Texts(file.role)
    for rows in pieces:
        texts.see(rows, file.tally)
    if texts.ids:
        file.queries = dict(
            pl.concat(texts.ids).unique("query_id", maintain_order=True).iter_rows()
        )
    file.silent |= texts.silent
    return texts.finish(file.tally)


def _unwatched(file: str, size: int) -> None:
    """Default of ``watch``."""


def _check_across(files: Sequence[_File]) -> None:
    """Compare the queries of all files, and count findings in their tallies."""
    of = {role: [f for f in files if f.role == role] for role in ("qrels", "run", "queries")}
    judged = {query for qrels in of["qrels"] for query in qrels.queries}
    judged.update(query for queries in of["queries"] for query in queries.silent)
    texts = {query for queries in of["queries"] for query in queries.queries}
    for run in of["run"]:
        qrels = max(
            of["qrels"],
            key=lambda candidate: len(candidate.queries.keys() & run.queries.keys()),
            default=None,
        )
        if qrels is None or not run.queries or not qrels.queries:
            continue
        if not qrels.queries.keys() & run.queries.keys():
            _disjoint(run, qrels)
            continue
        answered = {*run.queries, *run.answered}
        missing = [query for query in qrels.queries if query not in answered]
        if missing:
            count = "1 query" if len(missing) == 1 else f"{len(missing):,} queries"
            says = f"{count} judged in {qrels.name} but not in the run"
            run.tally.add(
                "query-not-in-run", [], count=len(missing), query=missing[0], example=_few(missing),
                says=says,
            )  # fmt: skip
        _lacking(run, judged, "unjudged-query")
    if of["qrels"]:
        for queries in of["queries"]:
            _lacking(queries, judged, "unjudged-query")
    if of["queries"]:
        for candidate in (*of["qrels"], *of["run"]):
            _lacking(candidate, texts, "query-without-text")


def _disjoint(run: _File, qrels: _File) -> None:
    here, there = next(iter(run.queries)), next(iter(qrels.queries))
    cause = likely_cause({"": list(run.queries)}, {"": list(qrels.queries)})
    if cause is not None:
        here, there = cause.here, cause.there
    difference = "" if cause is None else f"; ids differ by {cause.cause}"
    says = f"it shares no query with {qrels.name}: {here!r} here, {there!r} there{difference}"
    run.tally.add("no-common-query", [run.queries[here]], count=1, query=here, says=says)


def _lacking(file: _File, known: set[str], code: str) -> None:
    unknown = [query for query in file.queries if query not in known]
    if unknown:
        lines = sorted(file.queries[query] for query in unknown)
        file.tally.add(code, lines, query=unknown[0], example=_few(unknown))


def _few(queries: Sequence[str]) -> str:
    return ", ".join(queries[:5]) + (", …" if len(queries) > 5 else "")
