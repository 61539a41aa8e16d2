"""A plan: smallest effects by weeks and share, and which metrics may decide."""

from __future__ import annotations

from collections.abc import Sequence

from karat.online.metrics import registry
from karat.reports.experiments.answer import Answer
from karat.reports.online.evaluation import figure
from karat.reports.phrases.numbers import percent
from karat.reports.table import Column, Table, of_texts
from karat.tables.experiments.planning import Detectable, Planning

CERTIFICATES: Sequence[Column] = (
    Column("metric", "Metric", "words"),
    Column("false_positives", "Equal arms differ", "share",
           help="Share of splits into equal arms in which they differ; it should be 5 %."),
    Column("found", "Worse found", "share",
           help="Share of splits in which worse results of one arm are found."),
    Column("wrong_way", "As better", "share",
           help="Share of splits in which worse results look better."),
    Column("may_decide", "May decide", "words",
           text=lambda row: "yes" if row.may_decide else f"no: {row.reason}"),
)  # fmt: skip


def answer(plan: Planning) -> Answer:
    return Answer(tables(plan), _notes(plan))


def tables(plan: Planning) -> list[Table]:
    """The smallest effects, and the certificates."""
    users = ", ".join(f"{n:,} in {w}" for w, n in enumerate(plan.users_by_week, start=1))
    shares = list(dict.fromkeys(row.share for row in plan.rows))
    by_week: dict[tuple[str, int], dict[float, Detectable]] = {}
    for row in plan.rows:
        by_week.setdefault((row.metric, row.weeks), {})[row.share] = row
    rows = []
    for (metric, week), of in by_week.items():
        if week not in {1, 2, 4, plan.weeks}:
            continue
        value = next(iter(of.values())).value
        cells = [_smallest(of[share]) if share in of else "–" for share in shares]
        name = registry.find(metric)
        rows.append((metric, figure(name, value), str(week), *cells))
    heads = ("Metric", "Value", "Weeks", *(f"{percent(share)} each" for share in shares))
    title = f"Smallest change that is found, and as a lift (users by weeks: {users})"
    return [
        of_texts(title, heads, rows),
        Table("Metrics tried on known truths", CERTIFICATES, plan.certificates),
    ]


def _smallest(row: Detectable) -> str:
    metric = registry.find(row.metric)
    points = (
        f"{100 * row.smallest:.1f} pp" if metric.unit == "share" else figure(metric, row.smallest)
    )
    return points if row.relative is None else f"{points} ({percent(row.relative)})"


def _notes(plan: Planning) -> list[str]:
    share = percent(plan.degraded)
    return [
        *plan.notes,
        f"worse results: the first and the fifth are swapped in {share} of the searches of one arm",
        "without the variance that a period before the experiment removes; whole weeks only",
    ]
