"""Simulated user logs over a golden set and runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np

from karat.errors import UsageError, nearest
from karat.formats.events.ubi import write_events
from karat.formats.tables.writing import beside
from karat.online.simulate.behaviours import Break, Habits, find_behaviour
from karat.online.simulate.people import Simulated, simulate
from karat.online.simulate.population import populate
from karat.online.simulate.said import SimulatedLog, told
from karat.online.simulate.shelf import Shelf, stock
from karat.tables import Queries
from karat.tables.days import day_number
from karat.workflows.offline import inputs

Effect = Literal["zero", "worse"]
_OTHERS = (
    ".csv", ".tsv", ".xls", ".xlsx", ".ods", ".arrow", ".feather", ".ipc", ".avro", ".orc",
    ".sqlite", ".db", ".xml",
)  # fmt: skip
MOST_EVENTS = 30_000_000
"""Approximate maximum number of searches of one simulation; more would not fit into memory."""


@dataclass(frozen=True, slots=True)
class Planted:
    attribute: str  # attribute of the queries
    value: str  # value of the affected queries
    day: date  # its first day
    effect: Effect = "zero"  # `zero` or `worse`; see `karat.online.simulate.behaviours.Break`


def simulate_log(
    qrels: Any,
    runs: Any,
    target: str | Path | None = None,
    *,
    last_day: date,
    queries: Any = None,
    days: int = 28,
    users: int = 500,
    sessions: float = 100.0,
    seed: int = 0,
    behaviour: str = "position",
    habits: Habits | None = None,
    instant: float = 0.25,
    attributes: Sequence[str] = (),
    weight: Mapping[str, float] | None = None,
    planted: Sequence[Planted] = (),
) -> tuple[Simulated, SimulatedLog]:
    if target is not None:
        _check_name(target)
    habits = habits or Habits()
    systems = inputs.runs(runs)
    _check(days, users, sessions, seed, instant, len(systems), habits)
    if len({run.name for run in systems}) < len(systems):
        raise UsageError(
            f"two runs are called {systems[0].name!r}, but arms need different names",
            fix="give files with different names",
        )
    clicks = find_behaviour(behaviour)
    graded, about = inputs.qrels(qrels), inputs.about(queries, qrels)
    rng = np.random.default_rng(seed)
    shelf = stock(graded, systems, rng, queries=about, attributes=attributes, weight=weight)
    first = last_day - timedelta(days=days - 1)
    simulated = simulate(
        shelf,
        rng,
        first_day=day_number(first),
        days=days,
        people=populate(users, len(systems), rng, instant=instant),
        sessions=sessions,
        behaviour=clicks,
        habits=habits,
        breaks=[_break(each, about, shelf, first, days) for each in planted],
    )
    if target is not None:
        write_log(simulated, target)
    file_name = None if target is None else str(target)
    return simulated, told(
        simulated,
        file=file_name,
        first=first.isoformat(),
        last=last_day.isoformat(),
        behaviour=behaviour,
        arms=shelf.arms,
        seed=seed,
    )


def write_log(simulated: Simulated, target: str | Path) -> None:
    """Write the events: ``.parquet`` with the columns of ``EVENTS``, else UBI as NDJSON."""
    _check_name(target)
    if str(target).lower().endswith(".parquet"):
        with beside(Path(target)) as stream:
            simulated.events.write_parquet(stream)
    else:
        write_events(target, simulated.events)


def _check_name(target: str | Path) -> None:
    """Refuse extensions of formats that are not written."""
    name = Path(target).name.lower()
    bare = name.removesuffix(".gz").removesuffix(".zst")
    ending = Path(bare).suffix
    if ending in _OTHERS or (ending == ".parquet" and bare != name):
        raise UsageError(
            f"cannot write a log to {name}: the formats are NDJSON and uncompressed .parquet",
            fix=f"-o {Path(bare).stem}.ndjson",
        )


def write_truth(log: SimulatedLog, target: str | Path) -> None:
    text = json.dumps({"simulated": True, **asdict(log)}, indent=1, ensure_ascii=False)
    with beside(Path(target)) as stream:
        stream.write(f"{text}\n".encode())


def read_planted(text: str, effect: Effect = "zero") -> Planted:
    """Parse a planted change: ``class=misspelt@2026-11-20``."""
    slice_, at, day = text.rpartition("@")
    name, equals, value = slice_.partition("=")
    try:
        if not (at and equals and name.strip() and value.strip()):
            raise ValueError
        return Planted(name.strip(), value.strip(), date.fromisoformat(day.strip()), effect)
    except ValueError:
        raise UsageError(
            f"expected ATTRIBUTE=VALUE@DAY, got {text!r}",
            fix="--break class=misspelt@2026-11-20",
        ) from None


def _break(
    planted: Planted, queries: Queries | None, shelf: Shelf, first: date, days: int
) -> Break:
    day = (planted.day - first).days
    if not 0 <= day < days:
        last = first + timedelta(days=days - 1)
        raise UsageError(f"{planted.day} is not in the log, which is from {first} to {last}")
    if queries is None:
        raise UsageError(
            "a planted change needs queries with attributes", fix="--queries queries.jsonl"
        )
    values = queries.attribute(planted.attribute)
    affected = np.array([values.get(each) == planted.value for each in queries.frame["query_id"]])
    if not affected.any():
        available = sorted(set(values.values()))
        raise UsageError(
            f"no query has {planted.attribute} {planted.value!r}",
            nearest=nearest(planted.value, available, 1),
        )
    assert len(affected) == len(shelf.weight)
    return Break(affected, day, planted.effect)


def _check(
    days: int,
    users: int,
    sessions: float,
    seed: int,
    instant: float,
    arms: int,
    habits: Habits,
) -> None:
    for name, value, low in (
        ("--days", days, 1),
        ("--users", users, 1),
        ("--sessions", sessions, 0),
        ("--seed", seed, 0),
    ):
        if not value >= low:
            raise UsageError(f"{name} must be ≥ {low}, got {value:g}")
    if sessions * days * habits.tasks * 2 > MOST_EVENTS:
        raise UsageError(
            f"{sessions * days:,.0f} sessions at once would not fit into memory",
            fix="simulate fewer days at a time, each with its own --seed and --until",
        )
    shares = {
        "--instant": (instant,),
        "--errors": habits.errors,
        "--timeouts": habits.timeouts,
        "--carts": (habits.carts,),
        "--answers": (habits.answers,),
        "--robots": (habits.robots,),
    }
    for name, values in shares.items():
        if not all(0 <= value < 1 for value in values):
            raise UsageError(f"{name} must be a share, from 0 to less than 1")
    for name, values in (
        ("--errors", habits.errors),
        ("--timeouts", habits.timeouts),
        ("--latency", habits.latency_ms),
    ):
        if len(values) not in (1, arms):
            raise UsageError(
                f"{name} has {len(values)} values for {arms} arms",
                fix="give one value for all, or one per run, such as 90,120",
            )
    if not all(0 < value < 1e6 for value in habits.latency_ms):
        raise UsageError("--latency must be above 0 milliseconds")
