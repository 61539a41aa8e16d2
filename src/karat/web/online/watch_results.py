"""The watch of a day: computed in the background, for its page and the dashboard."""

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
from karat.web.online.log import Question, start_computing
from karat.web.online.slices import GOLDEN, Dimension, dimension, dimensions, queries_of
from karat.workflows.online.watch import HISTORY, cut_of_watch, last_whole_day, watch
from karat.workflows.online.watch_windows import window_of

MOST_CHANGES = 1_000
"""Most rows on a page, changes first; the API and the command have all."""
MOST_CUTS = 8
"""Most attributes to slice by, unless one is chosen."""

_EXTRA = {"exit_code", "compared_in_all"}
"""Keys of the JSON that are not fields of ``Watched``."""


@dataclass(frozen=True)
class Watching:
    """The parameters of a watch, as of ``workflows.online.watch.watch``.

    Attributes:
        now: Microseconds UTC.
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
        """Everything besides the log that the result depends on."""
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
        """Compute the watch, as JSON."""
        with open_engine() as engine:
            result = watch(
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
        answer = result.to_dict()
        more = len(result.changes) - (self.most or len(result.changes))
        if more > 0:
            note = f"{more:,} more rows in slices: karat online watch lists all"
            answer |= {"changes": answer["changes"][: self.most], "notes": [*result.notes, note]}
            answer |= {"compared_in_all": len(result.changes)}
        return answer


@dataclass(frozen=True)
class Glance:
    """The watch of a day in short, for the dashboard.

    Attributes:
        verdict: As in ``Watched``; None while it is being computed.
    """

    day: str
    verdict: str | None
    said: str
    doubt: str
    sentence: str
    more: int
    where: str


def glance(site: AppState, log: EventLog, last: int) -> Glance | None:
    """The watch of a day in short, if computed; else start to compute it, without waiting.

    The day is ``last``, or an earlier one if the log ends within it.

    Returns:
        None if nothing could be compared, for example with too few weeks before that day.
    """
    day = min(last, last_whole_day(log))
    asked, _ = watching_of(site, log, day, "")
    where = f"/online/watch?{urlencode({'day': day_text(day)})}"
    try:
        answer = start_computing(site, log, asked.question(log), lambda: asked.made(log))
    except KaratError:  # the page of the watch shows the error
        return None
    if answer is None:
        return Glance(day_text(day), None, "", "", "", 0, where)
    result = watched_of(answer)
    if result.verdict == "cannot_tell" and not result.changes:
        return None
    worse = result.found("worse")
    return Glance(
        result.window,
        result.verdict,
        verdict_text(result),
        result.health[0] if result.health else "",
        moved_text(worse[0]) if worse else "",
        max(0, len(worse) - 1),
        where,
    )


def watching_of(site: AppState, log: EventLog, day: int, by: str) -> tuple[Watching, list[str]]:
    """The parameters of the watch of a day (since 1970-01-01), and notes on its slices.

    Without ``by``, it is sliced by the first ``MOST_CUTS`` attributes of the log.
    """
    notes: list[str] = []
    if by:
        cuts = [dimension(site, log, by)]
    else:
        in_log = [each for each in dimensions(site, log) if not each.name.startswith(GOLDEN)]
        sliceable = [each for each in in_log if _sliceable(each.name, log)]
        cuts = sliceable[:MOST_CUTS]
        if refused := [each.name for each in in_log if each not in sliceable]:
            notes.append(f"cannot slice by {', '.join(refused)}: the name is reserved")
        if len(sliceable) > MOST_CUTS:
            more = len(sliceable) - MOST_CUTS
            notes.append(f"not sliced by {more:,} more attributes: choose one to see it")
    return Watching([[each] for each in cuts], until=day_text(day), most=MOST_CHANGES), notes


def _sliceable(name: str, log: EventLog) -> bool:
    try:
        return name != "class" and bool(cut_of_watch(name, log))
    except UsageError:
        return False


def watched_of(answer: Mapping[str, Any]) -> Watched:
    """A watch, from its JSON."""
    changes = [
        Change(**{**row, "queries": tuple(Contribution(**one) for one in row["queries"])})
        for row in answer["changes"]
    ]
    fields = {name: value for name, value in answer.items() if name not in _EXTRA}
    return Watched(**{**fields, "changes": changes, "by": tuple(answer["by"])})
