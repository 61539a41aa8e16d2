"""Kept comparisons as pages look at them: found, computed where they are not, told how old."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from karat.errors import UsageError
from karat.store.sql import comparisons as stored
from karat.store.sql import golden_sets
from karat.store.sql.comparisons import ComparisonRow
from karat.tables.comparison import Comparison
from karat.web.framework.errors import NotFound
from karat.web.framework.jobs import COMPUTING, Busy, Place
from karat.web.framework.state import AppState
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.artifacts import ArtifactCorrupted
from karat.workflows.workspace.stored_comparisons import Asked, KeptComparison
from karat.workflows.workspace.workspace import Workspace

RANKS, DEEPEST = 20, 100
"""Ranks side by side, and those at most."""
WAIT_S = 1.0
"""How long a request waits at most for what it asked to be computed."""
_T = TypeVar("_T")


def find(site: AppState, comparison_id: int) -> tuple[Workspace, ComparisonRow]:
    """A comparison, and the workspace with its golden set.

    Raises:
        NotFound: there is none.
    """
    with site.workspace.store.read() as connection:
        row = stored.find(connection, comparison_id)
        if row is None:
            raise NotFound(
                f"there is no comparison {comparison_id}", fix="go to the list of comparisons"
            )
        name = golden_sets.by_id(connection, row.set_id).name
    return site.opened(name), row


def look(
    site: AppState, comparison_id: int
) -> tuple[Workspace, ComparisonRow, KeptComparison | None]:
    """A comparison with its numbers; what has none is computed, and waited for a little.

    Raises:
        NotFound: there is none.
    """
    opened, row = find(site, comparison_id)
    found = stored_comparisons.kept(opened, row)
    if stored_comparisons.to_compute(opened, row, found):
        with suppress(Busy):  # it waits in the store, and the next look tries again
            compute(site, opened, row.id, 0.0 if found else WAIT_S)
        row = find(site, comparison_id)[1]
        found = stored_comparisons.kept(opened, row)
    return opened, row, found


def ask(site: AppState, opened: Workspace, asked: Asked, *, by: str) -> int:
    """Ask for a comparison, and have it computed; as ``kept_comparisons.ask``.

    Raises:
        Busy: too much waits to be computed; then nothing is stored.
    """
    with COMPUTING.place() as place:
        made = stored_comparisons.ask(opened, asked, by=by, now=site.clock())
        compute(site, opened, made, WAIT_S, place)
    return made


def ask_again(site: AppState, comparison_id: int, *, by: str) -> None:
    """Have a comparison computed again; as ``kept_comparisons.ask_again``.

    Raises:
        NotFound: there is none.
        Busy: too much waits to be computed; then its numbers stay as they are.
    """
    opened, row = find(site, comparison_id)
    with COMPUTING.place() as place:
        stored_comparisons.ask_again(opened, row, by=by, now=site.clock())
        compute(site, opened, row.id, WAIT_S, place)


def compute(
    site: AppState, opened: Workspace, comparison_id: int, wait_s: float, place: Place | None = None
) -> None:
    """Have a comparison computed beside the request, and wait for it a little.

    Raises:
        Busy: too much waits to be computed, and no place was reserved.
    """
    key = "comparison", opened.store.url, comparison_id
    # Why it failed stands in the store, and whoever asks for it again has it tried at once.
    COMPUTING.run(
        key,
        lambda: stored_comparisons.compute(opened, comparison_id, site.clock),
        wait_s,
        remembered_s=0.0,
        place=place,
    )


def confirm(sure: str, seen: str, there: object) -> None:
    """Refuse to take away what nobody confirmed, or what was not what they looked at.

    Args:
        sure: What the ticked box says; empty if it was not ticked.
        seen: What the form knows it by, besides its number: another has that where the store was
            put back from a backup since.
        there: What that is of what has the number now.

    Raises:
        UsageError: so it is.
    """
    if not sure:
        raise UsageError("it was not confirmed", fix="tick the box that says what goes")
    if seen != str(there):
        raise UsageError(
            "this is another by now: what you looked at is gone already",
            fix="look at its page again; nothing was removed",
        )


def shown(
    site: AppState,
    comparison_id: int,
    use: Callable[[Workspace, ComparisonRow, KeptComparison], _T],
) -> tuple[ComparisonRow, _T | None]:
    """Make something of a comparison's numbers; computed again if their files turn out damaged.

    Returns:
        The comparison, and None in place of the other while it has no numbers.

    Raises:
        NotFound: there is none.
    """
    for _ in range(2):
        opened, row, found = look(site, comparison_id)
        if found is None:
            break
        try:
            return row, use(opened, row, found)
        except ArtifactCorrupted:
            continue
    return row, None


def axes(comparison: Comparison) -> tuple[list[str], list[str]]:
    """The measures and the candidates of a comparison."""
    rows = comparison.differences
    return (
        list(dict.fromkeys(row.measure for row in rows)),
        list(dict.fromkeys(row.candidate for row in rows)),
    )
