"""Gate: the rules of a policy checked against measured values; weak evidence never passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from karat.release.policy import Drop, Rule
from karat.stats.intervals import LEAST, TRUSTED_FROM
from karat.tables.comparison import ROUNDING
from karat.tables.records import shared
from karat.tables.release.gate import WORST_FIRST, Check, GateVerdict

_PRINTED = 5e-5  # smaller values print as 0.0000
_NO_SPREAD = f"fewer than {TRUSTED_FROM} without variance prove nothing"


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why the values of a baseline no longer count."""

    verdict: GateVerdict  # the verdict of rules about a drop
    reason: str  # the reason, in a sentence


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a limit is compared with, over all queries or a slice: a drop, or for a floor a value.

    A drop is over the queries that have a value in both runs, a floor over those of the candidate.
    """

    n: int  # queries that have a value
    candidate_value: float | None  # mean of the candidate; None without queries
    baseline_value: float | None = None  # mean of the baseline over exactly these queries, or None
    drop: float | None = None  # how much worse the candidate is; None for a floor
    # Lower end of the 95 % interval of the drop, for a floor of the value; None without variance
    ci_low: float | None = None
    ci_high: float | None = None  # upper end
    # The smallest drop these queries detect with a power of 80 %
    smallest_detected: float | None = None
    alike: float | None = None  # effective number of queries; `n` if all have the same weight
    even: bool = False  # whether the drop or value is the same in every query: there is no variance
    attribute: str | None = None  # the slicing attribute; None for all queries
    slice: str | None = None  # its value; None for all queries


def overall(checks: Sequence[Check]) -> GateVerdict:
    """The worst verdict; ``error`` if nothing was checked."""
    verdicts = {check.verdict for check in checks}
    return next((verdict for verdict in WORST_FIRST if verdict in verdicts), "error")


def blind(checks: Sequence[Check]) -> Iterator[str]:
    """A sentence on checks that passed although their queries cannot detect a failure, if any."""
    unseen = [
        check
        for check in checks
        if check.verdict == "pass"
        and check.limit is not None
        and check.smallest_detected is not None
        and check.smallest_detected > check.limit
        and check.ci_high is not None
        and check.ci_high > check.limit
    ]
    if unseen:
        first = unseen[0]
        where = f" ({first.attribute} {first.slice})" if first.attribute else ""
        more = f", and {len(unseen) - 1} more likewise" if len(unseen) > 1 else ""
        yield (
            f"“{first.rule}”{where} passed by the observed value; its {first.n} queries detect no "
            f"drop below {first.smallest_detected:.4f}, and {first.limit:.4f} is allowed: a true "
            f'drop may be undetected (evidence = "interval" requires proof){more}'
        )


def queries_to_decide(check: Check) -> int | None:
    """The number of queries that would decide an interval, if drop and variance stay as they are.

    An interval shrinks with the square root of the number of queries. None if the interval does
    not leave it open.
    """
    drop, limit, n = check.drop, check.limit, check.n
    if check.verdict != "cannot_tell" or not check.rule.endswith("surely"):
        return None
    if drop is None or limit is None or n is None or check.ci_low is None or check.ci_high is None:
        return None
    half = check.ci_high - drop if drop <= limit else drop - check.ci_low
    gap = abs(limit - drop)
    return (
        max(LEAST, math.ceil(n * (half / gap) ** 2 - ROUNDING)) if ROUNDING < gap < half else None
    )


def unless_worse(check: Check, at_worst: Check, failed: int) -> Check:
    """The check, or ``cannot_tell`` if it passes only because failed queries do not count.

    ``at_worst`` is the same check with these at the worst possible value.
    """
    if check.verdict != "pass" or at_worst.verdict == "pass":
        return check
    worst = "one unanswered at its" if failed == 1 else f"{failed:,} unanswered at their"
    reason = f"{check.reason}; with the {worst} worst it would fail"
    return replace(check, verdict="cannot_tell", reason=reason)


def drop_check(rule: Rule, most: Drop, numbers: Numbers, doubt: Doubt | None = None) -> Check:
    """Check a drop against the most allowed; ``doubt`` is why the baseline no longer counts."""
    limit: float | None = most.size
    if most.relative:
        before = numbers.baseline_value
        limit = None if before is None else most.size * abs(before)
    if doubt is None:
        verdict, reason = _drop_verdict(rule, most, numbers, limit)
    else:
        verdict, reason = doubt.verdict, doubt.reason
    return Check(
        rule=f"{rule.measure} {rule.drop_text}",
        verdict=verdict,
        reason=reason,
        measure=str(rule.measure),
        limit=limit,
        **shared(numbers, Check),
    )


def _drop_verdict(
    rule: Rule, most: Drop, numbers: Numbers, limit: float | None
) -> tuple[GateVerdict, str]:
    drop, before = numbers.drop, numbers.baseline_value
    if not numbers.n or drop is None or before is None or limit is None:
        return "cannot_tell", "no query has a value in both runs"
    if most.relative and abs(before) <= ROUNDING:
        return (
            "error",
            f"the baseline is 0, so {100 * most.size:g} % of it is not a limit; write 0.01",
        )
    if rule.evidence == "interval":
        text, allowed = f"the drop is {_signed(drop)}", f", {most.said(limit)}"
        same = abs(drop) <= ROUNDING
        return _surely(numbers, drop, limit, text, _signed, lower=True, allowed=allowed, same=same)
    reason = _change_text(rule, drop, before)
    if drop > ROUNDING:
        reason += f", {most.said(limit)}"
    return ("pass" if drop <= limit + ROUNDING else "fail"), reason


def _change_text(rule: Rule, drop: float, before: float) -> str:
    """How much it dropped or rose, with its share of the baseline."""
    if abs(drop) <= ROUNDING:
        return "unchanged"
    worse, better = ("got worse", "got better") if rule.lower else ("dropped", "rose")
    size = f"{abs(drop):.4f}" if abs(drop) >= _PRINTED else "less than 0.0001"
    share = "" if abs(before) <= ROUNDING else f" ({_percent(abs(drop / before))})"
    return f"{worse if drop > 0 else better} by {size}{share}"


def _surely(
    numbers: Numbers,
    value: float,  # the drop, or the candidate's value
    limit: float,
    text: str,  # that in words
    shown: Callable[[float], str],  # the ends of its interval in words
    *,
    lower: bool,  # whether less of it is better
    allowed: str = "",  # the limit in words
    same: bool = False,  # whether the runs are the same, which needs no variance
) -> tuple[GateVerdict, str]:
    """Whether the whole interval is within the limit."""
    low, high, n = numbers.ci_low, numbers.ci_high, numbers.n
    alike = n if numbers.alike is None else numbers.alike
    if low is not None and high is not None:
        text += f" (95 %: {shown(low)} to {shown(high)})"
    elif n >= LEAST and not numbers.even:
        return "cannot_tell", f"{text}, and its interval is unknown{allowed}"
    elif n == 1:
        text += " in one query, which has no interval"
    elif numbers.even:
        text += " in every query"
    text += allowed
    if few := _too_few(n, alike):
        return "cannot_tell", f"{text}; {few}"
    if low is None or high is None:
        if not same and _within(value, limit, lower=lower) and alike < TRUSTED_FROM:
            return "cannot_tell", f"{text}; {_NO_SPREAD}"
        low = high = value
    worst, best = (high, low) if lower else (low, high)
    if _within(worst, limit, lower=lower):
        return "pass", text
    return ("cannot_tell" if _within(best, limit, lower=lower) else "fail"), text


def _too_few(n: int, alike: float) -> str:
    """A reason if there are too few queries to prove anything; else empty."""
    if alike >= LEAST:
        return ""
    few = "1 query proves" if n == 1 else f"{n:,} queries prove"
    return f"{'with such unequal weights, ' if alike < n else ''}{few} nothing"


def _apart(value: float, least: float) -> str:
    """A value in four digits, or as many as distinguish it from the limit."""
    same = abs(value - least) <= ROUNDING
    digits = (4,) if same else range(4, 13)
    shown = (f"{value:.{digit}f}" for digit in digits)
    return next((text for text in shown if same or float(text) != least), f"{value!r}")


def _signed(value: float) -> str:
    return f"{round(value, 4) + 0.0:+.4f}".replace("-", "−")


def _percent(share: float) -> str:
    return "under 0.1 %" if share < 0.0005 else f"{100 * share:.1f} %"


def floor_check(rule: Rule, least: float, numbers: Numbers) -> Check:
    """Check the candidate's own value against the least (or most) allowed."""
    value = numbers.candidate_value
    verdict: GateVerdict
    if value is None or not numbers.n:
        verdict, reason = "cannot_tell", "no query has a value"
    elif rule.evidence == "interval":

        def shown(end: float) -> str:
            return _apart(end, least).replace("-", "−")

        text = f"it is {_apart(value, least)}"
        verdict, reason = _surely(numbers, value, least, text, shown, lower=rule.lower)
    else:
        verdict = "pass" if _within(value, least, lower=rule.lower) else "fail"
        reason = f"it is {_apart(value, least)}"
    return Check(
        rule=f"{rule.measure} {rule.least_text}",
        verdict=verdict,
        reason=reason,
        measure=str(rule.measure),
        limit=least,
        **shared(replace(numbers, ci_low=None, ci_high=None), Check),  # in a check, of the drop
    )


def _within(value: float, limit: float, *, lower: bool) -> bool:
    return value <= limit + ROUNDING if lower else value >= limit - ROUNDING
