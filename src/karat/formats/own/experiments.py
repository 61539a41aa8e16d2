"""Plans of experiments, as TOML."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from karat.errors import InputError, UsageError
from karat.formats import toml
from karat.online.metrics import registry
from karat.online.metrics.entry import Ratio
from karat.online.rules import duration, margin
from karat.tables.days import day_number
from karat.tables.experiments.experiment import MOST_HARM, ExperimentPlan, Guard

_KEYS = (
    "name", "control", "treatment", "shares", "users", "weeks", "start", "end", "window", "before",
    "alpha", "decide", "diagnose", "exposures", "trigger", "steps",
)  # fmt: skip


def read_plan(path: str | Path) -> ExperimentPlan:
    """The plan of an experiment.

    Raises:
        InputError: it is not a plan, with file, line and fix.
    """
    table = toml.read(path).check({"experiment": _KEYS, "guard": None, "cap": None})
    here = "experiment"
    for key in ("control", "treatment"):
        if table.text_or_none(here, key) is None:
            raise table.wrong(f"[experiment] has no {key}", f'{key} = "b": the name of the arm')
    start, end = (_day(table, key) for key in ("start", "end"))
    window = table.text_or_none(here, "window", "7d")
    exposures = table.text_or_none(here, "exposures", "exposures.csv")
    return ExperimentPlan(
        control=table.text(here, "control", ""),
        treatment=table.text(here, "treatment", ""),
        decide=tuple(read_metric(table, here, name) for name in table.texts(here, "decide")),
        diagnose=tuple(read_metric(table, here, name) for name in table.texts(here, "diagnose")),
        guards=read_guards(table),
        name=table.text(here, "name", Path(path).stem),
        shares=_shares(table),
        users=_count(table, "users", 10_000, 10**12),
        weeks=_count(table, "weeks", 2, 520),
        start=start,
        end=end,
        window_us=None if window is None else table.read(here, "window", "7d", duration),
        before_us=table.read(here, "before", "14d", duration),
        alpha=table.number(here, "alpha", 0.05, 1e-6, 0.5),
        exposures=None if exposures is None else str(Path(path).parent / exposures),
        steps=_steps(table),
        trigger=table.text_or_none(here, "trigger", "differs"),
        caps=_caps(table),
    )


def read_metric(table: toml.Tables, section: str, name: str) -> str:
    """The name of a metric as the registry writes it."""
    try:
        return registry.find(name).name
    except UsageError as error:
        line = toml.line_of(table.data, section, name)
        what = f"[{section}] {error.what}"
        raise InputError(
            what, file=table.name, line=line, fix=error.fix, command=error.command
        ) from None


def _caps(table: toml.Tables) -> dict[str, float]:
    caps = {}
    for key in table.content.get("cap", {}):
        metric = registry.find(read_metric(table, "cap", key))
        if not isinstance(metric.compute, Ratio):
            raise table.wrong(
                f"[cap] {metric.name} is not a ratio of sums",
                "cap a metric such as RevenuePerSearch",
                toml.line_of(table.data, "cap", key),
            )
        caps[metric.name] = table.number("cap", key, 500, 0, 1e15)
    return caps


def _steps(table: toml.Tables) -> tuple[int, ...]:
    value = table.value("experiment", "steps", [])
    if not isinstance(value, list) or not all(isinstance(day, date) for day in value):
        raise table.invalid("experiment", "steps", "a list of days", "steps = [2026-11-09]")
    return tuple(sorted(map(day_number, value)))


def read_guards(table: toml.Tables) -> tuple[Guard, ...]:
    guards = []
    for metric, value in table.content.get("guard", {}).items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        share = isinstance(value, str) and value.strip().endswith("%")
        read = margin(str(value), MOST_HARM) if number or share else None
        if read is None:
            raise table.invalid("guard", metric, "a margin", f'{metric} = 0.002, or "5%"')
        guards.append(Guard(read_metric(table, "guard", metric), *read))
    return tuple(guards)


def _shares(table: toml.Tables) -> tuple[float, float]:
    value = table.value("experiment", "shares", [1, 1])
    good = (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(v, int | float) and not isinstance(v, bool) for v in value)
        and all(1e-6 <= v <= 1e12 for v in value)
    )
    if not good:
        raise table.invalid("experiment", "shares", "two numbers above 0", "shares = [50, 50]")
    return float(value[0]), float(value[1])


def _count(table: toml.Tables, key: str, example: int, most: int) -> int | None:
    if table.value("experiment", key) is None:
        return None
    return int(table.number("experiment", key, example, 1, most, whole=True))


def _day(table: toml.Tables, key: str) -> int | None:
    value = table.value("experiment", key)
    if value is None:
        return None
    if isinstance(value, date):
        return day_number(value)
    if isinstance(value, str):
        return table.read("experiment", key, "2026-11-02", day_number)
    raise table.invalid("experiment", key, "a day", f"{key} = 2026-11-02")
