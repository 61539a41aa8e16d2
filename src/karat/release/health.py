"""Health: conditions on a search's answers before any measure counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from karat.release.policy import Drop, Health
from karat.stats.intervals import Interval
from karat.stats.quantiles import LEAST, quantile_change
from karat.tables.comparison import ROUNDING
from karat.tables.release.gate import Check, GateVerdict

_EMPTY = 5  # per cent of the queries that may have no results
_MARGIN = 2  # percentage points more than a baseline with more of them
_JUDGED = 0.5
_OF_BASELINE = 2 / 3  # of the judged share of a baseline with less

_POLICY = """\
# The conditions for a release. Change what does not fit your search.
# karat gate --policy FILE QRELS BASELINE CANDIDATE

[health]                   # conditions on the answers, before any measure counts
max_failed = 0             # queries without an answer: a count, or a share such as "1%"
max_missing = "5%"         # queries not in the run
{empty}
max_duplicates = 0         # queries with a duplicate document
{p95}
min_queries = 25           # queries that count; with fewer, intervals are not reliable
{judged}

[[rule]]                   # the first page
measure = "nDCG@10"
max_drop = "5%"            # of the baseline's value; 0.01 would be in the unit of the measure

[[rule]]                   # the whole ranking: what is found, and how early
measure = "AP"
max_drop = "5%"

