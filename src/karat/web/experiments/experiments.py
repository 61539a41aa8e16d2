"""Experiments: their list, each with health, effects and slices; planning, and interleaving."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

from fastapi import APIRouter, Query, Response

from karat.errors import KaratError, MissingExtra
from karat.reports.charts import online as drawing
from karat.reports.experiments import analysis, interleaving, planning
from karat.tables.days import EPOCH, day_number
from karat.tables.experiments.experiment import DayEffect, Effect, ExperimentResult
from karat.tables.experiments.interleaving import InterleavingResult
from karat.tables.experiments.planning import Planning
from karat.tables.online.events import EventLog
from karat.tables.records import record_of
from karat.web.framework.auth import AReader
from karat.web.framework.call import Call
from karat.web.framework.errors import or_not_found
from karat.web.framework.pages import show
from karat.web.online.log import Lenient, LogPage, log_page, start_computing
from karat.workflows.experiments import stored
from karat.workflows.online import slices

ROUTER = APIRouter()
_MOST = 60  # slices on a page; the command has all
_WIDE = 1.0  # largest lift that is drawn, as a share


@dataclass(frozen=True, kw_only=True)
class ExperimentsPage(LogPage):
    template: ClassVar[str] = "experiments.html.j2"
    experiments: Sequence[Mapping[str, Any]] = ()
    interleaved: bool = False


@dataclass(frozen=True, kw_only=True)
class ExperimentPage(LogPage):
    template: ClassVar[str] = "experiment.html.j2"
    name: str = ""
    result: Mapping[str, Any] | None = None
    headline: str = ""
    by: str = ""
    choices: Sequence[tuple[str, str, bool]] = field(default=(), repr=False)
    roles: Sequence[tuple[str, Sequence[Mapping[str, Any]]]] = field(default=(), repr=False)
    checks: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    sliced: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    charts: Sequence[tuple[str, tuple[str, str]]] = field(default=(), repr=False)
    carried: Mapping[str, Any] | None = field(default=None, repr=False)
    axis: float = field(default=_WIDE, repr=False)


@dataclass(frozen=True, kw_only=True)
class TablesPage(LogPage):
    """Tables of a report: planning, interleaving."""

    template: ClassVar[str] = "experiment_tables.html.j2"
    headline: str = ""
    result: Mapping[str, Any] | None = None
    about: str = field(default="", repr=False)
    tables: Sequence[Mapping[str, Any]] = field(default=(), repr=False)


@ROUTER.get("/experiments")
def experiments(call: AReader) -> Response:
    """List the experiments that the workspace plans, with their verdicts."""

    def prepare(log: EventLog, _lenient: Lenient) -> Any:
        rows = [_row(call, log, each) for each in stored.declared(call.site.workspace)]
        return (
            {"experiments": rows, "interleaved": stored.interleaved(log), "computed": True},
            None,
            None,
        )

    return show(call, *log_page(call, ExperimentsPage, "Experiments", prepare))


@ROUTER.get("/experiments/planning")
def plan(call: AReader) -> Response:
    """Which effects the traffic of the log can show, and which metrics may decide."""
    about = (
        "Which effects an experiment on this traffic could show, and which metrics may decide it. "
        "Each arm has the share of users in the heading; power .8."
    )

    def shown(answer: Mapping[str, Any]) -> dict[str, Any]:
        found = record_of(Planning, answer)
        tables = [table.texts() for table in planning.tables(found)]
        return {"result": answer, "tables": tables, "notes": found.notes}

    def prepare(_log: EventLog, _lenient: Lenient) -> Any:
        return {}, stored.Plan(), shown

    return _below(call, TablesPage, "Planning", prepare, about=about)


@ROUTER.get("/experiments/interleaving")
def preference(call: AReader) -> Response:
    """Which of two interleaved rankings users prefer."""

    def prepare(log: EventLog, _lenient: Lenient) -> Any:
        asked = stored.Preference() if stored.interleaved(log) else None
        return {"computed": asked is None}, asked, shown

    def shown(answer: Mapping[str, Any]) -> dict[str, Any]:
        found = record_of(InterleavingResult, answer)
        return {
            "headline": interleaving.headline(found),
            "result": answer,
            "tables": [table.texts() for table in interleaving.tables(found)],
            "notes": found.notes,
        }

    about = (
        "Interleaved searches show one list made of two rankings: a click is a point for the one "
        "that picked the document. Log the mark of karat.interleave with each search, as the "
        "attribute teams."
    )
    return _below(call, TablesPage, "Interleaving", prepare, about=about)


@ROUTER.get("/experiments/{experiment}")
def shown_experiment(
    call: AReader, experiment: str, by: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Show an experiment: health first, then its effects."""
    with or_not_found():
        found = stored.find(call.site.workspace, experiment)

    def prepare(log: EventLog, _lenient: Lenient) -> Any:
        known = [each for each in slices.in_log(log) if each.name != "arm"]
        names = [each.name for each in known]
        chosen = by if by in names else ""
        fields = {
            "by": chosen,
            "choices": [(each.name, each.label, each.name == chosen) for each in known],
        }
        if found.plan is None:
            return {**fields, "wrong": found.error}, None, None
        asked = stored.Analysis(found, [chosen] if chosen else [])
        return fields, asked, _shown

    return _below(call, ExperimentPage, experiment, prepare, name=experiment)


