"""Stored comparisons for pages and the API: found, and computed in the background."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from karat.errors import UsageError
from karat.tables.comparison import Comparison
from karat.tables.workspace import ComparisonRow
from karat.web.framework.errors import NotFound
from karat.web.framework.jobs import COMPUTING, Busy, Place
from karat.web.framework.progress import Progress, queue_key, run
from karat.web.framework.state import AppState
from karat.workflows.offline.stages import Cancelled
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.artifacts import ArtifactCorrupted
from karat.workflows.workspace.stored_comparisons import Asked, StoredComparison
from karat.workflows.workspace.workspace import Workspace

RANKS, DEEPEST = 20, 100
"""Ranks shown side by side: by default, and at most."""
WAIT_S = 1.0
"""Longest wait of a request for its computation."""
_T = TypeVar("_T")


def find(site: AppState, comparison_id: int) -> tuple[Workspace, ComparisonRow]:
    found = stored_comparisons.find(site.workspace, comparison_id)
    if found is None:
        raise NotFound(
            f"there is no comparison {comparison_id}", fix="choose one from the list of comparisons"
        )
    return found


def look(
    site: AppState, comparison_id: int
) -> tuple[Workspace, ComparisonRow, StoredComparison | None]:
    """A comparison with its numbers; missing numbers are computed, with a short wait."""
    workspace, row = find(site, comparison_id)
    result = stored_comparisons.kept(workspace, row)
    if stored_comparisons.to_compute(row, result):
        with suppress(Busy):  # it stays requested in the store; the next request tries again
            compute(site, workspace, row, 0.0 if result else WAIT_S)
        row = find(site, comparison_id)[1]
        result = stored_comparisons.kept(workspace, row)
    return workspace, row, result


def ask(site: AppState, workspace: Workspace, inputs: Asked, *, by: str) -> int:
    with COMPUTING.place() as place:
        comparison_id = stored_comparisons.ask(workspace, inputs, by=by, now=site.clock())
        compute(site, *find(site, comparison_id), WAIT_S, place)
    return comparison_id


def request_again(site: AppState, comparison_id: int, *, by: str) -> None:
    workspace, row = find(site, comparison_id)
    with COMPUTING.place() as place:
        stored_comparisons.request_again(workspace, row, by=by, now=site.clock())
        compute(site, workspace, row, WAIT_S, place)


def compute(
    site: AppState,
    workspace: Workspace,
    row: ComparisonRow,
    wait_s: float,
    place: Place | None = None,
) -> None:
    """Compute a comparison in the background, and wait briefly for it."""

    def work(progress: Progress) -> None:
        stored_comparisons.compute(workspace, row.id, site.clock, progress)

    # The store has the reason of a failure; a new request retries at once.
    with suppress(Cancelled):
        run(site, job_of(row), row.name, work, wait_s, remembered_s=0.0, place=place)


def state_of(site: AppState, row: ComparisonRow) -> str:
    """The state of a comparison; ``running`` while this process computes it."""
    if row.state == "waiting" and COMPUTING.has(queue_key(site, job_of(row))):
        return "running"
    return row.state


def job_of(row: ComparisonRow) -> str:
    """The job that computes a comparison."""
    return f"comparison-{row.id}"


def confirm(sure: str, seen: str, there: object) -> None:
    """Refuse to remove something unconfirmed, or something other than what the page showed.

    ``seen`` is from the form: another object may have the id after a restore from a backup.
    """
    if not sure:
        raise UsageError("the removal was not confirmed", fix="tick the box to confirm")
    if seen != str(there):
        raise UsageError(
            "nothing was removed: the page you saw is out of date",
            fix="reload the page and try again",
        )


def shown(
    site: AppState,
    comparison_id: int,
    use: Callable[[Workspace, ComparisonRow, StoredComparison], _T],
) -> tuple[Workspace, ComparisonRow, _T | None]:
    """A comparison, and ``use`` of its numbers, if any; damaged ones are recomputed once."""
    for _ in range(2):
        workspace, row, result = look(site, comparison_id)
        with suppress(ArtifactCorrupted):
            return workspace, row, None if result is None else use(workspace, row, result)
    return workspace, row, None


def known(asked: str, names: Sequence[str], whole: str) -> str:
    """The name that an address asks for, by default the first; ``whole`` is what has them."""
    if asked and asked not in names:
        raise UsageError(f"the {whole} {asked!r}", nearest=names)
    return asked or names[0]


def axes(comparison: Comparison) -> tuple[list[str], list[str]]:
    rows = comparison.differences
    return (
        list(dict.fromkeys(row.measure for row in rows)),
        list(dict.fromkeys(row.candidate for row in rows)),
    )
