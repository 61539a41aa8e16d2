"""What there is to say about a simulated log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from karat.online.simulate.people import Simulated


@dataclass(frozen=True)
class SimulatedLog:
    """What was simulated."""

    file: str | None  # where the log lies; None if it was not written
    first: str  # its first day
    last: str
    events: int
    kinds: Mapping[str, int]  # how many of each kind; keystrokes and bots are searches too
    users: int  # users with a session
    sessions: int  # how often
    requests: int  # requests of people, keystrokes left out
    searches: int  # the same, with pages, filters and repetitions of the same words joined
    robots: int  # searches by bots
    zero: float | None  # share of the searches without results; failed ones excluded
    satisfied: float | None  # share of searches with results in which a click satisfied
    # Of each place of a page: results shown, mean chance of a click once examined, expected,
    # examined and clicked shares
    places: Sequence[Mapping[str, float]]
    behaviour: str  # how they clicked
    arms: Sequence[str]  # names of the runs
    seed: int  # of what was drawn


def told(made: Simulated, **about: Any) -> SimulatedLog:
    """What there is to say about a simulated log; ``about`` are its name, days and settings."""
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
        **about,
    )


def _share(flags: pl.Series) -> float | None:
    return int(flags.sum()) / len(flags) if len(flags) else None
