"""Sessions: where a user's events break off, and which request each event comes behind."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from karat.online.flags import ORDER, USER, before, behind, flag, running
from karat.online.rules import Rules

_EVER = -(2**62)  # before all time


def of_people(events: nw.LazyFrame[Any], *, bots: bool) -> nw.LazyFrame[Any]:
    """The events that count.

    Args:
        events: Rows of ``EVENTS``; ``bot`` is asked for only if there are any.
        bots: Whether the log holds events of robots.
    """
    return events.filter(~nw.col("bot").fill_null(False)) if bots else events


def in_sessions(events: nw.LazyFrame[Any], rules: Rules) -> nw.LazyFrame[Any]:
    """Each event but impressions with its session and the request before it.

    A session ends when nothing is done for longer than ``rules.idle`` (exactly that long stays
    within it), and is cut at whole multiples of ``rules.session`` from its start; midnight cuts
    nothing (Jones and Klinkner, CIKM 2008, on what any rule of this kind costs).

    Args:
        events: Rows of ``EVENTS`` of people, all of a user's together, with ``user_key``,
            ``time_us``, ``tie`` and ``kind``.
        rules: Which gap ends a session.

    Returns:
        The rows that are no impressions, and ``session`` (the user's, from 1) and ``request``
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
        activity: What ``in_sessions`` returns.

    Returns:
        ``user_key``, ``session``, ``began_us``, ``ended_us``.
    """
    return activity.group_by(USER, "session").agg(
        began_us=nw.col("time_us").min(), ended_us=nw.col("time_us").max()
    )


def with_next(activity: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """What a user does, each with the time of the next thing done in the same session.

    Args:
        activity: What ``in_sessions`` returns, with ``doc_id``.

    Returns:
        The rows, without heartbeats and without hides that name no document, which say that a page
        was looked at or left but not that anything else was done, and without ``other``, of which
        nobody knows what it is (often the view of the very page that was clicked); and ``next_us``,
        null at the end of a session.
    """
    kind = nw.col("kind")
    done = activity.filter(
        ~kind.is_in(["heartbeat", "other"]) & ~((kind == "hide") & nw.col("doc_id").is_null())
    ).with_columns(_time=behind("time_us"), _session=behind("session"))
    same = nw.col("_session") == nw.col("session")
    return done.with_columns(next_us=nw.when(same).then(nw.col("_time"))).drop("_time", "_session")
