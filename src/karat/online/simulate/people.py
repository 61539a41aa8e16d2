"""Simulated users at work: who comes when, what they do, and the log that would be left of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.online.rules import DAY, MINUTE, SECOND
from karat.online.simulate._truth import Truth, tell
from karat.online.simulate.behaviours import Behaviour, Break, Habits, PositionBased
from karat.online.simulate.population import (
    Population,
    Visits,
    choose,
    plan_visits,
    populate,
)
from karat.online.simulate.records import Made, records, robots
from karat.online.simulate.shelf import Shelf
from karat.online.simulate.tasks import WORSE, ZERO, Needs, Requests, pursue

_APART = 45 * MINUTE
"""Between two sessions of a user at least, so that 30 idle minutes tell them apart."""


@dataclass(frozen=True)
class Simulated:
    """A simulated log, and what was drawn to make it."""

    # As `schema.EVENTS` has them, but for what an import works out (bucket, key, tie, local day and
    # hour, import); by time. Every event has `attribute_simulated` "true".
    events: pl.DataFrame
    truth: Truth  # what was drawn


def simulate(
    shelf: Shelf,
    rng: np.random.Generator,
    *,
    first_day: int,
    days: int = 28,
    people: Population | int = 500,
    sessions: float = 100.0,
    behaviour: Behaviour | None = None,
    habits: Habits | None = None,
    breaks: Sequence[Break] = (),
) -> Simulated:
    """Let people search for some days.

    Args:
        shelf: What can be asked, and what each arm shows.
        rng: Draws; the same state gives the same events.
        first_day: Days since 1970-01-01 (UTC).
        days: How many, from 1.
        people: Who there is, or how many; each is in one arm.
        sessions: Expected sessions on a mean day.
        behaviour: How they click; by default position-based.
        habits: What else they do.
        breaks: Planted changes.
    """
    behaviour = behaviour if behaviour is not None else PositionBased()
    habits = habits if habits is not None else Habits()
    if isinstance(people, int):
        people = populate(people, len(shelf.arms), rng)
    visits = plan_visits(people, first_day, days, sessions, rng)
    size = len(visits.user)
    # Needs of each session: 1 and more with a falling chance, the mean as it should be.
    tasks = np.minimum(rng.geometric(1 / max(habits.tasks, 1.0), size), 8)
    session = np.repeat(np.arange(size), tasks)
    user = visits.user[session]
    query = choose(shelf.weight, len(session), rng)
    needs = Needs(
        query,
        people.arm[user],
        _broken(breaks, query, visits.day[session]),
        people.instant[user],
    )
    requests = pursue(shelf, needs, behaviour, habits, rng)
    kept, begin = _timetable(requests, session, visits, (first_day + days) * DAY, rng)
    requests, begin = requests.at(kept), begin[kept]
    made = Made(shelf, people, needs, requests, session[requests.need], begin)
    parts = [records(made, visits, habits, rng)]
    if habits.robots > 0:
        share = habits.robots / (1 - habits.robots)
        count = int(rng.poisson(share * len(begin)))
        parts.append(robots(shelf, people, count, first_day, days, rng))
    events = pl.concat(parts, how="diagonal").sort("time_us", maintain_order=True)
    return Simulated(events, tell(made, visits, behaviour))


def _broken(
    breaks: Sequence[Break], query: NDArray[np.integer], day: NDArray[np.int64]
) -> NDArray[np.int8]:
    broken = np.zeros(len(query), np.int8)
    for each in breaks:
        last = day.max(initial=0) if each.last is None else each.last
        hit = each.queries[query] & (day >= each.day) & (day <= last)
        broken[hit] = ZERO if each.effect == "zero" else WORSE
    return broken


def _timetable(
    requests: Requests,
    session: NDArray[np.int64],
    visits: Visits,
    end: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """When each request begins, and which are before the end of the log.

    What a person does comes one after the other; a session that would begin before the one before
    it has ended begins later, and one that the end of the log would cut is left out.
    """
    of = session[requests.need]
    pause = requests.pause_us.copy()
    first = np.r_[True, requests.need[1:] != requests.need[:-1]]
    gap = 45 * np.exp(0.8 * rng.standard_normal(len(of)))  # seconds, from one need to the next
    pause[first] = (np.clip(gap[first], 5, 480) * SECOND).astype(np.int64)
    opens = np.r_[True, of[1:] != of[:-1]]
    pause[opens] = 0
    took = pause + requests.length_us
    upto = np.cumsum(took)
    starts = np.flatnonzero(opens)
    before = np.r_[0, upto][starts]
    begin = upto - requests.length_us - np.repeat(before, np.diff(np.r_[starts, len(of)]))
    length = np.bincount(of, weights=took, minlength=len(visits.start)).astype(np.int64)
    plan = (
        pl.DataFrame({"user": visits.user, "start": visits.start, "length": length + _APART})
        .with_columns(before=pl.col("length").cum_sum().over("user") - pl.col("length"))
        # The latest of: as planned, or right after all that was before.
        .with_columns(
            start=(pl.col("start") - pl.col("before")).cum_max().over("user") + pl.col("before")
        )
    )
    start = plan["start"].to_numpy()
    in_time = start + length < end
    return in_time[of], start[of] + begin
