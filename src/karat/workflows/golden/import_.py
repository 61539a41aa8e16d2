"""Exchanging: what other tools hold, into a golden set."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from karat.errors import Advice, InputError, UsageError
from karat.formats.exchange.import_ import Gathered
from karat.store.sql import documents, golden_sets, imports, judgment_sources, judgments, queries
from karat.store.sql.judgments import Recorded
from karat.store.sql.rated_here import given_here
from karat.store.sql.slots import hold_raters
from karat.tables import Run
from karat.tables.golden.exchange import Exchange
from karat.tables.judgments import NOBODY
from karat.workflows.golden.import_files import check_judgments, read_file
from karat.workflows.golden.judgment_sources import other_sources, sourced
from karat.workflows.golden.sampling import put_queries
from karat.workflows.workspace.known_queries import (
    changes,
    over,
    same_queries,
    shared_texts,
    told_ids,
)
from karat.workflows.workspace.stored_runs import keep_in
from karat.workflows.workspace.workspace import Workspace

MOST_ATTRIBUTES = 100
"""Attributes that the queries of a golden set have at most, and its documents."""
_OVERLAP = 20  # grades of which most are others now: of fewer that may be
_SHOWN = 3  # names of raters that are alike


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
        runs: Names under which the runs it held are kept.
        raters: How many judgments the file holds of each rater it names.
    """

    exchange: Exchange
    queries: int
    documents: int
    judgments: int
    corrected: int
    changed: int
    runs: list[str]
    raters: Mapping[str, int] = field(default_factory=dict)


def take_in(
    opened: Workspace,
    path: str | Path,
    *,
    now: int,
    format: str | None = None,  # noqa: A002 - as it is typed
    rater: str | None = None,
    sources: Mapping[str, str] | None = None,
    called: str | None = None,
    may_correct: Collection[str] | None = None,
) -> TakenIn:
    """Import a file of karat's formats or of another tool: all of it, or nothing.

    A query whose text the golden set has is that query, whatever id the file gives it; the id is
    remembered, and means that query in files without texts that come later. What a query or
    document lacks in the file stays as it was.

    Args:
        opened: The workspace.
        path: The file, or a BEIR folder, which needs no judgments.
        now: Microseconds UTC.
        format: A name of ``karat.formats.exchange.catalogue.EXCHANGES``, or ``queries`` or
            ``documents`` for a file of these; told by content if None.
        rater: Who judged, where the file names nobody.
        sources: As in ``import_exchange``.
        called: What the store calls the file, if ``path`` is a copy of it.
        may_correct: As in ``import_exchange``.

    Raises:
        InputError: it cannot be read, is damaged, a grade is off the scale, a rater's name is
            reserved, or it would correct what somebody judged here and may not.
        UsageError: there is no such format, or ``rater`` is no name.
    """
    found = read_file(path, format)
    name = called or str(path)
    return import_exchange(
        opened,
        found,
        file=name,
        sha256=_sha256(path),
        now=now,
        rater=rater,
        sources=sources,
        may_correct=may_correct,
    )


