"""Searches of a log that do not say what they found, where others do: what that means."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

import polars as pl

from karat.formats.events.mapping import Mapped
from karat.tables.online.events import EmptyHits
from karat.workflows.online._import_ranges import Found, once_told

Ask = Callable[[EmptyHits], bool]
"""Asked whether searches with empty hits found nothing."""
_SOON = 30 * 60_000_000
"""A click that names no search is of the last one, if that was so long before at most."""


def said_in(frame: pl.DataFrame) -> bool:
    """Whether a search of a staged frame says what it found."""
    says = pl.col("returned").is_not_null() | pl.col("total_hits").is_not_null()
    return not frame.filter((pl.col("kind") == "search") & says).is_empty()


def silent(files: Collection[int], *, known: bool) -> pl.Expr:
    """Staged rows of searches that do not say what they found, though they could.

    A page that logs "somebody searched for shoes" never knows what was found: of events that only
    tell of a search, those in files with searches that do say count, unless it is known what an
    empty cell means.

    Args:
        files: Numbers of the files in which a search says what it found.
        known: Whether a mapping or an answer says what an empty cell means.
    """
    unsaid = pl.col("unsaid")
    return unsaid if known else unsaid & (~pl.col("told") | pl.col("_file").is_in(list(files)))


def looked_at(
    ranges: Iterable[pl.DataFrame], empty: pl.Expr, columns: Iterable[str]
) -> EmptyHits | None:
    """How many searches do not say what they found, and whether anybody clicked behind them.

    Args:
        ranges: Staged rows, all of a user in one of them.
        empty: Those that do not say, as ``silent`` has it.
        columns: What the log calls the columns that are empty there.
    """
    counts = dict.fromkeys(("searches", "of", "clicked", "others_clicked"), 0)
    for staged in ranges:
        frame = once_told(staged, Found())
        searches = frame.filter(pl.col("kind") == "search").select(
            "user_key", "query_id", "time_us", empty=empty, row="_order"
        )
        clicks = frame.filter(pl.col("kind") == "click").select("user_key", "query_id", "time_us")
        clicked = searches["row"].is_in(_searches_of(clicks, searches).implode())
        nothing = searches["empty"]
        counts["searches"] += int(nothing.sum())
        counts["of"] += searches.height
        counts["clicked"] += int((nothing & clicked).sum())
        counts["others_clicked"] += int((~nothing & clicked).sum())
    if not counts["searches"]:
        return None
    return EmptyHits(list(columns), **counts, taken_as="unknown", by="default")


def _searches_of(clicks: pl.DataFrame, searches: pl.DataFrame) -> pl.Series:
    """The searches that clicks belong to: that which they name, else the user's last."""
    clicks, searches = clicks.sort("time_us"), searches.sort("time_us")
    names = clicks.drop_nulls("query_id").join(
        searches.select("user_key", "query_id").drop_nulls(), on=["user_key", "query_id"],
        how="semi", maintain_order="left",
    )  # fmt: skip
    others = clicks.join(
        names.unique(), on=["user_key", "query_id", "time_us"], how="anti", maintain_order="left"
    )
    key = ["user_key", "query_id"]
    named = names.join_asof(
        searches.drop_nulls("query_id"), on="time_us", by=key, check_sortedness=False
    )
    late = others.drop("query_id").join_asof(
        searches, on="time_us", by="user_key", tolerance=_SOON, check_sortedness=False
    )
    return pl.concat([named["row"], late["row"]]).drop_nulls()


def settled_by(
    seen: EmptyHits | None, mapped: Mapped, last: Mapping[str, object], ask: Ask | None
) -> EmptyHits | None:
    """What the silence of searches is taken for, and who says so.

    Args:
        seen: What ``looked_at`` returns.
        mapped: The mapping, which stands above all.
        last: Settings of the import before, which hold what was answered then.
        ask: Asks somebody; None: there is nobody, and unknown stays unknown. Not asked where some
            of these searches were clicked: they found something.
    """
    if seen is None:
        return None
    if mapped.empty is not None:
        return replace(seen, taken_as=mapped.empty, by="mapping")
    if last.get("empty"):
        nothing = last["empty"] == "nothing"
        return replace(seen, taken_as="nothing" if nothing else "unknown", by="earlier")
    if ask is not None and not seen.clicked:
        return replace(seen, taken_as="nothing" if ask(seen) else "unknown", by="answer")
    return seen


def filled(frame: pl.DataFrame, empty: pl.Expr) -> pl.DataFrame:
    """Staged rows of which those that found nothing say so.

    Args:
        frame: Staged rows.
        empty: Which they are.
    """
    return frame.with_columns(
        returned=pl.when(empty).then(0).otherwise("returned").cast(pl.Int32),
        hits=pl.when(empty).then(pl.lit([], dtype=pl.List(pl.String))).otherwise("hits"),
    )


def sentence(found: EmptyHits, *, check: bool) -> str:
    """What searches that do not say what they found were taken for, and how to say it.

    Args:
        found: What was found of them.
        check: Whether nothing was kept.
    """
    what = f"{_facts(found)}: "
    ways = {
        "mapping": "as the mapping says",
        "answer": "as you answered",
        "earlier": "as was answered in an earlier import",
    }
    if found.taken_as == "nothing":
        doubt = f"; but {found.clicked:,} were clicked" if found.clicked else ""
        return f"{what}counted as having found nothing, {ways[found.by]}{doubt}"
    if found.by != "default":
        return f"{what}unknown, {ways[found.by]}; ZeroResults leaves them out"
    if found.likely_nothing:
        meaning = "they very likely found nothing, but count as unknown, and "
    elif found.clicked:
        meaning = "an empty cell is not always a search that found nothing. They are unknown, and "
    else:
        meaning = "nothing says whether they found anything. They are unknown, and "
    anew = "" if check else ", and import the logs again into an empty event store"
    return (
        f"{what}{meaning}ZeroResults leaves them out. Say in a mapping what it means: [hits] "
        f'empty = 0 (they found nothing) or empty = "unknown"{anew}'
    )


def question(found: EmptyHits) -> str:
    """What is asked about searches that do not say what they found."""
    return f"{_facts(found)}. Does empty mean that nothing was found?"


def _facts(found: EmptyHits) -> str:
    names = " and ".join(map(repr, found.columns))
    said = f"{found.searches:,} of {found.of:,} searches have an empty {names}"
    others = found.of - found.searches
    if not (found.clicked or found.others_clicked):
        return f"{said}, and the log has no click on any search"
    share = f"{100 * found.others_clicked / others:.0f} %" if others else "none"
    many = f"{found.clicked:,}" if found.clicked else "none"
    return f"{said}; {many} of them were clicked, of the others {share}"
