"""What people might do with the demo's search: simulated traffic, and a synonym that breaks.

Five weeks of people who do not exist, half of them with the first system and half with the last.
On the last day the list of misspellings is lost, and queries of the class `misspelt` find nothing
by the words that were typed. Each event says that it is simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from karat.demo.build import Demo
from karat.engines.frames.opening import open_engine
from karat.formats import read_queries
from karat.online.metrics.registry import find
from karat.online.simulate.habits import Habits
from karat.reports.online.evaluation import figure
from karat.reports.phrases.numbers import counted
from karat.reports.phrases.online import change_text
from karat.store.events.log import read_event_log, read_manifest
from karat.tables.online.evaluation import OnlineResult
from karat.tables.online.events import EventLog
from karat.workflows.online.evaluate import evaluate
from karat.workflows.online.import_events import import_events
from karat.workflows.online.simulate import Planted, simulate_log
from karat.workflows.online.watch import watch

LOG = "traffic.ndjson.gz"
EVENTS = "events"
"""Where a workspace keeps its events."""
DAYS, USERS, SESSIONS, SEED = 35, 1_000, 300.0, 8
BROKEN = ("class", "misspelt")
"""The attribute of the queries that break, and its value; the log calls it ``CUT``."""
CUT = "query_class"
METRICS = ("CTR", "ZeroResults", "SAT")
WATCHED = ("CTR", "ZeroResults")
_ASKED = {"head": 8.0, "torso": 5.0, "tail": 3.0}
_MORE = (
    1.6  # misspelt queries are asked more often, so that each day has the 30 people a watch needs
)


def keep_traffic(demo: Demo, *, now: int) -> EventLog:
    """Simulate traffic, write its log, and import it; events that are there already stay.

    Args:
        demo: Where it lies.
        now: Microseconds UTC; the traffic ends on the last working day before.
    """
    folder = demo.directory / EVENTS
    held = read_manifest(folder)
    if held is None or not held.files:
        path = demo.directory / LOG
        simulate_traffic(demo, path, last_day(now))
        import_events(folder, [path], now=now, simulated=True)
    return read_event_log(folder)


def last_day(now: int) -> date:
    """The last working day that is over: at weekends few search, and a change is hard to tell."""
    last = datetime.fromtimestamp(now / 1e6, UTC).date() - timedelta(days=1)
    return last - timedelta(days=max(0, last.weekday() - 4))


def simulate_traffic(demo: Demo, path: Path, last: date) -> None:
    """Write the log of people who search with the demo's first and last system."""
    queries = read_queries(demo.queries)
    name, value = BROKEN
    misspelt = {query for query, its in queries.attribute(name).items() if its == value}
    simulate_log(
        demo.qrels,
        [demo.runs[0], demo.runs[-1]],
        path,
        last_day=last,
        queries=queries,
        days=DAYS,
        users=USERS,
        sessions=SESSIONS,
        seed=SEED,
        behaviour="dbn",
        instant=0.15,
        habits=Habits(impressions="none", latency_ms=(40.0, 75.0), answers=0.1),
        attributes=["class"],
        weight={
            query: _ASKED[frequency] * (_MORE if query in misspelt else 1.0)
            for query, frequency in queries.attribute("frequency").items()
        },
        planted=[Planted(*BROKEN, last)],
    )


def told(log: EventLog, *, now: int) -> Iterator[str]:
    """What the traffic comes to, a paragraph each: numbers, and what a watch of them finds.

    Args:
        log: What the demo's event store holds.
        now: Microseconds UTC.
    """
    if not {CUT, "simulated"} <= set(log.attributes):
        yield f"{log.folder} holds events of yours, which the demo leaves alone."
        return
    with open_engine() as engine:
        found = {row.metric: row for row in evaluate(log, engine, METRICS).results}
        seen = watch(log, engine, now=now, metrics=WATCHED, by=[CUT])
    searches = counted(found["ZeroResults"].n, "search", "searches")
    yield (
        f"{searches} by people who do not exist, for the golden queries, with "
        f"{' and '.join(log.arms)} as arms: no finding about anybody, and good to try things on."
    )
    yield (
        f"{_said(found['CTR'], 'of searches with results have a click')}; "
        f"{_said(found['ZeroResults'], 'find nothing at all')}; "
        f"{_said(found['SAT'], 'end in something that was read')}, as far as last clicks tell."
    )
    worse = seen.found("worse")
    if worse:
        yield f"On {seen.window}, {change_text(worse[0])}."
    else:
        yield f"A watch of {seen.window} says: {seen.verdict.replace('_', ' ')}."


def _said(row: OnlineResult, what: str) -> str:
    """A value in words; of one with bounds both of them."""
    entry = find(row.metric)
    if row.least is not None and row.most is not None:
        return f"{figure(entry, row.least)} to {figure(entry, row.most)} {what}"
    return f"{figure(entry, row.value)} {what}"
