"""Facts: one row for each search, click and session, in the schemas SEARCHES, CLICKS, SESSIONS.

Events are aggregated by kind and joined to their search intent; kinds that are not in the log are
not joined, and their columns have a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw

from karat.online.flags import USER, flag, known_flag
from karat.online.reformulation import reformulated
from karat.tables.schema import SEARCHES, SESSIONS

INTENT = (USER, "intent")
WHERE = ("user_bucket", USER, "session")
OF_SEARCH = ("local_day", "local_hour", "arm", "query_key")
"""Columns of the search that clicks and sessions are sliced by."""


def of_clicks(clicks: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Totals of the clicks of each search intent.

    Args:
        clicks: First clicks, from ``dwell.read``.

    Returns:
        One row for each intent with a click.
    """
    place = (nw.col("position") - 1).cast(nw.Float64)
    sure, open_ = nw.col("satisfied").fill_null(0), nw.col("satisfied").fill_null(1)
    columns = clicks.with_columns(
        _one=flag(nw.lit(True)),
        _paul_5=nw.lit(0.5) ** place,
        _paul_9=nw.lit(0.9) ** place,
        _sure=sure,
        _open=open_,
    )
    return columns.group_by(*INTENT).agg(
        clicks=nw.col("_one").sum().cast(nw.Int64),
        first_rank=nw.col("position").min(),
        paul_5=nw.col("_paul_5").sum(),
        paul_9=nw.col("_paul_9").sum(),
        first_us=nw.col("time_us").min(),
        sat_low=nw.col("_sure").max(),
        sat_high=nw.col("_open").max(),
        quick_back=nw.col("quick_back").max(),
    )


