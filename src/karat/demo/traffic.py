"""Simulated traffic of the demo's search, with a synonym list that breaks.

Five weeks of simulated users, half with the first system and half with the last. On the last day
the list of misspellings is lost, and queries of the class `misspelt` find nothing as typed. Each
event is marked as simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from karat.demo.build import Demo
from karat.engines.frames.opening import open_engine
from karat.formats import read_queries
from karat.formats.own.workspace import NAME
from karat.online.metrics.registry import find
from karat.online.simulate.behaviours import Habits
from karat.reports.online.evaluation import figure
from karat.reports.phrases.numbers import counted
from karat.reports.phrases.online import cause_text
from karat.store.events.log import read_event_log, read_manifest
from karat.tables.online.evaluation import OnlineResult
from karat.tables.online.events import EventLog
from karat.workflows.online.alerts import record
from karat.workflows.online.evaluate import evaluate
from karat.workflows.online.import_events import import_events
from karat.workflows.online.simulate import Planted, simulate_log
from karat.workflows.online.watch import watch
from karat.workflows.workspace.workspace import open_workspace

LOG = "traffic.ndjson.gz"
EVENTS = "events"
"""Folder of events in a workspace."""
DAYS, USERS, SESSIONS, SEED = 35, 1_000, 300.0, 8
BROKEN = ("class", "misspelt")
"""Attribute and value of the queries that break; the attribute is ``CUT`` in the log."""
CUT = "query_class"
METRICS = ("CTR", "ZeroResults", "SAT")
WATCHED = ("CTR", "ZeroResults")
_ASKED = {"head": 8.0, "torso": 5.0, "tail": 3.0}
_MORE = 1.6  # misspelt queries are more frequent, so that each day has the 30 users a watch needs


def keep_traffic(demo: Demo, *, now: int) -> EventLog:
    """Simulate traffic up to the last working day and import it, unless the demo has events."""
    folder = demo.directory / EVENTS
    manifest = read_manifest(folder)
    if manifest is None or not manifest.files:
        path = demo.directory / LOG
        simulate_traffic(demo, path, last_day(now))
        import_events(folder, [path], now=now, simulated=True)
    return read_event_log(folder)


def last_day(now: int) -> date:
    """The last complete working day: weekends have too few searches to detect a change."""
    last = datetime.fromtimestamp(now / 1e6, UTC).date() - timedelta(days=1)
    return last - timedelta(days=max(0, last.weekday() - 4))


def simulate_traffic(demo: Demo, path: Path, last: date) -> None:
    """Write a log of users who search with the demo's first and last system."""
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


def paragraphs(log: EventLog, *, now: int) -> Iterator[str]:
    """Summarise the traffic in the demo's event store, and a watch, whose alert is recorded."""
    if not {CUT, "simulated"} <= set(log.attributes):
        yield f"{log.folder} has events of your own, which the demo does not change."
        return
    with open_engine() as engine:
        results = {row.metric: row for row in evaluate(log, engine, METRICS).results}
        watched = watch(log, engine, now=now, metrics=WATCHED, by=[CUT])
    root = Path(log.folder).parent
    if (root / NAME).exists():
        with open_workspace(root, now=now, environment={}) as opened:
            record(opened, watched, now=now)
    searches = counted(results["ZeroResults"].n, "search")
    yield (
        f"{searches} by simulated users, for the golden queries, with {' and '.join(log.arms)} as "
        "arms: data to try things on, not evidence."
    )
    yield (
        f"{_sentence(results['CTR'], 'of searches with results have a click')}; "
        f"{_sentence(results['ZeroResults'], 'find nothing')}; "
        f"{_sentence(results['SAT'], 'have a satisfied click')}, as far as last clicks show."
    )
    if watched.causes:
        yield f"On {watched.window}, {cause_text(watched.causes[0])}."
    else:
        yield f"The watch of {watched.window}: {watched.verdict.replace('_', ' ')}."


def _sentence(row: OnlineResult, phrase: str) -> str:
    entry = find(row.metric)
    if row.least is not None and row.most is not None:
        return f"{figure(entry, row.least)} to {figure(entry, row.most)} {phrase}"
    return f"{figure(entry, row.value)} {phrase}"
