"""A comparison for eyes: verdicts first, then where the difference comes from."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from karat.reports.cells import base, plain
from karat.reports.terminal import show_notes
from karat.tables.comparison import Comparison, Difference, QueryDifference

_QUERIES = 5  # of each kind
_LABEL = 10  # what a name is not squeezed below


def to_json(comparison: Comparison) -> str:
    """The documented JSON object."""
    return json.dumps(comparison.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def show_comparison(comparison: Comparison, out: Console, *, full: bool = False) -> None:
    """Print the verdicts, slices, the queries that decide, and the notes."""
    for candidate in dict.fromkeys(row.candidate for row in comparison.differences):
        rows = [row for row in comparison.differences if row.candidate == candidate]
        out.print(_verdicts(candidate, comparison.baseline, rows))
        show_notes([f"{row.measure}: {row.verdict}; {row.reason}" for row in rows], out)
        out.print()
        own = [row for row in comparison.slices if row.candidate == candidate]
        for attribute, measure in dict.fromkeys((row.attribute, row.measure) for row in own):
            chosen = [r for r in own if (r.attribute, r.measure) == (attribute, measure)]
            out.print(_slices(f"{candidate}, {measure} by {attribute}", str(attribute), chosen))
        first = rows[0].measure
        moved = [
            row
            for row in comparison.queries
            if (row.candidate, row.measure) == (candidate, first) and row.difference
        ]
        if moved:
            out.print(f"{candidate}, {first}: what moves it most", style="bold")
            out.print(_queries(moved, full=full))
    if comparison.judge_next:
        out.print("judge next, the most telling first", style="bold")
        out.print(_judge_next(comparison))
    show_notes(comparison.notes, out)


def _judge_next(comparison: Comparison) -> Table:
    table = base()
    table.add_column("query", overflow="fold")
    table.add_column("document", overflow="fold")
    for name in (comparison.baseline, comparison.differences[0].candidate, "could change"):
        table.add_column(plain(name), justify="right", overflow="fold")
    for row in comparison.judge_next:
        ranks = (row.baseline_rank, row.candidate_rank)
        shown = ("" if rank is None else str(rank) for rank in ranks)
        table.add_row(plain(row.query_id), plain(row.doc_id), *shown, _signed(row.effect))
    return table


def _verdicts(candidate: str, baseline: str, rows: Sequence[Difference]) -> Table:
    table = base(f"{candidate} against {baseline}")
    table.padding = (0, 1, 0, 0)
    table.add_column("measure", overflow="fold", min_width=_LABEL)
    heads = ("from", "to", "change", "95 %", "p", "+/=/−", "")
    for name in heads:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            plain(row.measure),
            _number(row.baseline_value),
            _number(row.candidate_value),
            plain(_signed(row.difference), "bold"),
            _interval(row),
            _p(row.p if row.p_corrected is None else row.p_corrected),
            f"{row.wins}/{row.ties}/{row.losses}",
            plain(row.verdict, "bold"),
        )
    return table


def _slices(title: str, attribute: str, rows: Sequence[Difference]) -> Table:
    table = base(title)
    table.padding = (0, 1, 0, 0)
    table.add_column(attribute, overflow="fold", min_width=_LABEL)
    for name in ("n", "change", "95 %", "shrunk", "p", "+/=/−", ""):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            plain(str(row.slice)),
            f"{row.n:,}",
            _signed(row.difference),
            _interval(row),
            _signed(row.shrunk),
            _p(row.p_corrected),
            f"{row.wins}/{row.ties}/{row.losses}",
            plain(row.verdict, "bold" if row.verdict in {"better", "worse"} else ""),
        )
    return table


def _queries(rows: Sequence[QueryDifference], *, full: bool) -> Table:
    gains = [row for row in rows if row.difference > 0]
    losses = [row for row in rows if row.difference < 0]
    most = len(rows) if full else _QUERIES
    table = base()
    table.add_column("query", overflow="fold")
    for name in ("from", "to", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    for place, part in enumerate((gains, losses)):
        shown = part[:most]
        for row in shown:
            cells = (_number(row.baseline_value), _number(row.candidate_value))
            ends = place == 0 and row is shown[-1]
            table.add_row(plain(row.query_id), *cells, _signed(row.difference), end_section=ends)
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}".replace("-", "−")


def _interval(row: Difference) -> str:
    if row.ci_low is None or row.ci_high is None:
        return ""
    return f"{row.ci_low:+.3f} – {row.ci_high:+.3f}".replace("-", "−")


def _p(p: float | None) -> str:
    if p is None:
        return ""
    return f"{p:.3f}" if p >= 0.001 else "<.001"
