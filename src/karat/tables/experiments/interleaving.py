"""An interleaving experiment: which of two rankings users prefer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from karat.tables.experiments.experiment import EXIT_CODES, HealthCheck, Verdict

Credit = Literal["click", "satisfied", "purchase"]
TEAMS = "teams"
"""Attribute of a search that holds ``Interleaved.mark``."""


@dataclass(frozen=True, slots=True)
class QueryPreference:
    """The searches of one query that are decided."""

    query: str  # its normalised form
    wins_a: int
    wins_b: int


@dataclass(frozen=True)
class InterleavingResult:
    """Which ranking users prefer."""

    verdict: Verdict  # pass: B is preferred · fail: A is · cannot_tell · unhealthy
    reason: str
    health: Sequence[HealthCheck]
    credit: Credit  # what counts as a point
    searches: int  # interleaved searches
    users: int
    wins_a: int  # searches with more points for A
    wins_b: int
    ties: int  # searches with points for neither, or as many for both
    share_b: float | None  # (wins of B + half of the ties) / searches
    ci_low: float | None  # 95 % interval, clustered by user
    ci_high: float | None
    cs_low: float | None  # confidence sequence, valid on every day
    cs_high: float | None
    decided_b: float | None  # wins of B / searches that are decided
    decided_low: float | None
    decided_high: float | None
    # Users with more wins of B / users with more of one than of the other
    users_b: float | None
    users_low: float | None  # exact confidence sequence: users are independent of each other
    users_high: float | None
    p: float | None  # of no preference
    queries: Sequence[QueryPreference]  # those that carry it, the largest difference first
    notes: Sequence[str]
    simulated: bool = False

    @property
    def exit_code(self) -> int:
        """0 B is preferred · 1 A is · 3 cannot tell, or unhealthy."""
        return EXIT_CODES[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {**asdict(self), "exit_code": self.exit_code}
