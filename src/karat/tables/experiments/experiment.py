"""An analysed experiment: its health, its effects and its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Role = Literal["decision", "guardrail", "diagnostic"]
Verdict = Literal["pass", "fail", "cannot_tell", "unhealthy"]
HealthState = Literal["pass", "fail", "cannot_tell"]
Held = Literal["better", "worse", "passed", "breached", "cannot_tell", ""]
EXIT_CODES: Mapping[Verdict, int] = {"pass": 0, "fail": 1, "cannot_tell": 3, "unhealthy": 3}


@dataclass(frozen=True, slots=True)
class Guard:
    """The largest harm of a guardrail that does not matter."""

    metric: str
    margin: float  # in the metric's unit; as a share of the control's value if `relative`
    relative: bool = False


MOST_HARM = 1e12
"""Margins of guardrails are below it."""


@dataclass(frozen=True)
class ExperimentPlan:
    """What was decided before the experiment: metrics, size and windows."""

    control: str
    treatment: str
    decide: Sequence[str] = ()  # metrics of which one must be better, none worse
    guards: Sequence[Guard] = ()  # metrics that must not be worse by more than their margin
    diagnose: Sequence[str] = ()  # metrics that explain, and decide nothing
    name: str = ""
    shares: tuple[float, float] = (1.0, 1.0)  # weights of control and treatment
    users: int | None = None  # planned number of users of both arms together
    weeks: int | None = None  # planned length
    start: int | None = None  # first local day of exposure; None: the first with an arm
    end: int | None = None  # last local day; None: that of the log
    window_us: int | None = None  # each user counts for this long from the first exposure
    before_us: int = 14 * 86_400_000_000  # length of the period before it
    # Attribute of searches that says whether the arms' answers differ, logged in both arms: users
    # count from the first such search on
    trigger: str | None = None
    alpha: float = 0.05
    exposures: str | None = None  # a file that says who was in which arm, if the log does not
    # Days on which the shares of the arms changed: users are compared within each step of a ramp
    steps: Sequence[int] = ()
    # Largest sum of a user's numerator that counts, by metric: larger ones count as this
    caps: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One condition without which effects mean nothing."""

    check: str  # sample_ratio | both_arms | weeks | …
    state: HealthState
    detail: str  # what was seen, in words
    p: float | None = None  # of its test; None without one


@dataclass(frozen=True, slots=True)
class Effect:
    """One metric in both arms."""

    metric: str
    role: Role
    unit: str
    direction: str  # which way is better
    slice: Mapping[str, str]  # dimension to value; empty for all
    control: float | None = None
    treatment: float | None = None
    difference: float | None = None  # treatment minus control
    ci_low: float | None = None  # 95 % interval, valid at the planned end only
    ci_high: float | None = None
    cs_low: float | None = (
        None  # confidence sequence, valid on every day; decisions and guardrails only
    )
    cs_high: float | None = None
    relative: float | None = None  # difference divided by the control's value
    relative_low: float | None = None  # by Fieller's theorem; None where it is unbounded
    relative_high: float | None = None
    p: float | None = None  # two-sided, of no difference
    # Holm over decisions, Benjamini and Hochberg over diagnostics and over slices; guardrails have
    # none
    p_corrected: float | None = None
    n_control: int = 0  # users
    n_treatment: int = 0
    held: Held = ""  # better, worse; of a guardrail: passed, breached; "" for diagnostics
    margin: float | None = None  # of a guardrail, in the metric's unit
    shrunk: float | None = None  # a slice's difference, shrunk towards that of all
    theta: float = 0.0  # coefficient of the period before; 0: not adjusted
    variance_kept: float | None = None  # variance with the adjustment over that without
    # With a trigger: the difference on all traffic, of users who were never triggered too
    diluted: float | None = None
    diluted_low: float | None = None
    diluted_high: float | None = None
    reason: str = ""  # why there is no value or no interval


@dataclass(frozen=True, slots=True)
class DayEffect:
    """A decision metric of the users exposed up to a day, or on one day since first exposure."""

    metric: str
    day: str  # 2026-11-20, or the number of days since first exposure
    difference: float
    low: float | None  # 95 % interval
    high: float | None
    users: int
    cs_low: float | None = None  # confidence sequence, of the users exposed up to a day
    cs_high: float | None = None


@dataclass(frozen=True, slots=True)
class QueryEffect:
    """What one query adds to the difference of a decision metric; all queries add up to it.

    It is the query's numerator minus the control's value times its denominator, over the
    denominator of all queries, in the treatment minus in the control.
    """

    metric: str
    query: str  # its normalised form; empty for searches without text
    adds: float  # in the unit of the metric
    control: float | None  # value of the query; None without searches
    treatment: float | None
    n_control: float  # its denominator
    n_treatment: float


@dataclass(frozen=True)
class ExperimentResult:
    """An analysed experiment."""

    verdict: Verdict
    reason: str  # the rule that decided, in a sentence
    health: Sequence[HealthCheck]
    effects: Sequence[Effect]  # of everything; empty if it is unhealthy, unless `despite` says why
    notes: Sequence[str]
    name: str
    control: str
    treatment: str
    period: tuple[str, str] | None  # first and last day of exposure
    window_us: int | None
    alpha: float
    users: int  # of both arms
    users_planned: int | None
    ended: bool  # whether the planned end or size is reached: then intervals decide
    valid_on: str  # the day on which the intervals are valid
    slices: Sequence[Effect] = ()
    over_time: Sequence[DayEffect] = ()  # of the users exposed up to each day
    ages: Sequence[DayEffect] = ()  # by days since first exposure
    queries: Sequence[QueryEffect] = ()  # those that carry it, the largest first
    despite: str = ""  # the reason for which effects of an unhealthy experiment are shown
    by: tuple[str, ...] = ()
    rules: str = ""
    simulated: bool = False
    engine: str = field(default="polars", compare=False)

    @property
    def exit_code(self) -> int:
        """0 ship · 1 do not · 3 cannot tell, or unhealthy."""
        return EXIT_CODES[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {**asdict(self), "exit_code": self.exit_code}
