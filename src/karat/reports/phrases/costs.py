"""What a gain costs, in one line."""

from __future__ import annotations

from collections.abc import Iterator

from karat.reports.phrases.numbers import counted, milliseconds, signed
from karat.reports.phrases.report import listed
from karat.tables.comparison import Comparison, CostChange, Costs

_SIZES = ("bytes", "kB", "MB", "GB", "TB", "PB")
_HOUR = 3600


def amount(row: CostChange, value: float, *, sign: bool = True) -> str:
    """A value or change of a cost, with its unit."""
    mark = ("+" if value >= 0 else "−") if sign else ""
    size = abs(value)
    match row.unit:
        case "ms":
            return f"{mark}{milliseconds(1000 * size)} ms"
        case "bytes":
            return f"{mark}{in_bytes(size)}"
        case "judgments":
            return f"{size:,.0f}"
        case "s":
            return _time(size)
        case unit:
            return f"{mark}{size:,.4g} {unit}".rstrip()


def cost_lines(comparison: Comparison, candidate: str) -> list[str]:
    """The gain by the first measure and what it costs, and where it pays; empty without costs."""
    costs = next((each for each in comparison.costs if each.candidate == candidate), None)
    return [] if costs is None else [_line(comparison, costs), *_pays(comparison, costs)]


def _line(comparison: Comparison, costs: Costs) -> str:
    first = next(row for row in comparison.differences if row.candidate == costs.candidate)
    span = ""
    if first.ci_low is not None and first.ci_high is not None:
        span = f" ({signed(first.ci_low)} to {signed(first.ci_high)})"
    return f"{signed(first.difference)} {first.measure}{span} for {cost_text(costs)}"


def cost_text(costs: Costs) -> str:
    """``+18 ms p95, +1.2 GB index, 240 judgments (3 h)``."""
    parts = []
    p95 = costs.find("latency p95")
    if p95 is not None:
        parts.append(f"{amount(p95, p95.difference)} p95")
    stages = [row for row in costs.stages if row.what == "latency p95" and row.difference]
    if stages:
        most = max(stages, key=lambda row: abs(row.difference))
        parts.append(f"{amount(most, most.difference)} p95 in {most.stage}")
    for what, words in (("index", "index"), ("memory", "memory"), ("price", "per 1,000 queries")):
        row = costs.find(what)
        if row is not None and row.difference:
            parts.append(f"{amount(row, row.difference)} {words}")
    judged, spent = costs.find("judgments"), costs.find("judging")
    if judged is not None:
        text = counted(round(judged.difference), "judgment")
        if spent is not None:
            part = "" if spent.n == judged.difference else f" for {spent.n:,} of them"
            text += f" ({amount(spent, spent.difference)}{part})"
        parts.append(text)
    return ", ".join(parts) or "no other cost that both runs declare"


def _pays(comparison: Comparison, costs: Costs) -> Iterator[str]:
    """A line for each attribute if the candidate is slower, and better in only some slices."""
    p95 = costs.find("latency p95")
    if p95 is None or p95.difference <= 0:
        return
    first = next(row for row in comparison.differences if row.candidate == costs.candidate)
    own = [
        row
        for row in comparison.slices
        if (row.candidate, row.measure) == (costs.candidate, first.measure)
    ]
    for attribute in dict.fromkeys(str(row.attribute) for row in own):
        rows = [row for row in own if row.attribute == attribute]
        better = [row for row in rows if row.verdict == "better"]
        if not better or len(better) == len(rows):
            continue
        where = []
        for row in better:
            time = costs.find("latency p95", attribute, row.slice)
            slower = "" if time is None else f" ({amount(time, time.difference)} p95)"
            where.append(f"{attribute}={row.slice}{slower}")
        slower = amount(p95, p95.difference)
        yield f"significantly better on {listed(where)} only, and {slower} p95 on all queries"


def in_bytes(size: float) -> str:
    """A size with its unit: ``1.2 GB``."""
    unit = 0
    while size >= 999.5 and unit + 1 < len(_SIZES):
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_SIZES[unit]}"


def _time(seconds: float) -> str:
    if seconds >= _HOUR:
        return f"{seconds / _HOUR:.2g} h" if seconds < 10 * _HOUR else f"{seconds / _HOUR:,.0f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"
