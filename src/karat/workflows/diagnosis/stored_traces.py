"""Traces of stored runs, each a file next to its run."""

from __future__ import annotations

from pathlib import Path

from karat.errors import InputError
from karat.formats.own.traces import read_trace, write_trace
from karat.store.sql import audit
from karat.tables.diagnosis.traces import Trace
from karat.tables.workspace import RunRow
from karat.workflows.workspace.known_queries import query_frame
from karat.workflows.workspace.stored_runs import file_of, read_stored, trace_of
from karat.workflows.workspace.workspace import Workspace, display_name


def store_trace(
    opened: Workspace, row: RunRow, path: Path, called: str, *, person: str, now: int
) -> list[str]:
    """Store the trace of a run, in place of an earlier one; audited. Returns its stages."""
    texts = dict(query_frame(opened).select("query_id", "text").drop_nulls().iter_rows())
    with display_name(path, called, opened.workspace.root):
        trace = read_trace(path, texts)
        [run] = read_stored(opened, [row])
        if not set(run.answers["query_id"]).intersection(trace.query_ids):
            raise InputError(
                f"it traces none of the queries of {row.name}",
                file=called,
                fix="trace the search that returned the run",
            )
        stages = [stage.name for stage in trace.stages]
    write_trace(trace, trace_of(file_of(opened, row)))
    with opened.store.begin() as connection:
        about = {"run": row.id, "file": called, "stages": stages}
        audit.note(connection, person, "store trace", row.name, now, about)
    return stages


def stored_trace(opened: Workspace, row: RunRow) -> Trace | None:
    path = trace_of(file_of(opened, row))
    if not path.is_file():
        return None
    with display_name(path, f"the trace of {row.name}"):
        return read_trace(path)
