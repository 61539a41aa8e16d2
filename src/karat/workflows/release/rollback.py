"""A rollback before everything else: users first, then the workspace and its ledger."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from karat.clients.switch import SwitchError
from karat.errors import UsageError
from karat.tables.release.pipeline import RolledBack
from karat.workflows.release import pipeline
from karat.workflows.release.switching import roll_back_now
from karat.workflows.workspace.workspace import Workspace


def roll_back_first(
    root: Path,
    name: str,
    opening: Callable[[], AbstractContextManager[Workspace]],
    *,
    by: str,
    reason: str,
    now: int,
) -> RolledBack:
    """Give all users the baseline again, before the workspace is opened and the ledger written.

    Args:
        opening: Opens the workspace; whatever it or its database raises, users are safe.

    Raises:
        SwitchError: the switch is not where it should be; the rollback is recorded nevertheless.
    """
    reason = " ".join(reason.encode("utf-8", "replace").decode().split())
    pipeline.check_person(by)
    if not reason:
        raise UsageError("a rollback needs a reason", fix="--reason TEXT")
    failed: SwitchError | None = None
    try:
        roll_back_now(root, name, by=by, reason=reason, now=now)
    except SwitchError as error:
        failed = error
    try:
        with opening() as opened:
            release = pipeline.Release.of(opened, name, now)
            release.adopt()
            if failed is None:
                release.set_switch()
                return RolledBack(name, release.status(), "")
    except Exception as error:  # noqa: BLE001 - a database may fail in any way; users are safe
        if failed is None:
            return RolledBack(name, None, str(error).splitlines()[0])
    assert failed is not None
    raise failed
