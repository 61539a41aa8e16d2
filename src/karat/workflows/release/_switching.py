"""Moving traffic: one process at a time sets the switch of a release, none after a rollback.

A process that sets the switch first looks for the tombstone of the release, with a lock that a
rollback also acquires, after it wrote the tombstone: whichever is last, the candidate is stopped.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from karat.clients.switch import SwitchError, longest, put
from karat.errors import InputError, KaratError, UsageError
from karat.experiments.assignment import Rollout, stopped
from karat.formats.own.history import locked
from karat.formats.own.release_files import (
    FINISHED,
    FOLDER,
    LOCK,
    TOMBSTONE,
    Tombstone,
    existing_folder,
    read_switch,
    tombstone,
    write_tombstone,
)
from karat.tables.release.pipeline import SwitchConfig

MARGIN = 2.0  # seconds for which another process is waited for beyond what its switch takes


def drive(root: Path, name: str, config: SwitchConfig, want: Rollout) -> Rollout:
    """Set the switch of a release to a rollout, or to the stopped one after a rollback.

    Returns:
        The rollout that is in force.

    Raises:
        SwitchError: it cannot be set, or another process is setting it and does not end.
        InputError: the folder of the release cannot be written.
    """
    existing_folder(root, name)
    with ExitStack() as stack:
        lock = _lock(stack, root, name, config)
        over = tombstone(root, name) is not None
        rollout = stopped(want) if over else want
        put(config, root, rollout, inherit=(lock,))
        # A rollback that did not get the lock in time did not wait.
        if not over and tombstone(root, name) is not None:
            rollout = stopped(want)
            put(config, root, rollout, inherit=(lock,))
        return rollout


def roll_back_now(root: Path, name: str, *, by: str, reason: str, now: int) -> None:
    """Give the candidate to no user, from the files of the release alone.

    Even if a part of it fails, the rest is done. It can be repeated at any time.

    Raises:
        UsageError: unknown release.
        SwitchError: a part of it failed; the text says which, and what will happen.
    """
    if (existing_folder(root, name) / FINISHED).exists():
        raise UsageError(f"{name} is over already", fix="start a new release to go back")
    unrecorded = unlocked = unset = None
    try:
        write_tombstone(root, Tombstone(name, now, by, reason))
    except InputError as error:
        unrecorded = error
    try:
        config, baseline = read_switch(root, name)
        with ExitStack() as stack:
            inherit: tuple[int, ...] = ()
            try:
                inherit = (_lock(stack, root, name, config),)
            except KaratError as error:  # users first: the process that has it may have stopped
                unlocked = error
            put(config, root, stopped(baseline), inherit=inherit)
    except KaratError as error:
        unset = error
    if unset is not None:
        raise _unset(name, unset, unrecorded) from None
    if unrecorded is not None:
        raise SwitchError(
            f"the candidate is stopped, but the rollback is not recorded, so that karat release "
            f"run may undo it: {_what(unrecorded)}",
            fix="end karat release run, fix that, and roll back again",
        )
    if unlocked is not None:
        raise SwitchError(
            "the candidate is stopped and the rollback is recorded, but another process may still "
            f"set the switch: {_what(unlocked)}",
            fix="roll back again, until this message does not appear",
        )


def _lock(stack: ExitStack, root: Path, name: str, config: SwitchConfig) -> int:
    seconds = longest(config) + MARGIN
    try:
        return stack.enter_context(locked(root / FOLDER / name / LOCK, seconds))
    except TimeoutError:
        raise SwitchError(
            f"another process has been setting the switch of {name} for more than {seconds:g} s",
            fix="end that process, a karat release run that hangs or a command that it started",
        ) from None
    except OSError as error:  # some network file systems have no locks
        raise SwitchError(
            f"{FOLDER}/{name}/{LOCK} cannot be locked: {error.strerror}",
            fix="move the workspace to a file system with locks",
        ) from None


def _unset(name: str, error: KaratError, unrecorded: KaratError | None) -> SwitchError:
    if unrecorded is not None:
        recorded = f"The rollback is not recorded either: {_what(unrecorded)}"
    else:
        recorded = (
            f"The rollback is recorded in {FOLDER}/{name}/{TOMBSTONE}, and karat release run "
            "keeps trying"
        )
    return SwitchError(
        f"users may still get the candidate of {name}: {_what(error)}. {recorded}",
        fix=error.fix or "fix that, and roll back again",
    )


def _what(error: KaratError) -> str:
    """An error without its fix."""
    return str(error).partition("\n")[0]
