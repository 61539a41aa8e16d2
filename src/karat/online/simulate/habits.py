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
    """What people do, and how the service answers.

    Attributes:
        tasks: Mean number of needs in a session, from 1.
        reformulate: Chance that a user who found nothing good reformulates.
        page_on: Chance to turn to the next page instead, if there is one.
        narrow: Chance to put on a filter instead.
        retry: Chance to try again after an error or a timeout.
        rounds: Requests for one need at most, keystrokes not counted.
        latency_ms: Median time to the answer, one for each arm or one for all.
        latency_spread: Standard deviation of its logarithm.
        errors: Chance that a request fails, one for each arm or one for all.
        timeouts: Chance that it runs out of time; the same.
        timeout_ms: When that is.
        answers: Share of queries for which the page itself shows an answer.
        reads_answer: Chance that such an answer is enough.
        carts: Chance that something satisfying is put into the cart.
        purchases: Chance that what is in the cart is bought.
        price: Median of what is paid.
        impressions: ``page`` (each result shown), ``seen`` (down to the last one looked at) or
            ``none``.
        heartbeats: Whether pages say every ten seconds that they are still looked at.
        robots: Share of all searches made by bots.
    """

    tasks: float = 1.4
    reformulate: float = 0.45
    page_on: float = 0.12
    narrow: float = 0.04
    retry: float = 0.6
    rounds: int = 5
    latency_ms: tuple[float, ...] = (90.0,)
    latency_spread: float = 0.5
    errors: tuple[float, ...] = (0.004,)
    timeouts: tuple[float, ...] = (0.002,)
    timeout_ms: float = 2_000.0
    answers: float = 0.0
    reads_answer: float = 0.5
    carts: float = 0.0
    purchases: float = 0.4
    price: float = 30.0
    impressions: Literal["page", "seen", "none"] = "page"
    heartbeats: bool = False
    robots: float = 0.02


@dataclass(frozen=True)
class Break:
    """A planted change: from a day on, some queries go wrong, in all arms.

    Attributes:
        queries: Whether it hits each query of the shelf.
        day: Days since the first simulated day, from 0.
        effect: ``zero`` (the query's own words, in any order or with a word more, find nothing:
            a broken synonym; other words still do) or ``worse`` (each page is upside down).
        last: The last day of it; None: until the end.
    """

    queries: NDArray[np.bool_]
    day: int
    effect: Literal["zero", "worse"] = "zero"
    last: int | None = None
