"""The log that simulated people leave: one row for each event, as an import would read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.online.rules import DAY, SECOND
from karat.online.simulate.behaviours import OK, PAGE, STATUSES, Habits
from karat.online.simulate.population import DEVICES, Population, Visits
from karat.online.simulate.shelf import Shelf
from karat.online.simulate.tasks import TILL, Needs, Requests
from karat.online.simulate.wording import OWN, WORDINGS

SIMULATED = "simulated"  # the attribute of every event, and its value is "true"
_BEAT = 10 * SECOND


@dataclass(frozen=True)
class Made:
    """What was drawn, before it becomes a log."""

    shelf: Shelf  # what could be asked
    people: Population  # who there was
    needs: Needs  # what they came with
    requests: Requests  # what they did, by session and in time
    session: NDArray[np.int64]  # number of the session of each request, in the visits
    begin: NDArray[np.int64]  # when the first key of each request was pressed, in microseconds UTC

    @property
    def asked(self) -> NDArray[np.int64]:
        """When each request was sent."""
        return self.begin + self.requests.strokes * self.requests.stroke_us


def records(made: Made, visits: Visits, habits: Habits, rng: np.random.Generator) -> pl.DataFrame:
    """The events of people, in no order of time."""
    requests = made.requests
    user = visits.user[made.session]
    hides = made.people.hides[user]
    row, place = np.nonzero(requests.clicked)
    click = made.asked[row] + requests.click_us[row, place]
    dwell = requests.dwell_us[row, place]
    parts = [_searches(made), _keystrokes(made, rng)]
    shown = requests.found >= 0
    if habits.impressions == "seen":
        # Down to the last that was looked at: what scrolled past was on the screen.
        shown &= np.logical_or.accumulate(requests.examined[:, ::-1], axis=1)[:, ::-1]
    if habits.impressions != "none":
        seen, at = np.nonzero(shown)
        parts.append(
            _on(made, seen, at, made.asked[seen] + requests.latency_us[seen], "impression")
        )
    parts.append(_on(made, row, place, click, "click"))
    left = hides[row]
    parts.append(_on(made, row[left], place[left], (click + dwell)[left], "hide"))
    if habits.heartbeats:
        beats = dwell // _BEAT
        of = np.repeat(np.arange(len(row)), beats)
        number = np.arange(len(of)) - np.repeat(np.cumsum(beats) - beats, beats) + 1
        parts.append(_on(made, row[of], place[of], click[of] + number * _BEAT, "heartbeat"))
    for kind, did in (("cart", requests.carted), ("purchase", requests.bought)):
        done, at = np.nonzero(did)
        time = made.asked[done] + requests.click_us[done, at] + requests.dwell_us[done, at]
        # A heartbeat behind the reading: the page is left first, and then the cart is filled.
        time = time + SECOND + (int(TILL * SECOND) if kind == "purchase" else 0)
        part = _on(made, done, at, time, kind)
        if kind == "purchase":
            paid = habits.price * np.exp(0.6 * rng.standard_normal(len(done)))
            part = part.with_columns(value=pl.Series(np.round(paid, 2), dtype=pl.Float64))
        parts.append(part)
    shows = np.flatnonzero(requests.answered)
    parts.append(_on(made, shows, None, made.asked[shows] + requests.latency_us[shows], "answer"))
    events = pl.concat(parts, how="diagonal")
    of_row = events["row"].to_numpy()
    mark = made.people.mark
    who = user[of_row]
    query = made.needs.query[requests.need[of_row]]
    return events.with_columns(
        user_id=made.people.user_id.gather(who),
        session_id=_numbered(f"{mark}-s", made.session[of_row]),
        query_id=_numbered(f"{mark}-q", of_row)
        + pl.when(pl.col("stroke") > 0).then(pl.format("-{}", "stroke")).otherwise(pl.lit("")),
        action=pl.col("kind").replace(_ACTIONS),
        arm=_names(made.shelf.arms, made.needs.arm[requests.need[of_row]]),
        bot=pl.lit(False),
        time_us=pl.col("time_us") // 1000 * 1000,
        attribute_device=_names(DEVICES, made.people.device[who]),
        attribute_simulated=pl.lit("true"),
        **{
            f"attribute_{name}": values.gather(query)
            for name, values in made.shelf.attributes.items()
        },
    ).drop("row", "stroke")


_ACTIONS = {
    "search": "search",
    "impression": "impression",
    "click": "click",
    "hide": "page_hide",
    "heartbeat": "heartbeat",
    "cart": "add_to_cart",
    "purchase": "purchase",
    "answer": "answer",
}
"""What a log calls each kind."""


def robots(
    shelf: Shelf,
    people: Population,
    count: int,
    first_day: int,
    days: int,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """About ``count`` searches by bots: bursts of random queries, one a second, no clicks."""
    burst = 25
    bursts = -(-count // burst)
    start = first_day * DAY + rng.integers(0, days * DAY - 2 * burst * SECOND, bursts)
    of = np.repeat(np.arange(bursts), burst)[:count]
    number = np.tile(np.arange(burst), bursts)[:count]
    query = rng.integers(0, len(shelf.weight), count)
    who = of % max(1, bursts // 20)
    arm = (who % len(shelf.arms)).astype(np.int8)
    found = shelf.found[arm, query, OWN, :PAGE]
    mark = people.mark
    return _asked(
        shelf,
        query * len(WORDINGS) + OWN,
        found,
        action=pl.repeat("search", count, eager=True),
        time_us=start[of] // 1000 * 1000 + number * SECOND,
        user_id=_numbered(f"{mark}-robot", who),
        session_id=_numbered(f"{mark}-r", of),
        query_id=_numbered(f"{mark}-b", np.arange(count)),
        total_hits=shelf.matched[arm, query, OWN].astype(np.int64),
        raw_hits=shelf.raw[arm, query, OWN].astype(np.int64),
        latency_us=(90_000 * np.exp(0.4 * rng.standard_normal(count))).astype(np.int64),
        arm=_names(shelf.arms, arm),
        bot=np.ones(count, bool),
        attribute_simulated=pl.repeat("true", count, eager=True),
        **{f"attribute_{n}": values.gather(query) for n, values in shelf.attributes.items()},
    )


def _asked(
    shelf: Shelf, text: NDArray[np.integer], found: NDArray[np.int32], **columns: object
) -> pl.DataFrame:
    """Searches, unless columns say otherwise answered ones for a first page, without a filter."""
    size = len(text)
    searches = {
        "kind": pl.repeat("search", size, eager=True),
        "time_us": columns["time_us"],
        "query": shelf.texts.gather(text),
        "hits": _hits(shelf, found),
        "returned": (found >= 0).sum(axis=1).astype(np.int32),
        "total_hits": columns["total_hits"],
        "raw_hits": columns["raw_hits"],
        "filtered": np.zeros(size, bool),
        "page": np.ones(size, np.int32),
        "status": pl.repeat("ok", size, eager=True),
    }
    return pl.DataFrame(searches | columns)


def _searches(made: Made) -> pl.DataFrame:
    requests = made.requests
    size = len(requests.need)
    searches = _asked(
        made.shelf,
        made.needs.query[requests.need] * len(WORDINGS) + requests.wording,
        requests.found,
        row=np.arange(size),
        stroke=np.zeros(size, np.int64),
        time_us=made.asked,
        total_hits=requests.matched,
        raw_hits=requests.raw,
        filtered=requests.filtered,
        page=requests.page.astype(np.int32),
        status=_names(STATUSES, requests.status),
        latency_us=requests.latency_us,
    )
    # A request that failed found nothing that anybody knows of.
    answered = pl.Series(requests.status == OK)
    return searches.with_columns(
        pl.when(answered).then(pl.col("hits", "returned", "total_hits", "raw_hits"))
    )


def _keystrokes(made: Made, rng: np.random.Generator) -> pl.DataFrame:
    """Requests while a query was typed: a growing part of it, half of them finding nothing yet."""
    requests = made.requests
    row = np.repeat(np.arange(len(requests.need)), requests.strokes)
    number = np.arange(len(row)) - np.repeat(
        np.cumsum(requests.strokes) - requests.strokes, requests.strokes
    )
    nothing = rng.random(len(row)) < 0.25
    matched = np.where(nothing, 0, requests.matched[row])
    searches = _asked(
        made.shelf,
        made.needs.query[requests.need[row]] * len(WORDINGS) + requests.wording[row],
        np.where(nothing[:, None], -1, requests.found[row]),
        row=row,
        stroke=number + 1,
        time_us=made.begin[row] + number * requests.stroke_us[row],
        total_hits=matched,
        raw_hits=matched,
        latency_us=requests.latency_us[row],
    )
    part = pl.Series((number + 1) / (requests.strokes[row] + 1))
    typed = (pl.col("query").str.len_chars() * part).ceil().cast(pl.Int64)
    return searches.with_columns(query=pl.col("query").str.slice(0, typed))


def _on(
    made: Made,
    row: NDArray[np.integer],
    place: NDArray[np.integer] | None,
    time: NDArray[np.int64],
    kind: str,
) -> pl.DataFrame:
    """Events on results; without places, on the page."""
    columns: dict[str, object] = {
        "row": row.astype(np.int64),
        "stroke": np.zeros(len(row), np.int64),
        "kind": pl.repeat(kind, len(row), eager=True),
        "time_us": time,
    }
    if place is not None:
        requests = made.requests
        columns["doc_id"] = made.shelf.documents.gather(requests.found[row, place])
        columns["position"] = ((requests.page[row] - 1) * PAGE + place + 1).astype(np.int32)
    return pl.DataFrame(columns)


def _hits(shelf: Shelf, found: NDArray[np.int32]) -> pl.Series:
    """Lists of document ids, best first."""
    size = len(found)
    counts = (found >= 0).sum(axis=1)
    ids = shelf.documents.gather(np.where(found >= 0, found, 0).ravel())
    wide = pl.DataFrame(
        {"hits": ids.reshape((size, found.shape[1])).arr.to_list(), "count": counts}
    )
    return wide.select(pl.col("hits").list.head("count")).to_series()


def _names(names: tuple[str, ...], at: NDArray[np.integer]) -> pl.Series:
    return pl.Series(names, dtype=pl.String).gather(at.astype(np.int64))


def _numbered(prefix: str, numbers: NDArray[np.integer]) -> pl.Series:
    return pl.select(prefix + pl.Series(numbers).cast(pl.String)).to_series()
