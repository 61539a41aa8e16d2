"""What a watch of a day comes to: computed beside requests, for its page and at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from karat.engines.frames.opening import open_engine
from karat.errors import KaratError, UsageError
from karat.online.metrics import registry
from karat.online.rules import Rules
from karat.reports.online.watch import verdict_text
from karat.reports.phrases.online import moved_text
from karat.tables.days import day_text
from karat.tables.online.events import EventLog
from karat.tables.online.watch import Change, Contribution, Watched
from karat.web.framework.state import AppState
from karat.web.online.log import Question, begun
from karat.web.online.slices import GOLDEN, Dimension, dimension, dimensions, queries_of
from karat.workflows.online.watch import HISTORY, cut_of_watch, last_whole_day, watch
from karat.workflows.online.watch_windows import window_of

MOST_CHANGES = 1_000
"""Rows that a page has of a watch, what moved first; the API and the command have all."""
MOST_CUTS = 8
"""Attributes that a watch is sliced by where nobody says by which."""


_BESIDES = {"exit_code", "compared_in_all"}
"""What is kept beside the fields of ``Watched``."""


@dataclass(frozen=True)
class Watching:
    """What a watch is asked for; as the arguments of ``watch``.

    Attributes:
        cuts: What it is sliced by, each by one or several at once.
        until: The day or hour it ends with; None: the latest that is over by ``now``.
        now: Microseconds UTC.
        window: Its length.
        history: How far back it is compared.
        metrics: Names; empty for the usual ones.
        margins: Changes that matter to nobody.
        most: Rows that are kept; None for all.
    """

    cuts: Sequence[Sequence[Dimension]] = ()
    until: str | None = None
    now: int = 0
    window: str = "1d"
    history: str = HISTORY
    metrics: Sequence[str] = ()
    margins: Sequence[str] = ()
    most: int | None = None

    def question(self, log: EventLog) -> Question:
        """All that it depends on besides the log."""
        window, _ = window_of(self.window, self.until, log, self.now)
        metrics = registry.find_all(self.metrics or registry.DEFAULT)
        return {
            "what": "watch",
            "window": [window.label, self.until is None, self.history],
            "metrics": [bool(self.metrics), *([each.name, each.version] for each in metrics)],
            "by": [[[part.name, part.digest] for part in cut] for cut in self.cuts],
            "margins": list(self.margins),
            "rules": Rules().id,
            "most": self.most,
        }

    def made(self, log: EventLog) -> dict[str, Any]:
        """What it sees, as JSON can hold it."""
        with open_engine() as engine:
            found = watch(
                log,
                engine,
                now=self.now,
                window=self.window,
                history=self.history,
                until=self.until,
                metrics=self.metrics or None,
                by=[",".join(part.key for part in cut) for cut in self.cuts],
                margins=self.margins,
                queries=queries_of(part for cut in self.cuts for part in cut),
            )
        held = found.to_dict()
        more = len(found.changes) - (self.most or len(found.changes))
        if more > 0:
            note = f"{more:,} more in slices, the last of all: karat online watch has them"
            held |= {"changes": held["changes"][: self.most], "notes": [*found.notes, note]}
            held |= {"compared_in_all": len(found.changes)}
        return held


@dataclass(frozen=True)
class Glance:
    """What a watch of a day comes to, on the dashboard.

    Attributes:
        day: The day.
        verdict: As of ``Watched``; None while it is being found out.
        said: The verdict in words.
        doubt: What is wrong with the evidence; empty if nothing is known to be.
        sentence: What is worse most surely; empty if nothing is.
        more: How many more are.
        where: Address of all of it.
    """

    day: str
    verdict: str | None
    said: str
    doubt: str
    sentence: str
    more: int
    where: str


def glance(site: AppState, log: EventLog, last: int) -> Glance | None:
    """What the watch of a day comes to, as far as it is known; else it is begun, not waited for.

    Args:
        site: Whose golden set tells classes.
        log: The log.
        last: The last day that somebody looks at; an earlier one if the log ends within it.

    Returns:
        None where nothing could be compared, as with too few weeks before that day.
    """
    at = min(last, last_whole_day(log))
    asked, _ = watching_of(site, log, at, "")
    where = f"/online/watch?{urlencode({'day': day_text(at)})}"
    try:
        held = begun(log, asked.question(log), lambda: asked.made(log))
    except KaratError:  # the page of the watch says what is wrong
        return None
    if held is None:
        return Glance(day_text(at), None, "", "", "", 0, where)
    found = watched_of(held)
    if found.verdict == "cannot_tell" and not found.changes:
        return None
    worse = found.found("worse")
    return Glance(
        found.window,
        found.verdict,
        verdict_text(found),
        found.health[0] if found.health else "",
        moved_text(worse[0]) if worse else "",
        max(0, len(worse) - 1),
        where,
    )


def watching_of(site: AppState, log: EventLog, day: int, by: str) -> tuple[Watching, list[str]]:
    """The watch of a day, and what is to be said of its slices.

    Args:
        site: Whose golden set tells classes.
        log: The log.
        day: In days since 1970-01-01.
        by: What it is sliced by; empty for what the log itself says, as far as that can be.
    """
    notes: list[str] = []
    if by:
        cuts = [dimension(site, log, by)]
    else:
        own = [each for each in dimensions(site, log) if not each.name.startswith(GOLDEN)]
        there = [each for each in own if _sliceable(each.name, log)]
        cuts = there[:MOST_CUTS]
        if refused := [each.name for each in own if each not in there]:
            notes.append(f"nothing can be sliced by {', '.join(refused)}: karat has the name")
        if len(there) > MOST_CUTS:
            notes.append(f"not sliced by {len(there) - MOST_CUTS:,} more attributes: choose one")
    return Watching([[each] for each in cuts], until=day_text(day), most=MOST_CHANGES), notes


def _sliceable(name: str, log: EventLog) -> bool:
    try:
        return name != "class" and bool(cut_of_watch(name, log))
    except UsageError:
        return False


def watched_of(held: Mapping[str, Any]) -> Watched:
    """What a watch saw, of what ``to_dict`` made."""
    changes = [
        Change(**{**row, "queries": tuple(Contribution(**one) for one in row["queries"])})
        for row in held["changes"]
    ]
    fields = {name: said for name, said in held.items() if name not in _BESIDES}
    return Watched(**{**fields, "changes": changes, "by": tuple(held["by"])})
