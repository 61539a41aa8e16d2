"""Last-touch attribution: which search a click, an impression, a cart or a purchase belongs to."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from karat.online.flags import ORDER, USER, flag
from karat.online.rules import MINUTE, Rules

SKEW = MINUTE
"""An event up to this long before its search counts as after it: browser and server clocks differ,
mostly by seconds."""
_TOUCH = (USER, "doc_id")


def named(requests: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Requests by the id that events refer to.

    Args:
        requests: From ``intents.in_intents``, with ``query_id``.

    Returns:
        ``user_key``, ``query_id``, and of the first request with that id ``named`` (its intent) and
        ``named_us``. The key includes the user: events never refer to another user's search. If
        several requests share an id, the first counts.
    """
    # The first request has the minimum of each, as all increase in the order of events.
    return (
        requests.filter(~nw.col("query_id").is_null())
        .group_by(USER, "query_id")
        .agg(named=nw.col("intent").min(), named_us=nw.col("time_us").min())
    )


def current(requests: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Requests by number: ``user_key``, ``request``, ``session``, ``current`` (intent)."""
    return requests.select(USER, "request", "session", current="intent")


def by_name(
    events: nw.LazyFrame[Any], names: nw.LazyFrame[Any] | None, rules: Rules
) -> nw.LazyFrame[Any]:
    """Events with ``named``; null where their query_id is not that of a request of the user.

    A query id counts from ``SKEW`` before its request to ``rules.session`` after it, and is unknown
    outside: the outcome of a search is known a session after it, whatever else is in the log.

    Args:
        events: With ``user_key`` and ``time_us``, and ``query_id`` if the log has any.
        names: From ``named``; None if the log has no query ids.
        rules: The longest session.
    """
    if names is None:
        return events.with_columns(named=nw.lit(None).cast(nw.Int64))
    joined = events.join(names, on=[USER, "query_id"], how="left")
    after = nw.col("time_us") - nw.col("named_us")
    in_time = (after >= -SKEW) & (after <= rules.session)
    return joined.with_columns(named=nw.when(in_time).then(nw.col("named"))).drop("named_us")


def by_name_or_time(
    events: nw.LazyFrame[Any],
    names: nw.LazyFrame[Any] | None,
    now: nw.LazyFrame[Any],
    rules: Rules,
) -> nw.LazyFrame[Any]:
    """Events attributed to the search they name, else to the user's last search in the session.

    Args:
        events: From ``sessions.in_sessions``, any of its rows.
        names: From ``named``; None if the log has no query ids.
        now: From ``current``.
        rules: How long a query id counts.

    Returns:
        The events with ``named`` and ``intent``; null where there was no search in the session.
    """
    joined = by_name(events, names, rules).join(now, on=[USER, "request", "session"], how="left")
    return joined.with_columns(intent=nw.coalesce("named", "current")).drop("current")


def by_touch(unnamed: nw.LazyFrame[Any], touches: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Events that name no search, with the last click or impression of their document.

    Args:
        unnamed: Carts and purchases with ``doc_id``, in the columns of ``activity``.
        touches: Attributed clicks and impressions of documents: ``user_key``, ``time_us``, ``tie``,
            ``doc_id``, ``intent``.

    Returns:
        Those of ``unnamed`` with an earlier touch, with its ``intent`` and its time ``since_us``.
    """
    pairs = unnamed.select(*_TOUCH).unique()
    near = touches.join(pairs, on=list(_TOUCH), how="inner")
    columns = (*_TOUCH, *ORDER)
    line = nw.concat(
        [
            near.select(*columns).with_columns(_touch=nw.lit(1).cast(nw.Int64)),
            unnamed.select(*columns).with_columns(_touch=nw.lit(0).cast(nw.Int64)),
        ]
    ).with_columns(_last=nw.col("_touch").cum_sum().over(*_TOUCH, order_by=list(ORDER)))
    preceded = line.filter((nw.col("_touch") == 0) & (nw.col("_last") > 0))
    touched = line.filter(nw.col("_touch") == 1).join(
        near.select(*columns, "intent"), on=list(columns), how="inner"
    )
    return (
        unnamed.join(preceded.select(*columns, "_last"), on=list(columns), how="inner")
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
    """Carts or purchases that are attributed to a search in time.

    Args:
        events: With ``user_key``, ``session``, ``time_us``, ``since_us`` (time of the touch, null
            without) and ``intent``.
        intents: With ``user_key``, ``intent``, ``session``, ``time_us`` and ``began_us``.
        within: Longest time after the search, in microseconds; it begins ``SKEW`` before its first
            request.
        same_session: For carts: the session must be that of the search, and the time counts from
            the touch, if there is one.

    Returns:
        The events that satisfy this.
    """
    of = intents.select(USER, "intent", _session="session", _asked="time_us", _began="began_us")
    joined = events.join(of, on=[USER, "intent"], how="inner")
    joined = joined.filter(nw.col("time_us") - nw.col("_began") >= -SKEW)
    since = nw.col("_asked")
    if same_session:
        joined = joined.filter(nw.col("session") == nw.col("_session"))
        since = nw.coalesce("since_us", "_asked")
    return joined.filter(nw.col("time_us") - since <= within).drop("_session", "_asked", "_began")


def first_clicks(clicks: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Each document's first click within its search intent.

    Args:
        clicks: Attributed, with ``intent``, ``doc_id`` and ``position``; the position identifies
            the document if ``doc_id`` is null.

    Returns:
        Those rows; ``position`` is the best at which that document was clicked in that search (a
        repeated search may show it higher up), null if none of its clicks has one.
    """
    document = nw.coalesce(
        nw.col("doc_id"), nw.concat_str(nw.lit("\x00"), nw.col("position").cast(nw.String))
    ).fill_null("\x00")
    again = nw.col("_once").cum_sum().over(USER, "intent", "_document", order_by=list(ORDER))
    return (
        clicks.filter(~nw.col("intent").is_null())
        .with_columns(_document=document, _once=flag(nw.lit(True)))
        .with_columns(
            _click=again, position=nw.col("position").min().over(USER, "intent", "_document")
        )
        .filter(nw.col("_click") == 1)
        .drop("_document", "_once", "_click")
    )
