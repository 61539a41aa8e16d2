"""The limits of a candidate that was asked next to the baseline, and whether it is within them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from karat.experiments._shadow_evidence import EMPTY, OK, Evidence, Mask
from karat.stats.intervals import TRUSTED_FROM, Interval, effective, share_interval
from karat.stats.quantiles import LEAST, QuantileChange
from karat.tables.experiments.shadow import (
    ShadowCheck,
    ShadowDifference,
    ShadowLimits,
    Verdict,
)

LATE = 0.05  # share of requests sent late, above which latencies cannot pass
_ORDER: Sequence[Verdict] = ("fail", "cannot_tell", "pass")


@dataclass(frozen=True)
class Seen:
    """What the checks look at."""

    evidence: Evidence
    limits: ShadowLimits
    latency: Sequence[QuantileChange]  # p50, p95, p99; none without times
    differences: Sequence[ShadowDifference]
    planned: int  # requests that both sides should have been asked
    asked: int  # requests that both were asked, cold ones included
    late: int
    explained: str


def checks(seen: Seen) -> list[ShadowCheck]:
    """All checks, the worst first."""
    found = [*_of_evidence(seen), *_of_shares(seen), *_of_latency(seen), *_of_overlap(seen)]
    return sorted(found, key=lambda check: _ORDER.index(check.verdict))


def verdict(found: Sequence[ShadowCheck]) -> tuple[Verdict, str]:
    """The worst verdict, and its reason."""
    if not found:
        return "cannot_tell", "no limit is set"
    worst = found[0]
    if worst.verdict == "pass":
        return "pass", f"within {'its limit' if len(found) == 1 else f'all {len(found)} limits'}"
    more = sum(check.verdict == worst.verdict for check in found) - 1
    others = f" (and {more} more {'limit' if more == 1 else 'limits'})" if more else ""
    return worst.verdict, worst.reason + others


def _of_evidence(seen: Seen) -> Iterator[ShadowCheck]:
    """Whether there is enough evidence: these never fail, as they are not about the candidate."""
    limits, requests = seen.limits, len(seen.evidence.query)
    if limits.min_requests is not None:
        least = limits.min_requests
        enough = requests >= least
        said = f"{requests:,} requests" + ("" if enough else f"; at least {least:,} are needed")
        yield _exact("min_requests", enough, said, requests, least, "requests")
    if limits.min_answered is not None:
        share = seen.asked / seen.planned if seen.planned else 0.0
        enough = share >= limits.min_answered and seen.asked > 0
        said = f"both sides were asked {seen.asked:,} of {seen.planned:,} requests"
        said += "" if enough else f"; at least {percent(limits.min_answered)} are needed"
        yield _exact("min_answered", enough, said, share, limits.min_answered, "share")
    if limits.max_dropped is not None:
        dropped = seen.evidence.observed.dropped
        total = dropped + seen.asked
        share = dropped / total if total else 0.0
        enough = share <= limits.max_dropped
        said = f"{dropped:,} of {total:,} requests were dropped"
        said += "" if enough else f", more than {percent(limits.max_dropped)}: more workers help"
        yield _exact("max_dropped", enough, said, share, limits.max_dropped, "share")


def _exact(
    rule: str, enough: bool, said: str, value: float, limit: float, unit: str
) -> ShadowCheck:
    found: Verdict = "pass" if enough else "cannot_tell"
    return ShadowCheck(rule, found, said, value, None, None, limit, unit)


def _of_shares(seen: Seen) -> Iterator[ShadowCheck]:
    evidence, limits = seen.evidence, seen.limits
    one, other = evidence.baseline, evidence.candidate
    if limits.max_errors is not None:
        what = "of the candidate's requests failed"
        everywhere = np.ones(len(evidence.query), np.bool_)
        yield _share(evidence, "max_errors", other.failed, everywhere, limits.max_errors, what)
    if limits.max_zero_gained is not None:
        what = "of the requests lose all their results"
        both = one.answered & other.answered
        lost = (one.state == OK) & (other.state == EMPTY)
        yield _share(evidence, "max_zero_gained", lost, both, limits.max_zero_gained, what)


def _share(
    evidence: Evidence, rule: str, hit: Mask, used: Mask, limit: float, what: str
) -> ShadowCheck:
    """A share of requests, with as many independent ones as the queries are worth."""
    n = int(used.sum())
    if not n:
        return ShadowCheck(
            rule, "cannot_tell", "no request was answered by both sides", None, None, None, limit,
            "share",
        )  # fmt: skip
    share = float((hit & used).sum() / n)
    sizes = np.bincount(evidence.query[used]).astype(np.float64)
    span = share_interval(share, effective(sizes[sizes > 0]))
    said = f"{percent(share)} {what}"
    found = _within(span, limit)
    if found == "cannot_tell":
        needed = math.ceil(math.log(0.025) / math.log1p(-limit)) if limit > 0 else 0
        said += f", but {_ends(span, percent)} are possible and the limit is {percent(limit)}"
        said += f": ask about {needed:,} different queries" if needed and not share else (
            ": ask more queries"
        )  # fmt: skip
    elif found == "fail":
        said += f"; the limit is {percent(limit)}"
    return ShadowCheck(rule, found, said, share, span.low, span.high, limit, "share")


def _within(span: Interval, most: float) -> Verdict:
    if span.high is not None and span.high <= most:
        return "pass"
    return "fail" if span.low is not None and span.low > most else "cannot_tell"


def _of_latency(seen: Seen) -> Iterator[ShadowCheck]:
    limits = seen.limits
    if limits.max_p95_ms is not None:
        span = seen.latency[1].level if seen.latency else None
        value = seen.latency[1].after if seen.latency else None
        yield _time(seen, "max_p95_ms", value, span, limits.max_p95_ms, relative=False)
    if limits.max_p95_increase is not None:
        limit = limits.max_p95_increase
        value, span = None, None
        if seen.latency:
            p95 = seen.latency[1]
            span = p95.increase if limit.relative else p95.difference
            value = p95.after - p95.before
            if limit.relative:
                value = value / p95.before if p95.before else None
        yield _time(
            seen, "max_p95_increase", value, span, limit.size, relative=limit.relative, change=True
        )


def _time(
    seen: Seen,
    rule: str,
    value: float | None,
    span: Interval | None,
    limit: float,
    *,
    relative: bool,
    change: bool = False,
) -> ShadowCheck:
    unit = "share" if relative else "ms"

    def text(number: float) -> str:
        sign = "+" if change and number >= 0 else ""
        return sign + (percent(number) if relative else f"{number:,.1f} ms").replace("-", "−")

    what = "p95 latency"
    if value is None or span is None or span.low is None or span.high is None:
        why = "no request has a latency on both sides" if span is None else span.reason
        said = f"{what}: {why}; ask {LEAST} requests or more, of {TRUSTED_FROM} queries"
        return ShadowCheck(rule, "cannot_tell", said, value, None, None, limit, unit)
    found = _within(span, limit)
    said = f"{what} {text(value)}"
    late = seen.late / max(len(seen.evidence.query), 1)
    if found == "cannot_tell":
        said += f", but {_ends(span, text)} is possible and the limit is {text(limit)}: ask more"
    elif found == "fail":
        said += f"; the limit is {text(limit)}"
    elif late > LATE:
        found = "cannot_tell"
        said += f", but {percent(late)} of the requests were sent late: use more workers"
    return ShadowCheck(rule, found, said, value, span.low, span.high, limit, unit)


def _of_overlap(seen: Seen) -> Iterator[ShadowCheck]:
    limit, k = seen.limits.min_overlap, seen.evidence.k
    if limit is None:
        return
    row = next((row for row in seen.differences if row.what == f"overlap@{k}"), None)
    if row is None or row.value is None or row.ci_low is None:
        said = "too few queries were answered by both sides to compare answers"
        value = None if row is None else row.value
        yield ShadowCheck("min_overlap", "cannot_tell", said, value, None, None, limit, "share")
        return
    said = f"{percent(row.value)} of the top {k} in common"
    if row.noise is not None:
        said += f" (the baseline with itself: {percent(row.noise)})"
    found: Verdict = "pass"
    if row.ci_low < limit and seen.explained:
        said += f", which is explained: {seen.explained}"
    elif row.ci_low < limit:
        found = "cannot_tell"
        said += f", and the limit is {percent(limit)}: look at what changed, and explain it"
    ends = row.ci_low, row.ci_high
    yield ShadowCheck("min_overlap", found, said, row.value, *ends, limit, "share")


def _ends(span: Interval, text: Callable[[float], str]) -> str:
    low, high = (math.nan if end is None else end for end in (span.low, span.high))
    return f"{text(low)} to {text(high)}"


def percent(share: float) -> str:
    """A share as a percentage: 0.4 %, 12 %."""
    size = 100 * share
    digits = 0 if abs(size) >= 10 or size == round(size) else 1 if abs(size) >= 0.1 else 2
    return f"{size:.{digits}f} %"
