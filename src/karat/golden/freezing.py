"""Freezing: whether raters agree well enough for an edition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from karat.tables.workspace import KappaWeights


class Headline(Protocol):
    """The one figure of an agreement: what ``karat.tables.agreement.Figure`` says of it.

    Attributes:
        value: Kappa; None where it is undefined.
        ci_low: Lower end of its 95 % interval; None without one.
        weights: How far apart two grades count as; None if it is no kappa.
        reason: Why there is no value, or no interval.
    """

    @property
    def value(self) -> float | None: ...
    @property
    def ci_low(self) -> float | None: ...
    @property
    def weights(self) -> str | None: ...
    @property
    def reason(self) -> str: ...


class Agreed(Protocol):
    """An agreement: what has a headline."""

    @property
    def headline(self) -> Headline: ...


@dataclass(frozen=True, slots=True)
class AgreementPolicy:
    """What agreement must be before an edition is frozen.

    Attributes:
        weights: How far apart two grades count as.
        at_least: What kappa must surely be above.
        refuse: Whether an edition is refused otherwise; else it is frozen with a warning.
    """

    weights: KappaWeights = "quadratic"
    at_least: float = 0.7
    refuse: bool = False


@dataclass(frozen=True, slots=True)
class Freeze:
    """Whether an edition may be frozen.

    Attributes:
        verdict: ``ok`` | ``warn`` (it may, and the sentence goes with it) | ``refuse``.
        sentence: Why.
    """

    verdict: Literal["ok", "warn", "refuse"]
    sentence: str


def may_freeze(agreement: Agreed | None, policy: AgreementPolicy) -> Freeze:
    """Whether raters agree enough: the lower end of kappa's interval against the policy.

    Args:
        agreement: ``karat.tables.agreement.Agreement`` of the judgments the edition is made of, or
            what has its headline; None if nothing was judged twice.
        policy: What it must be.

    Returns:
        ``ok`` if the whole interval is at ``at_least`` or above; else ``warn``, or ``refuse`` under
        a policy that refuses.
    """
    wanted = f"{_two(policy.at_least)} or more ({_named(policy.weights)})"
    less: Literal["warn", "refuse"] = "refuse" if policy.refuse else "warn"
    if agreement is None:
        return Freeze(less, f"nothing was judged twice, and κ is to be {wanted}")
    head = agreement.headline
    if head.value is None:
        return Freeze(less, f"κ cannot be told ({head.reason}), and is to be {wanted}")
    value = _two(head.value, _digits(head.value, policy.at_least))
    figure = f"κ is {value} ({_named(head.weights)})"
    if head.weights != policy.weights:
        return Freeze(less, f"{figure}, which cannot be compared: it is to be {wanted}")
    if head.ci_low is None:
        return Freeze(less, f"{figure}, without an interval ({head.reason}); it is to be {wanted}")
    low = _two(head.ci_low, _digits(head.ci_low, policy.at_least))
    where = f"{figure}, and its 95 % interval begins at {low}"
    if head.ci_low >= policy.at_least:
        return Freeze("ok", f"{where}: surely {_two(policy.at_least)} or more")
    if head.value >= policy.at_least:
        return Freeze(less, f"{where}: not surely {_two(policy.at_least)} or more")
    return Freeze(less, f"{where}: below {_two(policy.at_least)}")


def _named(weights: str | None) -> str:
    return "no weights" if weights in (None, "none") else f"{weights} weights"


def _two(value: float, digits: int = 2) -> str:
    """``.70``, as kappas are written."""
    return f"{value:.{digits}f}".replace("0.", ".", 1)


def _digits(value: float, at_least: float) -> int:
    """So many that a number just below what is asked for does not read as the same."""
    if value >= at_least or f"{value:.2f}" != f"{at_least:.2f}":
        return 2
    return 3 if f"{value:.3f}" != f"{at_least:.3f}" else 4