def _below(
    call: Call, kind: type[LogPage], title: str, prepare: Callable[..., Any], **common: Any
) -> Response:
    """A page below the list of experiments."""
    crumbs = [("Experiments", "/experiments")]
    return show(call, *log_page(call, kind, title, prepare, crumbs=crumbs, **common))


def _row(call: Call, log: EventLog, each: stored.Declared) -> dict[str, Any]:
    """An experiment of the list; its verdict is None while it is computed."""
    row: dict[str, Any] = {"name": each.name, "where": f"/experiments/{quote(each.name, safe='')}"}
    if each.plan is None:
        return {**row, "verdict": "error", "said": each.error, "arms": ""}
    arms = f"{each.plan.treatment} against {each.plan.control}"
    try:
        answer = start_computing(call.site, log, stored.Analysis(each))
    except KaratError as error:
        return {**row, "verdict": "error", "said": str(error), "arms": arms}
    if answer is None:
        return {**row, "verdict": None, "said": "is being computed", "arms": arms}
    result = record_of(ExperimentResult, answer)
    return {
        **row,
        "verdict": result.verdict,
        "said": result.reason,
        "arms": arms,
        "users": result.users,
        "period": result.period,
    }


def _shown(answer: Mapping[str, Any]) -> dict[str, Any]:
    result = record_of(ExperimentResult, answer)
    roles = [
        (title, [effect_cells(effect) for effect in result.effects if effect.role == role])
        for role, title in analysis.ROLES.items()
    ]
    rows = sorted(result.slices, key=lambda row: (list(row.slice.values()), row.role))
    return {
        "result": answer,
        "headline": analysis.headline(result),
        "roles": [(title, effects) for title, effects in roles if effects],
        "checks": [
            {"name": check.check.replace("_", " "), "state": check.state, "detail": check.detail}
            for check in result.health
        ],
        "sliced": [effect_cells(row) for row in rows[:_MOST]],
        "charts": _charts(result),
        "carried": analysis.carriers(result).texts() if result.queries else None,
        "axis": axis_of(result.effects),
        "notes": result.notes,
    }


def axis_of(effects: Sequence[Effect]) -> float:
    """Half the width of an axis on which the lifts of effects are drawn."""
    ends = [
        abs(end)
        for effect in effects
        for end in (effect.relative_low, effect.relative_high)
        if end is not None
    ]
    return min(_WIDE, max([0.02, *ends]))


def effect_cells(effect: Effect) -> dict[str, Any]:
    """The cells of an effect, and its lift to draw."""
    return {
        "metric": effect.metric,
        "slice": ", ".join(value or "(not logged)" for value in effect.slice.values()),
        "control": analysis.value(effect, effect.control),
        "treatment": analysis.value(effect, effect.treatment),
        "change": analysis.change(effect),
        "interval": analysis.interval(effect),
        "sequence": analysis.sequence(effect),
        "lift": analysis.lift(effect),
        "drawn": {
            "value": effect.relative,
            "ci_low": effect.relative_low,
            "ci_high": effect.relative_high,
        },
        "margin": analysis.value(effect, effect.margin),
        "held": effect.held,
        "shrunk": analysis.signed_value(effect, effect.shrunk),
        "p": effect.p_corrected,
        "users": effect.n_control + effect.n_treatment,
        "reason": effect.reason,
        "guarded": effect.role == "guardrail",
    }


def _charts(result: ExperimentResult) -> list[tuple[str, tuple[str, str]]]:
    """The change of each decision metric by day; none without the packages for charts."""
    metrics = list(dict.fromkeys(row.metric for row in result.over_time))
    with suppress(MissingExtra):
        return [
            (
                metric,
                _chart(metric, [row for row in result.over_time if row.metric == metric], result),
            )
            for metric in metrics[:3]
        ]
    return []


def _chart(metric: str, rows: Sequence[DayEffect], result: ExperimentResult) -> tuple[str, str]:
    """For wide and for narrow screens."""
    unit = next(effect.unit for effect in result.effects if effect.metric == metric)
    first, last = day_number(rows[0].day), day_number(rows[-1].day)
    by_day = {day_number(row.day): row for row in rows}
    fixed, sequence, places = [], [], []
    for day in range(first, last + 1):
        row, date, at = by_day.get(day), EPOCH + timedelta(days=day), day - first
        if row is None:
            fixed.append(drawing.Point(at, None))
            text = "no new users"
        else:
            fixed.append(drawing.Point(at, row.difference, row.low, row.high))
            sequence.append(drawing.Point(at, row.difference, row.cs_low, row.cs_high))
            text = f"{row.difference:+.4g} ({row.users:,} users so far)"
        places.append(drawing.Place(f"{date.day} {date:%b}", f"{date}: {text}"))
    lines = [drawing.Line("95 %", fixed), drawing.Line("any day", sequence, 1)]
    title = f"Change of {metric}, treatment minus control, of the users exposed up to each day"
    wide, narrow = (
        drawing.over_time(lines, places, title=title, unit=unit, size=size)
        for size in (drawing.WIDE, drawing.NARROW)
    )
    return wide, narrow
