"""``karat.assign``: the arm of a unit, by the rollout file that a release writes."""

from __future__ import annotations

import time
from pathlib import Path

from karat.errors import InputError
from karat.experiments.assignment import Rollout, arm_of, rollout_of

FRESH = 1.0  # seconds for which a file is not looked at again
_known: dict[str, tuple[float, Rollout]] = {}


def assign(unit: str | int, experiment: str | Path | Rollout) -> str | None:
    """The arm of a unit.

    Args:
        unit: Id of the user (or device); the same unit always gets the same arm.
        experiment: A rollout file, which is read again within a second after it changed; or a
            ``Rollout``.

    Returns:
        The name of the arm, to be logged with each search; None for units that are in none, and
        for all once the rollout is stopped.

    Raises:
        InputError: the file is missing or not a rollout file. While a file that was read before
            cannot be read, what it said last is used.
        UsageError: the unit is empty.
    """
    rollout = experiment if isinstance(experiment, Rollout) else _read(str(experiment))
    return arm_of(unit, rollout)


def read_rollout(path: str | Path) -> Rollout:
    """The rollout in a file.

    Raises:
        InputError: it cannot be read, or is not a rollout file.
    """
    try:
        return rollout_of(Path(path).read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None


def _read(path: str) -> Rollout:
    known = _known.get(path)
    now = time.monotonic()
    if known is not None and now - known[0] < FRESH:
        return known[1]
    try:
        rollout = read_rollout(path)
    except InputError:
        if known is None:
            raise
        rollout = known[1]
    _known[path] = (now, rollout)
    return rollout
