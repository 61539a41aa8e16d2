"""Summary of a run against a search: counts, errors, latency, and the next command."""

from __future__ import annotations

from rich.console import Console

from karat.reports.phrases.numbers import counted, milliseconds
from karat.reports.writers.plain import plain
from karat.reports.writers.terminal import show_notes
from karat.tables.searched import Searched

_REASONS = 5


def show_searched(found: Searched, out: Console, command: str | None = None) -> None:
    asked = counted(found.queries, "query")
    line = f"{asked} asked: {found.ok:,} ok, {found.empty:,} empty, {found.failed:,} failed"
    if found.latency is not None:
        p50, p95 = milliseconds(found.latency.p50_us), milliseconds(found.latency.p95_us)
        line += f"; p50 {p50} ms, p95 {p95} ms"
    if found.server is not None:
        line += f"; the engine itself p50 {milliseconds(found.server.p50_us)} ms"
    out.print(line)
    reasons = [_reason(found, at) for at in range(min(_REASONS, len(found.reasons)))]
    if (more := len(found.reasons) - _REASONS) > 0:
        reasons.append(f"and {counted(more, 'more reason')} (--format json)")
    show_notes([*reasons, *found.notes], out)
    if found.file not in {None, "-"}:
        out.print(plain(f"written to {found.file}"), soft_wrap=True)
    if command is not None:
        out.print(plain(f"next: {command}"), soft_wrap=True)


def _reason(found: Searched, at: int) -> str:
    reason = found.reasons[at]
    where = f" ({reason.place})" if reason.place else ""
    queries = counted(reason.queries, "query")
    return f"{queries} failed, first {reason.query_id}: {reason.error}{where}"
