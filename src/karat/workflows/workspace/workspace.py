"""Workspace: create, upgrade and open a workspace with its store and golden set."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from karat.errors import InputError, UsageError, but
from karat.formats.own.workspace import NAME, find_workspace, read_workspace, write_workspace
from karat.formats.tables.source import Source
from karat.store.sql import comparisons, golden_sets, queries
from karat.store.sql.opening import Store, open_store
from karat.tables import Queries
from karat.tables.golden.golden_sets import GoldenSetRow
from karat.tables.workspace import WorkspaceConfig
from karat.workflows.workspace.artifacts import FOLDER, ArtifactCache

_ENDS = r"(?![\w-]|\.\w)"  # end of a name: /w/x does not match /w/xy, but "see /w/x."


@contextmanager
def display_name(path: Path, called: str, *folders: Path) -> Iterator[None]:
    """Replace the path of a file in errors by the name that the user knows."""
    paths = {str(path), str(path.resolve())}
    folder_paths = {f"{each}" for folder in (path.parent, *folders) if folder.is_absolute()
              for each in (folder, folder.resolve())} - {"/"}  # fmt: skip
    replacement = called.replace("\\", r"\\")  # for re.sub, which reads backslashes
    substitutions = [(_begins(name) + _ENDS, replacement) for name in _longest(paths)]
    for folder in _longest(folder_paths):
        substitutions += [(f"{_begins(folder)}/", ""), (_begins(folder) + _ENDS, "the folder")]

    def renamed(text: str) -> str:
        for place, name in substitutions:
            text = re.sub(place, name, text)
        return text

    try:
        yield
    except InputError as error:
        file = error.file and renamed(error.file)
        # Readers may name a part of the file.
        part = error.file and re.search(_begins(path.name) + _ENDS, error.file)
        raise but(
            error,
            what=renamed(error.what),
            file=called if part else file,
            fix=error.fix and renamed(error.fix),
            command=error.command and renamed(error.command),
        ) from None
    except UsageError as error:
        if renamed(str(error)) == str(error):
            raise  # the original, as it may be of a subclass
        fix = None if error.fix is None else renamed(error.fix)
        raise UsageError(renamed(error.what), nearest=error.nearest, fix=fix) from None


def _longest(names: set[str]) -> list[str]:
    return sorted(names, key=len, reverse=True)


def _begins(name: str) -> str:
    """A pattern for a name that does not match within another: x.csv, but not max.csv."""
    return rf"(?<![\w.-]){re.escape(name)}"


@dataclass(frozen=True)
class Workspace:
    # Settings of `karat.toml`; its notes report edits
    workspace: WorkspaceConfig = field(repr=False)
    store: Store
    golden: GoldenSetRow  # the golden set, as in the store
    artifacts: ArtifactCache = field(repr=False, compare=False)  # what can be computed again

    def golden_sets(self) -> list[GoldenSetRow]:
        """Every golden set of the store, by name."""
        with self.store.read() as connection:
            return sorted(golden_sets.every(connection), key=lambda row: row.name)

    def with_golden_set(self, name: str) -> Workspace:
        """The workspace with another golden set; UsageError for an unknown one."""
        with self.store.read() as connection:
            return replace(self, golden=golden_sets.find(connection, name))


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
    """Create a workspace: ``karat.toml``, a guideline, the store, and a golden set in it."""
    before = {path for path in (root, root / "guideline.md") if path.exists()}
    workspace = write_workspace(root, store=store, name=name, scale=scale, raters=raters)
    try:
        workspace = read_workspace(root / NAME, environment)  # KARAT_STORE overrides its URL
        opened_store = open_store(workspace.store, make=True)
        try:
            with opened_store.read() as connection:
                if name in golden_sets.names(connection):
                    raise UsageError(
                        f"the store already has a golden set {name!r}",
                        fix="--name another; to join it, copy karat.toml and guideline.md from "
                        "the workspace it was made in",
                    )
            _golden_set(opened_store, workspace, now=now)
        finally:
            opened_store.dispose()
    except BaseException:
        # Otherwise the next attempt would find a workspace.
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
    """Upgrade the store of a workspace to this version, and apply its ``karat.toml``."""
    workspace = read_workspace(find_workspace(start), environment)
    store = open_store(workspace.store, make=True)
    try:
        with store.read() as connection:
            exists = workspace.golden in golden_sets.names(connection)
            golden = golden_sets.find(connection, workspace.golden) if exists else None
        return workspace if golden is None else _edited(store, golden, workspace, change=True)
    finally:
        store.dispose()


@contextmanager
def open_workspace(
    start: Path, *, now: int, environment: Mapping[str, str] | None = None
) -> Iterator[Workspace]:
    """The workspace of a folder, or of the nearest one above it.

    Edits of ``karat.toml`` are applied, with a note. A PostgreSQL store, however, is shared by
    several files: its values take precedence, a note says what differs, and ``upgrade_workspace``
    applies the file's. A guideline with a new text becomes a new version, which judgments refer to.
    """
    workspace = read_workspace(find_workspace(start), environment)
    store = open_store(workspace.store)
    try:
        workspace, golden = _golden_set(store, workspace, now=now)
        yield Workspace(workspace, store, golden, _artifacts(workspace.root, store))
    finally:
        store.dispose()


def _artifacts(root: Path, store: Store) -> ArtifactCache:
    def pinned() -> set[str]:  # a comparison keeps the numbers of its time
        with store.read() as connection:
            return comparisons.keys(connection)

    return ArtifactCache(root / FOLDER, pinned)


def _golden_set(
    store: Store, workspace: WorkspaceConfig, *, now: int
) -> tuple[WorkspaceConfig, GoldenSetRow]:
    """The golden set of the workspace, created if absent; notes say what changed."""
    text = None
    if workspace.guideline.is_file():
        with Source(workspace.guideline) as source:
            text = source.whole().decode("utf-8", "replace")
    with store.read() as connection:
        exists = workspace.golden in golden_sets.names(connection)
        golden = golden_sets.find(connection, workspace.golden) if exists else None
        known_texts = golden_sets.guidelines(connection, golden.id).values() if golden else ()
    if golden is None:
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
    workspace = _edited(store, golden, workspace, change=not store.shared)
    if text is not None and text not in known_texts:
        # An earlier text is not new: others who share the store have a newer one.
        with store.begin() as connection:
            version = golden_sets.new_guideline(connection, golden.id, text, now)
        note = f"guideline.md has a new text: judgments refer to version {version} from now on"
        workspace = replace(workspace, notes=(*workspace.notes, note))
    with store.read() as connection:
        return workspace, golden_sets.by_id(connection, golden.id)


def _edited(
    store: Store, golden: GoldenSetRow, workspace: WorkspaceConfig, *, change: bool
) -> WorkspaceConfig:
    """The workspace, with a note if its file differs from the store, updated with ``change``."""
    if golden.scale != workspace.scale:
        raise _other_scale(golden, workspace)
    signs = [
        f"{grade:g}"
        for grade, sign in workspace.grades.items()
        if golden.grades.get(grade, sign) != sign
    ]
    differ = [
        f"{name} {new:g} (was {old:g})" if change else f"{name} {new:g} (the store: {old:g})"
        for name, new, old in (
            ("raters", workspace.raters, golden.raters),
            ("repeats", workspace.repeats, golden.repeats),
        )
        if new != old
    ]
    if signs:
        differ.append(f"the sign of grade {', '.join(signs)}")
    gone = [grade for grade in golden.grades if grade not in workspace.grades]
    differ += [f"grade {grade:g} is removed" for grade in gone]
    differ += [
        f"grade {grade:g} is new" for grade in workspace.grades if grade not in golden.grades
    ]
    if not differ:
        return workspace
    what = ", ".join(differ)
    if change:
        with store.begin() as connection:
            golden_sets.change(
                connection,
                golden.id,
                grades=workspace.grades,
                raters=workspace.raters,
                repeats=workspace.repeats,
            )
        note = f"karat.toml was edited; now in effect: {what}"
    else:
        note = (
            f"karat.toml differs from the store, which takes precedence: {what}; karat init "
            "--upgrade applies the file for everyone"
        )
    return replace(workspace, notes=(*workspace.notes, note))


def _other_scale(golden: GoldenSetRow, workspace: WorkspaceConfig) -> UsageError:
    (low, high), (least, most) = golden.scale, workspace.scale
    return UsageError(
        f"the golden set {golden.name} has the scale {low:g} to {high:g}, and karat.toml has "
        f"{least:g} to {most:g}",
        fix="restore the scale, or name another golden set in karat.toml: the scale of a golden "
        "set with judgments is fixed",
    )


def queries_in(opened: Workspace) -> Queries:
    with opened.store.read() as connection:
        frame = queries.frame(connection, opened.golden.id)
    if not frame.height:
        fix = "choose queries from a log, or import them"
        raise UsageError("the golden set has no queries yet", fix=fix)
    return Queries(frame, opened.golden.name)
