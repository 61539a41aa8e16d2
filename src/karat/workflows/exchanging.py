"""Exchanging: what other tools hold into a golden set, and a golden set out to them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from karat.errors import InputError, UsageError
from karat.formats import read_documents, read_queries
from karat.formats.catalogue import FORMATS
from karat.formats.delimited import semicolons
from karat.formats.exchange.catalogue import EXCHANGES, read_exchange, write_exchange
from karat.formats.exchange.detect import detect
from karat.formats.exchange.foreign import open_foreign
from karat.formats.exchange.gathering import counted, held
from karat.formats.folder import in_folder
from karat.formats.source import Source
from karat.formats.writing import write_run
from karat.store import documents, imports, judgments, queries
from karat.tables import Run
from karat.tables.exchange import Exchange
from karat.tables.scale import Scale
from karat.workflows.choosing import put_queries
from karat.workflows.editions import LEAST, NOW, standing_in, weighed
from karat.workflows.kept_runs import keep_in, kept_runs, names_of_kept
from karat.workflows.known_queries import over, same_queries, shared_texts
from karat.workflows.linting import roles
from karat.workflows.workspace import Opened

_TEXTS = ("queries", "documents")
_FACT = ["query_id", "doc_id", "rater", "source"]
NOBODY = "import"
"""Who judged, where a file names nobody."""
RUN = "run"
"""The format of an export that is one run alone."""


@dataclass(frozen=True)
class TakenIn:
    """What became of a file.

    Attributes:
        exchange: What it held, and what was kept, assumed and lost.
        queries: Queries that are new in the golden set.
        documents: Documents that are new.
        judgments: Judgments that are new.
        corrected: Judgments that take the place of what the same rater said before.
        changed: Queries and documents that were there and are not as they were.
        runs: Names of the runs it held.
    """

    exchange: Exchange
    queries: int
    documents: int
    judgments: int
    corrected: int
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
    return take_exchange(opened, found, file=str(path), sha256=_sha256(path), now=now, rater=rater)


def take_exchange(
    opened: Opened,
    found: Exchange,
    *,
    file: str,
    sha256: str,
    now: int,
    rater: str | None = None,
) -> TakenIn:
    """Import what a file held: all of it, or nothing; every import is noted in the store.

    Args:
        opened: The workspace.
        found: What it held; more is said in its ``assumed``.
        file: What the store and messages call it.
        sha256: Of its bytes.
        now: Microseconds UTC.
        rater: Who judged, where it names nobody.

    Raises:
        InputError: a grade is off the scale, or a rater judges a pair twice.
    """
    golden = opened.golden
    if found.judgments is not None:
        _check_scale(found, golden.scale, file)
    with opened.store.begin() as connection:
        there = queries.frame(connection, golden.id, dropped=True).drop("dropped_us")
        asked = _asked(found)
        ids = same_queries(there, asked)
        found.assumed.extend(shared_texts(asked, ids))
        asked, said = (_renamed(frame, ids) for frame in (asked, found.judgments))
        put = put_queries(connection, golden.id, over(there, asked, "query_id"), now)
        added, changed = 0, put.changed
        if found.documents is not None:
            known = documents.frame(connection, golden.id).drop("sha256")
            given = over(known, found.documents, "doc_id")
            placed = documents.put(connection, golden.id, given, now)
            added, changed = placed.added, changed + placed.changed
        kept = [Run.from_frame(_renamed(frame, ids), name) for name, frame in found.runs.items()]
        found.assumed.extend(keep_in(connection, opened, kept, now=now))
        import_id = imports.put(
            connection,
            golden.id,
            file=file,
            format=found.format,
            sha256=sha256,
            report={"kept": found.kept, "assumed": found.assumed, "lost": found.lost},
            now=now,
        )
        new = corrected = 0
        if said.height:
            facts = _facts(said, rater, now)
            before = judgments.current(connection, golden.id).frame.filter(kind="rating")
            recorded = judgments.record(connection, golden.id, facts, import_id)
            # A fact is new where its rater had said nothing of the pair that counts.
            new = facts.join(before, on=_FACT, how="anti").height
            corrected = recorded - new
    return TakenIn(found, put.added, added, new, corrected, changed, list(found.runs))


def give_out(
    opened: Opened,
    path: str | Path,
    format: str,  # noqa: A002 - as it is typed
    *,
    edition: str | None = None,
    each_rater: bool = False,
    runs: Sequence[str] = (),
) -> Exchange:
    """Export an edition, or the golden set as it stands, for another tool; or kept runs.

    Args:
        opened: The workspace.
        path: The file, a folder for ``beir``; ``-`` is standard output.
        format: A name of ``karat.formats.exchange.catalogue.EXCHANGES``; ``run`` for one run
            alone, in the format that the file's name asks for.
        edition: Its name; the golden set as it stands if None.
        each_rater: Every rater's judgment, rather than the grade the rule makes of them.
        runs: Names of kept runs, for a format that holds runs.

    Returns:
        What was written, with what was kept, assumed and lost.

    Raises:
        InputError: the format cannot hold it, or it cannot be written.
        UsageError: there is no such format, edition or run, the format wants runs or holds none,
            or every rater's judgment is asked of an edition.
    """
    if each_rater and edition is not None:
        raise UsageError(
            "an edition holds grades, not who gave them",
            fix="leave out --edition, or --each-rater",
        )
    _check_runs(opened, format, runs)
    ranked = kept_runs(opened, runs) if runs else []
    if format == RUN:
        if each_rater or edition is not None:
            raise UsageError(
                "a run alone holds no grades",
                fix="leave out --edition and --each-rater, or name a format that holds both",
            )
        return _run_alone(ranked[0], path)
    with opened.store.read() as connection:
        content = standing_in(connection, opened, edition or NOW)
        known = documents.frame(connection, opened.golden.id).drop("sha256")
        said = judgments.current(connection, opened.golden.id).of(content.queries["query_id"])
    if each_rater:
        rows = said.frame.filter((pl.col("kind") == "rating") & (pl.col("source") == "human"))
        facts = rows.select("query_id", "doc_id", "grade", "rater", "reason")
    else:
        nobody = pl.lit(None, dtype=pl.String)
        facts = content.grades.select(
            "query_id", "doc_id", "grade", nobody.alias("rater"), nobody.alias("reason")
        )
    rankings = {run.name: run.frame().select("query_id", "doc_id", "score") for run in ranked}
    shown = pl.concat([frame["doc_id"] for frame in (facts, *rankings.values())])
    named = known.filter(pl.col("doc_id").is_in(shown.unique().implode()))
    asked, unknown = weighed(content.queries)
    if "no_answer" in asked.columns and not asked["no_answer"].any():
        asked = asked.drop("no_answer")  # it says nothing
    told = write_exchange(
        Exchange(
            format="karat",
            queries=asked,
            documents=named if named.height else None,
            judgments=facts,
            runs=rankings,
        ),
        path,
        format,
    )
    told.lost.extend(lost for run in ranked for lost in _without_answer(run))
    if unknown:
        some = counted(unknown, "query")
        told.assumed.append(f"weight {LEAST:g} of {some} that no log counted: no part in means")
    return told


def _check_runs(opened: Opened, name: str, runs: Sequence[str]) -> None:
    """Refuse runs where a format holds none, and none where it holds nothing else."""
    holds = EXCHANGES[name].holds if name in EXCHANGES else None
    if runs and holds is not None and not holds.runs:
        can = ", ".join(peer.name for peer in EXCHANGES.values() if peer.write and peer.holds.runs)
        raise UsageError(
            f"{name} holds no runs", fix=f"leave out --run, or --format with {RUN}, {can}"
        )
    alone = name == RUN or (holds is not None and holds.runs and not holds.judgments)
    if alone and not runs:
        there = ", ".join(names_of_kept(opened)) or "none yet"
        raise UsageError(
            f"{name} holds runs, and none is named", fix=f"--run NAME; the workspace has {there}"
        )
    if name == RUN and len(runs) > 1:
        raise UsageError("several runs do not fit into one file", fix="export one after the other")


def _run_alone(run: Run, path: str | Path) -> Exchange:
    """A run in one of karat's own formats."""
    write_run(run, path)
    told = Exchange(RUN, runs={run.name: run.frame().select("query_id", "doc_id", "score")})
    told.kept.extend(held(told))
    bare = {ending for name in ("trec", "msmarco") for ending in FORMATS[name].extensions}
    if str(path) == "-" or bare & set(Path(path).suffixes):
        told.lost.extend(_without_answer(run))
    return told


