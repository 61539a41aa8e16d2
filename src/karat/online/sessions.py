"""Sessions of a user's events, and the request that each event follows."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from karat.online.flags import ORDER, USER, before, behind, flag, known_flag, running
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
    events = events.filter(nw.col("kind") != "impression")
    # Windows over few columns: engines that compute rows carry all of them through each.
    marked = events.select(USER, *order, "kind").with_columns(
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
    found = whole.select(USER, *order, "request", session=running(begins))
    return events.join(found, on=[USER, *order], how="left")


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


_BY_INTENT = ("intent",)


def in_intents(activity: nw.LazyFrame[Any], rules: Rules) -> nw.LazyFrame[Any]:
    """Requests with their search intent.

    A request within ``rules.typing`` of the previous one in the session is part of typing the same
    search if one text is a proper prefix of the other; also with the same text, if the previous
    request was (a key that changes no word). The last of such a chain counts. Consecutive chains of
    a session with the same ``query_key`` are one intent: paging, filters, sorting, going back,
    retries. The first of these that succeeded represents it, else the first. A request without a
    text, or with a blank one, is an intent of its own.

    Args:
        activity: From ``in_sessions``, with ``query_key``.
        rules: The longest gap while typing.

    Returns:
        The requests, and ``intent`` (the user's, from 1), ``typed`` (1: the last of its chain) and
        ``counts`` (1: the request that represents its intent); Int64. A blank ``query_key`` is
        null.
    """
    order = list(ORDER)
    text = nw.col("query_key")
    asked = activity.filter(nw.col("kind") == "search").with_columns(
        query_key=nw.when(text.str.strip_chars() != "").then(text)
    )
    chained = asked.select(USER, *ORDER, "session", "request", "query_key", "status").with_columns(
        _time=before("time_us"), _key=before("query_key"), _session=before("session")
    )
    key, earlier = nw.col("query_key"), nw.col("_key")
    soon = (nw.col("_session") == nw.col("session")) & (
        nw.col("time_us") - nw.col("_time") <= rules.typing
    )
    longer = key.str.starts_with(earlier) | earlier.str.starts_with(key)
    chained = chained.with_columns(
        _typing=flag(soon & (key != earlier) & longer), _fresh=1 - flag(soon & (key == earlier))
    ).drop("_time", "_key", "_session")
    # Equal texts follow the first of them, which is part of typing or not.
    chained = chained.with_columns(_like=running(nw.col("_fresh")))
    chained = chained.with_columns(_typing=nw.col("_typing").max().over(USER, "_like"))
    chained = chained.with_columns(
        _chain=(1 - nw.col("_typing")).cum_sum().over(USER, order_by=order),
        _on=behind("_typing"),
    )
    chained = chained.with_columns(typed=flag(nw.col("_on").fill_null(0) == 0))
    ends = chained.filter(nw.col("typed") == 1).select(
        USER, *ORDER, "_chain", "session", "query_key"
    )
    ends = ends.with_columns(_key=before("query_key"), _session=before("session"))
    same = (nw.col("_session") == nw.col("session")) & (nw.col("_key") == nw.col("query_key"))
    ends = ends.with_columns(_new=1 - flag(same))
    ends = ends.with_columns(intent=running(nw.col("_new")))
    joined = chained.join(ends.select(USER, "_chain", "intent"), on=[USER, "_chain"], how="left")
    failed = nw.col("status").is_in(["error", "timeout"]).fill_null(False)
    typed = nw.col("typed") == 1
    joined = joined.with_columns(
        _first=nw.when(typed).then(nw.col("request")),
        _answered=nw.when(typed & ~failed).then(nw.col("request")),
    ).with_columns(
        _first=nw.col("_first").min().over(USER, "intent"),
        _answered=nw.col("_answered").min().over(USER, "intent"),
    )
    represents = nw.col("request") == nw.coalesce("_answered", "_first")
    found = joined.with_columns(counts=flag(represents))
    found = found.select(USER, "request", "intent", "typed", "counts")
    return asked.join(found, on=[USER, "request"], how="left")


def intents(
    requests: nw.LazyFrame[Any], bounds: nw.LazyFrame[Any], *, filters: bool
) -> nw.LazyFrame[Any]:
    """One row for each search intent: its request, and the next intent.

    Args:
        requests: From ``in_intents``, with the columns of requests.
        bounds: From ``sessions.bounds``.
        filters: Whether the log has the column ``filtered``.

    Returns:
        The columns of the request that counts, ``intent``, ``requests``, ``completed``, ``error``,
        ``timeout``, ``zero``, ``zero_raw``, ``zero_filtered``, ``returned`` (the maximum of its
        requests, Int64; null if unknown), ``began_us`` and ``ended_us`` (its first and last
        request), ``left_us``, and of the next intent of the same session ``next_key`` and
        ``next_us`` (its first request), null without.
    """
    done = nw.coalesce(nw.col("status"), nw.lit("ok"))
    returned = nw.col("returned").cast(nw.Int64)
    hits = nw.coalesce(nw.col("total_hits"), returned)
    shown = nw.coalesce(returned, nw.when(nw.col("total_hits") == 0).then(nw.lit(0)))
    typed, failed = nw.col("typed") == 1, done.is_in(["error", "timeout"])
    flagged = requests.with_columns(
        error=flag(done == "error"),
        timeout=flag(done == "timeout"),
        _hits=nw.when(~failed).then(hits),
        # Results shown while typing were for other texts.
        _shown=nw.when(typed).then(shown),
        _unknown=flag(typed & ~failed & shown.is_null()),
        _filtered=flag(nw.col("filtered")) if filters else flag(nw.lit(False)),
    )
    counted = flagged.filter(nw.col("counts") == 1).with_columns(
        completed=1 - nw.col("error") - nw.col("timeout")
    )
    whole = flagged.group_by(USER, "intent").agg(
        requests=nw.len().cast(nw.Int64),
        began_us=nw.col("time_us").min(),
        ended_us=nw.col("time_us").max(),
        _most=nw.col("_shown").max(),
        _unknown=nw.col("_unknown").max(),
    )
    every = counted.drop("_shown", "_unknown").join(whole, on=[USER, "intent"], how="left")
    # 0 for one request is not 0 for the intent if the number of another is unknown.
    known = (nw.col("_most") > 0) | (nw.col("_unknown") == 0)
    every = every.with_columns(returned=nw.when(known).then(nw.col("_most")))
    every = _with_zeros(every, flagged, filters=filters)
    # A filtered request with 0 unfiltered hits does not determine the search's result either.
    raw = (nw.col("completed") == 1) & ~nw.col("raw_hits").is_null()
    raw = raw & ~((nw.col("_filtered") == 1) & (nw.col("raw_hits") == 0))
    every = every.with_columns(
        zero_raw=known_flag(raw, nw.col("raw_hits") == 0),
        _session=behind("session", order=_BY_INTENT),
        _next_key=behind("query_key", order=_BY_INTENT),
        _next_us=behind("began_us", order=_BY_INTENT),
    )
    same = nw.col("_session") == nw.col("session")
    every = every.with_columns(
        next_key=nw.when(same).then(nw.col("_next_key")),
        next_us=nw.when(same).then(nw.col("_next_us")),
    )
    ends = bounds.select(USER, "session", _end="ended_us")
    every = every.join(ends, on=[USER, "session"], how="left")
    return every.with_columns(
        left_us=nw.coalesce(nw.col("next_us"), nw.col("_end")) - nw.col("time_us")
    ).drop(
        *("_session", "_next_key", "_next_us", "_end", "_hits", "_filtered", "_most", "_unknown"),
        *("typed", "counts"),
    )


def _with_zeros(
    counted: nw.LazyFrame[Any], requests: nw.LazyFrame[Any], *, filters: bool
) -> nw.LazyFrame[Any]:
    """``zero`` and ``zero_filtered``: whether the search, or only the filtered one, had no results.

    If only the filtered request had none, ``zero`` is 0 if the search without the filter had
    results, and null if it was never requested.
    """
    hits, known = nw.col("_hits"), ~nw.col("_hits").is_null()
    if not filters:
        return counted.with_columns(
            zero=known_flag(known, hits == 0), zero_filtered=known_flag(known, hits < 0)
        )
    filtered = nw.col("_filtered") == 1
    by_intent = (
        requests.filter((nw.col("typed") == 1) & known)
        .with_columns(
            _had=flag(hits > 0),
            _none=flag((hits == 0) & ~filtered),
            _left=flag((hits == 0) & filtered),
        )
        .group_by(USER, "intent")
        .agg(nw.col("_had").max(), nw.col("_none").max(), nw.col("_left").max())
    )
    had, none, left = nw.col("_had") == 1, nw.col("_none") == 1, nw.col("_left") == 1
    alone = filtered & (hits == 0) & ~had & ~none
    return (
        counted.join(by_intent, on=[USER, "intent"], how="left")
        .with_columns(
            zero=nw.when(known & ~alone).then(flag((hits == 0) & (~filtered | ~had))),
            zero_filtered=known_flag(known, (left & had) | alone),
        )
        .drop("_had", "_none", "_left")
    )
