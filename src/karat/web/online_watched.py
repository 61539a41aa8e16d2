"""What a watch of a day comes to: computed beside requests, for its page and at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from karat.errors import KaratError
from karat.formats.engines.opening import open_engine
from karat.online.rules import Rules
from karat.online.simulate.records import SIMULATED
from karat.reports.online_watch import WORDS
from karat.reports.online_words import moved_text
from karat.tables.days import day_text
from karat.tables.events import EventLog
from karat.tables.watch import Change, Contribution, Watched
from karat.web.online_log import Question, begun
from karat.web.online_slices import Dimension, dimension
from karat.web.site import Site
from karat.workflows.online.watching import last_whole_day, watch


@dataclass(frozen=True)
class Glance:
    """What a watch of a day comes to, on the dashboard.

    Attributes:
        day: The day.
        verdict: As of ``Watched``; None while it is being found out.
        said: The verdict in words.
        sentence: What is worse most surely; empty if nothing is.
        more: How many more are.
        where: Address of all of it.
    """

    day: str
    verdict: str | None
    said: str
    sentence: str
    more: int
    where: str


def glance(site: Site, log: EventLog, last: int) -> Glance | None:
    """What the watch of a day comes to, as far as it is known; else it is begun, not waited for.

    Args:
        site: Whose golden set tells classes.
        log: The log.
        last: The last day that somebody looks at; an earlier one if the log ends within it.

    Returns:
        None where nothing can be told of that day, as with too few weeks before it.
    """
    at = min(last, last_whole_day(log))
    cuts = cuts_of(site, log, "")
    where_ = f"/online/watch?{urlencode({'day': day_text(at)})}"
    try:
        held = begun(log, question_of(at, cuts), lambda: made(log, at, cuts))
    except KaratError:  # the page of the watch says what is wrong
        return None
    if held is None:
        return Glance(day_text(at), None, "", "", 0, where_)
    found = watched_of(held)
    if found.verdict == "cannot_tell":
        return None
    worse = found.found("worse")
    return Glance(
        found.window,
        found.verdict,
        WORDS[found.verdict],
        moved_text(worse[0]) if worse else "",
        max(0, len(worse) - 1),
        where_,
    )


def watched_of(held: Mapping[str, Any]) -> Watched:
    """What a watch saw, of what ``to_dict`` made."""
    changes = [
        Change(**{**row, "queries": tuple(Contribution(**one) for one in row["queries"])})
        for row in held["changes"]
    ]
    fields = {name: said for name, said in held.items() if name != "exit_code"}
    return Watched(**{**fields, "changes": changes, "by": tuple(held["by"])})


def cuts_of(site: Site, log: EventLog, by: str) -> list[Dimension]:
    """What a watch is sliced by: what is named, else everything that the log itself says."""
    if by:
        return [dimension(site, log, by)]
    names = [
        *(["arm"] if log.arms else []),
        *(each for each in log.attributes if each != SIMULATED),
    ]
    return [dimension(site, log, name) for name in names]


def question_of(day: int, cuts: Sequence[Dimension]) -> Question:
    """All that the watch of a day depends on besides the log."""
    return {
        "what": "watch",
        "day": day,
        "by": [[each.name, each.digest] for each in cuts],
        "rules": Rules().id,
    }


def made(log: EventLog, day: int, cuts: Sequence[Dimension]) -> dict[str, Any]:
    """What a watch sees, as JSON can hold it."""
    queries = next((each.queries for each in cuts if each.queries is not None), None)
    with open_engine() as engine:
        found = watch(
            log,
            engine,
            now=0,  # the day is named, so no clock says which it is
            until=day_text(day),
            by=[each.key for each in cuts],
            queries=queries,
        )
    return found.to_dict()
