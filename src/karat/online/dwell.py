"""Dwell: how long a clicked document was read, and where nothing says so."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from karat.online.flags import ORDER, USER, flag
from karat.online.rules import Rules

_TOUCH = (USER, "doc_id")
_NEVER = 2**62  # after all time


def clicks(done: nw.LazyFrame[Any], *, hides: bool) -> nw.LazyFrame[Any]:
    """Clicks with the time their document was left, where the log says so itself.

    Args:
        done: What ``sessions.with_next`` returns.
        hides: Whether the log says when pages were left.

    Returns:
        The clicks, with ``hidden_us``: when that document was hidden, if that is the next that was
        logged of it in the session; else null.
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
    """Clicks with how long they were read.

    A click was read until its document was hidden, else until the next thing done in the session.
    Where there is neither, its dwell is censored: at the session's last heartbeat behind it, or at
    0. The last click of a session is so as a rule; it is neither left out nor counted as 0.
    A click on what is then put into the cart or bought, in the same session, is satisfied and no
    quick back, however short.

    Args:
        clicks: What ``clicks`` returns.
        activity: What ``sessions.in_sessions`` returns, for heartbeats, carts and purchases.
        rules: No dwell counts for longer than ``rules.dwell``, and is censored there; a click is
            satisfied from ``rules.satisfied`` on.
        heartbeats: Whether the log has any.
        taken: Whether it has carts or purchases.

    Returns:
        The clicks with ``dwell_us``, ``censored``, ``satisfied`` (null: censored before that) and
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
    wanted = nw.lit(False)
    if taken:
        own = activity.filter(nw.col("kind").is_in(["cart", "purchase"]))
        last = own.group_by(USER, "session", "doc_id").agg(_taken=nw.col("time_us").max())
        timed = timed.join(last, on=[USER, "session", "doc_id"], how="left")
        wanted = (nw.col("_taken") >= nw.col("time_us")).fill_null(False)
    known = nw.col("censored") == 0
    good = (nw.col("dwell_us") >= rules.satisfied) | wanted
    short = known & ~wanted & (nw.col("dwell_us") < rules.quick_back)
    timed = timed.with_columns(
        satisfied=nw.when(good | known).then(flag(good)), quick_back=flag(short)
    )
    more = [*(["_beat"] if heartbeats else []), *(["_taken"] if taken else [])]
    return timed.drop("_left", "_dwell", "hidden_us", *more)


def answers(
    activity: nw.LazyFrame[Any], bounds: nw.LazyFrame[Any], rules: Rules
) -> nw.LazyFrame[Any]:
    """Answers that were shown, and whether for long enough to be read.

    The page was left by the next search, click, cart or purchase, or when any page was hidden.
    Without one of these, whatever comes later in the session (a heartbeat, another answer) shows
    that it was still open; behind that nobody knows.

    Args:
        activity: What ``sessions.in_sessions`` returns.
        bounds: Of sessions, as ``sessions.bounds`` makes them.
        rules: How long is long enough.

    Returns:
        The answers with ``answered``: 1, 0, or null where nothing says how long; Int64.
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
