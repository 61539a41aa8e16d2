"""What an experiment on a log's traffic could find, and which metrics may decide it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Detectable:
    """The smallest effect that an experiment finds with power .8."""

    metric: str
    weeks: int
    share: float  # of all users in each arm; the control has as many as the treatment
    users: int  # of both arms
    value: float  # of the metric in these weeks
    smallest: float  # absolute difference, in the metric's unit
    relative: float | None  # the same as a share of the value; None if that is 0


@dataclass(frozen=True, slots=True)
class Certificate:
    """How a metric behaves where the truth is known: equal arms, and a planted degradation."""

    metric: str
    splits: int  # number of random splits of the users into equal arms
    false_positives: float  # share of them in which the arms differ, at alpha
    p: float  # of this share being alpha by chance; small: its intervals are wrong
    # Share of the splits in which the degradation of one arm is found; None where it cannot be
    # planted
    found: float | None
    wrong_way: float | None  # share in which it is found, as an improvement
    may_decide: bool
    reason: str = ""  # why not


@dataclass(frozen=True)
class Planning:
    """The plan of an experiment on a log's traffic."""

    rows: Sequence[Detectable]
    certificates: Sequence[Certificate]
    weeks: int  # whole weeks in the log
    users_by_week: Sequence[int]  # users in the last 1, 2, … weeks
    degraded: float  # share of searches whose first and fifth result are swapped
    notes: Sequence[str]
    simulated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return asdict(self)