def import_exchange(
    opened: Workspace,
    found: Exchange,
    *,
    file: str,
    sha256: str,
    now: int,
    rater: str | None = None,
    sources: Mapping[str, str] | None = None,
    may_correct: Collection[str] | None = None,
) -> TakenIn:
    """Import what a file held: all of it, or nothing; every import is noted in the store.

    Args:
        opened: The workspace.
        found: What it held; more is said in its ``assumed``.
        file: What the store and messages call it.
        sha256: Of its bytes.
        now: Microseconds UTC.
        rater: Who judged, where it names nobody.
        sources: Where judgments come from, by rater, and of all others under "": some of
            ``tables.judgments.SOURCES``. What is not in it is as before for raters who are known,
            else of people.
        may_correct: Raters whose judgments given here, not imported, the file may correct; all if
            None, as for whoever holds the store itself.

    Raises:
        InputError: a grade is off the scale, a rater's name is reserved, a rater judges a pair
            twice, the file would correct what somebody judged here and may not, or it has more than
            ``MOST_ATTRIBUTES`` attributes.
        UsageError: ``rater`` is no name, a source is none, or the name of a rater is plainly that
            of a model and ``sources`` does not say.
    """
    golden, rater = opened.golden, _named(rater)
    check_judgments(found, golden.scale, file)
    made = isinstance(found, Gathered) and found.made_ids
    with opened.store.begin() as connection:
        golden_sets.hold(connection, golden.id)  # before it is read which queries there are
        before = queries.frame(connection, golden.id, dropped=True)
        there = before.drop("dropped_us")
        _refuse_wide(there, found.queries, queries.SCHEMA, "queries", file)
        asked, aliases = _asked(found), imports.aliases(connection, golden.id)
        ids = same_queries(there, asked, aliases)
        found.assumed.extend(shared_texts(asked, ids))
        found.assumed.extend(told_ids(there, asked, ids, aliases, made=made))
        asked, said = (_renamed(frame, ids) for frame in (asked, found.judgments))
        put = put_queries(connection, golden.id, over(there, asked, "query_id"), now)
        if put.changed:
            after = queries.frame(connection, golden.id, dropped=True)
            found.assumed.extend(changes(before, after, "query_id", "query"))
        added, changed = 0, put.changed
        if found.documents is not None:
            known = documents.frame(connection, golden.id).drop("sha256")
            _refuse_wide(known, found.documents, documents.SCHEMA, "documents", file)
            given = over(known, found.documents, "doc_id")
            placed = documents.put(connection, golden.id, given, now)
            if placed.changed:
                after = documents.frame(connection, golden.id).drop("sha256")
                found.assumed.extend(changes(known, after, "doc_id", "document"))
            added, changed = placed.added, changed + placed.changed
        kept = [Run.from_frame(_renamed(frame, ids), name) for name, frame in found.runs.items()]
        rankings = keep_in(connection, opened, kept, now=now)
        found.assumed.extend(rankings.notes)
        facts = None
        if said.height:
            by_rater = judgment_sources.sources(connection, golden.id)
            facts = sourced(
                said, rater, by_rater, found.sources | dict(sources or {}), file
            ).with_columns(time_us=now)
            # Else one of them may judge between what is read here and what is written.
            hold_raters(connection, golden.id, facts["rater"].unique())
            there = judgments.current(connection, golden.id).frame
            if may_correct is not None:
                here = given_here(connection, golden.id)
                _refuse_forged(there.join(here.to_frame(), on="judgment"), facts, may_correct, file)
            found.assumed[:0] = _contradicted(there, facts)
            found.assumed.extend(_alike(there, facts))
            found.assumed.extend(other_sources(by_rater, facts))
        import_id = imports.put(
            connection,
            golden.id,
            file=file,
            format=found.format,
            sha256=sha256,
            report={
                "kept": found.kept,
                "assumed": found.assumed,
                "lost": found.lost,
                "ids": {} if made else {old: new for old, new in ids.items() if old != new},
            },
            now=now,
        )
        done = Recorded(0, 0)
        if facts is not None:
            done = judgments.record(connection, golden.id, facts, import_id)
    raters = {} if facts is None else _counted(facts)
    return TakenIn(
        found, put.added, added, done.added, done.corrected, changed, rankings.names, raters
    )


def _named(rater: str | None) -> str | None:
    """Who is said to have judged."""
    if rater is None:
        return None
    if not rater.strip():
        fix = Advice(
            "--rater NAME, or leave it out", page="name who judged, or leave the field empty"
        )
        raise UsageError("the name of the rater is empty", fix=fix)
    if rater.strip().casefold() == NOBODY:
        raise UsageError(
            f"{rater.strip()!r} is reserved for judgments that nobody is named for",
            fix=Advice(
                "--rater with another name, or leave it out",
                page="another name, or leave the field empty",
            ),
        )
    return rater.strip()


