"""How people look at a page of results and what they click: click behaviours with known chances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from karat.errors import UsageError, nearest

PAGE = 10  # results on a page
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


Floats = NDArray[np.floating]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Looked:
    """The outcome of n pages with k places each; arrays of shape (n, k)."""

    examined: Flags  # whether the place was looked at
    clicked: Flags  # whether it was clicked; never without being examined
    satisfied: Flags  # whether the click satisfied; never without a click


@dataclass(frozen=True, slots=True)
class Taste:
    """What a document's gain does to people: at gain 0 and at gain 1, straight between.

    The gain of a grade g on a scale to m is (2^g - 1) / (2^m - 1) (Chapelle et al., CIKM 2009).
    """

    attractive: tuple[float, float] = (0.06, 0.75)  # chance that an examined result is clicked
    satisfying: tuple[float, float] = (0.06, 0.85)  # chance that a click satisfies

    def attraction(self, gain: Floats) -> Floats:
        """The chance of a click on what is examined, for each gain from 0 to 1."""
        low, high = self.attractive
        return low + (high - low) * gain

    def satisfaction(self, gain: Floats) -> Floats:
        """The chance that a click satisfies, for each gain from 0 to 1."""
        low, high = self.satisfying
        return low + (high - low) * gain


class Behaviour(Protocol):
    """A click behaviour."""

    @property
    def taste(self) -> Taste:
        """What people click, and what satisfies them."""
        ...

    def look(self, gain: Floats, shown: Flags, rng: np.random.Generator) -> Looked:
        """Let people look at pages.

        Args:
            gain: Of each place, from 0 to 1; shape (n, k), best place first.
            shown: Whether there is a result at that place.
            rng: Draws.
        """
        ...

    def chances(self, gain: Floats, shown: Flags) -> Floats:
        """The exact chance of a click on each place; shape (n, k)."""
        ...


@dataclass(frozen=True, slots=True)
class PositionBased:
    """Examined by place alone, clicked by what is there: click = examined and attractive.

    The chance to examine place r is r to the power of ``-decay``, whatever is above it (the
    position-based model: Craswell, Zoeter, Taylor and Ramsey, WSDM 2008, section 3; its name is
    from Chuklin, Markov and de Rijke, Click Models for Web Search, 2015). Clicks on one page are
    independent.
    """

    taste: Taste = Taste()  # what people click, and what satisfies them
    decay: float = 0.8  # how fast attention falls, above 0

    def examination(self, places: int) -> NDArray[np.float64]:
        """The chance that places 1, 2, … are examined."""
        return np.arange(1, places + 1, dtype=np.float64) ** -self.decay

    def look(self, gain: Floats, shown: Flags, rng: np.random.Generator) -> Looked:
        """See ``Behaviour``."""
        examined = shown & (rng.random(gain.shape) < self.examination(gain.shape[1]))
        clicked = examined & (rng.random(gain.shape) < self.taste.attraction(gain))
        return Looked(examined, clicked, _satisfied(clicked, self.taste, gain, rng))

    def chances(self, gain: Floats, shown: Flags) -> Floats:
        """See ``Behaviour``."""
        return self.examination(gain.shape[1]) * self.taste.attraction(gain) * shown


@dataclass(frozen=True, slots=True)
class Cascade:
    """Examined from the top down to the first click, and no further.

    The chance to examine place r is the product of (1 - attraction) over the places above it
    (Craswell et al., WSDM 2008, section 3.4). At most one click on a page.
    """

    taste: Taste = Taste()  # what people click, and what satisfies them

    def look(self, gain: Floats, shown: Flags, rng: np.random.Generator) -> Looked:
        """See ``Behaviour``."""
        attractive = rng.random(gain.shape) < self.taste.attraction(gain)
        examined = shown & _until(attractive)
        clicked = examined & attractive
        return Looked(examined, clicked, _satisfied(clicked, self.taste, gain, rng))

    def chances(self, gain: Floats, shown: Flags) -> Floats:
        """See ``Behaviour``."""
        attraction = self.taste.attraction(gain)
        return _before(1 - attraction) * attraction * shown


@dataclass(frozen=True, slots=True)
class DynamicBayesian:
    """Examined from the top down until a click satisfies, or patience ends.

    After a place that did not satisfy, people go on with the chance ``patience``; after a click
    that satisfied they stop (the dynamic Bayesian network model: Chapelle and Zhang, WWW 2009,
    section 3; with patience 1, its simplified form).
    """

    taste: Taste = Taste()  # what people click, and what satisfies them
    patience: float = 0.9  # chance to go on, from 0 to 1

    def look(self, gain: Floats, shown: Flags, rng: np.random.Generator) -> Looked:
        """See ``Behaviour``."""
        attractive = rng.random(gain.shape) < self.taste.attraction(gain)
        would = rng.random(gain.shape) < self.taste.satisfaction(gain)
        stops = (attractive & would) | (rng.random(gain.shape) >= self.patience)
        examined = shown & _until(stops)
        clicked = examined & attractive
        return Looked(examined, clicked, clicked & would)

    def chances(self, gain: Floats, shown: Flags) -> Floats:
        """See ``Behaviour``."""
        attraction = self.taste.attraction(gain)
        goes_on = self.patience * (1 - attraction * self.taste.satisfaction(gain))
        return _before(goes_on) * attraction * shown


BEHAVIOURS: dict[str, Behaviour] = {
    "position": PositionBased(),
    "cascade": Cascade(),
    "dbn": DynamicBayesian(),
}
"""The behaviours that have a name."""


def find_behaviour(name: str) -> Behaviour:
    """The behaviour of that name; UsageError with the nearest otherwise."""
    found = BEHAVIOURS.get(name.strip().lower())
    if found is None:
        raise UsageError(
            f"no click behaviour is called {name!r}; there are {', '.join(BEHAVIOURS)}",
            nearest=nearest(name, list(BEHAVIOURS), 1),
        )
    return found


def _until(stops: Flags) -> Flags:
    """Down to the first place that stops, itself included."""
    passed = np.logical_or.accumulate(stops, axis=1)
    open_ = np.ones_like(stops)
    open_[:, 1:] = ~passed[:, :-1]
    return open_


def _before(goes_on: Floats) -> Floats:
    """The product over the places above each."""
    reached = np.ones_like(goes_on)
    reached[:, 1:] = np.cumprod(goes_on, axis=1)[:, :-1]
    return reached


def _satisfied(clicked: Flags, taste: Taste, gain: Floats, rng: np.random.Generator) -> Flags:
    return clicked & (rng.random(gain.shape) < taste.satisfaction(gain))
