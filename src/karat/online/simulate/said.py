"""What there is to say about a simulated log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from karat.online.simulate.people import Simulated


@dataclass(frozen=True)
class SimulatedLog:
    """What was simulated.

    Attributes:
        file: Where the log lies; None if it was not written.
        first: Its first day.
        last: Its last.
        events: Events in it.
        kinds: How many of each kind; keystrokes and bots are searches too.
        users: Users with a session.
        sessions: How often.
        requests: Requests of people, keystrokes left out.
        searches: The same, with pages, filters and repetitions of the same words joined.
        robots: Searches by bots.
        zero: Share of the searches without results; failed ones excluded.
        satisfied: Share of searches with results in which a click satisfied.
        places: Of each place of a page: results shown, mean chance of a click once examined,
            expected, examined and clicked shares.
        behaviour: How they clicked.
        arms: Names of the runs.
        seed: Of what was drawn.
    """

    file: str | None
    first: str
    last: str
    events: int
    kinds: Mapping[str, int]
    users: int
    sessions: int
    requests: int
    searches: int
    robots: int
    zero: float | None
    satisfied: float | None
    places: Sequence[Mapping[str, float]]
    behaviour: str
    arms: Sequence[str]
    seed: int


def told(made: Simulated) -> SimulatedLog:
    """What there is to say about a simulated log, without its name, days and settings."""
    truth, requests = made.truth, made.truth.requests
    searches = (
        requests.sort("session", "time_us")
        .with_columns(search=pl.struct("session", "query", "wording").rle_id())
        .group_by("search")
        # The first answered request counts: users repeat a request that failed.
        .agg(
            pl.col("shown").filter(pl.col("status") == "ok").first(),
            pl.col("satisfied").any(),
        )
    )
    answered = searches.filter(~pl.col("shown").is_null())
    seen = answered.filter(pl.col("shown") > 0)
    kinds = made.events["kind"].value_counts().sort("kind")
    return SimulatedLog(
        file=None,
        first="",
        last="",
        events=made.events.height,
        kinds=dict(kinds.iter_rows()),
        users=requests["user_id"].n_unique(),
        sessions=truth.sessions,
        requests=requests.height,
        searches=searches.height,
        robots=int(made.events["bot"].sum()),
        zero=_share(answered["shown"] == 0),
        satisfied=_share(seen["satisfied"]),
        places=truth.places.to_dicts(),
        behaviour="",
        arms=(),
        seed=0,
    )


def _share(flags: pl.Series) -> float | None:
    return int(flags.sum()) / len(flags) if len(flags) else None
