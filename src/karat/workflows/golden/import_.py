"""Import of files of karat and of other tools into a golden set."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from karat.errors import InputError, UsageError
from karat.formats.exchange.import_ import ImportedExchange
from karat.store.sql import (
    audit,
    documents,
    golden_sets,
    imports,
    judgment_sources,
    judgments,
    queries,
)
from karat.store.sql.judgment_sources import given_in_karat
from karat.store.sql.judgments import Recorded
from karat.store.sql.slots import hold_raters
from karat.tables import Run
from karat.tables.golden.golden_sets import Exchange
from karat.tables.judgments import UNNAMED_RATER
from karat.workflows.golden.import_files import check_judgments, read_file
from karat.workflows.golden.judgment_sources import other_sources, sourced
from karat.workflows.golden.sampling import put_queries
from karat.workflows.workspace.known_queries import (
    changes,
    id_notes,
    over,
    same_queries,
    shared_texts,
)
from karat.workflows.workspace.stored_runs import keep_in
from karat.workflows.workspace.workspace import Workspace, display_name

MOST_ATTRIBUTES = 100
"""Maximum number of attributes of a golden set's queries, and of its documents."""
_OVERLAP = 20  # fewest regraded pairs for a warning that most grades differ
_SHOWN = 3  # pairs of similar rater names in a warning


@dataclass(frozen=True)
class ImportResult:
    exchange: Exchange
    queries: int
    documents: int
    judgments: int
    corrected: int
    changed: int
    runs: list[str]
    raters: Mapping[str, int] = field(default_factory=dict)


def import_from(
    opened: Workspace,
    path: str | Path,
    *,
    now: int,
    format: str | None = None,  # noqa: A002 - as it is typed
    called: str | None = None,
    **more: Any,
) -> ImportResult:
    """Import a file of karat's formats or of another tool, as ``import_exchange``.

    A query with the text of an existing one is that query, whatever id the file gives it; the id
    becomes an alias, which later files without texts may use. Fields of a query or document that
    the file lacks stay as they are.
    """
    content = read_file(path, format)
    name = called or str(path)
    return import_exchange(opened, content, file=name, sha256=_sha256(path), now=now, **more)


def import_exchange(
    opened: Workspace,
    data: Exchange,
    *,
    file: str,
    sha256: str,  # hash of its bytes
    now: int,  # microseconds UTC
    rater: str | None = None,
    sources: Mapping[str, str] | None = None,
    may_correct: Collection[str] | None = None,
) -> ImportResult:
    """Import the content of a file: all of it, or nothing. The import is recorded in the store.

    Args:
        may_correct: Raters whose judgments made here, not imported, the file may correct; all if
            None, as at the command line.
    """
    golden, rater = opened.golden, _named(rater)
    check_judgments(data, golden.scale, file)
    made = isinstance(data, ImportedExchange) and data.made_ids
    with opened.store.begin() as connection:
        golden_sets.hold(connection, golden.id)  # lock before reading its queries
        before = queries.frame(connection, golden.id, dropped=True)
        existing = before.drop("dropped_us")
        _refuse_wide(existing, data.queries, queries.SCHEMA, "queries", file)
        query_rows, aliases = _asked(data), imports.aliases(connection, golden.id)
        ids = same_queries(existing, query_rows, aliases)
        data.assumed.extend(shared_texts(query_rows, ids))
        data.assumed.extend(id_notes(existing, query_rows, ids, aliases, made=made))
        query_rows, judged = (_renamed(frame, ids) for frame in (query_rows, data.judgments))
        put = put_queries(connection, golden.id, over(existing, query_rows, "query_id"), now)
        if put.changed:
            after = queries.frame(connection, golden.id, dropped=True)
            data.assumed.extend(changes(before, after, "query_id", "query"))
        added, changed = 0, put.changed
        if data.documents is not None:
            document_rows = documents.frame(connection, golden.id).drop("sha256")
            _refuse_wide(document_rows, data.documents, documents.SCHEMA, "documents", file)
            merged = over(document_rows, data.documents, "doc_id")
            placed = documents.put(connection, golden.id, merged, now)
            if placed.changed:
                after = documents.frame(connection, golden.id).drop("sha256")
                data.assumed.extend(changes(document_rows, after, "doc_id", "document"))
            added, changed = placed.added, changed + placed.changed
        runs = [Run.from_frame(_renamed(frame, ids), name) for name, frame in data.runs.items()]
        rankings = keep_in(connection, opened, runs, now=now)
        data.assumed.extend(rankings.notes)
        facts = None
        if judged.height:
            by_rater = judgment_sources.sources(connection, golden.id)
            facts = sourced(
                judged, rater, by_rater, data.sources | dict(sources or {}), file
            ).with_columns(time_us=now)
            # Lock, so that no rater judges between this read and the write.
            hold_raters(connection, golden.id, facts["rater"].unique())
            old = judgments.current(connection, golden.id).frame
            if may_correct is not None:
                here = given_in_karat(connection, golden.id)
                _refuse_forged(old.join(here.to_frame(), on="judgment"), facts, may_correct, file)
            data.assumed[:0] = _contradicted(old, facts)
            data.assumed.extend(_alike(old, facts))
            data.assumed.extend(other_sources(by_rater, facts))
        import_id = imports.put(
            connection,
            golden.id,
            file=file,
            format=data.format,
            sha256=sha256,
            report={
                "kept": data.kept,
                "assumed": data.assumed,
                "lost": data.lost,
                "ids": {} if made else {old: new for old, new in ids.items() if old != new},
            },
            now=now,
        )
        recorded = Recorded(0, 0)
        if facts is not None:
            recorded = judgments.record(connection, golden.id, facts, import_id)
    raters = {} if facts is None else _counted(facts)
    return ImportResult(
        data, put.added, added, recorded.added, recorded.corrected, changed, rankings.names, raters
    )


