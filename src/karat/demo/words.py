"""What the worked example shows, in words: which system wins where, and what may be said of it.

Every sentence is made from the numbers of this very run; nothing is known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from karat.demo.build import Demo
from karat.reports.figures import counted, moves
from karat.stats import t_interval
from karat.tables import Result, Results

MEASURE = "nDCG@10"


@dataclass(frozen=True, slots=True)
class Lead:
    """How far one system leads another, over the same queries.

    Attributes:
        ahead: Name of the better one.
        behind: Name of the other.
        mean: Mean difference, 0 or more.
        low: Lower end of its 95 % interval (paired, Student's t); None where there is none.
        high: Upper end.
        n: Queries.
    """

    ahead: str
    behind: str
    mean: float
    low: float | None
    high: float | None
    n: int

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low is not None and self.low > 0


def conclusions(results: Results, classes: dict[str, str], made: Demo) -> Iterator[str]:
    """What the results show, a paragraph each.

    Args:
        results: Of ``evaluate``, per query too, sliced by class.
        classes: The class of each query.
        made: What the demo built.
    """
    values = _values(results)
    yield _overall(results, values)
    yield from _by_class(results, values, classes)
    yield _allowed()
    yield _unjudged(results)
    yield from _unanswered(results)
    if results.no_answer:
        yield _silence(results)
    if made.absent_count:
        yield (
            f"{made.absent_count} of {made.judged_count:,} judged documents are not in this "
            "Python; their grades are kept and count as not found."
        )
    else:
        yield f"None of the {made.judged_count:,} judged documents is missing from this Python."


def lead(values: dict[str, dict[str, float]], one: str, other: str, queries: set[str]) -> Lead:
    """How far the better of two systems leads the other over some queries."""
    shared = sorted(queries & values[one].keys() & values[other].keys())
    difference = np.array([values[one][query] - values[other][query] for query in shared])
    if len(difference) and difference.mean() < 0:
        one, other, difference = other, one, -difference
    span = t_interval(difference)
    mean = float(difference.mean()) if len(difference) else 0.0
    return Lead(one, other, mean, span.low, span.high, len(shared))


def _overall(results: Results, values: dict[str, dict[str, float]]) -> str:
    ranked = sorted(values, key=lambda run: -(results.value(MEASURE, run) or 0.0))
    everything = set().union(*values.values())
    sentences = []
    for other in ranked[1:]:
        found = lead(values, ranked[0], other, everything)
        verdict = (
            "more than chance explains" if found.clear else "these queries cannot tell them apart"
        )
        sentences.append(f"{found.ahead} minus {found.behind} is {_span(found)}: {verdict}")
    return f"Over all {len(everything)} queries, by {MEASURE}: {'; '.join(sentences)}."


def _by_class(
    results: Results, values: dict[str, dict[str, float]], classes: dict[str, str]
) -> Iterator[str]:
    mean = {(row.slice, row.run): row.value for row in results.slices if row.measure == MEASURE}
    wins: dict[str, list[str]] = {run: [] for run in values}
    losses: dict[str, list[str]] = {run: [] for run in values}
    for kind in dict.fromkeys(classes.values()):
        queries = {query for query, of in classes.items() if of == kind}
        queries &= set().union(*values.values())
        if not queries:
            continue
        ranked = sorted(values, key=lambda run: -(mean[kind, run] or 0.0))
        best, last = ranked[0], ranked[-1]
        ahead = lead(values, best, ranked[1], queries)
        behind = lead(values, ranked[-2], last, queries)
        wins[best].append(f"{kind}{' (clearly)' if ahead.clear else ''}")
        losses[last].append(f"{kind}{' (clearly)' if behind.clear else ''}")
    for run in values:
        best_at = f"is best at {_and(wins[run])}" if wins[run] else "is never best"
        last_at = f"last at {_and(losses[run])}" if losses[run] else "never last"
        yield f"{run} {best_at}; {last_at}."


def _allowed() -> str:
    return (
        "“Clearly” means that the 95 % interval of the difference to the next system, query by "
        "query, leaves out 0. The rest may be chance: a class has few queries. Even “clearly” is "
        "wrong once in twenty times where two systems are in truth alike."
    )


def _unjudged(results: Results) -> str:
    rows = [row for row in results.results if row.unjudged_high is not None]
    still = [name for name in dict.fromkeys(row.measure for row in rows) if not _moved(rows, name)]
    moving = {row.measure: row for row in rows if _moves(row)}  # the last run of each: hybrid
    sentences = []
    if still:
        verb = "stands" if len(still) == 1 else "stand"
        sentences.append(
            f"{_and(still)} {verb} on judged documents: no grade of the others changes a second "
            "digit."
        )
    for measure, row in moving.items():
        sentences.append(
            f"{measure} does not: {row.run}'s {row.value:.2f} could be anything from "
            f"{row.unjudged_low:.2f} to {row.unjudged_high:.2f}."
        )
    return " ".join(sentences)


def _moved(rows: Sequence[Result], measure: str) -> bool:
    return any(_moves(row) for row in rows if row.measure == measure)


def _unanswered(results: Results) -> Iterator[str]:
    for row in results.results:
        if row.measure == MEASURE and row.missing + row.empty:
            queries = counted(row.missing + row.empty, "query", "queries")
            yield f"{row.run} found nothing at all for {queries}: scored 0."


def _silence(results: Results) -> str:
    shares = ", ".join(f"{row.run} {row.silent} of {row.n}" for row in results.no_answer)
    return (
        f"{results.no_answer[0].n} more queries have no right answer, and a good system would say "
        f"nothing. Answered with nothing: {shares}."
    )


def _values(results: Results) -> dict[str, dict[str, float]]:
    values: dict[str, dict[str, float]] = {}
    for row in results.per_query:
        if row.measure == MEASURE and row.value is not None:
            values.setdefault(row.run, {})[row.query_id] = row.value
    return values


def _moves(row: Result) -> bool:
    return moves(row, row.unjudged_low, row.unjudged_high, digits=2)


def _span(found: Lead) -> str:
    if found.low is None or found.high is None:
        return f"{found.mean:.3f}"
    return f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
