"""Results of watches made by hand: zero results of howto queries rose on Friday, 2026-11-20."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from karat.online.rules import DAY, HOUR
from karat.tables.online.watch import (
    Cause,
    Change,
    Contribution,
    Explained,
    Hour,
    Moved,
    Onset,
    Watched,
)

FRIDAY = 20_777
FRIDAY_ENDS = (FRIDAY + 1) * DAY
SATURDAY_NOON = (FRIDAY + 1) * DAY + 12 * HOUR
HOWTO = {"topic": "howto"}


def change(
    metric: str = "ZeroResults",
    part: Mapping[str, str] = HOWTO,
    verdict: Moved = "worse",
    value: float = 0.78,
    expected: float = 0.05,
    **more: Any,
) -> Change:
    """A change of a share; with 2,000 searches, and a band of 3 points."""
    direction = "lower" if metric in ("ZeroResults", "Abandonment", "ErrorRate") else "higher"
    made = Change(
        metric=metric, version=1, direction=direction, unit="share", slice=part, verdict=verdict,
        reason="", value=value, expected=expected, usual_low=max(0, expected - 0.03),
        usual_high=expected + 0.03, change=value - expected, margin=0.0, n=2000, users=2000,
        windows=4, before=[expected] * 4, df=3, p=0.001, p_adjusted=0.001,
    )  # fmt: skip
    return replace(made, **more)


ONSET = Onset(
    at="2026-11-20 03:00", earliest="2026-11-20 02:00", latest="2026-11-20 04:00", ended=None,
    reason="",
    hours=[
        Hour(f"2026-11-{19 + at // 24} {at % 24:02}:00", 0.78 if at >= 27 else 0.05, 80, 0.05,
             0.01, 0.09)
        for at in range(48)
    ],
)  # fmt: skip


def cause(lead: Change | None = None, *explains: Explained, onset: Onset | None = ONSET) -> Cause:
    """A cause with its lead, by default of zero results, which explains those of all searches."""
    query = Contribution("reset pin", "Reset PIN", 0.9, 0.04, 60, 55.5, 0.3)
    lead = lead or change(queries=(query,), others=0.43)
    explains = explains or (Explained("ZeroResults", {}, 0.97),)
    return Cause(lead, list(explains), ["Reset PIN"], 0.97, onset)


def watched(
    causes: Sequence[Cause] | None = None,
    changes: Sequence[Change] | None = None,
    ends_us: int = FRIDAY_ENDS,
    hours: int = 24,
    window: str = "2026-11-20",
) -> Watched:
    """A watch with these causes, by default one; what they explain is among its changes."""
    causes = [cause()] if causes is None else causes
    found = [each.lead for each in causes]
    found += [change(e.metric, e.slice, value=0.2) for each in causes for e in each.explains]
    return Watched(
        verdict="worse" if causes else "fine", window=window, compared=["2026-11-13"], absent=[],
        searches=4000, searches_before=4000.0, health=[], changes=[*found, *(changes or [])],
        tests=3, by=("topic",), rules="rules@1", timezone="UTC", notes=[], simulated=False,
        causes=causes, ends_us=ends_us, hours=hours,
    )  # fmt: skip


def usual(ends_us: int = SATURDAY_NOON, hours: int = 24, *parts: Mapping[str, str]) -> Watched:
    """A watch in which zero results are as usual, of howto queries and of all."""
    changes = [
        change(part=part, verdict="usual", value=0.05) for part in (HOWTO, dict[str, str](), *parts)
    ]
    return watched([], changes, ends_us, hours)
