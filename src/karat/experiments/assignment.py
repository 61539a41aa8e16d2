"""Assignment: which arm a unit is in, by a hash that any language can compute.

The place of a unit is the first 53 bits of SHA-256 of ``salt.unit`` (UTF-8), as a big-endian whole
number, divided by 2^53: in [0, 1). The treatment has the places below its share, the control
those from one minus its share on: a growing share moves no unit into the other arm.

A service asks for arms in its requests: this module imports nothing that is heavy.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from typing import Any

from karat.errors import InputError, UsageError

_FULL = 1 + 1e-9  # shares may add up to a little more than 1 by rounding


@dataclass(frozen=True, slots=True)
class Rollout:
    """Shares of traffic of one experiment or release: what a service must know."""

    experiment: str
    salt: str  # another salt is another, independent assignment
    control: str = "control"  # names of the arms, as they are to be logged
    treatment: str = "treatment"
    control_share: float = 0.0  # of all units, from 0 to 1
    treatment_share: float = 0.0
    stopped: bool = False  # the kill switch: no unit gets the treatment, whatever the shares

    def __post_init__(self) -> None:
        """Refuse shares that are not possible."""
        shares = (self.control_share, self.treatment_share)
        if not all(0 <= share <= 1 for share in shares) or sum(shares) > _FULL:
            raise UsageError(
                f"control_share {shares[0]:g} and treatment_share {shares[1]:g} of "
                f"{self.experiment} are not shares of all units",
                fix="give numbers from 0 to 1 that add up to at most 1",
            )
        if self.control == self.treatment:
            raise UsageError(f"both arms of {self.experiment} are called {self.control}")


def stopped(rollout: Rollout) -> Rollout:
    """The rollout that gives the treatment to no unit, whatever its shares were."""
    return replace(rollout, control_share=0.0, treatment_share=0.0, stopped=True)


def place(unit: str, salt: str) -> float:
    """Where a unit is, from 0 to below 1."""
    digest = sha256(f"{salt}.{unit}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 9007199254740992  # 53 bits: never 1.0


def arm_of(unit: str | int, rollout: Rollout) -> str | None:
    """The arm of a unit; None if it is in none, and gets what everybody gets."""
    if rollout.stopped:
        return None
    if isinstance(unit, bool) or not isinstance(unit, str | int) or unit == "":
        raise UsageError(
            f"{unit!r} is not the id of a unit", fix="give the user's id, as text or a number"
        )
    at = place(str(unit), rollout.salt)
    if at < rollout.treatment_share:
        return rollout.treatment
    return rollout.control if at >= 1 - rollout.control_share else None


def rollout_of(text: str | bytes, name: str) -> Rollout:
    """The rollout of a file's content; unknown keys are ignored.

    Args:
        text: JSON.
        name: Name of the file, for errors.

    Raises:
        InputError: it is not a rollout.
    """
    try:
        content: Any = json.loads(text)
        known = {field.name: field.type for field in fields(Rollout)}
        values = {key: content[key] for key in content if key in known}
        for key, value in values.items():
            kind = {"str": str, "bool": bool}.get(str(known[key]), (int, float))
            if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
                raise ValueError(f"{key} is {value!r}")
        return Rollout(**values)
    except (ValueError, TypeError, UsageError) as error:
        raise InputError(
            f"not a rollout file: {error}",
            file=name,
            fix='{"experiment": "…", "salt": "…", "control_share": 0.05, "treatment_share": 0.05}',
        ) from None


def rollout_text(rollout: Rollout) -> str:
    """The content of a rollout file."""
    return json.dumps(asdict(rollout), indent=2, ensure_ascii=False) + "\n"
