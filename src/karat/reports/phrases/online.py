"""Wording of a watch: values, differences, slices, changes."""

from __future__ import annotations

from collections.abc import Mapping

from karat.online.metrics.registry import find
from karat.reports.online.evaluation import UNITS, figure, span
from karat.reports.phrases.numbers import first_of, signed
from karat.tables.online.watch import Cause, Change, Explained, Onset

_LONGEST = 60  # characters of a query
_NAMED = 5  # queries or changes in a sentence


def value(metric: str, number: float | None) -> str:
    """A value of a metric with its unit; a dash for None."""
    return figure(find(metric), number)


def difference(metric: str, number: float | None) -> str:
    """A signed difference of two values; of shares in percentage points."""
    if number is None:
        return "–"
    entry = find(metric)
    if entry.unit == "share":
        return f"{signed(100 * number, 1)} points"
    return ("−" if number < 0 else "+") + figure(entry, abs(number))


def during(period: tuple[str, str] | None) -> str:
    """The period of a headline, as ``, 2026-11-01 to 2026-11-20``; empty for None."""
    return "" if period is None else f", {period[0]} to {period[1]}"


def where(part: Mapping[str, str]) -> str:
    """A slice, as ``class=code, arm=b`` or ``no device``; empty for all."""
    return ", ".join(f"{name}={text}" if text else f"no {name}" for name, text in part.items())


def quoted(text: str) -> str:
    """A query in quotes, cut to one line."""
    if not text:
        return "searches without a text"
    return f"“{text[: _LONGEST - 1]}…”" if len(text) > _LONGEST else f"“{text}”"


def change_text(change: Change) -> str:
    """A change in a sentence: the value, what is usual, and the query that adds most."""
    if change.verdict == "cannot_tell":
        return f"{_named(change)}: cannot tell: {change.reason}"
    usual = usual_text(change)
    if change.verdict == "usual":
        text = f"{_named(change)} is {value(change.metric, change.value)}, as usual"
        return f"{text} ({usual})" if usual else text
    text = f"{moved_text(change)}: {change.verdict}"
    if change.queries:
        first = change.queries[0]
        text += f"; {quoted(first.text)} adds {difference(change.metric, first.adds)}"
    return text


def moved_text(change: Change) -> str:
    """The value of a change, the expected value, and what is usual."""
    now, before = (value(change.metric, number) for number in (change.value, change.expected))
    way = "up from" if (change.change or 0) > 0 else "down from"
    usual = usual_text(change)
    text = f"{_named(change)} is {now}, {way} {before}"
    return f"{text} (usual: {usual})" if usual else text


def cause_text(cause: Cause) -> str:
    """A cause in a sentence: what changed, since when, and how many changes it explains."""
    lead = cause.lead
    before, now = (value(lead.metric, number) for number in (lead.expected, lead.value))
    way = "rose" if (lead.change or 0) > 0 else "fell"
    since = since_text(cause.onset)
    text = f"{_named(lead)} {way} from {before} to {now}{f' {since}' if since else ''}"
    return f"{text}, explains {len(cause.explains):,} more" if cause.explains else text


def cause_line(cause: Cause) -> str:
    """A cause in a sentence, with what it explains and its queries."""
    parts = [cause_text(cause)]
    if cause.explains:
        parts.append(first_of([_named(each) for each in cause.explains], _NAMED))
    if queries := [quoted(row.text) for row in cause.lead.queries]:
        parts.append(f"queries: {first_of(queries, _NAMED)}")
    return "; ".join(parts)


def since_text(onset: Onset | None) -> str:
    """``since 2026-11-20 03:00``, or between which hours; empty if the hour is unknown."""
    if onset is None or onset.at is None:
        return ""
    return f"between {onset.at} and {onset.ended}" if onset.ended else f"since {onset.at}"


def onset_text(onset: Onset | None) -> str:
    """An onset with the hours that it may be; or why it is unknown."""
    if onset is None:
        return "unknown: the metric does not add up over hours"
    span = f"{onset.earliest or 'before'} to {onset.latest}" if onset.latest else ""
    if onset.at is None:
        return f"unknown: {onset.reason}{f' (95 %: {span})' if onset.earliest else ''}"
    return f"{onset.at} (95 %: {'that hour' if onset.earliest == onset.latest else span})"


def explained_text(explained: Explained) -> str:
    """A change that a cause explains, and how much of it."""
    share = explained.share
    part = f" ({100 * min(1.0, share):.0f} %)" if share is not None and share < 0.995 else ""
    return f"{_named(explained)}{part}"


def _named(change: Change | Explained) -> str:
    return f"{change.metric} of {where(change.slice)}" if change.slice else change.metric


def usual_text(change: Change) -> str:
    """The usual interval; empty if unknown."""
    return span(find(change.metric), change.usual_low, change.usual_high)


def usual_values(change: Change) -> str:
    """The usual interval with its unit; empty if unknown."""
    text = usual_text(change)
    return text and f"{text}{UNITS.get(change.unit, '')}"
