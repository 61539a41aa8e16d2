"""Documents to judge that the store lacks, from the engines that returned them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from karat.engines.search.engine import EngineError
from karat.errors import KaratError
from karat.formats.own.engines import read_engines
from karat.reports.phrases.numbers import counted
from karat.store.sql import documents
from karat.tables import Run
from karat.tables.engines import EngineConfig
from karat.workflows.engines.live import LiveEngine, open_live
from karat.workflows.workspace.workspace import Workspace

_BATCH = 200  # documents of one request
_NAMED = 3  # unknown documents that a note names


@dataclass(frozen=True)
class Fetched:
    """Documents taken over from engines."""

    asked: int
    found: int
    unknown: list[str]
    notes: list[str]


def declared_engines(opened: Workspace, runs: Sequence[Run] | None = None) -> list[EngineConfig]:
    """The declared engines; with ``runs`` those that answered them."""
    declared = read_engines(opened.workspace.root)
    if runs is None:
        return list(declared.values())
    names = dict.fromkeys(run.about.get("engine", "") for run in runs)
    return [declared[name] for name in names if name in declared]


def fetch_documents(opened: Workspace, engines: Sequence[EngineConfig], *, now: int) -> Fetched:
    """Take over the documents of the queue that the workspace lacks, from the first that has them.

    An engine that cannot be asked is named in a note.
    """
    golden = opened.golden
    with opened.store.read() as connection:
        left = documents.lacking(connection, golden.id)
    asked = len(left)
    rows: list[dict[str, str | None]] = []
    notes: list[str] = []
    for config in engines:
        if not left:
            break
        try:
            with open_live(config) as engine:
                found = list(_documents(engine, left))
        except KaratError as error:
            notes.append(f"{config.name} gave no documents: {getattr(error, 'what', error)}")
            continue
        rows += found
        taken = {row["doc_id"] for row in found}
        left = [doc_id for doc_id in left if doc_id not in taken]
    if rows:
        frame = pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String))
        with opened.store.begin() as connection:
            documents.put(connection, golden.id, frame, now)
    return Fetched(asked, len(rows), left, notes)


def fetched_notes(fetched: Fetched) -> Iterator[str]:
    """What was taken over, and what is unknown, as notes."""
    yield from fetched.notes
    if fetched.found:
        yield f"{counted(fetched.found, 'document', 'documents')} to judge taken over"
    if fetched.unknown:
        named = ", ".join(fetched.unknown[:_NAMED])
        more = ", …" if len(fetched.unknown) > _NAMED else ""
        yield (
            f"raters see only the id of {counted(len(fetched.unknown), 'document', 'documents')} "
            f"({named}{more}): import them with karat golden import"
        )


def _documents(engine: LiveEngine, doc_ids: Sequence[str]) -> Iterator[dict[str, str | None]]:
    for start in range(0, len(doc_ids), _BATCH):
        found = engine.documents(doc_ids[start : start + _BATCH])
        if found is None:
            name, kind = engine.config.name, engine.config.kind
            setting = "index" if kind in {"postgres", "sqlite"} else "document"
            raise EngineError(
                f"[engine.{name}] has no {setting}, so documents cannot be found by id"
            )
        wanted = set(doc_ids)
        yield from (row for row in found if row["doc_id"] in wanted)
