"""``karat.assign``: the arm of a unit, by the rollout file that a release writes."""

from __future__ import annotations

import time
from pathlib import Path

from karat.experiments.assignment import Rollout, arm_of
from karat.formats.own.experiments import read_rollout

FRESH = 1.0  # seconds for which a file is not looked at again
_known: dict[str, tuple[float, tuple[int, int, int], Rollout]] = {}


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


def _read(path: str) -> Rollout:
    known = _known.get(path)
    now = time.monotonic()
    if known is not None and now - known[0] < FRESH:
        return known[2]
    try:
        stat = Path(path).stat()
        version = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if known is None or known[1] != version:
            rollout = read_rollout(path)
        else:
            rollout = known[2]
    except Exception:
        if known is None:
            read_rollout(path)  # says what is wrong with it
            raise
        version, rollout = known[1], known[2]
    _known[path] = (now, version, rollout)
    return rollout
