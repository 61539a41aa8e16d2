"""Dwell: how long a clicked document was read, and where nothing says so."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from karat.online.flags import ORDER, USER, flag
from karat.online.rules import Rules

_TOUCH = (USER, "doc_id")


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
    clicks: nw.LazyFrame[Any], activity: nw.LazyFrame[Any], rules: Rules, *, heartbeats: bool
) -> nw.LazyFrame[Any]:
    """Clicks with how long they were read.

    A click was read until its document was hidden, else until the next thing done in the session.
    Where there is neither, its dwell is censored: at the session's last heartbeat behind it, or at
    0. The last click of a session is so as a rule; it is neither left out nor counted as 0.

    Args:
        clicks: What ``clicks`` returns.
        activity: What ``sessions.in_sessions`` returns, for the heartbeats.
        rules: No dwell counts for longer than ``rules.dwell``, and is censored there; a click is
            satisfied from ``rules.satisfied`` on.
        heartbeats: Whether the log has any.

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
    long = nw.col("dwell_us") >= rules.satisfied
    timed = timed.with_columns(
        satisfied=nw.when(long | (nw.col("censored") == 0)).then(flag(long)),
        quick_back=flag((nw.col("censored") == 0) & (nw.col("dwell_us") < rules.quick_back)),
    )
    dropped = ["_left", "_dwell", "hidden_us", *(["_beat"] if heartbeats else [])]
    return timed.drop(dropped)


def answers(done: nw.LazyFrame[Any], rules: Rules) -> nw.LazyFrame[Any]:
    """Answers that were shown, and whether for long enough to be read.

    Args:
        done: What ``sessions.with_next`` returns.
        rules: How long is long enough; an answer that nothing comes behind was.

    Returns:
        The answers with ``answered``: 1 or 0; Int64.
    """
    stayed = nw.col("next_us") - nw.col("time_us") >= rules.answer
    return done.filter(nw.col("kind") == "answer").with_columns(
        answered=flag(stayed | nw.col("next_us").is_null())
    )
