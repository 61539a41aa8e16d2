"""Freezing: whether raters agree well enough to freeze an edition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from karat.tables.golden.agreement import Figure
from karat.tables.workspace import WorkspaceConfig


@dataclass(frozen=True, slots=True)
class Freeze:
    """Whether an edition may be frozen."""

    # `ok` | `warn` (it may, with the sentence as a warning) | `refuse`
    verdict: Literal["ok", "warn", "refuse"]
    sentence: str  # the reason


def may_freeze(head: Figure, policy: WorkspaceConfig) -> Freeze:
    """Whether raters agree enough: the lower end of kappa's interval compared with the policy.

    Args:
        head: Headline agreement of the edition's judgments.
        policy: Its ``weights``, ``at_least`` and ``refuse`` apply.

    Returns:
        ``ok`` if the whole interval is at ``at_least`` or above; otherwise ``refuse`` if the policy
        refuses, else ``warn``.
    """
    required = f"{_two(policy.at_least)} or more ({_named(policy.weights)})"
    less: Literal["warn", "refuse"] = "refuse" if policy.refuse else "warn"
    if head.value is None:
        return Freeze(less, f"κ is not available ({head.reason}); required: {required}")
    value = _two(head.value, _digits(head.value, policy.at_least))
    figure = f"κ is {value} ({_named(head.weights)})"
    if head.weights != policy.weights:
        return Freeze(less, f"{figure}, which cannot be compared; required: {required}")
    if head.ci_low is None:
        return Freeze(less, f"{figure}, without an interval ({head.reason}); required: {required}")
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
    """Digits that distinguish a value just below the limit from the limit."""
    if value >= at_least or f"{value:.2f}" != f"{at_least:.2f}":
        return 2
    return 3 if f"{value:.3f}" != f"{at_least:.3f}" else 4
