"""A stored run as the baseline of gates."""

from __future__ import annotations

from pathlib import Path

from karat.errors import UsageError
from karat.store.sql import audit, comparisons
from karat.workflows.release.baseline import save_baseline
from karat.workflows.workspace.stored_inputs import judged, read_stored
from karat.workflows.workspace.workspace import Workspace

FILE = "baseline.json"


def save_stored_baseline(opened: Workspace, run: int, *, person: str, now: int) -> Path:
    """Save the values of a stored run as ``baseline.json`` of the workspace; audited."""
    with opened.store.read() as connection:
        found = comparisons.find_run(connection, run)
    if found is None:
        raise UsageError(f"there is no run {run}")
    judgments = judged(opened)
    path = opened.workspace.root / FILE
    save_baseline(path, judgments.qrels, read_stored(opened, found[1]), queries=judgments.queries)
    with opened.store.begin() as connection:
        about = {"sha256": found[1].sha256, "file": FILE}
        audit.note(connection, person, "save baseline", found[1].name, now, about)
    return path