def _named(rater: str | None) -> str | None:
    if rater is None:
        return None
    if not rater.strip():
        fix = "give a name, or leave it out"
        raise UsageError("the name of the rater is empty", fix=fix)
    if rater.strip().casefold() == UNNAMED_RATER:
        raise UsageError(
            f"the name {rater.strip()!r} is reserved for judgments without a rater",
            fix="give another name, or leave it out",
        )
    return rater.strip()


def _refuse_wide(
    there: pl.DataFrame,
    given: pl.DataFrame | None,
    schema: Mapping[str, pl.DataType],
    kind: str,
    file: str,
) -> None:
    """Refuse more attributes than a golden set holds: each becomes a column of pages and tables."""
    if given is None:
        return
    old = set(there.columns) - set(schema)
    both = old | (set(given.columns) - set(schema))
    if len(both) > max(MOST_ATTRIBUTES, len(old)):
        existing = f", {len(old):,} of which exist already" if old else ""
        raise InputError(
            f"the {kind} would have {len(both):,} attributes{existing}; the maximum is "
            f"{MOST_ATTRIBUTES}",
            file=file,
            fix="leave out the columns or fields that are not used to filter or slice",
        )


def _refuse_forged(
    here: pl.DataFrame, facts: pl.DataFrame, may_correct: Collection[str], file: str
) -> None:
    """Refuse facts that would supersede judgments that other raters made here."""
    key = ["query_id", "doc_id", "rater", "source"]
    old = here.filter(pl.col("kind") == "rating").select(*key, was="grade", because="reason")
    both = facts.join(old, on=key, maintain_order="left")
    differs = pl.col("grade").ne_missing(pl.col("was"))
    if "reason" in facts.columns:
        has_reason = pl.col("reason").is_not_null()
        differs |= has_reason & pl.col("reason").ne_missing(pl.col("because"))
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
        fix="rename the rater in the file, or leave these rows out",
    )


def _counted(facts: pl.DataFrame) -> dict[str, int]:
    named = facts.filter(pl.col("source") == "human").group_by("rater").len()
    return dict(named.sort("len", "rater", descending=[True, False]).rows())


def _contradicted(there: pl.DataFrame, facts: pl.DataFrame) -> list[str]:
    """A warning if most grades of a file differ from what the same raters gave before."""
    key = ["query_id", "doc_id", "rater", "source"]
    old = there.filter(pl.col("kind") == "rating").select(*key, was="grade")
    both = facts.join(old, on=key)
    other = both.filter(pl.col("grade").ne_missing(pl.col("was"))).height
    if both.height < _OVERLAP or 2 * other <= both.height:
        return []
    warning = (
        f"{other:,} of {both.height:,} existing grades differ in this file, and are corrected: "
        "check that its scale and ids are those of the golden set"
    )
    return [warning]


