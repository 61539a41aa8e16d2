"""Workspace: made, and opened for a command with its store and golden set."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from karat.errors import Advice, UsageError
from karat.formats.own.workspace import NAME, find_workspace, read_workspace, write_workspace
from karat.formats.tables.source import Source
from karat.store.sql import golden_sets, queries
from karat.store.sql.golden_sets import GoldenSetRow
from karat.store.sql.opening import Store, open_store
from karat.tables import Queries
from karat.tables.workspace import WorkspaceConfig


@dataclass(frozen=True)
class Workspace:
    """A workspace with its store open.

    Attributes:
        workspace: What ``karat.toml`` says, and in its notes what became of an edit.
        store: The store.
        golden: The golden set, as the store has it now.
    """

    workspace: WorkspaceConfig = field(repr=False)
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
) -> WorkspaceConfig:
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
            _golden_set(opened_store, workspace, now=now)
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


def upgrade_workspace(
    start: Path, *, environment: Mapping[str, str] | None = None
) -> WorkspaceConfig:
    """Bring the store of a workspace up to date: with this karat, and with its ``karat.toml``.

    Args:
        start: The folder, or one below it.
        environment: As in ``make_workspace``.

    Returns:
        The workspace; its notes say what of ``karat.toml`` holds from now on.

    Raises:
        UsageError: there is no workspace here, its store is newer than this karat, or the scale is
            another.
        InputError: the store cannot be reached.
    """
    workspace = read_workspace(find_workspace(start), environment)
    store = open_store(workspace.store, make=True)
    try:
        with store.read() as connection:
            there = workspace.golden in golden_sets.names(connection)
            found = golden_sets.find(connection, workspace.golden) if there else None
        return workspace if found is None else _edited(store, found, workspace, change=True)
    finally:
        store.dispose()


@contextmanager
def open_workspace(
    start: Path, *, now: int, environment: Mapping[str, str] | None = None
) -> Iterator[Workspace]:
    """The workspace of a folder, or of the nearest one above it.

    What was changed since in ``karat.toml`` holds from now on, which a note says. But a PostgreSQL
    is shared, and nobody knows whose file is the newer: there the store's values stand, a note
    says what differs, and ``upgrade_workspace`` puts the file's in force. A guideline with a text
    that was never there is a new version, which judgments name.

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
        workspace, golden = _golden_set(store, workspace, now=now)
        yield Workspace(workspace, store, golden)
    finally:
        store.dispose()


def _golden_set(
    store: Store, workspace: WorkspaceConfig, *, now: int
) -> tuple[WorkspaceConfig, GoldenSetRow]:
    """The golden set of the workspace, made if there is none; notes say what changed in it."""
    text = None
    if workspace.guideline.is_file():
        with Source(workspace.guideline) as source:
            text = source.whole().decode("utf-8", "replace")
    with store.read() as connection:
        there = workspace.golden in golden_sets.names(connection)
        found = golden_sets.find(connection, workspace.golden) if there else None
        told = golden_sets.guidelines(connection, found.id).values() if found else ()
    if found is None:
        with store.begin() as connection:
            golden_sets.make(
                connection,
                workspace.golden,
                scale=workspace.scale,
                grades=workspace.grades,
                raters=workspace.raters,
                repeats=workspace.repeats,
                salt=secrets.token_hex(8),
                guideline=text or "",
                now=now,
            )
            return workspace, golden_sets.find(connection, workspace.golden)
    workspace = _edited(store, found, workspace, change=not store.shared)
    if text is not None and text not in told:
        # One from before is no news: others who share the store have a newer text.
        with store.begin() as connection:
            version = golden_sets.new_guideline(connection, found.id, text, now)
        note = f"guideline.md has a new text: judgments name it version {version} from now on"
        workspace = replace(workspace, notes=(*workspace.notes, note))
    with store.read() as connection:
        return workspace, golden_sets.by_id(connection, found.id)


def _edited(
    store: Store, found: GoldenSetRow, workspace: WorkspaceConfig, *, change: bool
) -> WorkspaceConfig:
    """The workspace, with a note if its file says other than the store; which is changed, or not.

    Raises:
        UsageError: the scale differs.
    """
    if found.scale != workspace.scale:
        raise _other_scale(found, workspace)
    signs = [
        f"{each:g}"
        for each, sign in workspace.grades.items()
        if found.grades.get(each, sign) != sign
    ]
    differ = [
        f"{name} {new:g} (was {old:g})" if change else f"{name} {new:g} (the store: {old:g})"
        for name, new, old in (
            ("raters", workspace.raters, found.raters),
            ("repeats", workspace.repeats, found.repeats),
        )
        if new != old
    ]
    if signs:
        differ.append(f"the sign of grade {', '.join(signs)}")
    gone = [each for each in found.grades if each not in workspace.grades]
    differ += [f"grade {each:g} is gone" for each in gone]
    differ += [f"grade {each:g} is new" for each in workspace.grades if each not in found.grades]
    if not differ:
        return workspace
    what = ", ".join(differ)
    if change:
        with store.begin() as connection:
            golden_sets.change(
                connection,
                found.id,
                grades=workspace.grades,
                raters=workspace.raters,
                repeats=workspace.repeats,
            )
        note = f"karat.toml was edited; this holds from now on: {what}"
    else:
        note = (
            f"karat.toml differs from the store, which stands: {what}; karat init --upgrade "
            "puts the file's in force for all"
        )
    return replace(workspace, notes=(*workspace.notes, note))


def _other_scale(found: GoldenSetRow, workspace: WorkspaceConfig) -> UsageError:
    (low, high), (least, most) = found.scale, workspace.scale
    return UsageError(
        f"the golden set {found.name} is graded from {low:g} to {high:g}, and karat.toml says "
        f"{least:g} to {most:g}",
        fix="put the scale back, or name another golden set in karat.toml: the scale of one with "
        "judgments is fixed",
    )


def queries_in(opened: Workspace) -> Queries:
    """The queries of a workspace's golden set.

    Raises:
        UsageError: it has none yet.
    """
    with opened.store.read() as connection:
        frame = queries.frame(connection, opened.golden.id)
    if not frame.height:
        fix = Advice("karat golden choose LOG", page="choose queries from a log, or import them")
        raise UsageError("the golden set has no queries yet", fix=fix)
    return Queries(frame, opened.golden.name)
