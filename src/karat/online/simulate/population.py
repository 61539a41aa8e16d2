"""Who searches, and when: users of very different activity, weekdays, hours, and bots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.online.rules import DAY, HOUR

WEEKDAYS = (1.15, 1.2, 1.2, 1.15, 1.0, 0.65, 0.65)
"""How much is searched on Monday … Sunday; the mean is 1."""
HOURS = (1, 1, 1, 1, 1, 2, 3, 6, 10, 13, 14, 13, 11, 13, 14, 13, 12, 10, 8, 7, 6, 5, 3, 2)
"""How much is searched in the hours from 0 to 23 (UTC), in any unit."""
DEVICES = ("desktop", "phone")
PHONES = 0.35  # share of users on a phone


@dataclass(frozen=True)
class Population:
    """Users, as arrays of one length."""

    user_id: pl.Series  # their ids
    activity: NDArray[np.float64]  # how often they come, in any unit
    arm: NDArray[np.int8]  # number of the arm each is in, always the same
    device: NDArray[np.int8]  # number of the device, in `DEVICES`
    instant: NDArray[np.bool_]  # whether what they use searches while they type
    hides: NDArray[np.bool_]  # whether what they use says when a page is left
    mark: str  # what ids of their sessions and searches begin with; no two populations share it


def populate(
    users: int | pl.Series,
    arms: int,
    rng: np.random.Generator,
    *,
    tail: float = 1.5,
    instant: float = 0.25,
    hides: float = 0.6,
) -> Population:
    """Users whose activity follows a Pareto law, so that few of them do much of all there is.

    Args:
        users: How many, or their ids.
        arms: Number of arms; each user is in one, all as likely.
        rng: Draws.
        tail: Exponent of the law; the smaller, the heavier the heaviest. At most 200 times the
            least.
        instant: Share of users whose page searches while they type.
        hides: Share of users whose browser says when a page is left.
    """
    mark = f"sim-{rng.integers(1 << 32):08x}"
    if isinstance(users, int):
        users = pl.select(pl.format("{}-u{}", pl.lit(mark), pl.int_range(users))).to_series()
    size = len(users)
    return Population(
        users.rename("user_id"),
        np.minimum(1 + rng.pareto(tail, size), 200.0),
        rng.integers(0, arms, size).astype(np.int8),
        (rng.random(size) < PHONES).astype(np.int8),
        rng.random(size) < instant,
        rng.random(size) < hides,
        mark,
    )


@dataclass(frozen=True)
class Visits:
    """Sessions as planned, by user and then by time."""

    user: NDArray[np.int64]  # place of the user in the population
    start: NDArray[np.int64]  # microseconds UTC
    day: NDArray[np.int64]  # days since the first day, from 0


def plan_visits(
    people: Population,
    first_day: int,
    days: int,
    sessions: float,
    rng: np.random.Generator,
) -> Visits:
    """When who comes: Poisson counts by day, hours by their weights, users by their activity.

    Args:
        people: Who there is.
        first_day: Days since 1970-01-01.
        days: How many days.
        sessions: Expected sessions on a mean day.
        rng: Draws.
    """
    of_day = np.asarray(WEEKDAYS, np.float64)
    # 1970-01-01 was a Thursday: 3 in days from Monday.
    factor = of_day[(first_day + np.arange(days) + 3) % 7] / of_day.mean()
    day = np.repeat(np.arange(days), rng.poisson(sessions * factor))
    size = len(day)
    hour = choose(np.asarray(HOURS, np.float64), size, rng)
    start = (first_day + day) * DAY + hour * HOUR + rng.integers(0, HOUR, size)
    user = choose(people.activity, size, rng)
    order = np.lexsort((start, user))
    return Visits(user[order], start[order], day[order])


def choose(weight: NDArray[np.float64], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """``size`` places, each drawn by weight."""
    upto = np.cumsum(weight)
    found = np.searchsorted(upto, rng.random(size) * upto[-1], side="right")
    chosen: NDArray[np.int64] = np.minimum(found, len(upto) - 1).astype(np.int64)
    return chosen
