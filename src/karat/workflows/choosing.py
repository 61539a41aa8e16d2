"""Choosing: queries of a golden set from a log, drawn so that their weights are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path

import polars as pl
import sqlalchemy as sa

from karat.errors import UsageError
from karat.formats.query_log import read_query_log
from karat.golden.composition import Composition, composition
from karat.golden.sampling import Quota, Sample, choose, refreshed
from karat.golden.traffic import THIRDS, Cleaned, clean, with_bands
from karat.store import golden_sets, judgments, queries
from karat.store.putting import Put
from karat.workflows.known_queries import over, same_queries
from karat.workflows.workspace import Opened

FROM_LOG = "log"
"""The origin of queries that a log gave; only these go when a new sample is drawn."""


def put_queries(c: sa.Connection, set_id: int, frame: pl.DataFrame, now: int) -> Put:
    """Put queries into a golden set, those without a weight beside those that have one.

    What no log counted speaks for no share of the searches: its weight stays empty.

    Args:
        c: A write transaction.
        set_id: The golden set.
        frame: As ``karat.store.queries.put`` takes it, and ``weight`` may be null.
        now: Microseconds UTC.
    """
    parts = [frame]
    if "weight" in frame.columns:
        unknown = pl.col("weight").is_null()
        parts = [frame.filter(~unknown), frame.filter(unknown).drop("weight")]
    made = [queries.put(c, set_id, part, now) for part in parts if part.height]
    return Put(
        sum(each.added for each in made),
        sum(each.changed for each in made),
        sum(each.same for each in made),
    )


@dataclass(frozen=True)
class Chosen:
    """A sample, put into a golden set.

    Attributes:
        log: What became of the log's rows.
        sample: The queries drawn.
        made_of: What they are made of.
        added: Queries that are new in the golden set.
        kept: Queries of the sample that were in it.
        gone: Queries of an earlier sample that were dropped, with the reason; their judgments stay.
    """

    log: Cleaned
    sample: Sample
    made_of: Composition
    added: int
    kept: int
    gone: pl.DataFrame


def choose_queries(
    opened: Opened,
    log: str | Path,
    size: int,
    *,
    now: int,
    bands: Mapping[str, float] | None = None,
    quotas: Sequence[Quota] = (),
    hard: Sequence[str] = (),
    mask: bool = False,
    text: str | None = None,
    count: str | None = None,
    replace: bool = False,
) -> Chosen:
    """Draw queries from a log and put them into the golden set.

    A query that the golden set has, whatever its case and white space, is that query, and keeps
    what people said of it. Drawn again from a newer log, a query stays as long as its number draws
    it: the random numbers are made of its text and the golden set's salt. What is no longer drawn
    is dropped; what was imported or written by hand stays, without a weight.

    Args:
        opened: The workspace.
        log: The file; ``-`` for standard input.
        size: Queries to draw.
        now: Microseconds UTC.
        bands: Name to share of all searches, most asked first; the rest is the tail. Thirds if
            None.
        quotas: Least numbers by attribute.
        hard: Texts of queries known to be hard: on top, and reported apart.
        mask: Replace what is personal by its kind.
        text: The column of queries, if it has no usual name.
        count: The column of counts, if it has no usual name.
        replace: Whether more than half of an earlier sample may be dropped.

    Raises:
        InputError: the log cannot be read, or holds nothing.
        UsageError: a size, band or quota that cannot be met; or more than half of an earlier
            sample would be dropped, and that was not asked for.
    """
    notes: list[str] = []
    read = read_query_log(log, text=text, count=count, notes=notes)
    cleaned = clean(read, mask=mask, source=str(log))
    cleaned = changed(cleaned, notes=(*notes, *cleaned.notes))
    banded = with_bands(cleaned.frame, THIRDS if bands is None else bands)
    sample = choose(banded, size, salt=opened.golden.salt, quotas=quotas, hard=hard)
    golden = opened.golden
    with opened.store.begin() as connection:
        golden_sets.hold(connection, golden.id)  # before it is read which queries there are
        before = queries.frame(connection, golden.id)
        origin = pl.col("origin") if "origin" in before.columns else pl.lit(None, pl.String)
        drawn = before.filter(origin.eq_missing(FROM_LOG))
        known = queries.frame(connection, golden.id, dropped=True).drop("dropped_us")
        ids = same_queries(known, sample.queries)
        found = sample.queries.with_columns(pl.col("query_id").replace(ids))
        gone = refreshed(drawn, found, banded).filter(pl.col("change") == "gone")
        if not replace:
            _refuse_loss(connection, golden.id, gone, drawn.height)
        by_hand = before.filter(~origin.eq_missing(FROM_LOG))
        put = put_queries(connection, golden.id, _told(known, found, by_hand), now)
        if gone.height:
            queries.drop(connection, golden.id, gone["query_id"].to_list(), now)
        after = queries.frame(connection, golden.id)
    return Chosen(
        log=cleaned,
        sample=sample,
        made_of=composition(after),
        added=put.added,
        kept=put.changed + put.same,
        gone=gone,
    )


def _refuse_loss(c: sa.Connection, set_id: int, gone: pl.DataFrame, drawn: int) -> None:
    """Refuse a sample that drops most of the one before: another log or column, as a rule."""
    if 2 * gone.height <= drawn:
        return
    judged = judgments.current(c, set_id).of(gone["query_id"]).frame["query_id"].n_unique()
    raise UsageError(
        f"{gone.height:,} of the {drawn:,} queries drawn before would be dropped, "
        f"{judged:,} of them judged",
        fix="see that log, columns and --size are those meant; --replace drops them, and keeps "
        "their judgments",
    )


def _told(known: pl.DataFrame, found: pl.DataFrame, by_hand: pl.DataFrame) -> pl.DataFrame:
    """The queries drawn, over what was known of them; what was not drawn has no weight any more.

    ``by_hand``: queries that came otherwise than from a log, and stay whether drawn or not.
    """
    drawn = over(known, found, "query_id")
    if "origin" in by_hand.columns:
        own = by_hand.select("query_id", own="origin", hand=pl.lit(value=True))
        drawn = drawn.join(own, on="query_id", how="left", maintain_order="left")
        kept = pl.when(pl.col("hand")).then("own").otherwise("origin")
        drawn = drawn.with_columns(kept.alias("origin")).drop("own", "hand")
    elif by_hand.height:
        hand = pl.col("query_id").is_in(by_hand["query_id"].implode())
        drawn = drawn.with_columns(pl.when(hand).then(None).otherwise("origin").alias("origin"))
    if "weight" not in by_hand.columns:
        return drawn
    left = by_hand.filter(
        ~pl.col("query_id").is_in(drawn["query_id"].implode()) & pl.col("weight").is_not_null()
    )
    of_log = [n for n in ("weight", "probability", "stratum", "band", "count") if n in left.columns]
    left = left.with_columns(pl.lit(None, dtype=left.schema[name]).alias(name) for name in of_log)
    return pl.concat([drawn, left], how="diagonal_relaxed")
