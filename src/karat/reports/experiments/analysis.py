"""An analysed experiment: health first, then effects, then the verdict's reason."""

from __future__ import annotations

from collections.abc import Sequence

from karat.online.metrics import registry
from karat.reports.experiments.answer import Answer
from karat.reports.online.evaluation import UNITS, figure
from karat.reports.phrases.numbers import percent
from karat.reports.table import DASH, Column, Table
from karat.tables.experiments.experiment import Effect, ExperimentResult, Role

WORDS = {"pass": "Ship", "fail": "Hold", "cannot_tell": "Cannot tell", "unhealthy": "Unhealthy"}
_STATES = {"pass": "ok", "fail": "FAILED", "cannot_tell": "cannot tell"}
ROLES: dict[Role, str] = {
    "decision": "Decision",
    "guardrail": "Guardrails",
    "diagnostic": "Diagnostics, which decide nothing",
}


def headline(result: ExperimentResult) -> str:
    """Verdict and reason in a line."""
    word = WORDS[result.verdict]
    if result.verdict == "cannot_tell" and not result.ended:
        word = "Keep running"
    return f"{word}: {result.reason}"


def answer(result: ExperimentResult) -> Answer:
    return Answer(tables(result), result.notes, headline(result), about(result))


def tables(result: ExperimentResult) -> list[Table]:
    """Health, effects by role, and slices."""
    found = [Table("Health", HEALTH, list(result.health))]
    for role, title in ROLES.items():
        rows = [effect for effect in result.effects if effect.role == role]
        if rows:
            found.append(Table(title, effect_columns(role), rows))
    if result.queries:
        found.append(carriers(result))
    for by in result.by:
        names = set(by.split(","))
        rows = [row for row in result.slices if set(row.slice) == names]
        rows.sort(key=lambda row: list(row.slice.values()))  # each slice with all its metrics
        if rows:
            found.append(Table(f"By {by}", slice_columns(), rows, group="slice"))
    return found


def carriers(result: ExperimentResult) -> Table:
    """The queries that add most to the changes."""
    return Table("Queries that carry it", QUERIES, result.queries, group="metric")


def about(result: ExperimentResult) -> str:
    """Arms, days and users in a line."""
    days = "no days" if result.period is None else " to ".join(dict.fromkeys(result.period))
    planned = f" of {result.users_planned:,} planned" if result.users_planned else ""
    name = f"{result.name}: " if result.name else ""
    arms = f"{result.treatment} against {result.control}"
    return f"{name}{arms}, {days}, {result.users:,} users{planned}"


HEALTH: Sequence[Column] = (
    Column("check", "Check", text=lambda row: row.check.replace("_", " ")),
    Column("state", "State", "words", text=lambda row: _STATES[row.state]),
    Column("detail", "Seen", "text", least=30),
)


def effect_columns(role: Role) -> list[Column]:
    """The columns of effects of a role."""
    corrected = role != "guardrail"
    return [
        Column("metric", "Metric", "words"),
        Column("control", "Control", "number", text=lambda e: value(e, e.control)),
        Column("treatment", "Treatment", "number", text=lambda e: value(e, e.treatment), drop=2),
        Column("difference", "Change", "signed", text=change),
        Column("ci_low", "95 %", "number", text=interval),
        Column("cs_low", "Any day", "number", text=sequence, optional=True, drop=4,
               help="Confidence sequence: valid on every day, however often it is read."),
        Column("relative", "Lift", "number", text=lift),
        Column("p_corrected", "p", "p", shown=corrected, optional=True, drop=3),
        Column("margin", "Margin", "number", shown=not corrected, optional=True, drop=1,
               text=lambda e: value(e, e.margin)),
        Column("held", "", "words", optional=True, text=lambda e: e.held.replace("_", " ")),
        Column("reason", "Why not", "sentence", optional=True, drop=5),
    ]  # fmt: skip


def slice_columns() -> list[Column]:
    """The columns of effects in slices."""
    return [
        Column("slice", "Slice", "words",
               text=lambda e: ", ".join(v or "(not logged)" for v in e.slice.values())),
        Column("metric", "Metric", "words"),
        Column("control", "Control", "number", text=lambda e: value(e, e.control), drop=1),
        Column("difference", "Change", "signed", text=change),
        Column("ci_low", "95 %", "number", text=interval),
        Column("shrunk", "Shrunk", "signed", text=lambda e: signed_value(e, e.shrunk),
               help="Shrunk towards the change of all users, by its uncertainty."),
        Column("p_corrected", "p", "p", optional=True),
        Column("n_control", "Users", "count", value=lambda e: e.n_control + e.n_treatment, drop=2),
    ]  # fmt: skip


QUERIES: Sequence[Column] = (
    Column("metric", "Metric", "words"),
    Column("query", "Query", least=16, text=lambda row: row.query or "(without text)"),
    Column("adds", "Adds", "signed", text=lambda row: _in_unit(row.metric, row.adds),
           help="What it adds to the change; all queries together are the change."),
    Column("control", "Control", text=lambda row: figure(registry.find(row.metric), row.control)),
    Column("treatment", "Treatment",
           text=lambda row: figure(registry.find(row.metric), row.treatment)),
    Column("n_control", "n", "count", value=lambda row: round(row.n_control + row.n_treatment)),
)  # fmt: skip


def value(effect: Effect, number: float | None) -> str:
    """A value of a metric with its unit."""
    return figure(registry.find(effect.metric), number)


def signed_value(effect: Effect, number: float | None) -> str:
    """A difference with its sign and unit; percentage points for shares."""
    return DASH if number is None else _in_unit(effect.metric, number)


def _in_unit(metric: str, number: float) -> str:
    unit = registry.find(metric).unit
    if unit == "share":
        return f"{100 * number:+.2f}".replace("-", "−")
    digits = 1 if unit == "milliseconds" else 3
    return f"{number:+,.{digits}f}".replace("-", "−") + UNITS.get(unit, "")


def change(effect: Effect) -> str:
    points = " pp" if effect.unit == "share" and effect.difference is not None else ""
    return signed_value(effect, effect.difference) + points


def interval(effect: Effect) -> str:
    return _span(effect, effect.ci_low, effect.ci_high)


def sequence(effect: Effect) -> str:
    return _span(effect, effect.cs_low, effect.cs_high)


def _span(effect: Effect, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return DASH
    ends = [signed_value(effect, end) for end in (low, high)]
    return " to ".join(ends)


def lift(effect: Effect) -> str:
    if effect.relative is None:
        return DASH
    sign = "+" if effect.relative > 0 else "−" if effect.relative < 0 else ""
    return sign + percent(abs(effect.relative))
