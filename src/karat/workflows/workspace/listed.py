"""Stored runs and comparisons as programs list them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from karat.errors import UsageError, nearest
from karat.store.sql import comparisons, golden_sets, judgments, runs
from karat.tables.records import shared
from karat.tables.workspace import ComparisonRow, RunRow
from karat.workflows.workspace.run_import import KEPT, REMOVED
from karat.workflows.workspace.stored_comparisons import Listed, described, listed
from karat.workflows.workspace.workspace import Workspace

LIST_RUNS = "GET /api/runs lists them"
_DIGITS = 19  # ids of the store have fewer


@dataclass(frozen=True)
class FoundRun:
    """A stored run, and the workspace with its golden set."""

    workspace: Workspace
    row: RunRow


@dataclass(frozen=True)
class ListedRun:
    id: int
    golden: str  # name of its golden set
    name: str
    also: Sequence[str]  # its other names
    sha256: str  # hash of its content
    queries: int  # number of queries
    rows: int  # number of documents returned
    about: Mapping[str, Any]  # how it was produced, as far as recorded
    added_us: int  # when it was first stored, microseconds UTC
    kept_by: str | None  # who stored it first; None if unknown


@dataclass(frozen=True)
class RunName:
    id: int
    name: str


@dataclass(frozen=True)
class ListedComparison:
    id: int
    golden: str  # name of its golden set
    name: str
    runs: Sequence[RunName]  # its runs, the baseline first
    settings: Mapping[str, Any]  # `measures`, `by`, `margin` and `edition`
    made_by: str  # who requested it
    created_us: int  # when, microseconds UTC
    state: Literal["waiting", "running", "done", "failed"]
    error: str | None  # why it failed; None if it did not
    computed_us: int | None  # when it was computed; None before
    verdict: str | None  # in words; None before it is computed
    older: int  # newer judgments that would count
    # Whether judgments, queries or documents have changed since, and its numbers may differ
    changed: bool


def find_run(opened: Workspace, run: str, golden: str = "") -> FoundRun:
    """A run by its number, in any golden set, else by its name in one."""
    with opened.store.read() as connection:
        if run.isascii() and run.isdigit() and len(run) < _DIGITS:
            numbered = comparisons.find_run(connection, int(run))
            if numbered is not None:
                its_set = golden_sets.by_id(connection, numbered[0])
                return FoundRun(replace(opened, golden=its_set), numbered[1])
        if golden:
            opened = replace(opened, golden=golden_sets.find(connection, golden))
        by_name = runs.by_name(runs.runs(connection, opened.golden.id))
    if run not in by_name:
        what = f"there is no run {run!r} in the golden set {opened.golden.name!r}"
        raise UsageError(what, nearest=nearest(run, by_name, 1), fix=LIST_RUNS)
    return FoundRun(opened, by_name[run])


def list_runs(opened: Workspace) -> tuple[list[RunRow], Callable[[RunRow], ListedRun]]:
    """The runs of a golden set, newest first, and what describes one of them."""
    with opened.store.read() as connection:
        rows = runs.runs(connection, opened.golden.id)
        stored_by = comparisons.stored_by(connection, KEPT, REMOVED)
    by_name = runs.by_name(rows)

    def listed(row: RunRow) -> ListedRun:
        return ListedRun(
            golden=opened.golden.name,
            also=runs.others(row, by_name),
            kept_by=stored_by.get(row.sha256),
            **shared(row, ListedRun),
        )

    return rows[::-1], listed


def last_judged(opened: Workspace) -> int | None:
    """Time of the newest judgment, microseconds UTC; None without judgments."""
    with opened.store.read() as connection:
        return judgments.last_judged(connection, opened.golden.id)


def list_comparisons(
    opened: Workspace,
) -> tuple[list[Listed], Callable[[Listed], ListedComparison]]:
    """The comparisons of a golden set, newest first, and what describes one of them."""
    return listed(opened), partial(_listed, opened)


def listed_comparison(opened: Workspace, row: ComparisonRow) -> ListedComparison:
    return _listed(opened, *described(opened, [row]))


def _listed(opened: Workspace, found: Listed) -> ListedComparison:
    its_runs = [RunName(run.id, run.name) for run in found.runs]
    return ListedComparison(
        golden=opened.golden.name,
        verdict=found.verdict,
        older=found.older.judgments,
        changed=found.older.changed,
        **shared(found.row, ListedComparison) | {"runs": its_runs},
    )
