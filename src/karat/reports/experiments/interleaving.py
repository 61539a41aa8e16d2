"""An interleaving experiment: the preference, its health, and the queries that carry it."""

from __future__ import annotations

from collections.abc import Sequence

from karat.reports.experiments.analysis import HEALTH
from karat.reports.experiments.answer import Answer
from karat.reports.phrases.numbers import percent
from karat.reports.table import Column, Table, of_texts
from karat.tables.experiments.interleaving import InterleavingResult

_WORDS = {
    "pass": "B is preferred",
    "fail": "A is preferred",
    "cannot_tell": "Cannot tell",
    "unhealthy": "Unhealthy",
}
QUERIES: Sequence[Column] = (
    Column("query", "Query"),
    Column("wins_a", "A wins", "count"),
    Column("wins_b", "B wins", "count"),
)


def headline(result: InterleavingResult) -> str:
    """Verdict and reason in a line."""
    reason = "" if result.verdict in {"pass", "fail"} else f": {result.reason}"
    return f"{_WORDS[result.verdict]}{reason}"


def answer(result: InterleavingResult) -> Answer:
    about = f"{result.searches:,} searches of {result.users:,} users, credit by {result.credit}"
    return Answer(tables(result), result.notes, headline(result), about)


def tables(result: InterleavingResult) -> list[Table]:
    """Health, the preference, and queries."""
    rows = [
        ("A", f"{result.wins_a:,}", "", ""),
        ("tie", f"{result.ties:,}", "", ""),
        ("B", f"{result.wins_b:,}", "", ""),
        ("B with half of the ties", _share(result.share_b),
         _span(result.ci_low, result.ci_high), _span(result.cs_low, result.cs_high)),
        ("B of the decided", _share(result.decided_b),
         _span(result.decided_low, result.decided_high), ""),
        ("users who prefer B", _share(result.users_b), "–",
         _span(result.users_low, result.users_high)),
    ]  # fmt: skip
    found = [
        Table("Health", HEALTH, list(result.health)),
        of_texts("Preference", ("", "Searches", "95 %", "Any day"), rows),
    ]
    if result.queries:
        found.append(Table("Queries that carry it", QUERIES, list(result.queries[:10])))
    return found


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value)


def _span(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{percent(low)} to {percent(high)}"
