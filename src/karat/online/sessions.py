"""Sessions of a user's events, and the request that each event follows."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from karat.online.flags import ORDER, USER, before, behind, flag, running
from karat.online.rules import Rules

_EVER = -(2**62)  # before all time


def of_people(events: nw.LazyFrame[Any], *, bots: bool) -> nw.LazyFrame[Any]:
    """The events without those of bots.

    Args:
        events: Rows of ``EVENTS``; the column ``bot`` is needed only if there are any.
        bots: Whether the log has events of bots.
    """
    return events.filter(~nw.col("bot").fill_null(False)) if bots else events


def in_sessions(events: nw.LazyFrame[Any], rules: Rules) -> nw.LazyFrame[Any]:
    """Events except impressions, with their session and the number of requests so far.

    A session ends after more than ``rules.idle`` without events, and is split at multiples of
    ``rules.session`` from its start, but not at midnight (Jones and Klinkner, CIKM 2008, on the
    limits of such rules).

    Args:
        events: Rows of ``EVENTS`` without bots, all of each user, with ``user_key``, ``time_us``,
            ``tie`` and ``kind``.
        rules: The limits of a session.

    Returns:
        The rows that are not impressions, and ``session`` (the user's, from 1) and ``request``
        (requests of the user so far, this one included; 0 before the first); Int64.
    """
    order = list(ORDER)
    marked = events.filter(nw.col("kind") != "impression").with_columns(
        _before=before("time_us"),
        request=running(flag(nw.col("kind") == "search")),
    )
    new = nw.col("_before").is_null() | (nw.col("time_us") - nw.col("_before") > rules.idle)
    started = nw.when(new).then(nw.col("time_us")).otherwise(nw.lit(_EVER))
    whole = marked.with_columns(_new=flag(new)).with_columns(
        _start=started.cum_max().over(USER, order_by=order)
    )
    cut = (nw.col("time_us") - nw.col("_start")) // rules.session
    cut_before = (nw.col("_before") - nw.col("_start")) // rules.session
    begins = flag((nw.col("_new") == 1) | (cut != cut_before))
    return whole.with_columns(session=running(begins)).drop("_before", "_new", "_start")


def bounds(activity: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """First and last event of each session.

    Args:
        activity: From ``in_sessions``.

    Returns:
        ``user_key``, ``session``, ``began_us``, ``ended_us``.
    """
    return activity.group_by(USER, "session").agg(
        began_us=nw.col("time_us").min(), ended_us=nw.col("time_us").max()
    )


def with_next(activity: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """A user's actions, each with the time of the next one in the session.

    Args:
        activity: From ``in_sessions``, with ``doc_id``.

    Returns:
        The rows with ``next_us``, null at the end of a session. Heartbeats and hides without a
        document are left out: they show that a page was viewed or left, but no other action. So is
        ``other``, whose meaning is unknown (often the view of the page that was clicked).
    """
    kind = nw.col("kind")
    done = activity.filter(
        ~kind.is_in(["heartbeat", "other"]) & ~((kind == "hide") & nw.col("doc_id").is_null())
    ).with_columns(_time=behind("time_us"), _session=behind("session"))
    same = nw.col("_session") == nw.col("session")
    return done.with_columns(next_us=nw.when(same).then(nw.col("_time"))).drop("_time", "_session")
