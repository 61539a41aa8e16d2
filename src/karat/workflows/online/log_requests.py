"""What pages and the API ask of an event log: a request names what its answer depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, Literal

import polars as pl

from karat.engines.frames.opening import open_engine
from karat.errors import InputError, UsageError
from karat.measures import DEFAULTS, parse
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric
from karat.online.rules import Rules
from karat.reports.phrases.numbers import counted
from karat.stats.intervals import TRUSTED_FROM
from karat.store.events.log import NoStore, read_event_log
from karat.tables.days import day_number, day_text
from karat.tables.online.evaluation import OnlineResult
from karat.tables.online.events import EventLog
from karat.tables.online.watch import Watched
from karat.tables.workspace import RunRow
from karat.workflows.offline.stages import Watch, unwatched
from karat.workflows.online.evaluate import class_table, evaluate_log
from karat.workflows.online.event_rows import for_eyes
from karat.workflows.online.facts import Table, look
from karat.workflows.online.offline_correlation import METRICS, against
from karat.workflows.online.slices import (
    Dimension,
    Part,
    dimension,
    filters_of,
    in_log,
    parts,
    queries_of,
)
from karat.workflows.online.watch import HISTORY, cut_of_watch, watch
from karat.workflows.online.watch_windows import window_of
from karat.workflows.online.worst_queries import worst_queries
from karat.workflows.workspace.evaluate_stored import find_runs
from karat.workflows.workspace.stored_inputs import classes_in, inputs_digest, judged, read_stored
from karat.workflows.workspace.workspace import Workspace

USUAL = 28  # default length of the period, in days: whole weeks
MOST_SLICES = 24  # most values of a dimension with results, the largest
MOST_QUERIES = 1_000  # longest list of worst queries; the command has all
MOST_CHANGES = 1_000
"""Most rows of a watch on a page, changes first; the API and the command have all."""
MOST_CUTS = 8  # most attributes that a watch is sliced by, unless one is chosen
LEAST = 10  # fewest searches of a query that is compared with its judgments
FEW_USERS = TRUSTED_FROM  # intervals over fewer users are not reliable
Question = Mapping[str, Any]
Counts = Literal["", "yes", "no"]
_EACH = "SearchesPerUser"  # a metric that counts every search
_MOST_VALUES = 10_000
_CAUSES = 1  # version of how changes are grouped


@dataclass(frozen=True)
class LogRequest:
    """Something to compute from a log; its fields are what else the answer depends on."""

    what: ClassVar[str]

    def question(self, log: EventLog) -> Question:  # noqa: ARG002 - for windows
        """Everything besides the log that the answer depends on."""
        asked = {each.name: _said(getattr(self, each.name)) for each in fields(self)}
        return {"what": self.what, "rules": Rules().id, "limits": [MOST_QUERIES, LEAST], **asked}

    def compute(self, log: EventLog, progress: Watch = unwatched) -> dict[str, Any]:
        """The answer, as JSON; ``progress`` gets how far it is."""
        raise NotImplementedError


def _read(progress: Watch) -> Callable[[int, int], None]:
    return partial(progress, "reading events")


def _said(value: Any) -> Any:
    """A field of a request as JSON, with the version of its content."""
    match value:
        case Metric():
            return [value.name, value.version]
        case Dimension():
            return [value.name, value.digest]
        case Part():
            return [_said(value.dimension), value.value]
        case Days():
            return [value.first, value.last]
        case RunRow():
            return [value.name, value.sha256]
        case Workspace():
            return value.golden.salt
        case list() | tuple():
            return [_said(each) for each in value]
    return value


class NothingImported(InputError):
    """The workspace has no events yet."""


def log_of(workspace: Workspace) -> EventLog:
    folder = workspace.workspace.events
    try:
        return read_event_log(folder)
    except NoStore as error:
        raise NothingImported("no events were imported yet", fix=error.fix) from None
    except InputError as error:
        raise without_file(error) from None


def without_file(error: InputError) -> InputError:
    """The same without the file: pages do not reveal paths of the server."""
    return InputError(error.what, fix=error.fix) if error.file is not None else error


@dataclass(frozen=True)
class Days:
    """A period: its first and last day, inclusive, in days since 1970-01-01."""

    first: int
    last: int
    asked: bool = False  # whether the address names it

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def period(self) -> tuple[str, str]:
        """First and last day as ``2026-11-01``."""
        return day_text(self.first), day_text(self.last)

    @property
    def said(self) -> dict[str, str]:
        return dict(zip(("from", "to"), self.period, strict=True))

    @property
    def scope(self) -> dict[str, Any]:
        return {"first_day": self.first, "last_day": self.last}


@dataclass(frozen=True)
class DayRange:
    """A period as typed; empty for the default."""

    first: str = ""
    last: str = ""

    def within(self, log: EventLog) -> Days:
        """The period within a log; UsageError if it is outside."""
        start, end = log.first_day or 0, log.last_day or 0
        last = end if not self.last else day_number(self.last)
        default = max(start, min(last, end) - USUAL + 1)
        first = default if not self.first else day_number(self.first)
        if first > end or last < start:
            raise UsageError(
                f"the period is outside the log, from {day_text(start)} to {day_text(end)}",
                fix="choose days in between",
            )
        if first > last:
            raise UsageError(
                f"{day_text(first)} is after {day_text(last)}", fix="give the earlier day first"
            )
        return Days(max(first, start), min(last, end), bool(self.first or self.last))


@dataclass(frozen=True)
class Evaluation(LogRequest):
    """The results of metrics over a period, by day or hour, and by a dimension."""

    what = "evaluate"
    metrics: Sequence[Metric]
    days: Days
    steps: Sequence[str]
    by: Dimension

    def compute(self, log: EventLog, progress: Watch = unwatched) -> dict[str, Any]:
        """The results of the largest ``MOST_SLICES`` values, and a note on the others."""
        step, key = ",".join(self.steps), self.by.key
        by = [step, *([key, f"{step},{key}"] if key else [])]
        names = [each.name for each in self.metrics]
        results = evaluate_log(
            log, names, by, queries=self.by.queries, progress=_read(progress), **self.days.scope
        )
        answer = results.to_dict()
        if key:
            values = largest(results.results, key)
            if len(values) > MOST_SLICES:
                more = counted(len(values) - MOST_SLICES, "value", "values")
                note = f"{more} of {self.by.label} with fewer searches are not shown"
                answer["notes"] = [*answer["notes"], note]
            shown = {None, *values[:MOST_SLICES]}
            answer["results"] = [
                row for row in answer["results"] if row["slice"].get(key, None) in shown
            ]
        return answer


@dataclass(frozen=True)
class EvaluationBy(LogRequest):
    """The results of metrics over a period, by any dimensions."""

    what = "evaluate-by"
    metrics: Sequence[Metric]
    days: Days
    cuts: Sequence[Sequence[Dimension]]

    def compute(self, log: EventLog, progress: Watch = unwatched) -> dict[str, Any]:
        names = [each.name for each in self.metrics]
        by = [",".join(part.key for part in cut) for cut in self.cuts]
        queries = queries_of(part for cut in self.cuts for part in cut)
        return evaluate_log(
            log, names, by, queries=queries, progress=_read(progress), **self.days.scope
        ).to_dict()


def largest(rows: Sequence[OnlineResult], dimension: str) -> list[str]:
    """The values of a dimension, largest first."""
    sizes: dict[str, int] = {}
    for row in rows:
        if set(row.slice) == {dimension}:
            value = row.slice[dimension]
            sizes[value] = max(sizes.get(value, 0), row.n)
    return sorted(sizes, key=lambda value: (-sizes[value], value))


@dataclass(frozen=True)
class Worst(LogRequest):
    """The queries that lose most searches in a period."""

    what = "worst"
    days: Days
    by: Dimension

    def compute(self, log: EventLog, progress: Watch = unwatched) -> dict[str, Any]:
        by, most = self.by.key or None, MOST_QUERIES
        with open_engine() as engine:
            return worst_queries(
                log,
                engine,
                by=by,
                limit=most,
                queries=self.by.queries,
                progress=_read(progress),
                **self.days.scope,
            ).to_dict()


@dataclass(frozen=True)
class Watching(LogRequest):
    """The parameters of a watch, as of ``workflows.online.watch.watch``."""

    what = "watch"
    cuts: Sequence[Sequence[Dimension]] = ()
    until: str | None = None
    now: int = 0
    window: str = "1d"
    history: str = HISTORY
    metrics: Sequence[str] = ()
    margins: Sequence[str] = ()
    most: int | None = None
    # Gets the log and the result when it is computed
    found: Callable[[EventLog, Watched], None] | None = field(
        default=None, compare=False, repr=False
    )

    def question(self, log: EventLog) -> Question:
        window, _ = window_of(self.window, self.until, log, self.now)
        metrics = registry.find_all(self.metrics or registry.DEFAULT)
        instead = {"window": [window.label, self.until is None], "now": None, "until": None}
        own = {"found": None, "causes": _CAUSES, "versions": _said(metrics)}
        return {**super().question(log), **instead, **own}

    def compute(self, log: EventLog, progress: Watch = unwatched) -> dict[str, Any]:
        """``Watched``, as JSON; ``compared_in_all`` counts the changes if some are left out."""
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
                progress=_read(progress),
            )
        if self.found is not None:
            self.found(log, result)
        answer = result.to_dict()
        more = len(result.changes) - (self.most or len(result.changes))
        if more > 0:
            note = f"{more:,} more rows in slices: karat online watch lists all"
            answer |= {"changes": answer["changes"][: self.most], "notes": [*result.notes, note]}
            answer |= {"compared_in_all": len(result.changes)}
        return answer


def watch_of(
    workspace: Workspace, log: EventLog, window: str, until: str, by: Sequence[str]
) -> tuple[Watching, list[str]]:
    """The watch of a window, and notes on its slices.

    Without ``by``, it is sliced by the first ``MOST_CUTS`` attributes of the log.
    """
    notes: list[str] = []
    if by:
        cuts = [dimension(workspace, log, name) for name in by]
    else:
        known = in_log(log)
        sliceable = [each for each in known if _sliceable(each.name, log)]
        cuts = sliceable[:MOST_CUTS]
        if refused := [each.name for each in known if each not in sliceable]:
            notes.append(f"cannot slice by {', '.join(refused)}: the name is reserved")
        if len(sliceable) > MOST_CUTS:
            more = len(sliceable) - MOST_CUTS
            notes.append(f"not sliced by {more:,} more attributes: choose one to see it")
    cut = [[each] for each in cuts]
    return Watching(cut, until=until, window=window, most=MOST_CHANGES), notes


def _sliceable(name: str, log: EventLog) -> bool:
    try:
        return name != "class" and bool(cut_of_watch(name, log))
    except UsageError:
        return False


@dataclass(frozen=True)
class Against(LogRequest):
    """A stored run's judgments against users' behaviour, by query."""

    what = "against"
    workspace: Workspace
    run: RunRow
    measure: str
    metric: Metric
    by: str
    days: Days
    inputs_digest: str

    @classmethod
    def of(
        cls,
        workspace: Workspace,
        days: Days,
        run: str,
        measure: str,
        metric: str,
        by: str | None,
    ) -> Against:
        """The request with defaults for what is empty; UsageError for what is unknown."""
        default_by = "class" if "class" in classes_in(workspace) else ""
        return cls(
            workspace,
            find_runs(workspace, [run])[0],
            measure_name(measure),
            registry.find(metric or METRICS[0]),
            default_by if by is None else by,
            days,
            inputs_digest(workspace),
        )

    def compute(self, log: EventLog, progress: Watch = unwatched) -> dict[str, Any]:
        judgments = judged(self.workspace)
        other_metrics = [name for name in METRICS if name != self.metric.name]
        with open_engine() as engine:
            return against(
                log,
                engine,
                judgments.qrels,
                read_stored(self.workspace, self.run),
                measures=[self.measure],
                metrics=[self.metric.name, *other_metrics],
                queries=judgments.queries,
                by=self.by or None,
                min_searches=LEAST,
                progress=_read(progress),
                **self.days.scope,
            ).to_dict()


def measure_name(measure: str) -> str:
    """The canonical name of a measure; of the first default one if empty."""
    return str(parse(measure or DEFAULTS[0]))


@dataclass(frozen=True)
class Rows(LogRequest):
    """The rows behind a number."""

    what = "rows"
    workspace: Workspace
    table: Table  # the table of facts
    metric: Metric | None  # the metric; None for all rows of the table
    # `yes` rows in the numerator · `no` rows only in the denominator · empty: all rows of the table
    counts: Counts
    days: Days
    slices: Sequence[Part]
    limit: int
    offset: int = 0

    @classmethod
    def of(
        cls,
        workspace: Workspace,
        log: EventLog,
        days: Days,
        metric: str,
        table: Table | None,
        counts: Counts,
        slices: Sequence[str],
        limit: int,
        offset: int = 0,
    ) -> Rows:
        """The rows that an address names; UsageError for an unknown metric or slice."""
        entry = registry.find(metric) if metric.strip() else None
        facts = table or "searches" if entry is None else entry.compute.facts
        sliced = parts(workspace, log, slices)
        return cls(workspace, facts, entry, counts if entry else "", days, sliced, limit, offset)

    @property
    def _only(self) -> str | None:
        if self.metric is None or not self.counts:
            return None
        return self.metric.name if self.counts == "yes" else f"!{self.metric.name}"

    def compute(self, log: EventLog, progress: Watch = unwatched) -> dict[str, Any]:
        """``total``, ``rows`` by column (with pseudonyms, times in seconds), and ``schema``."""
        progress("reading events", 0, 0)
        queries = queries_of(part.dimension for part in self.slices)
        with open_engine() as engine:
            frame, total = look(
                log,
                engine,
                self.table,
                filters_of(self.slices),
                only=self._only,
                limit=self.limit,
                offset=self.offset,
                classes=None if queries is None else class_table(queries)[0],
                **self.days.scope,
            )
        frame = for_eyes(frame, log, self.table, self.workspace.golden.salt)
        kinds = {
            name: "text" if kind == pl.String else "float" if kind.is_float() else "whole"
            for name, kind in frame.schema.items()
        }
        return {"total": total, "rows": frame.to_dict(as_series=False), "schema": kinds}


@dataclass(frozen=True)
class SliceValues(LogRequest):
    """The values of some dimensions among the searches, most frequent first."""

    what = "values"
    days: Days
    of: Sequence[Dimension]

    def compute(self, log: EventLog, progress: Watch = unwatched) -> dict[str, list[str]]:
        keys = [each.key for each in self.of]
        queries = queries_of(self.of)
        try:
            results = evaluate_log(
                log, [_EACH], keys, queries=queries, progress=_read(progress), **self.days.scope
            )
        except UsageError:  # no searches in these days, or an unusable dimension
            return {}
        rows = sorted(results.results, key=lambda row: -(row.total or 0))
        return {
            key: [row.slice[key] for row in rows if key in row.slice][:_MOST_VALUES] for key in keys
        }