# [[rule]]                 # a mean may rise while one kind of query collapses
# measure = "nDCG@10"
# each = "query_length"    # or any attribute of your queries
# max_drop = "10%"
"""


def starter(baseline: Answers | None = None) -> str:
    """A policy as TOML.

    Args:
        baseline: Answers of the future baseline: conditions without data are commented out, and
            limits that it breaks itself are widened.
    """
    return _POLICY.format(empty=_empty(baseline), p95=_p95(baseline), judged=_judged(baseline))


def _line(demand: str, comment: str) -> str:
    return f"{demand:<26} # {comment}"


def _empty(baseline: Answers | None) -> str:
    most, why = _EMPTY, "queries without results"
    if baseline is not None and baseline.queries:
        share = 100 * baseline.empty / baseline.queries
        if share > _EMPTY:
            most = math.ceil(share) + _MARGIN
            why += f"; of {baseline.run} {share:.0f} % are"
    return _line(f'max_empty = "{most}%"', why)


def _p95(baseline: Answers | None) -> str:
    demand = 'max_p95_increase = "50%"'
    if baseline is None or len(baseline.times_us) >= LEAST:
        return _line(demand, f"of the latency; needs {LEAST} queries timed in both runs")

    timed = len(baseline.times_us)
    why = f"only {timed:,} answers have a time" if timed else "its answers have no times"
    return _line(f"# {demand}", f"not for {baseline.run}: {why}; it needs {LEAST}")


def _judged(baseline: Answers | None) -> str:
    least, why = _JUDGED, "mean share of the first 10 documents that is judged"
    share = None if baseline is None else baseline.judged.get(10)
    if baseline is not None and share is not None and _OF_BASELINE * share < _JUDGED:
        least = math.floor(100 * _OF_BASELINE * share) / 100
        why += f"; of {baseline.run} {share:.2f}"
    return _line(f"min_judged = {least:g}", why)


_ERRORS = 3  # reasons shown
_ERROR = 80  # characters of each
_SLOWER = 2.0  # factor by which a p95 without a rule may grow without a note
_QUICK_US = 10_000.0  # shorter times are not noticeable


@dataclass(frozen=True, slots=True)
class Answers:
    """Outcomes of the queries of a run."""

    run: str
    queries: int
    failed: int  # of these, without an answer
    missing: int  # of these, not in the run
    documents: int  # documents returned in all
    # Mean Judged@k by cutoff k, with the weights of all means; None without documents
    judged: Mapping[int, float | None] = field(default_factory=dict)
    p95_us: float | None = None  # 95th percentile of the known times; None without times
    # Query to its time; without failed queries
    times_us: Mapping[str, float] = field(default_factory=dict)
    asked: int = 0  # queries that were or should have been sent, with a time or without
    # Outcome of each query without a right answer: ok | empty | missing | failed
    marked: Mapping[str, str] = field(default_factory=dict)
    # Error to the number of queries that count and failed with it
    errors: Mapping[str, int] = field(default_factory=dict)
    nothing: str = ""  # the reason if the run has no queries; else empty
    empty: int = 0  # of these, with no results
    repeated: int = 0  # of these, with a duplicate document
    foreign: str = ""  # why its document ids are not those of the judgments; empty if they are


def health_checks(health: Health, candidate: Answers, baseline: Answers | None) -> Iterator[Check]:
    """Check the health of a search before any measure counts.

    Failures of a baseline give ``cannot_tell``.
    """
    yield from _answered(health, candidate)
    if baseline is not None:
        against = _answered(health, baseline, baseline.run)
        yield from (check for check in against if check.verdict != "pass")
    if health.min_queries is not None:
        enough = candidate.queries >= health.min_queries
        yield Check(
            rule=f"at least {health.min_queries:,} queries count",
            verdict="pass" if enough else "cannot_tell",
            reason=f"{candidate.queries:,} count",
            n=candidate.queries,
            candidate_value=float(candidate.queries),
            limit=float(health.min_queries),
        )
    for k, share in candidate.judged.items() if health.min_judged is not None else ():
        least = health.min_judged or 0.0
        enough = share is not None and share >= least - ROUNDING
        yield Check(
            rule=f"Judged@{k} is at least {least:g}",
            verdict="pass" if enough else "cannot_tell",
            reason="no documents" if share is None else f"{100 * share:.0f} % are judged",
            candidate_value=share,
            limit=least,
        )
    yield from _budgets(health, candidate)
    if health.max_p95_ms is not None:
        yield _in_time(health.max_p95_ms, candidate)
    if health.max_p95_increase is not None and baseline is not None:
        yield _slower(health.max_p95_increase, candidate, baseline)
    if health.min_silent is not None:
        yield _silent(health.min_silent, candidate)


def unheld(health: Health, candidate: Answers, baseline: Answers | None) -> Iterator[str]:
    """A sentence on each thing that got worse and that no condition covers."""
    if candidate.repeated and health.max_duplicates is None:
        yield (
            f"{_queries(candidate.repeated)} returned a document more than once; no rule checks "
            "it (max_duplicates)"
        )
    if baseline is None:
        return
    now, before = candidate.p95_us or 0.0, baseline.p95_us or math.inf
    unlimited = health.max_p95_ms is None and health.max_p95_increase is None
    if unlimited and now > max(_SLOWER * before, _QUICK_US):
        rules = "max_p95_ms, max_p95_increase"
        yield f"p95 went from {_ms(before)} to {_ms(now)}; no rule checks it ({rules})"
    if health.max_empty is None and candidate.empty > baseline.empty:
        verb = "has" if candidate.empty == 1 else "have"
        yield (
            f"{_queries(candidate.empty)} {verb} no results (baseline: "
            f"{baseline.empty:,}); no rule checks it (max_empty)"
        )
    both = [
        (candidate.marked[query], baseline.marked[query])
        for query in candidate.marked
        if "failed" not in (candidate.marked[query], baseline.marked.get(query, "failed"))
    ]
    shown, shown_before = (sum(pair[side] == "ok" for pair in both) for side in (0, 1))
    if shown > shown_before:
        verb = "is" if shown == 1 else "are"
        unseen = "; no rule checks it (min_silent)" if health.min_silent is None else ""
        yield (
            f"{shown:,} of {_queries(len(both))} without a right answer {verb} answered now "
            f"(baseline: {shown_before:,}){unseen}"
        )


def _answered(health: Health, answers: Answers, baseline: str = "") -> Iterator[Check]:
    """Failed and missing queries against their budgets, and whether there are any documents.

    ``baseline`` is the name of the run if it is the baseline.
    """
    of = f"baseline {baseline}: " if baseline else ""
    otherwise: GateVerdict = "cannot_tell" if baseline else "unhealthy"
    n = answers.queries
    if answers.foreign:
        yield Check(f"{of}documents have the ids of the judgments", otherwise, answers.foreign, n=n)
    nothing = answers.nothing
    if not nothing:
        failed = f"got no answer{_why(answers.errors)}"
        absent = "is not in the run" if answers.missing == 1 else "are not in the run"
        failing = _Budget("without an answer", failed, "all were answered", otherwise)
        missing = _Budget("not in the run", absent, "all are in the run", otherwise)
        checks = [
            failing.check(health.max_failed, answers.failed, n, of),
            missing.check(health.max_missing, answers.missing, n, of),
        ]
        yield from checks
        broken = sum(check.candidate_value or 0 for check in checks if check.verdict != "pass")
        if not n:
            nothing = "there is no query that counts"
        elif not answers.documents and broken < n:  # not in addition to a failure of all queries
            nothing = "it returned no document for any query"
    if nothing:
        yield Check(f"{of}some document is returned", otherwise, nothing, n=n)


def _budgets(health: Health, answers: Answers) -> Iterator[Check]:
    """Queries without results or with duplicates: visible to users, so the check fails."""
    if health.max_empty is not None:
        empty = _Budget("without results", "have no results", "all have results", "fail")
        # Some formats cannot represent queries without results.
        unknown = answers.missing
        yield empty.check(health.max_empty, answers.empty, answers.queries, unknown=unknown)
    if health.max_duplicates is not None:
        some = "have a duplicate document"
        none = "none has a duplicate document"
        repeated = _Budget("with a duplicate document", some, none, "fail")
        yield repeated.check(health.max_duplicates, answers.repeated, answers.queries)


@dataclass(frozen=True)
class _Budget:
    """How many queries something bad may happen to."""

    what: str  # the queries in the rule, as `without results`
    some: str  # of those that there are
    none: str  # and if there are none
    over: GateVerdict  # the verdict if there are more

    def check(self, most: float, count: int, n: int, of: str = "", unknown: int = 0) -> Check:
        """Check a count of ``n`` queries against the most allowed: below 1 a share of them.

        ``of`` is the beginning of the rule; ``unknown`` queries may be such ones too.
        """
        allowed = math.floor(most * n + ROUNDING) if most < 1 else int(most)
        rule = f"queries {self.what}: none allowed"
        if allowed:
            rule = f"at most {allowed:,} of {n:,} queries {self.what}"
        reason = f"{count:,} of {n:,} {self.some}" if count or unknown else self.none
        if unknown:
            are = "is" if unknown == 1 else "are"
            reason += f", and {unknown:,} {are} not in the run, which may mean the same"
        within: GateVerdict = "pass" if count + unknown <= allowed else "cannot_tell"
        return Check(
            rule=f"{of}{rule}",
            verdict=self.over if count > allowed else within,
            reason=reason,
            n=n,
            candidate_value=float(count),
            limit=float(allowed),
        )


def _slower(most: Drop, candidate: Answers, baseline: Answers) -> Check:
    """The rise of the 95th percentile, over the queries timed in both runs."""
    old, new = baseline.times_us, candidate.times_us
    shared = sorted(old.keys() & new.keys())
    untimed = sorted(old.keys() - new.keys())
    rule = f"p95 rises by at most {most if most.relative else f'{most.size:g} ms'}"
    if len(shared) < LEAST:
        return Check(rule, "cannot_tell", _untimed(len(shared), candidate, baseline), n=len(shared))
    before = np.array([old[query] for query in shared])
    change = quantile_change(before, np.array([new[query] for query in shared]))
    values = np.array([change.before, change.after, *_ends(change.difference)]) / 1000
    rise, (low, high) = values[1] - values[0], values[2:]
    if most.relative and change.before > 0:
        rise, (low, high) = change.after / change.before - 1, _ends(change.increase)
    allowed = f"allowed {100 * most.size:g} %" if most.relative else f"allowed {most.size:g} ms"
    span = f"95 %: {_rise(low, most)} to {_rise(high, most)}"
    reason = f"p95 went from {_ms(change.before)} to {_ms(change.after)}: "
    reason += f"{_rise(rise, most)} ({span}), {allowed}"
    verdict: GateVerdict = "pass"
    if most.relative and (change.before <= 0 or math.isnan(low)):
        verdict, reason = (
            "cannot_tell",
            "the baseline's p95 is 0 ms, so a share of it is not a limit",
        )
    elif rise > most.size + ROUNDING:
        verdict = "fail" if low > most.size + ROUNDING else "cannot_tell"
    elif untimed:
        times = np.array([old[query] for query in shared + untimed])
        late = np.array([new.get(query, math.inf) for query in shared + untimed])
        worst = quantile_change(times, late)
        limit = worst.before * (1 + most.size) if most.relative else worst.before + 1000 * most.size
        if worst.after > limit + ROUNDING:
            verdict = "cannot_tell"
            reason += f"; {_queries(len(untimed))} without a time may have taken longer"
    return Check(
        rule=rule,
        verdict=verdict,
        reason=reason,
        n=len(shared),
        baseline_value=float(values[0]),
        candidate_value=float(values[1]),
        drop=float(rise),
        ci_low=None if math.isnan(low) else float(low),
        ci_high=None if math.isnan(high) else float(high),
        limit=most.size,
    )


def _ends(interval: Interval) -> tuple[float, float]:
    low, high = interval.low, interval.high
    return (math.nan if low is None else low), (math.nan if high is None else high)


def _rise(value: float, most: Drop) -> str:
    text = f"{100 * value:+.0f} %" if most.relative else f"{value:+.4g} ms"
    return text.replace("-", "−")


def _untimed(n: int, candidate: Answers, baseline: Answers) -> str:
    """Why the times of two runs cannot be compared."""
    without = [each.run for each in (baseline, candidate) if not each.times_us]
    if without:
        verb = "have" if len(without) == 2 else "has"
        return f"{' and '.join(without)} {verb} no times"
    are = "query is" if n == 1 else "queries are"
    return f"{n:,} {are} timed in both runs; a 95th percentile needs {LEAST}"


def _why(errors: Mapping[str, int]) -> str:
    """The most frequent errors, in brackets; empty if unknown."""
    if not errors:
        return ""
    ordered = sorted(errors.items(), key=lambda item: -item[1])
    shown = [f"{count:,} × {_short(error)}" for error, count in ordered[:_ERRORS]]
    rest = sum(count for _, count in ordered[_ERRORS:])
    return f" ({', '.join([*shown, f'{rest:,} × other'] if rest else shown)})"


def _short(error: str) -> str:
    line = " ".join(error.split())
    return line if len(line) <= _ERROR else f"{line[: _ERROR - 1]}…"


def _in_time(most: float, answers: Answers) -> Check:
    """The 95th percentile of the times; queries without one may have taken longer."""
    timed, took = len(answers.times_us), answers.p95_us
    asked = max(timed, answers.asked)
    verdict: GateVerdict
    if took is None:
        verdict, reason = "cannot_tell", "the run has no times"
    else:
        reason = f"p95 is {_ms(took)}"
        if timed < asked:
            reason += f" over {timed:,} timed {'answer' if timed == 1 else 'answers'} of {asked:,}"
        quick = sum(time <= 1000 * most for time in answers.times_us.values())
        if not answers.documents:
            verdict, reason = "cannot_tell", f"{reason}; it returned no document for any query"
        elif took > 1000 * most:
            verdict = "fail"
        elif quick < 0.95 * asked - ROUNDING:
            verdict, reason = "cannot_tell", f"{reason}; the others may have taken longer"
        else:
            verdict = "pass"
    return Check(
        rule=f"95 % of the answers take at most {most:g} ms",
        verdict=verdict,
        reason=reason,
        n=timed,
        candidate_value=None if took is None else took / 1000,
        limit=most,
    )


def _silent(least: float, answers: Answers) -> Check:
    """The share of no-answer queries without results; failed ones may have had some."""
    states = list(answers.marked.values())
    failed, missing = states.count("failed"), states.count("missing")
    n, silent = len(states) - failed, states.count("empty") + missing
    verdict: GateVerdict = "cannot_tell"
    if not n:
        reason = "none of them was answered" if states else "no query is marked no_answer"
    elif not answers.documents:
        reason = "it returned no document for any query"
    else:
        reason = f"{silent:,} of {n:,} did"
        if silent >= least * len(states) - ROUNDING:
            verdict = "pass"
        elif silent < least * n - ROUNDING:
            verdict = "fail"
        else:
            reason += f", and {failed:,} got no answer"
    return Check(
        rule=f"at least {100 * least:g} % of the queries without a right answer get nothing",
        verdict=verdict,
        reason=reason,
        n=n,
        candidate_value=silent / n if n else None,
        limit=least,
    )


def _ms(time_us: float) -> str:
    return f"{time_us / 1000:.4g} ms"


def _queries(count: int) -> str:
    return f"{count:,} {'query' if count == 1 else 'queries'}"
