"""Last-touch attribution: which search a click, an impression, a cart or a purchase belongs to."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from karat.online.flags import ORDER, USER, flag
from karat.online.rules import MINUTE, Rules

SKEW = MINUTE
"""What comes before its search by at most this comes behind it: the browser's clock is not the
server's, and both are mostly right within seconds."""
_TOUCH = (USER, "doc_id")


def named(requests: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Requests by the id that events refer to them by.

    Args:
        requests: What ``intents.in_intents`` returns, with ``query_id``.

    Returns:
        ``user_key``, ``query_id``, and of the first request of that id ``named`` (its intent) and
        ``named_us``. The key is of the user too: another user's search is never answered to. An
        id is one request's; where several share it, it is the first's.
    """
    # The first request has the least of all of these, for they all grow in the order of events.
    return (
        requests.filter(~nw.col("query_id").is_null())
        .group_by(USER, "query_id")
        .agg(named=nw.col("intent").min(), named_us=nw.col("time_us").min())
    )


def current(requests: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Requests by their number: ``user_key``, ``request``, ``session``, ``current`` (intent)."""
    return requests.select(USER, "request", "session", current="intent")


def by_name(
    events: nw.LazyFrame[Any], names: nw.LazyFrame[Any] | None, rules: Rules
) -> nw.LazyFrame[Any]:
    """Events with ``named``; null where their query_id names no request of theirs.

    A name counts from ``SKEW`` before its request to ``rules.session`` behind it. Outside of that
    it is as one that nobody knows: what a search leads to is known a session after it, whatever
    else the log holds.

    Args:
        events: With ``user_key`` and ``time_us``, and ``query_id`` if the log has any.
        names: What ``named`` returns; None: the log holds no query ids.
        rules: How long a session is at most.
    """
    if names is None:
        return events.with_columns(named=nw.lit(None).cast(nw.Int64))
    found = events.join(names, on=[USER, "query_id"], how="left")
    after = nw.col("time_us") - nw.col("named_us")
    holds = (after >= -SKEW) & (after <= rules.session)
    return found.with_columns(named=nw.when(holds).then(nw.col("named"))).drop("named_us")


def by_name_or_time(
    events: nw.LazyFrame[Any],
    names: nw.LazyFrame[Any] | None,
    now: nw.LazyFrame[Any],
    rules: Rules,
) -> nw.LazyFrame[Any]:
    """Events of which each belongs to the search it names, else to the search the user is at.

    Args:
        events: What ``sessions.in_sessions`` returns, any rows of it.
        names: What ``named`` returns; None: the log holds no query ids.
        now: What ``current`` returns.
        rules: Until when a name counts.

    Returns:
        The events with ``named`` and ``intent``; null where there was no search in the session.
    """
    found = by_name(events, names, rules).join(now, on=[USER, "request", "session"], how="left")
    return found.with_columns(intent=nw.coalesce("named", "current")).drop("current")


def by_touch(wanting: nw.LazyFrame[Any], touches: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Events that name no search, with the last click or impression of their document.

    Args:
        wanting: Carts and purchases with ``doc_id``, in the columns of ``activity``.
        touches: Clicks and impressions of documents, attributed: ``user_key``, ``time_us``,
            ``tie``, ``doc_id``, ``intent``.

    Returns:
        Those of ``wanting`` that have a touch before them, with its ``intent``, and ``since_us``,
        when it was.
    """
    pairs = wanting.select(*_TOUCH).unique()
    near = touches.join(pairs, on=list(_TOUCH), how="inner")
    columns = (*_TOUCH, *ORDER)
    line = nw.concat(
        [
            near.select(*columns).with_columns(_touch=nw.lit(1).cast(nw.Int64)),
            wanting.select(*columns).with_columns(_touch=nw.lit(0).cast(nw.Int64)),
        ]
    ).with_columns(_last=nw.col("_touch").cum_sum().over(*_TOUCH, order_by=list(ORDER)))
    found = line.filter((nw.col("_touch") == 0) & (nw.col("_last") > 0))
    touched = line.filter(nw.col("_touch") == 1).join(
        near.select(*columns, "intent"), on=list(columns), how="inner"
    )
    return (
        wanting.join(found.select(*columns, "_last"), on=list(columns), how="inner")
        .join(
            touched.select(*_TOUCH, "_last", "intent", since_us="time_us"),
            on=[*_TOUCH, "_last"],
            how="inner",
        )
        .drop("_last")
    )


def bought(
    events: nw.LazyFrame[Any],
    intents: nw.LazyFrame[Any],
    *,
    within: int,
    same_session: bool,
) -> nw.LazyFrame[Any]:
    """Carts or purchases that belong to a search.

    Args:
        events: With ``user_key``, ``session``, ``time_us``, ``since_us`` (of the touch that leads
            to the search, null without) and ``intent``.
        intents: With ``user_key``, ``intent``, ``session``, ``time_us`` and ``began_us``.
        within: How long after it at most; it begins ``SKEW`` before its first request.
        same_session: Carts: the session must be that of the search, and the time is taken from
            the touch, if there is one.

    Returns:
        The events that do.
    """
    of = intents.select(USER, "intent", _session="session", _asked="time_us", _began="began_us")
    found = events.join(of, on=[USER, "intent"], how="inner")
    found = found.filter(nw.col("time_us") - nw.col("_began") >= -SKEW)
    since = nw.col("_asked")
    if same_session:
        found = found.filter(nw.col("session") == nw.col("_session"))
        since = nw.coalesce("since_us", "_asked")
    return found.filter(nw.col("time_us") - since <= within).drop("_session", "_asked", "_began")


def first_clicks(clicks: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Each document's first click within its search intent, at its best place.

    Args:
        clicks: Attributed, with ``intent``, ``doc_id`` and ``position``; without a document the
            position stands for it.

    Returns:
        Those rows; ``position`` is the best at which that document was clicked in that search (a
        search that is repeated may show it higher up), null if none of its clicks has one.
    """
    what = nw.coalesce(
        nw.col("doc_id"), nw.concat_str(nw.lit("\x00"), nw.col("position").cast(nw.String))
    ).fill_null("\x00")
    again = nw.col("_once").cum_sum().over(USER, "intent", "_what", order_by=list(ORDER))
    return (
        clicks.filter(~nw.col("intent").is_null())
        .with_columns(_what=what, _once=flag(nw.lit(True)))
        .with_columns(_click=again, position=nw.col("position").min().over(USER, "intent", "_what"))
        .filter(nw.col("_click") == 1)
        .drop("_what", "_once", "_click")
    )
