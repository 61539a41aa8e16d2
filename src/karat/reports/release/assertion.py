"""Messages of failing search tests: plain text, the verdict first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from karat.release.expectations import Broken
from karat.reports.phrases.gate import known_failures, moved, passes, place, title, word
from karat.reports.phrases.numbers import counted, signed
from karat.reports.writers.plain import CONTROLS, shortened
from karat.tables.release.gate import Check, Gate, Regression

_QUERIES = 5  # that lost most, per measure
_CHECKS = 10
_DOCUMENTS = 5  # of an answer, besides those that are named
_TEXT = 40  # columns of a query
_DISORDERED = re.compile(r"ranks contradict scores in ([\d,]+ quer(?:y|ies)).*")


def of_gate(found: Gate) -> str:
    return "\n".join(_of_gate(found)).translate(CONTROLS)


def of_expectation(broken: Broken) -> str:
    """The broken expectation, its reason, and the answer."""
    lines = [
        f"{_query(broken.answer.query)}: expected {broken.expected}",
        f"  because: {broken.because}",
        f"  but {broken.found}",
        *_answer(broken),
    ]
    return "\n".join(lines).translate(CONTROLS)


def of_failure(query: str, error: str) -> str:
    return f"{_query(query)}: the search failed: {error}".translate(CONTROLS)


def of_known(found: Gate) -> str:
    """Known failures that pass now; empty if there are none."""
    passing = [row for row in found.known_failures if row.passes]
    text = "; ".join(known_failures(passing))
    return f"{text} in {found.policy}".translate(CONTROLS) if text else ""


def of_order(found: Gate) -> str:
    """That a search returned documents out of score order; empty if it did not."""
    for note in found.notes:
        match = _DISORDERED.fullmatch(note.removeprefix(f"{found.candidate}: "))
        if match is not None:
            return (
                f"{found.candidate} returned documents out of the order of their scores in "
                f"{match[1]}; karat ranks by score, unlike what users see"
            ).translate(CONTROLS)
    return ""


def _of_gate(found: Gate) -> Iterator[str]:
    yield f"{word(found.verdict)}: {title(found)}"
    broken = [check for check in found.checks if not passes(check)]
    for check in broken[:_CHECKS]:
        yield from _check(check)
    if len(broken) > _CHECKS:
        yield f"  and {counted(len(broken) - _CHECKS, 'more check')}"
    if passed := len(found.checks) - len(broken):
        yield f"  {counted(passed, 'other check passes', 'other checks pass')}"
    for measure in dict.fromkeys(row.measure for row in found.lost):
        yield from _losers(measure, [row for row in found.lost if row.measure == measure])
    if any(row.moves is None for row in found.lost):
        yield "  (no documents: the baseline has saved values only; with a run as baseline, the"
        yield "  rank changes are listed here)"
    yield from (f"note: {note}" for note in found.notes)
    if known := of_known(found):
        yield f"note: {known}"


def _check(check: Check) -> Iterator[str]:
    where = "" if check.attribute is None else f" ({place(check)})"
    yield f"  {word(check.verdict)}: {check.rule}{where}"
    yield f"    {check.reason}"
    if check.drop is None or check.n is None:
        return
    among = f"over {counted(check.n, 'query')}"
    span = ""
    has_interval = "95 %" in check.reason
    if check.ci_low is not None and check.ci_high is not None and not has_interval:
        span = f", the drop is {signed(check.ci_low, 4)} to {signed(check.ci_high, 4)} (95 %)"
    yield f"    {check.baseline_value:.4f} → {check.candidate_value:.4f} {among}{span}"
    if check.smallest_detected is not None:
        yield f"    the smallest drop that these queries detect is {check.smallest_detected:.4f}"


def _losers(measure: str, lost: Sequence[Regression]) -> Iterator[str]:
    more = len(lost) - _QUERIES
    known = any(row.moves for row in lost)
    yield f"queries that lost most, by {measure}" + (" (rank, grade, document):" if known else ":")
    for row in lost[:_QUERIES]:
        name = row.query_id if row.text is None else f"{row.query_id} {_query(row.text)}"
        where = "" if row.attribute is None else f" ({row.attribute} {row.slice})"
        yield f"  {row.baseline_value:.3f} → {row.candidate_value:.3f}  {name}{where}"
        for move in row.moves or ():
            yield f"      {moved(move):>9}  {move.grade:>3g}  {_line(move.doc_id)}"
    if more > 0:
        yield f"  and {more} more"


def _answer(broken: Broken) -> Iterator[str]:
    """The top documents, and those named further down."""
    doc_ids = broken.answer.doc_ids
    shown = {
        at
        for at, doc_id in enumerate(doc_ids, start=1)
        if at <= _DOCUMENTS or doc_id in broken.named
    }
    last = 0
    for at in sorted(shown):
        if at > last + 1:
            yield "         …"
        mark = ">" if doc_ids[at - 1] in broken.named else " "
        yield f"  {mark} {at:>4}  {_line(doc_ids[at - 1])}"
        last = at
    if len(doc_ids) > last:
        yield "         …"


def _query(text: str) -> str:
    return f'"{shortened(text, _TEXT)}"'


def _line(doc_id: str) -> str:
    """An id on one line, so that it cannot look like a verdict."""
    return " ".join(doc_id.splitlines())
