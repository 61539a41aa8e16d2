"""Dwell: how long a clicked document was read, and whether that is censored."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from karat.online.flags import ORDER, USER, flag
from karat.online.rules import Rules

_TOUCH = (USER, "doc_id")
_NEVER = 2**62  # after all time


def clicks(done: nw.LazyFrame[Any], *, hides: bool) -> nw.LazyFrame[Any]:
    """Clicks with the time their document was hidden, if logged.

    Args:
        done: From ``sessions.with_next``.
        hides: Whether the log has hide events.

    Returns:
        The clicks, with ``hidden_us``: when that document was hidden, if that is its next event in
        the session; else null.
    """
    if not hides:
        nothing = nw.lit(None).cast(nw.Int64)
        return done.filter(nw.col("kind") == "click").with_columns(hidden_us=nothing)
    order = list(ORDER)
    seen = done.filter(nw.col("kind").is_in(["click", "hide"])).with_columns(
        _kind=nw.col("kind").shift(-1).over(*_TOUCH, order_by=order),
        _time=nw.col("time_us").shift(-1).over(*_TOUCH, order_by=order),
        _session=nw.col("session").shift(-1).over(*_TOUCH, order_by=order),
    )
    own = (
        (nw.col("_kind") == "hide")
        & (nw.col("_session") == nw.col("session"))
        & ~nw.col("doc_id").is_null()
    )
    return (
        seen.filter(nw.col("kind") == "click")
        .with_columns(hidden_us=nw.when(own).then(nw.col("_time")))
        .drop("_kind", "_time", "_session")
    )


def read(
    clicks: nw.LazyFrame[Any],
    activity: nw.LazyFrame[Any],
    rules: Rules,
    *,
    heartbeats: bool,
    taken: bool,
) -> nw.LazyFrame[Any]:
    """Clicks with their dwell time.

    Dwell ends when the document is hidden, else at the next action in the session. Without either
    it is censored: at the session's last heartbeat after the click, or at 0. This is usual for the
    last click of a session, which is neither left out nor counted as 0. If the document is put into
    the cart or bought later in the session, the click is satisfied and not a quick back, however
    short.

    Args:
        clicks: From ``clicks``.
        activity: From ``sessions.in_sessions``, for heartbeats, carts and purchases.
        rules: Dwell is censored at ``rules.dwell``; a click is satisfied from ``rules.satisfied``
            on.
        heartbeats: Whether the log has heartbeats.
        taken: Whether the log has carts or purchases.

    Returns:
        The clicks with ``dwell_us``, ``censored``, ``satisfied`` (null if censored before that) and
        ``quick_back``; Int64.
    """
    left = nw.coalesce("hidden_us", "next_us") - nw.col("time_us")
    if heartbeats:
        last = (
            activity.filter(nw.col("kind") == "heartbeat")
            .group_by(USER, "session")
            .agg(_beat=nw.col("time_us").max())
        )
        clicks = clicks.join(last, on=[USER, "session"], how="left")
        looked = nw.when(nw.col("_beat") > nw.col("time_us")).then(
            nw.col("_beat") - nw.col("time_us")
        )
        beat = nw.coalesce(looked, nw.lit(0).cast(nw.Int64))
    else:
        beat = nw.lit(0).cast(nw.Int64)
    timed = clicks.with_columns(_left=left).with_columns(_dwell=nw.coalesce(nw.col("_left"), beat))
    censored = nw.col("_left").is_null() | (nw.col("_dwell") > rules.dwell)
    timed = timed.with_columns(
        dwell_us=nw.when(nw.col("_dwell") > rules.dwell)
        .then(nw.lit(rules.dwell))
        .otherwise(nw.col("_dwell"))
        .cast(nw.Int64),
        censored=flag(censored),
    )
    acquired = nw.lit(False)
    if taken:
        own = activity.filter(nw.col("kind").is_in(["cart", "purchase"]))
        last = own.group_by(USER, "session", "doc_id").agg(_taken=nw.col("time_us").max())
        timed = timed.join(last, on=[USER, "session", "doc_id"], how="left")
        acquired = (nw.col("_taken") >= nw.col("time_us")).fill_null(False)
    known = nw.col("censored") == 0
    good = (nw.col("dwell_us") >= rules.satisfied) | acquired
    short = known & ~acquired & (nw.col("dwell_us") < rules.quick_back)
    timed = timed.with_columns(
        satisfied=nw.when(good | known).then(flag(good)), quick_back=flag(short)
    )
    more = [*(["_beat"] if heartbeats else []), *(["_taken"] if taken else [])]
    return timed.drop("_left", "_dwell", "hidden_us", *more)


def answers(
    activity: nw.LazyFrame[Any], bounds: nw.LazyFrame[Any], rules: Rules
) -> nw.LazyFrame[Any]:
    """Answers, and whether they were shown for long enough to be read.

    The page is left at the next search, click, cart or purchase, or when any page is hidden.
    Without one of these, a later event of the session (a heartbeat, another answer) shows that it
    was still open; after the last event it is unknown.

    Args:
        activity: From ``sessions.in_sessions``.
        bounds: From ``sessions.bounds``.
        rules: The least time, ``rules.answer``.

    Returns:
        The answers with ``answered``: 1, 0, or null if unknown; Int64.
    """
    kind = nw.col("kind")
    leaves = kind.is_in(["search", "click", "hide", "cart", "purchase"])
    line = activity.filter(leaves | (kind == "answer")).with_columns(
        _left=nw.when(leaves).then(nw.col("time_us")).otherwise(nw.lit(_NEVER))
    )
    line = line.with_columns(
        _left=nw.col("_left").cum_min(reverse=True).over(USER, "session", order_by=list(ORDER))
    )
    shown = line.filter(nw.col("kind") == "answer").join(
        bounds.select(USER, "session", "ended_us"), on=[USER, "session"], how="left"
    )
    left = nw.col("_left") < _NEVER
    until = nw.when(left).then(nw.col("_left")).otherwise(nw.col("ended_us"))
    long = until - nw.col("time_us") >= rules.answer
    return shown.with_columns(answered=nw.when(left | long).then(flag(long))).drop(
        "_left", "ended_us"
    )
