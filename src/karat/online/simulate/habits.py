"""How simulated people behave apart from clicking, what their search does to them, and what breaks.

Chances are from 0 to 1, times in seconds unless said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

PAGE = 10
"""Results on a page."""
OK, ERROR, TIMEOUT = 0, 1, 2
STATUSES = ("ok", "error", "timeout")


@dataclass(frozen=True, slots=True)
class Habits:
    """What people do, and how the service answers."""

    tasks: float = 1.4  # mean number of needs in a session, from 1
    reformulate: float = 0.45  # chance that a user who found nothing good reformulates
    page_on: float = 0.12  # chance to turn to the next page instead, if there is one
    narrow: float = 0.04  # chance to put on a filter instead
    retry: float = 0.6  # chance to try again after an error or a timeout
    rounds: int = 5  # requests for one need at most, keystrokes not counted
    # Median time to the answer, one for each arm or one for all
    latency_ms: tuple[float, ...] = (90.0,)
    latency_spread: float = 0.5  # standard deviation of its logarithm
    # Chance that a request fails, one for each arm or one for all
    errors: tuple[float, ...] = (0.004,)
    timeouts: tuple[float, ...] = (0.002,)  # chance that it runs out of time; the same
    timeout_ms: float = 2_000.0  # when that is
    answers: float = 0.0  # share of queries for which the page itself shows an answer
    reads_answer: float = 0.5  # chance that such an answer is enough
    carts: float = 0.0  # chance that something satisfying is put into the cart
    purchases: float = 0.4  # chance that what is in the cart is bought
    price: float = 30.0  # median of what is paid
    # `page` (each result shown), `seen` (down to the last one looked at) or `none`
    impressions: Literal["page", "seen", "none"] = "page"
    heartbeats: bool = False  # whether pages say every ten seconds that they are still looked at
    robots: float = 0.02  # share of all searches made by bots


@dataclass(frozen=True)
class Break:
    """A planted change: from a day on, some queries go wrong, in all arms."""

    queries: NDArray[np.bool_]  # whether it hits each query of the shelf
    day: int  # days since the first simulated day, from 0
    # `zero` (the query's own words, in any order or with a word more, find nothing: a broken
    # synonym; other words still do) or `worse` (each page is upside down)
    effect: Literal["zero", "worse"] = "zero"
    last: int | None = None  # the last day of it; None: until the end