def _alike(there: pl.DataFrame, facts: pl.DataFrame) -> list[str]:
    """Warnings on raters whose names differ only in case or spaces."""
    new = facts["rater"].unique().sort().to_list()
    groups: dict[str, list[str]] = {}
    for name in sorted({*new, *there.filter(pl.col("source") == "human")["rater"]}):
        groups.setdefault("".join(name.casefold().split()), []).append(name)
    several = [
        names for names in groups.values() if len(names) > 1 and not set(new).isdisjoint(names)
    ]
    warnings = [
        f"{' and '.join(map(repr, names))} differ only in case or spaces, and count as different "
        "raters: use one name if they are one person"
        for names in several[:_SHOWN]
    ]
    if len(several) > _SHOWN:
        warnings.append(f"and {len(several) - _SHOWN:,} more groups of similar names")
    return warnings


def _renamed(frame: pl.DataFrame | None, ids: Mapping[str, str]) -> pl.DataFrame:
    """The frame with query ids replaced; empty for None."""
    if frame is None:
        return pl.DataFrame(schema={"query_id": pl.String})
    return frame.with_columns(pl.col("query_id").replace(dict(ids)))


def _asked(content: Exchange) -> pl.DataFrame:
    """Every query of the file, including those that only judgments or runs name."""
    frames = [] if content.queries is None else [content.queries]
    named = [content.judgments, *content.runs.values()]
    ids = [frame.select("query_id") for frame in named if frame is not None]
    seen = frames[0]["query_id"] if frames else pl.Series("query_id", [], pl.String)
    for frame in ids:
        new = frame.unique(maintain_order=True).filter(~pl.col("query_id").is_in(seen.implode()))
        frames.append(new)
        seen = pl.concat([seen, new["query_id"]])
    if not frames:
        return pl.DataFrame(schema={"query_id": pl.String})
    return pl.concat(frames, how="diagonal_relaxed")


def _sha256(path: str | Path) -> str:
    where = Path(path)
    if where.is_file():
        with where.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    return ""


_LONGEST = 120  # bytes of a file name
_NUMBERS = ("queries", "documents", "judgments", "corrected")  # in the audit log
_NAMED = 50  # raters of a file listed in the audit log


def record_judgments(opened: Workspace, facts: pl.DataFrame) -> Recorded:
    """Record judgments that come from no file; as ``store.sql.judgments.record`` takes them."""
    with opened.store.begin() as connection:
        return judgments.record(connection, opened.golden.id, facts, None)


def import_upload(
    opened: Workspace,
    path: Path,  # the temporary file; messages name `called` instead
    called: str,  # its name on the uploader's machine
    *,
    person: str,
    now: int,
    format: str | None = None,  # noqa: A002 - as the command line has it
    rater: str | None = None,
    sources: Mapping[str, str] | None = None,
) -> ImportResult:
    """Import an uploaded file, as ``import_.import_from``, recorded in the audit log.

    Of judgments made here it may correct the uploader's own only.
    """
    with display_name(path, called):
        imported = import_from(
            opened,
            path,
            now=now,
            format=format or None,
            called=called,
            rater=rater or None,
            sources=sources,
            may_correct={person},
        )
    about = {
        "file": called,
        "format": imported.exchange.format,
        **{name: getattr(imported, name) for name in _NUMBERS},
    }
    if sources:
        about["source"] = ", ".join(" ".join(filter(None, each)) for each in sources.items())
    if imported.raters:
        about["raters"] = _raters_listed(imported.raters)
    with opened.store.begin() as connection:
        audit.note(connection, person, "import file", opened.golden.name, now, about)
    return imported


def file_name(called: str | None) -> str:
    """An uploaded file's name made safe to store under; its extensions stay."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", called or ""))[-1]
    safe = re.sub(r"[^\w.-]+", "_", last).lstrip(".-_")
    while len(safe.encode()) > _LONGEST:
        safe = safe[1:]
    return safe.lstrip(".-_") or "upload"


def _raters_listed(raters: Mapping[str, int]) -> str:
    """The raters with most judgments and their counts, and how many more there are."""
    first = ", ".join(f"{name} {count:,}" for name, count in list(raters.items())[:_NAMED])
    rest = len(raters) - _NAMED
    return f"{first}, and {rest:,} more" if rest > 0 else first
