"""Is it better for users? The effects of an experiment whose arms are in the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from karat.engines.frames.engine import Engine
from karat.engines.frames.opening import open_engine
from karat.errors import UsageError, check_known, nearest
from karat.experiments import health as checks
from karat.experiments.effects import Effects
from karat.experiments.evidence import AGE_CUT, FIRST_CUT, Evidence
from karat.experiments.verdict import verdict
from karat.formats.events.exposures import read_exposures
from karat.golden.traffic import folded
from karat.online.estimates import needed
from karat.online.evidence import Cut
from karat.online.health import NO_REAL_PEOPLE
from karat.online.metrics import registry
from karat.online.metrics.entry import Metric
from karat.online.metrics.expressions import why_unknown
from karat.online.rules import Rules, duration_text, margin
from karat.tables.experiments.experiment import (
    MOST_HARM,
    DayEffect,
    Effect,
    ExperimentPlan,
    ExperimentResult,
    Guard,
    Role,
)
from karat.tables.online.events import EventLog
from karat.workflows.experiments._evidence import Reading, gather
from karat.workflows.offline import inputs
from karat.workflows.online.evaluate import classes_of, cut_of, event_log

DECIDE = ("SAT",)
GUARDS = (
    *(
        Guard(metric, 0.05, relative=True)
        for metric in ("CTR", "Abandonment", "ZeroResults", "Latency(p95)")
    ),
    Guard("ErrorRate", 0.002),  # a share of a rate near 0 cannot be one
)
DIAGNOSE = ("Dwell", "Reformulation", "MRCR", "AddToCart", "Conversion")
_TOP = 10  # documents of two runs that are compared


def analyze(
    log: EventLog,
    engine: Engine,
    plan: ExperimentPlan,
    *,
    by: Sequence[str] = (),
    queries: Any = None,
    exposed: pl.DataFrame | None = None,
    differs: Sequence[Any] = (),
    rules: Rules | None = None,
    despite: str = "",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> ExperimentResult:
    """Health first, then effects, then a verdict.

    Args:
        log: The events; their arm, or ``exposed``, says who was in which arm.
        engine: An open engine.
        plan: Arms, metrics and windows.
        by: Dimensions to slice decision metrics and guardrails by.
        queries: Queries with ``text`` and ``class``, for slices by class.
        exposed: ``user_key``, ``time_us`` and ``arm`` of exposures that are not in the log.
        differs: The runs of both arms for the queries of the log: users count from their first
            search on whose first ten documents differ. Needs ``queries`` with texts.
        rules: Of sessions and searches.
        despite: The reason for which effects of an unhealthy experiment are shown.
        seed: Of the resampled buckets of users, for quantiles.
        progress: Gets the events read and all.
    """
    rules, plan = rules or Rules(), _named(plan)
    _check_arms(log, plan, exposed, differs)
    roles, left_out = _roles(plan, log)
    decisions = roles.get("decision", [])
    sliced = [*decisions, *roles.get("guardrail", [])]
    cuts = _cuts(by, log)
    classes, notes = classes_of(cuts, queries)
    differ = _differing(differs, queries) if differs else None
    reading = Reading(log, engine, plan, rules, classes, exposed, differ)
    evidence = gather(reading, _asked(plan, roles, dict.fromkeys(cuts, sliced)), progress)
    users = sum(evidence.counts["users"])
    ended = _ended(plan, users - evidence.open_windows, evidence.days)
    effects = Effects(evidence, plan, log, rules, ended=ended, seed=seed)
    found = effects.of_all(roles)
    by_age = _ages(effects, decisions, found)
    checked = checks.health(evidence, plan, [metric.name for metric in decisions], by_age)
    decided, reason = verdict(checked, found, despite=despite, ended=ended)
    hidden = decided == "unhealthy"
    return ExperimentResult(
        verdict=decided,
        reason=reason,
        health=checked,
        effects=[] if hidden else found,
        slices=[] if hidden else [s for cut in cuts for s in effects.slices(cut, sliced, found)],
        queries=[] if hidden else effects.queries(decisions),
        over_time=[] if hidden else effects.over_time(decisions, FIRST_CUT),
        ages=[] if hidden else by_age,
        notes=[*left_out, *_notes(reading, evidence, found, ended=ended), *notes],
        name=plan.name,
        control=plan.control,
        treatment=plan.treatment,
        period=evidence.period,
        window_us=plan.window_us,
        alpha=plan.alpha,
        users=users,
        users_planned=plan.users,
        ended=ended,
        valid_on="" if evidence.period is None else evidence.period[1],
        despite=despite if any(check.state == "fail" for check in checked) else "",
        by=tuple(dict.fromkeys(",".join(cut) for cut in cuts)),
        rules=rules.id,
        simulated=log.simulated,
        engine=engine.name,
    )


def _asked(
    plan: ExperimentPlan, roles: Mapping[Role, Sequence[Metric]], sliced: Mapping[Cut, list[Metric]]
) -> dict[Cut, list[Metric]]:
    """The metrics of each cut, and those that count their users."""
    metrics = [metric for of_role in roles.values() for metric in of_role]
    decisions = list(roles.get("decision", []))
    over_time = metrics if plan.steps else decisions
    asked = {(): metrics, FIRST_CUT: over_time, AGE_CUT: decisions, **sliced}
    return {cut: needed(of_cut) for cut, of_cut in asked.items()}


def experiment(
    events: Any,
    control: str,
    treatment: str,
    *,
    decide: Sequence[str] = (),
    guard: Mapping[str, float | str] | None = None,
    plan: ExperimentPlan | None = None,
    by: str | Sequence[str] = (),
    queries: Any = None,
    mapping: Any = None,
    timezone: str | None = None,
    engine: str = "polars",
    despite: str = "",
    seed: int = 0,
    **planned: Any,
) -> ExperimentResult:
    """Compare two arms of an experiment: health, effects with intervals, a verdict.

    Args:
        events: A log with arms, as ``karat.evaluate_online`` takes it.
        control: The arm that users had before.
        treatment: The arm that is new.
        decide: Metrics of which one must be better, and none worse; ``SAT`` if none are given.
        guard: Metrics and the harm that does not matter: ``{"CTR": "2%", "ErrorRate": 0.002}``.
        plan: A plan that was read from a file; what is given here wins.
        by: Dimensions to slice by, such as ``class`` or ``day``.
        queries: For ``class``: queries with ``text`` and ``class``.
        mapping: The meaning of columns and actions, as for ``karat online import``.
        timezone: Time zone in which days begin; UTC if None.
        engine: ``polars`` | ``duckdb`` | ``spark``.
        despite: The reason for which effects of an unhealthy experiment are shown.
        seed: Random seed of intervals of quantiles.
        planned: Fields of ``ExperimentPlan``, such as ``users=20_000`` or ``window_us``.

    Returns:
        The result; ``verdict`` is ``pass``, ``fail``, ``cannot_tell`` or ``unhealthy``.

    Raises:
        UsageError: unknown arm, metric or slice (with the nearest name), or no arms in the log.
        InputError: the log cannot be read.
    """
    guards = tuple(read_guard(f"{name}:{size}") for name, size in (guard or {}).items())
    base = replace(plan or ExperimentPlan(control, treatment), control=control, treatment=treatment)
    return analyze_events(
        events,
        plan_of(base, {"decide": tuple(decide), "guards": guards, **planned}),
        mapping=mapping,
        timezone=timezone,
        engine=engine,
        by=[by] if isinstance(by, str) and by else by,
        queries=queries,
        despite=despite,
        seed=seed,
    )


def analyze_events(
    events: Any,
    plan: ExperimentPlan,
    *,
    mapping: Any = None,
    timezone: str | None = None,
    exposures: tuple[str | Path | None, str | None] = (None, None),
    engine: str = "polars",
    master: str | None = None,
    **how: Any,
) -> ExperimentResult:
    """As ``analyze``, of anything that is a log; ``exposures`` is a file and an experiment.

    Either may be None: the file and the name of the plan are taken.
    """
    exposed = None
    file, name = exposures
    if file is None:
        file, name = plan.exposures, name or plan.name or None
    if file is None and exposures[1] is not None:
        raise UsageError(f"no exposures of {name} are given", fix="name their table as well")
    if file is not None:
        from karat.store.events.files import with_users  # which a plan does without

        table = with_users(read_exposures(file, name))
        exposed = table.select("user_key", "time_us", "arm")
    with (
        event_log(events, mapping=mapping, timezone=timezone) as (log, notes),
        open_engine(engine, master=master) as opened,
    ):
        result = analyze(log, opened, plan, exposed=exposed, **how)
    return replace(result, notes=[*notes, *result.notes])


def with_defaults(plan: ExperimentPlan) -> ExperimentPlan:
    """The plan with the default roles, if it declares neither decisions nor guardrails."""
    if plan.decide or plan.guards:
        return plan
    return replace(plan, decide=DECIDE, guards=GUARDS)


def _named(plan: ExperimentPlan) -> ExperimentPlan:
    """The plan with the names that metrics have in the registry."""
    guards = tuple(replace(each, metric=registry.find(each.metric).name) for each in plan.guards)
    return replace(
        plan,
        guards=guards,
        caps={registry.find(name).name: cap for name, cap in plan.caps.items()},
    )


def read_guard(text: str) -> Guard:
    """A guardrail from text: ``CTR:0.01``, ``ErrorRate:5%`` of the control, ``Latency:p95:20``.

    Raises:
        UsageError: no margin, or an unknown metric.
    """
    name, colon, size = text.rpartition(":")
    read = margin(size, MOST_HARM) if colon else None
    if read is None:
        raise UsageError(
            f"the guardrail {text!r} has no margin",
            fix="METRIC:MARGIN, such as ErrorRate:0.002, CTR:2% or Latency:p95:20",
        )
    return Guard(registry.find(name).name, *read)


def _check_arms(
    log: EventLog, plan: ExperimentPlan, exposed: pl.DataFrame | None, differs: Sequence[Any]
) -> None:
    known: Iterable[str] = log.arms
    if exposed is not None:
        known = sorted(exposed["arm"].unique().drop_nulls().to_list())
    known = list(known)
    if not known:
        raise UsageError(
            "the log has no arms of experiments",
            fix="name their column in a mapping (arm), or give the table of exposures",
            command="karat experiment analyze … --exposures FILE",
        )
    if plan.trigger is not None and plan.trigger not in log.attributes:
        raise UsageError(
            f"the log has no attribute {plan.trigger!r} that could be the trigger",
            nearest=nearest(plan.trigger, log.attributes, 1),
            fix="log with each search, in both arms, whether the arms' answers differ",
        )
    if exposed is not None and (plan.trigger is not None or differs):
        raise UsageError(
            "a trigger needs the arm of each search, and exposures say that of users",
            fix="log the arm with each search, or leave out the trigger",
        )
    if plan.control == plan.treatment:
        raise UsageError(f"control and treatment are both {plan.control}", fix="name two arms")
    for arm in (plan.control, plan.treatment):
        check_known(
            arm,
            known,
            f"the log has no arm {arm!r}",
            f"its arms are {', '.join(known[:10])}" + (", …" if len(known) > 10 else ""),
        )


def _differing(runs: Sequence[Any], queries: Any) -> pl.DataFrame:
    """The folded texts of the queries whose first ten documents differ between two runs."""
    known = inputs.queries(queries)
    texts = {} if known is None else known.texts()
    if not texts:
        raise UsageError(
            "runs that differ need the texts of their queries",
            fix="--queries FILE, with the columns query_id and text",
        )
    first, second = (
        dict(
            run.frame()
            .filter(pl.col("rank") <= _TOP)
            .sort("rank")
            .group_by("query_id", maintain_order=True)
            .agg("doc_id")
            .iter_rows()
        )
        for run in inputs.runs(list(runs))
    )
    changed = [text for query, text in texts.items() if first.get(query) != second.get(query)]
    return pl.DataFrame({"query_key": folded(changed)}, {"query_key": pl.String}).unique()


def _cuts(by: Sequence[str], log: EventLog) -> list[Cut]:
    cuts = [cut_of(dimensions, log) for dimensions in dict.fromkeys(by)]
    if any("arm" in cut for cut in cuts):
        raise UsageError("arms are compared already", fix="slice by something else than arm")
    return cuts


def _roles(plan: ExperimentPlan, log: EventLog) -> tuple[dict[Role, list[Metric]], list[str]]:
    """The metrics of each role that the log has data for, and notes on those it has not."""
    decide = registry.find_all(plan.decide)
    guards = [registry.find(guard.metric) for guard in plan.guards]
    taken = {metric.name for metric in (*decide, *guards)}
    diagnose = [m for m in registry.find_all(plan.diagnose or DIAGNOSE) if m.name not in taken]
    for metric in decide:
        if metric.direction == "none":
            raise UsageError(
                f"{metric.name} cannot decide: neither more nor less of it is better by itself",
                fix="let it guard or explain",
            )
    if len({metric.name for metric in guards}) < len(guards):
        raise UsageError("a metric has two margins", fix="give each guardrail one margin")
    both = {metric.name for metric in decide} & {metric.name for metric in guards}
    if both:
        raise UsageError(f"{min(both)} cannot decide and guard", fix="give it one role")
    roles: dict[Role, list[Metric]] = {}
    notes = []
    for role, metrics in (("decision", decide), ("guardrail", guards), ("diagnostic", diagnose)):
        for metric in metrics:
            if metric.name == "ClickPosition" or not metric.point:
                raise UsageError(
                    f"{metric.name} has no single value to compare", fix="leave it out"
                )
            why = why_unknown(metric, log)
            asked = plan.diagnose if role == "diagnostic" else plan.guards != GUARDS
            if why and asked:
                notes.append(f"{metric.name}: {why}")
            if not why or (asked and role != "diagnostic"):
                roles.setdefault(role, []).append(metric)  # type: ignore[arg-type]
    return roles, notes


def _ended(plan: ExperimentPlan, users: int, days: int) -> bool:
    """Whether the planned size, of closed windows, and length are reached.

    Without a plan the log is the experiment.
    """
    return (plan.users is None or users >= plan.users) and (
        plan.weeks is None or days >= 7 * plan.weeks
    )


def _ages(effects: Effects, metrics: Sequence[Metric], wholes: Sequence[Effect]) -> list[DayEffect]:
    """Effects by days since first exposure."""
    rows = [
        DayEffect(
            row.metric,
            next(iter(row.slice.values())),
            row.difference,
            row.ci_low,
            row.ci_high,
            row.n_control + row.n_treatment,
        )
        for row in effects.slices(AGE_CUT, metrics, wholes)
        if row.difference is not None
    ]
    return sorted(rows, key=lambda row: (row.metric, len(row.day), row.day))


def _notes(
    reading: Reading, evidence: Evidence, effects: Sequence[Effect], *, ended: bool
) -> list[str]:
    plan, log = reading.plan, reading.log
    notes = [NO_REAL_PEOPLE] if log.simulated else []
    if plan.window_us is None:
        notes.append(
            "no window is planned: users count for different times, and a look every day sees "
            "returning users only in part (--window 7d gives each the same)"
        )
    else:
        open_ = evidence.open_windows
        notes.append(
            f"each user counts for {duration_text(plan.window_us)} from the first exposure"
            + (f"; {open_:,} users whose window is open are left out" if open_ else "")
        )
    if plan.users is None and plan.weeks is None:
        notes.append("no size is planned: the end of the log is taken as the planned end")
    elif not ended:
        notes.append(
            "the planned end is not reached: the confidence sequences (CS) decide; the 95 % "
            "intervals are valid at the end only"
        )
    if reading.triggered:
        notes.append(
            "users count from the first search on whose answers differ between the arms; diluted "
            "is the difference on all traffic, as if the trigger rate were known exactly"
        )
    adjusted = [e for e in effects if e.variance_kept is not None]
    if adjusted:
        kept = ", ".join(f"{e.metric} {100 * (1 - (e.variance_kept or 0)):.0f} %" for e in adjusted)
        notes.append(f"variance removed by the period before the experiment: {kept}")
    else:
        notes.append("no variance is removed: the log has no period before the experiment")
    if plan.guards == GUARDS:
        notes.append(
            "margins of guardrails are the defaults (5 % of the control): declare your own"
        )
    return notes


def plan_of(base: ExperimentPlan, changes: Mapping[str, Any]) -> ExperimentPlan:
    """A plan with what the command line says instead."""
    return with_defaults(replace(base, **{k: v for k, v in changes.items() if v not in (None, ())}))


def read_shares(text: str) -> tuple[float, float]:
    """Weights of control and treatment from ``90:10``.

    Raises:
        UsageError: they are not two numbers above 0.
    """
    parts = text.split(":")
    try:
        control, treatment = map(float, parts)
    except ValueError:
        control = treatment = 0.0
    if not 0 < control < 1e12 or not 0 < treatment < 1e12:
        raise UsageError(f"{text!r} are not two shares", fix="--shares 90:10: control, treatment")
    return control, treatment