def _without_answer(run: Run) -> Iterator[str]:
    """What formats that hold documents alone cannot say of a run."""
    bare = run.answers.filter(pl.col("state") != "ok").height
    if bare:
        yield f"that {counted(bare, 'query')} got no answer, of run {run.name!r}"


def _read(path: str | Path, name: str | None) -> Exchange:
    """The file as what it was called, or as what its content tells."""
    where = Path(path)
    if name is None and where.is_dir():
        held = {role: file for file, role in roles.of_folder(where)}
        if "qrels" not in held:
            return _texts(held)
    elif name is None and where.is_file():
        try:
            name = detect(open_foreign(path))
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


def _check_scale(found: Exchange, scale: Scale, file: str) -> None:
    assert found.judgments is not None
    low, high = scale
    off = found.judgments.filter(~pl.col("grade").is_between(low, high))
    if off.height:
        row = off.row(0, named=True)
        query = row["query_id"]
        peer = EXCHANGES.get(found.format)
        if peer is not None and not peer.holds.ids and found.queries is not None:
            query = found.queries.row(by_predicate=pl.col("query_id") == query, named=True)["text"]
        raise InputError(
            f"grade {row['grade']:g} for document {row['doc_id']!r} is not on the golden set's "
            f"scale from {low:g} to {high:g}",
            file=file,
            line=_line(found, file, row["query_id"], row["doc_id"], row["rater"]),
            query=query,
            doc_id=row["doc_id"],
            fix="karat init DIR --scale LOW-HIGH makes a golden set of another scale",
        )


def _line(found: Exchange, file: str, *key: str) -> int | None:
    """The line a judgment stands on, where the file has lines."""
    query, doc, rater = key
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
