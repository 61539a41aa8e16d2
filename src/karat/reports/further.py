"""Tables for a terminal of what stands beside the measures: silence, latency, outcomes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from karat.measures.no_answer import thinned
from karat.reports.cells import base, plain
from karat.reports.figures import milliseconds, percent, three_digits
from karat.tables.results import Latency, NoAnswer, Outcome

CURVE_ROWS = 12


def silence_table(rows: Sequence[NoAnswer]) -> Table:
    """How each run treats the queries that have no right answer."""
    table = base("queries without a right answer")
    table.add_column("run", overflow="fold")
    for name in ("queries", silence_heading(rows), "share"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(plain(row.run), f"{row.n:,}", f"{row.silent:,}", percent(row.share))
    return table


def silence_heading(rows: Sequence[NoAnswer]) -> str:
    """What counts as silence in the rows."""
    threshold = rows[0].threshold
    return "answered with nothing" if threshold is None else f"nothing, or below {threshold:g}"


def curve_table(row: NoAnswer) -> Table:
    """What thresholds on the best score would do, at most a dozen of them."""
    table = base(f"{row.run}: withhold answers whose best score is below …")
    for name in ("score", "no answer, silent", "answerable, silent"):
        table.add_column(name, justify="right", no_wrap=True)
    for point in thinned(row.curve, CURVE_ROWS):
        table.add_row(
            f"{point.threshold:g}",
            percent(point.silent_no_answer),
            percent(point.silent_answerable),
        )
    return table


def latency_table(rows: Sequence[Latency]) -> Table:
    """How long the answers took."""
    table = base("latency, milliseconds")
    table.add_column("run", overflow="fold")
    for name in ("n", "p50", "p95", "p99", "slowest"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        times = (row.p50_us, row.p95_us, row.p99_us, row.max_us)
        table.add_row(plain(row.run), f"{row.n:,}", *map(milliseconds, times))
    return table


def outcomes_table(rows: Sequence[Outcome]) -> Table:
    """How measures go with outcomes, query by query."""
    table = base("with outcomes, over queries")
    table.add_column("measure", overflow="fold")
    several = len({row.run for row in rows}) > 1
    if several:
        table.add_column("run", overflow="fold")
    table.add_column("outcome", overflow="fold")
    for name in ("Spearman", "95 %", "Kendall", "AUC", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        labels = [plain(row.measure), *([plain(row.run)] if several else []), plain(row.outcome)]
        span = "" if row.ci_low is None else f"{row.ci_low:.2f} – {row.ci_high:.2f}"
        cells = [three_digits(row.spearman), span, three_digits(row.kendall), three_digits(row.auc)]
        table.add_row(*labels, *cells, f"{row.n:,}")
    return table
