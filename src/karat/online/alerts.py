"""What a watch changes in the alerts that are known: opened, seen again, come back, or over.

An alert is of a metric in a slice. It lasts while watches see it, as the lead of a cause or as a
change that a cause explains, or see only something that it explains. It is over once a window at
least as long as the shortest that saw it is usual again: a shorter one may be too small to see it.
It comes back as the same alert within ``AGAIN``, later as a new one. Windows that end before one
that an alert knows change nothing, so that watches of several lengths agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from karat.online.rules import DAY
from karat.tables.online.alerts import Alert, AlertAction, AlertState
from karat.tables.online.watch import Cause, Change, Explained, Watched

KARAT = "karat"
"""Who reopens an alert that comes back."""
AGAIN = 7 * DAY
"""How long after its end an alert that comes back is the same."""


@dataclass(frozen=True, slots=True)
class KnownAlert:
    """An alert as it was stored; times in microseconds UTC."""

    id: int
    key: str
    seen_us: int
    closed_us: int | None
    hours: int
    cause: Cause


@dataclass(frozen=True, slots=True)
class Step:
    """A change of an alert."""

    kind: Literal["open", "reopen", "see", "close"]
    key: str
    alert: KnownAlert | None  # None if it is new
    cause: Cause | None  # as the alert has it from now on; None if it is over


def key_of(each: Change | Explained | Alert) -> str:
    """What makes it the same alert: the metric and the slice."""
    return json.dumps([each.metric, sorted(each.slice.items())], ensure_ascii=False)


def steps(
    known: Sequence[KnownAlert], watched: Watched, ended: Mapping[str, int]
) -> Iterator[Step]:
    """What a watch changes.

    Args:
        known: Alerts that last, and those that were over less than ``AGAIN`` before the window.
        watched: The result of the watch.
        ended: For causes that have ended, by the key of the lead, when they did.
    """
    last = {each.key: each for each in known}
    usual = {key_of(change) for change in watched.changes if change.verdict in ("usual", "better")}
    covered = {
        key_of(part): each
        for each in known
        if each.closed_us is None and each.key not in usual
        for part in each.cause.explains
    }
    seen: set[int] = set()
    for cause in watched.causes:
        parts: list[Change | Explained] = [cause.lead, *cause.explains]
        keys = [key_of(each) for each in parts]
        there = [last[key] for key in keys if key in last]
        open_ = [each for each in there if each.closed_us is None]
        for each in open_:
            if each.id not in seen and watched.ends_us >= each.seen_us:
                yield Step("see", each.key, each, _as_of(each, cause, watched.changes))
        seen |= {each.id for each in open_}
        if open_:
            continue
        if (wider := covered.get(keys[0])) is not None:
            if wider.id not in seen and watched.ends_us >= wider.seen_us:
                yield Step("see", wider.key, wider, wider.cause)
            seen.add(wider.id)
            continue
        over = max(there, key=lambda each: each.closed_us or 0, default=None)
        if over is None:
            yield Step("open", keys[0], None, cause)
        elif max(over.closed_us or 0, over.seen_us) < _end(watched, ended.get(keys[0])):
            yield Step("reopen", over.key, over, _as_of(over, cause, watched.changes, new=True))
    for each in known:
        late = watched.ends_us > each.seen_us and watched.hours >= each.hours
        if each.closed_us is None and each.id not in seen and late and each.key in usual:
            yield Step("close", each.key, each, None)


def leading(alerts: Sequence[Alert]) -> list[Alert]:
    """Alerts without those that another of them explains, which several watches may have opened."""
    shares = {
        (each.id, key_of(part)): part.share
        for each in alerts
        for part in each.cause.explains
        if part.share is not None
    }

    def explains(one: Alert, other: Alert) -> bool:
        return (one.id, key_of(other)) in shares

    return [
        each
        for each in alerts
        if not any(explains(one, each) and not explains(each, one) for one in alerts)
    ]


def _end(watched: Watched, ended: int | None) -> int:
    """Until when a cause lasted, as far as a window shows."""
    return watched.ends_us if ended is None else min(ended, watched.ends_us)


def _as_of(
    alert: KnownAlert, cause: Cause, changes: Sequence[Change], *, new: bool = False
) -> Cause:
    """A cause as an alert has it: with its own change as the lead, and its onset once known."""
    lead = cause.lead
    if key_of(lead) != alert.key:
        own = next(each for each in changes if key_of(each) == alert.key)
        others = [each for each in cause.explains if key_of(each) != alert.key]
        explains = [Explained(lead.metric, lead.slice, None), *others]
        # Hours are those of the metric that leads.
        onset = None if new else alert.cause.onset
        return replace(cause, lead=own, explains=explains, share=None, onset=onset)
    before, onset = alert.cause.onset, cause.onset
    if new or before is None or before.at is None or onset is None:
        return cause
    begun = replace(onset, at=before.at, earliest=before.earliest, latest=before.latest, reason="")
    return replace(cause, onset=begun)


def state_of(
    actions: Sequence[AlertAction], closed_us: int | None, now: int
) -> tuple[AlertState, int | None]:
    """The state of an alert at a time, and when its mute ends.

    What was done before it was reopened does not count, but for a mute, if it came back by itself.
    """
    state: AlertState = "open"
    until: int | None = None
    for each in actions:
        if each.action == "muted":
            until = each.until_us
        elif each.action != "reopened":
            state = each.action
        else:
            state, until = "open", until if each.person == KARAT else None
    if closed_us is not None:
        return ("resolved" if state == "resolved" else "over"), None
    if state != "resolved" and until is not None and until > now:
        return "muted", until
    return state, None