def of_carts(carts: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """One row for each intent with something put into the cart."""
    return carts.select(*INTENT, carts=flag(nw.lit(True))).unique()


def of_purchases(purchases: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """One row for each intent with a purchase, and its revenue."""
    return (
        purchases.with_columns(purchases=flag(nw.lit(True)), revenue=nw.col("value").fill_null(0.0))
        .group_by(*INTENT)
        .agg(nw.col("purchases").max(), nw.col("revenue").sum())
    )


def of_answers(answers: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """One row for each intent with an answer: least and most that it was read (0 or 1)."""
    return (
        answers.filter(~nw.col("intent").is_null())
        .with_columns(_sure=nw.col("answered").fill_null(0), _open=nw.col("answered").fill_null(1))
        .group_by(*INTENT)
        .agg(answered_low=nw.col("_sure").max(), answered_high=nw.col("_open").max())
    )


def of_impressions(impressions: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """The number of distinct documents seen of each search intent.

    Args:
        impressions: With ``named`` (the intent) and ``doc_id``.
    """
    return (
        impressions.filter(~nw.col("named").is_null() & ~nw.col("doc_id").is_null())
        .select(USER, "doc_id", intent="named")
        .unique()
        .group_by(*INTENT)
        .agg(logged=nw.len().cast(nw.Int64))
    )


def searches(
    intents: nw.LazyFrame[Any],
    *,
    clicks: nw.LazyFrame[Any] | None,
    carts: nw.LazyFrame[Any] | None,
    purchases: nw.LazyFrame[Any] | None,
    answers: nw.LazyFrame[Any] | None,
    impressions: nw.LazyFrame[Any] | None,
    closed_us: int,
    attributes: Sequence[str],
) -> nw.LazyFrame[Any]:
    """One row for each search intent: SEARCHES.

    Args:
        intents: From ``intents.intents``, with ``reformulation`` of the next text.
        clicks: From ``of_clicks``; None if the log has none.
        carts: From ``of_carts``; None if the log has none.
        purchases: From ``of_purchases``; None if the log has none.
        answers: From ``of_answers``; None if the log has none.
        impressions: From ``of_impressions``; None if the log has none.
        closed_us: Time until which the purchase window of searches has passed.
        attributes: Columns of attributes to keep.

    Returns:
        ``SEARCHES``, those attributes, ``derived`` (1: its items are the number returned),
        ``bought`` (1: a purchase so far), and ``good`` and ``good_surely`` (1: it was successful,
        with unknown outcomes counted as successes, and as failures).
    """
    whole: dict[str, nw.Expr] = {}
    joined = intents
    parts: tuple[tuple[nw.LazyFrame[Any] | None, dict[str, Any]], ...] = (
        (clicks, {**dict.fromkeys(_COUNTED, 0), **dict.fromkeys(_SUMMED, 0.0), **_UNKNOWN_CLICK}),
        (carts, {"carts": 0}),
        (purchases, {"purchases": 0, "revenue": 0.0}),
        (answers, {"answered_low": 0, "answered_high": 0}),
        (impressions, {"logged": nw.Int64}),
    )
    for part, columns in parts:
        if part is not None:
            joined = joined.join(part, on=list(INTENT), how="left")
        for name, empty in columns.items():
            whole[name] = _filled(name, empty, joined=part is not None)
    joined = joined.with_columns(**whole)
    outcomes = _outcomes(joined, closed_us, answers=answers is not None)
    return outcomes.select(*_SEARCHES, *attributes, "derived", "bought", "good", "good_surely")


_SEARCHES = tuple(column.name for column in SEARCHES)
_SESSIONS = tuple(column.name for column in SESSIONS)
_COUNTED = ("clicks", "sat_low", "sat_high", "quick_back")
_SUMMED = ("paul_5", "paul_9")
_ANSWERED = ("answered_low", "answered_high")
_UNKNOWN_CLICK = {"first_rank": nw.Int32, "first_us": nw.Int64}


def _filled(name: str, empty: Any, *, joined: bool) -> nw.Expr:
    """A joined column with ``empty`` for nulls; a type is null of that type."""
    number = not isinstance(empty, type)
    if not joined:
        return nw.lit(empty) if number else nw.lit(None).cast(empty)
    if not number:
        return nw.col(name).cast(empty)
    return nw.col(name).fill_null(empty)


def _outcomes(joined: nw.LazyFrame[Any], closed_us: int, *, answers: bool) -> nw.LazyFrame[Any]:
    items = nw.coalesce("logged", "returned")
    counts = {name: nw.col(name).cast(nw.Int64) for name in (*_COUNTED, "carts", *_ANSWERED)}
    closed = nw.col("time_us") <= closed_us
    first = nw.col("first_us") - nw.col("time_us")
    seen = joined.with_columns(
        **counts,
        # A document that was clicked was seen, even if its impression is missing.
        items=nw.when(~items.is_null()).then(nw.max_horizontal(items, nw.col("clicks"))),
        derived=flag(nw.col("logged").is_null() & (nw.col("returned") > 0)),
        clicked=flag(nw.col("clicks") > 0),
        bought=nw.col("purchases").cast(nw.Int64),
        revenue=nw.when(closed).then(nw.col("revenue")),
        # Server and browser clocks differ: a click before its search counts as 0.
        first_click_us=nw.when(first < 0).then(nw.lit(0)).otherwise(first).cast(nw.Int64),
        reformulated=reformulated(),
    ).with_columns(
        sat=nw.col("sat_high"),
        answered=known_flag(
            nw.col("answered_low") == nw.col("answered_high"), nw.col("answered_low") == 1
        ),
        good=nw.max_horizontal("sat_high", "carts", "bought", "answered_high"),
        good_surely=nw.max_horizontal("sat_low", "carts", "bought", "answered_low"),
        seen=known_flag(~nw.col("items").is_null(), nw.col("items") > 0),
        purchases=nw.when(closed).then(nw.col("bought")),
        reformulation=nw.when(nw.col("reformulated") == 1).then(nw.col("reformulation")),
    )
    nothing = (nw.col("clicked") == 0) & (nw.col("carts") == 0) & (nw.col("bought") == 0)
    met = (nw.col("seen") == 1) | (nw.col("zero") == 1)
    left = seen.with_columns(abandoned=nw.when(met).then(flag(nothing))).with_columns(
        abandoned_as=nw.when(nw.col("abandoned") == 1).then(
            nw.when(nw.col("zero") == 1)
            .then(nw.lit("zero"))
            .when(nw.col("reformulated") == 1)
            .then(nw.lit("reformulated"))
            .otherwise(nw.lit("terminal"))
        )
    )
    terminal = (nw.col("abandoned_as") == "terminal").fill_null(False)
    # Without answers in the log, any abandoned search may have been answered on the page.
    perhaps = nw.col("answered_high") == 1 if answers else nw.lit(True)
    return left.with_columns(
        good_low=flag(terminal & (nw.col("answered_low") == 1)), good_high=flag(terminal & perhaps)
    )


def clicks(
    first: nw.LazyFrame[Any], searches: nw.LazyFrame[Any], *, attributes: Sequence[str]
) -> nw.LazyFrame[Any]:
    """One row for each document clicked of a search intent: CLICKS.

    Args:
        first: First clicks, from ``dwell.read``.
        searches: From ``searches``.
        attributes: Columns of attributes of the search to keep.

    Returns:
        ``CLICKS`` and those attributes; ``session`` is that of the search.
    """
    mine = ("time_us", "doc_id", "position", "dwell_us", "censored", "satisfied")
    of = searches.select(*WHERE, "intent", *OF_SEARCH, *attributes)
    joined = first.select(*INTENT, *mine).join(of, on=list(INTENT), how="inner")
    return joined.select(*WHERE, "intent", "time_us", *OF_SEARCH, *mine[1:], *attributes)


def sessions(
    searches: nw.LazyFrame[Any], bounds: nw.LazyFrame[Any], *, attributes: Sequence[str]
) -> nw.LazyFrame[Any]:
    """One row for each session with a search: SESSIONS.

    Args:
        searches: From ``searches``, all of each session.
        bounds: From ``sessions.bounds``.
        attributes: Columns of attributes of the first search to keep.

    Returns:
        ``SESSIONS`` and those attributes.
    """
    every = (
        searches.with_columns(_one=flag(nw.lit(True)))
        .group_by(USER, "session")
        .agg(
            searches=nw.col("_one").sum().cast(nw.Int64),
            _again=nw.col("reformulated").sum().cast(nw.Int64),
            success_low=nw.col("good_surely").max(),
            success_high=nw.col("good").max(),
            _first=nw.col("intent").min(),
        )
        .with_columns(tasks=nw.col("searches") - nw.col("_again"), success=nw.col("success_high"))
    )
    first = searches.select(*WHERE, *OF_SEARCH, *attributes, _first="intent")
    whole = every.join(first, on=[USER, "session", "_first"], how="inner").join(
        bounds.select(USER, "session", time_us="began_us"), on=[USER, "session"], how="left"
    )
    return whole.select(*_SESSIONS, *attributes)
