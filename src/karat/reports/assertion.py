"""What a failing search test says: plain text, the verdict first, then where to look."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from karat.release.expectations import Broken
from karat.reports.cells import CONTROLS
from karat.reports.figures import counted, signed
from karat.tables.comparison import Move
from karat.tables.gate import Check, Gate, Lost

_QUERIES = 5  # that lost, for each measure
_CHECKS = 10
_ERRORS = 3
_DOCUMENTS = 5  # of an answer, beside those that are named
_TEXT = 40  # columns of a query
_WIDTH = 88


def of_gate(found: Gate, moves: Sequence[Move] | None, errors: Mapping[str, int]) -> str:
    """Why a gate did not pass.

    Args:
        found: What the policy says.
        moves: The documents that moved, query by query; None if nobody knows.
        errors: Why queries failed, and how many did.
    """
    return "\n".join(_of_gate(found, moves, errors)).translate(CONTROLS)


def of_expectation(broken: Broken) -> str:
    """Which expectation is broken, why it was there, and what came back."""
    lines = [
        f"{_query(broken.answer.query)}: expected {broken.expected}",
        f"  because: {broken.because}",
        f"  but {broken.found}",
        *_answer(broken),
    ]
    return "\n".join(lines).translate(CONTROLS)


def of_failure(query: str, error: str) -> str:
    """A query that got no answer."""
    return f"{_query(query)}: the search failed: {error}".translate(CONTROLS)


def of_known(found: Gate) -> str:
    """The queries known to fail that pass now; empty if there are none."""
    passing = [f"{row.query_id} ({row.measure})" for row in found.known_failures if row.passes]
    if not passing:
        return ""
    it = "it is a known failure" if len(passing) == 1 else "they are known failures"
    return (
        f"{', '.join(passing)}: {it} and pass{'es' if len(passing) == 1 else ''} now; take "
        f"{'it' if len(passing) == 1 else 'them'} off the list in {found.policy}"
    ).translate(CONTROLS)


def _of_gate(found: Gate, moves: Sequence[Move] | None, errors: Mapping[str, int]) -> Iterator[str]:
    against = f" against {found.baseline}" if found.baseline else ""
    yield f"{_said(found.verdict)}: {found.candidate}{against}, by {found.policy}"
    broken = [check for check in found.checks if check.verdict != "pass"]
    for check in broken[:_CHECKS]:
        yield from _check(check)
    if len(broken) > _CHECKS:
        yield f"  and {counted(len(broken) - _CHECKS, 'check more', 'checks more')}"
    if held := len(found.checks) - len(broken):
        yield f"  {counted(held, 'other check passes', 'other checks pass')}"
    if errors:
        yield "why queries failed:"
        told = list(errors.items())
        for error, count in told[:_ERRORS]:
            yield f"  {counted(count, 'query', 'queries')}: {textwrap.shorten(error, _WIDTH)}"
        if len(told) > _ERRORS:
            yield f"  and {counted(len(told) - _ERRORS, 'reason more', 'reasons more')}"
    for measure in dict.fromkeys(row.measure for row in found.lost):
        lost = [row for row in found.lost if row.measure == measure]
        yield from _losers(measure, lost, moves or ())
    if found.lost and moves is None:
        yield "  (no documents: the baseline is saved values; with a run as baseline, those that"
        yield "  moved stand here)"
    yield from (f"note: {note}" for note in found.notes)
    if known := of_known(found):
        yield f"note: {known}"


def _said(verdict: str) -> str:
    return verdict.replace("_", " ")


def _check(check: Check) -> Iterator[str]:
    where = "" if check.attribute is None else f" ({check.attribute} {check.slice})"
    yield f"  {_said(check.verdict)}: {check.rule}{where}"
    yield f"    {check.reason}"
    if check.drop is None or check.n is None:
        return
    among = f"over {counted(check.n, 'query', 'queries')}"
    span = ""
    told = "the drop is" in check.reason
    if check.ci_low is not None and check.ci_high is not None and not told:
        span = f", the drop is {signed(check.ci_low, 4)} to {signed(check.ci_high, 4)} (95 %)"
    yield f"    {check.baseline_value:.4f} → {check.candidate_value:.4f} {among}{span}"
    if check.smallest_detected is not None:
        yield f"    the smallest drop that these queries detect is {check.smallest_detected:.4f}"


def _losers(measure: str, lost: Sequence[Lost], moves: Sequence[Move]) -> Iterator[str]:
    more = len(lost) - _QUERIES
    yield f"queries that lost most, by {measure}" + (" (rank, grade, document):" if moves else ":")
    for row in lost[:_QUERIES]:
        name = row.query_id if row.text is None else f"{row.query_id} {_query(row.text)}"
        yield f"  {row.baseline_value:.3f} → {row.candidate_value:.3f}  {name}"
        for move in moves:
            if (move.measure, move.query_id) == (measure, row.query_id):
                ranks = f"{_rank(move.baseline_rank)} → {_rank(move.candidate_rank)}"
                yield f"      {ranks:>9}  {move.grade:>3g}  {_line(move.doc_id)}"
    if more > 0:
        yield f"  and {more} more"


def _answer(broken: Broken) -> Iterator[str]:
    """The documents on top, and those that are named further down."""
    doc_ids = broken.answer.doc_ids
    shown = {
        rank
        for rank, doc_id in enumerate(doc_ids, start=1)
        if rank <= _DOCUMENTS or doc_id in broken.named
    }
    last = 0
    for rank in sorted(shown):
        if rank > last + 1:
            yield "         …"
        mark = ">" if doc_ids[rank - 1] in broken.named else " "
        yield f"  {mark} {rank:>4}  {_line(doc_ids[rank - 1])}"
        last = rank
    if len(doc_ids) > last:
        yield "         …"


def _query(text: str) -> str:
    return f'"{textwrap.shorten(text, _TEXT, placeholder="…")}"'


def _line(doc_id: str) -> str:
    """An id in one line, so that none can look like a verdict."""
    return " ".join(doc_id.splitlines())


def _rank(rank: int | None) -> str:
    return "–" if rank is None else f"{rank:,}"
