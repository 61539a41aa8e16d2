"""Workspace: made, and opened for a command with its store and golden set."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from karat.errors import UsageError
from karat.formats.source import Source
from karat.formats.workspace import NAME, find_workspace, read_workspace, write_workspace
from karat.store import golden_sets
from karat.store.golden_sets import GoldenSetRow
from karat.store.opening import Store, open_store
from karat.tables.workspace import Workspace


@dataclass(frozen=True)
class Opened:
    """A workspace with its store open.

    Attributes:
        workspace: What ``karat.toml`` says.
        store: The store.
        golden: The golden set, as the store has it now.
    """

    workspace: Workspace
    store: Store
    golden: GoldenSetRow


def make_workspace(
    root: Path,
    *,
    now: int,
    store: str = "sqlite:///karat.db",
    name: str = "golden",
    scale: str = "0-3",
    raters: int = 2,
    environment: Mapping[str, str] | None = None,
) -> Workspace:
    """Make a workspace: ``karat.toml``, a guideline, the store, and a golden set in it.

    Args:
        root: Its folder; made if absent.
        now: Microseconds UTC.
        store: URL of the database.
        name: Of the golden set.
        scale: Lowest and highest grade, as in ``0-3``.
        raters: Raters for each pair.
        environment: Where ``KARAT_STORE`` is looked up; that of the process if None.

    Raises:
        UsageError: there is a workspace, the store has a golden set of this name, or the store or
            the scale is none.
        InputError: the store cannot be reached.
    """
    before = {path for path in (root, root / "guideline.md") if path.exists()}
    workspace = write_workspace(root, store=store, name=name, scale=scale, raters=raters)
    try:
        workspace = read_workspace(
            root / NAME, environment
        )  # the environment stands above the URL in it
        opened_store = open_store(workspace.store, make=True)
        try:
            with opened_store.read() as connection:
                if name in golden_sets.names(connection):
                    raise UsageError(
                        f"the store has a golden set {name!r} already",
                        fix="--name another; to join it, copy karat.toml and guideline.md from "
                        "the workspace it was made in",
                    )
            _golden_set(opened_store, workspace, now)
        finally:
            opened_store.dispose()
    except BaseException:
        # Else the next try would be told that there is a workspace already.
        (workspace.root / NAME).unlink(missing_ok=True)
        if workspace.guideline not in {path.resolve() for path in before}:
            workspace.guideline.unlink(missing_ok=True)
        if root not in before:
            with suppress(OSError):  # the database may be there
                root.rmdir()
        raise
    return workspace


def upgrade_workspace(start: Path) -> Workspace:
    """Bring the store of a workspace up to date with this karat.

    Raises:
        UsageError: there is no workspace here, or its store is newer than this karat.
        InputError: the store cannot be reached.
    """
    workspace = read_workspace(find_workspace(start))
    open_store(workspace.store, make=True).dispose()
    return workspace


@contextmanager
def open_workspace(
    start: Path, *, now: int, environment: Mapping[str, str] | None = None
) -> Iterator[Opened]:
    """The workspace of a folder, or of the nearest one above it.

    What was changed in ``karat.toml`` and in the guideline since holds from now on: a guideline
    with another text is another version, which judgments name.

    Args:
        start: The folder.
        now: Microseconds UTC.
        environment: As in ``make_workspace``.

    Raises:
        UsageError: there is no workspace or store, or it is of another version of karat.
        InputError: ``karat.toml`` is wrong, or the store cannot be reached.
    """
    workspace = read_workspace(find_workspace(start), environment)
    store = open_store(workspace.store)
    try:
        yield Opened(workspace, store, _golden_set(store, workspace, now))
    finally:
        store.dispose()


def _golden_set(store: Store, workspace: Workspace, now: int) -> GoldenSetRow:
    """The golden set of the workspace as its files have it; made if there is none."""
    text = None
    if workspace.guideline.is_file():
        with Source(workspace.guideline) as source:
            text = source.whole().decode("utf-8", "replace")
    with store.read() as connection:
        there = workspace.golden in golden_sets.names(connection)
        found = golden_sets.find(connection, workspace.golden) if there else None
        told = golden_sets.guidelines(connection, found.id).values() if found else ()
    if found is not None and (text is None or text in told):
        # No file, or one from before: others who share the store have a newer text.
        text = found.guideline_text
    declared = (dict(workspace.grades), workspace.raters, workspace.repeats, text)
    if found is not None:
        if found.scale != workspace.scale:
            raise _other_scale(found, workspace)
        if declared == (dict(found.grades), found.raters, found.repeats, found.guideline_text):
            return found
    grades, raters, repeats, text = declared
    with store.begin() as connection:
        if found is None:
            golden_sets.make(
                connection,
                workspace.golden,
                scale=workspace.scale,
                grades=grades,
                raters=raters,
                repeats=repeats,
                salt=secrets.token_hex(8),
                guideline=text or "",
                now=now,
            )
        else:
            golden_sets.change(connection, found.id, grades=grades, raters=raters, repeats=repeats)
            if text is not None and text != found.guideline_text:
                golden_sets.new_guideline(connection, found.id, text, now)
        return golden_sets.find(connection, workspace.golden)


def _other_scale(found: GoldenSetRow, workspace: Workspace) -> UsageError:
    (low, high), (least, most) = found.scale, workspace.scale
    return UsageError(
        f"the golden set {found.name} is graded from {low:g} to {high:g}, and karat.toml says "
        f"{least:g} to {most:g}",
        fix="name another golden set in karat.toml: a scale cannot change under its judgments",
    )
