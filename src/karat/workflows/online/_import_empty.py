"""Searches with empty hits in a log where others have them: whether they found nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import polars as pl

from karat.formats.events.mapping import Mapped
from karat.tables.online.events import EmptyHits
from karat.workflows.online._import_ranges import Observed, Staged, without_repeats

Ask = Callable[[EmptyHits], bool]  # asks whether searches with empty hits found nothing
_SOON = 30 * 60_000_000
"""A click without a query id belongs to the user's last search within this time."""


def has_hits(frame: pl.DataFrame) -> bool:
    """Whether any search of a staged frame has hits."""
    says = pl.col("returned").is_not_null() | pl.col("total_hits").is_not_null()
    return not frame.filter((pl.col("kind") == "search") & says).is_empty()


def without_hits(files: Collection[int], *, known: bool) -> pl.Expr:
    """Staged rows of searches with empty hits, where hits could be logged.

    Events that only report a search ("somebody searched for shoes") never have hits: they count
    only in files where other searches have hits, unless the meaning of an empty cell is known.
    """
    unsaid = pl.col("unsaid")
    return unsaid if known else unsaid & (~pl.col("told") | pl.col("_file").is_in(list(files)))


@dataclass(frozen=True)
class Count:
    """Counts the searches of a range, those with empty hits, and those that were clicked."""

    staged: Staged
    empty: pl.Expr

    def __call__(self, buckets: range) -> Mapping[str, int]:
        frame = without_repeats(self.staged.of(buckets), Observed())
        searches = frame.filter(pl.col("kind") == "search").select(
            "user_key", "query_id", "time_us", empty=self.empty, row="_order"
        )
        clicks = frame.filter(pl.col("kind") == "click").select("user_key", "query_id", "time_us")
        clicked = searches["row"].is_in(_searches_of(clicks, searches).implode())
        nothing = searches["empty"]
        return {
            "searches": int(nothing.sum()),
            "of": searches.height,
            "clicked": int((nothing & clicked).sum()),
            "others_clicked": int((~nothing & clicked).sum()),
        }


def counted(ranges: Iterable[Mapping[str, int]], columns: Iterable[str]) -> EmptyHits | None:
    """The searches of all ranges; None if none of them has empty hits."""
    counts: Counter[str] = Counter(searches=0, of=0, clicked=0, others_clicked=0)
    for each in ranges:
        counts.update(each)
    if not counts["searches"]:
        return None
    return EmptyHits(list(columns), **counts, taken_as="unknown", by="default")


def _searches_of(clicks: pl.DataFrame, searches: pl.DataFrame) -> pl.Series:
    """The searches that clicks belong to: the one they name, else the user's last."""
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


def decided(
    seen: EmptyHits | None, mapped: Mapped, last: Mapping[str, object], ask: Ask | None
) -> EmptyHits | None:
    """What empty hits mean, and who decided it.

    Args:
        seen: As ``counted`` returns it.
        mapped: The mapping, which takes precedence.
        last: Settings of the previous import, with an earlier answer.
        ask: Asks the user; None if there is none, and unknown stays unknown. Not called if some of
            these searches were clicked: they found something.
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


def with_zero_hits(frame: pl.DataFrame, empty: pl.Expr) -> pl.DataFrame:
    """Staged rows, with zero hits for the searches in ``empty``."""
    return frame.with_columns(
        returned=pl.when(empty).then(0).otherwise("returned").cast(pl.Int32),
        hits=pl.when(empty).then(pl.lit([], dtype=pl.List(pl.String))).otherwise("hits"),
    )


def sentence(empty: EmptyHits, *, check: bool) -> str:
    """What searches with empty hits were counted as, and how to change it."""
    facts = f"{_facts(empty)}: "
    ways = {
        "mapping": "as the mapping says",
        "answer": "as you answered",
        "earlier": "as was answered in an earlier import",
    }
    if empty.taken_as == "nothing":
        doubt = f"; but {empty.clicked:,} were clicked" if empty.clicked else ""
        return f"{facts}counted as having found nothing, {ways[empty.by]}{doubt}"
    if empty.by != "default":
        return f"{facts}unknown, {ways[empty.by]}; ZeroResults leaves them out"
    if empty.likely_nothing:
        meaning = "they very likely found nothing, but count as unknown, and "
    elif empty.clicked:
        meaning = "so an empty cell does not always mean zero results. They count as unknown, and "
    else:
        meaning = "whether they found anything is not logged. They count as unknown, and "
    again = "" if check else ", and import the logs again into an empty event store"
    return (
        f"{facts}{meaning}ZeroResults leaves them out. Set the meaning in a mapping: [hits] "
        f'empty = 0 (they found nothing) or empty = "unknown"{again}'
    )


def question(empty: EmptyHits) -> str:
    return f"{_facts(empty)}. Does empty mean that nothing was found?"


def _facts(empty: EmptyHits) -> str:
    names = " and ".join(map(repr, empty.columns))
    counts = f"{empty.searches:,} of {empty.of:,} searches have an empty {names}"
    others = empty.of - empty.searches
    if not (empty.clicked or empty.others_clicked):
        return f"{counts}, and the log has no click on any search"
    share = f"{100 * empty.others_clicked / others:.0f} %" if others else "none"
    clicked = f"{empty.clicked:,}" if empty.clicked else "none"
    return f"{counts}; {clicked} of them were clicked, of the others {share}"