def _refuse_wide(
    there: pl.DataFrame,
    given: pl.DataFrame | None,
    schema: Mapping[str, pl.DataType],
    kind: str,
    file: str,
) -> None:
    """Refuse more attributes than a golden set holds: each is a column of every page and table."""
    if given is None:
        return
    old = set(there.columns) - set(schema)
    both = old | (set(given.columns) - set(schema))
    if len(both) > max(MOST_ATTRIBUTES, len(old)):
        so = f", {len(old):,} of which are there" if old else ""
        raise InputError(
            f"the {kind} would have {len(both):,} attributes{so}; a golden set holds "
            f"{MOST_ATTRIBUTES}",
            file=file,
            fix="leave out the columns or fields that nobody filters or slices by",
        )


def _refuse_forged(
    here: pl.DataFrame, facts: pl.DataFrame, may_correct: Collection[str], file: str
) -> None:
    """Refuse facts that would take the place of what others judged here themselves.

    Args:
        here: Judgments that people gave here and that count.
        facts: What the file says.
        may_correct: Raters whose judgments it may correct.
        file: What messages call it.
    """
    key = ["query_id", "doc_id", "rater", "source"]
    old = here.filter(pl.col("kind") == "rating").select(*key, was="grade", because="reason")
    both = facts.join(old, on=key, maintain_order="left")
    differs = pl.col("grade").ne_missing(pl.col("was"))
    if "reason" in facts.columns:
        said = pl.col("reason").is_not_null()
        differs |= said & pl.col("reason").ne_missing(pl.col("because"))
    other = both.filter(differs, ~pl.col("rater").is_in(list(may_correct)))
    if not other.height:
        return
    first = other.row(0, named=True)
    count = other.filter(pl.col("rater") == first["rater"]).height
    many = f"{count:,} judgments" if count > 1 else "a judgment"
    raise InputError(
        f"the file would correct {many} that {first['rater']!r} gave here",
        file=file,
        query=first["query_id"],
        doc_id=first["doc_id"],
        fix=Advice(
            "name the rater of the file otherwise, or leave these rows out; whoever holds the "
            "store may take it in with karat golden import",
            page="name the rater of the file otherwise, or leave these rows out",
        ),
    )


def _counted(facts: pl.DataFrame) -> dict[str, int]:
    """How many facts there are of each rater, most first."""
    named = facts.filter(pl.col("source") == "human").group_by("rater").len()
    return dict(named.sort("len", "rater", descending=[True, False]).rows())


def _contradicted(there: pl.DataFrame, facts: pl.DataFrame) -> list[str]:
    """A warning where most grades of a file are other ones than the same raters gave before."""
    key = ["query_id", "doc_id", "rater", "source"]
    old = there.filter(pl.col("kind") == "rating").select(*key, was="grade")
    both = facts.join(old, on=key)
    other = both.filter(pl.col("grade").ne_missing(pl.col("was"))).height
    if both.height < _OVERLAP or 2 * other <= both.height:
        return []
    warning = (
        f"{other:,} of {both.height:,} grades that were there are others in this file, and are "
        "corrected: are its scale and its ids those of the golden set?"
    )
    return [warning]


def _alike(there: pl.DataFrame, facts: pl.DataFrame) -> list[str]:
    """What is to be said of raters of a file whose names differ from others' by little."""
    new = facts["rater"].unique().sort().to_list()
    groups: dict[str, list[str]] = {}
    for name in sorted({*new, *there.filter(pl.col("source") == "human")["rater"]}):
        groups.setdefault("".join(name.casefold().split()), []).append(name)
    several = [
        names for names in groups.values() if len(names) > 1 and not set(new).isdisjoint(names)
    ]
    told = [
        f"{' and '.join(map(repr, names))} are different raters, though their names differ only in "
        "case or spaces: give them one name if they are one"
        for names in several[:_SHOWN]
    ]
    if len(several) > _SHOWN:
        told.append(f"and {len(several) - _SHOWN:,} more names that several raters have")
    return told


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


def _sha256(path: str | Path) -> str:
    where = Path(path)
    if where.is_file():
        with where.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    return ""
