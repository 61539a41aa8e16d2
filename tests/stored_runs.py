"""What a workspace has stored, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from karat.tables import Run
from karat.workflows.workspace.stored_runs import find_stored, read_stored
from karat.workflows.workspace.workspace import Workspace


def stored_run_rows(opened: Workspace, names: Sequence[str] = ()) -> list[Run]:
    """Stored runs by name, the newest of each name; all runs if no names are given."""
    with opened.store.read() as connection:
        rows = find_stored(connection, opened, names)
    return read_stored(opened, rows)
