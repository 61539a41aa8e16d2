"""Sampling: queries drawn from a log into a golden set, with known weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import sqlalchemy as sa

from karat.errors import UsageError
from karat.formats.tables.query_log import Most, read_query_log
from karat.golden.composition import Composition, composition
from karat.golden.sampling import Quota, Sample, choose, refreshed
from karat.golden.splitting import PART, SHARE, Split, split
from karat.golden.traffic import THIRDS, Cleaned, clean, with_bands
from karat.store.sql import audit, golden_sets, judgments, queries
from karat.store.sql.upsert import Put
from karat.workflows.golden.hard_queries import Hard
from karat.workflows.workspace.known_queries import over, same_queries
from karat.workflows.workspace.workspace import Workspace

ON_SERVER = Most(64 << 20, 2_000_000)  # the largest log a server accepts: it is read into memory
FROM_LOG = "log"  # the origin of sampled queries; only these are dropped when a new sample is drawn


def put_queries(c: sa.Connection, set_id: int, frame: pl.DataFrame, now: int) -> Put:
    """Put queries into a golden set, with and without weights.

    A query that no log counted represents no share of the searches: its weight stays null.
    """
    parts = [frame]
    if "weight" in frame.columns:
        unknown = pl.col("weight").is_null()
        parts = [frame.filter(~unknown), frame.filter(unknown).drop("weight")]
    puts = [queries.put(c, set_id, part, now) for part in parts if part.height]
    return Put(
        sum(put.added for put in puts),
        sum(put.changed for put in puts),
        sum(put.same for put in puts),
    )


@dataclass(frozen=True)
class Chosen:
    log: Cleaned  # the cleaned log, with the numbers of rows left out
    sample: Sample  # the queries drawn
    made_of: Composition  # composition of the golden set
    added: int  # number of new queries
    kept: int  # number of sampled queries that were in the golden set
    # Queries of an earlier sample that were dropped, with the reason; their judgments stay
    gone: pl.DataFrame
    hard: Hard | None = None  # the hard queries of a run that were added; None if not requested


@dataclass(frozen=True)
class Placed:
    """The outcome of putting a sample into a golden set; fields as in ``Chosen``."""

    made_of: Composition
    added: int
    kept: int
    gone: pl.DataFrame


@dataclass(frozen=True)
class Drawn:
    """A sample of a log that is not in a golden set yet."""

    log: Cleaned  # the cleaned log, with the numbers of rows left out
    sample: Sample  # the queries drawn
    banded: pl.DataFrame  # `key` and `band` of every query of the log


@dataclass(frozen=True)
class Plan:
    """What putting a sample into a golden set would change."""

    added: int  # number of new queries
    kept: int  # number of sampled queries that are in the golden set
    # Queries of an earlier sample that would be dropped: `query_id`, `text`, `reason`
    gone: pl.DataFrame
    # Why it needs `replace`: most of the earlier sample would be dropped, or judged queries would
    # no longer count; None if neither
    lost: UsageError | None


def draw_queries(
    opened: Workspace,
    log: str | Path,
    size: int,
    *,
    bands: Mapping[str, float] | None = None,
    quotas: Sequence[Quota] = (),
    hard: Sequence[str] = (),
    mask: bool = False,
    text: str | None = None,
    count: str | None = None,
    most: Most | None = None,
) -> Drawn:
    """Draw queries from a log without changing anything; arguments as in ``choose_queries``."""
    notes: list[str] = []
    rows = read_query_log(log, text=text, count=count, notes=notes, most=most)
    cleaned = clean(rows, mask=mask, source=str(log))
    cleaned = changed(cleaned, notes=(*notes, *cleaned.notes))
    banded = with_bands(cleaned.frame, THIRDS if bands is None else bands)
    sample = choose(banded, size, salt=opened.golden.salt, quotas=quotas, hard=hard)
    return Drawn(cleaned, sample, banded.select("key", "band"))


def plan_queries(opened: Workspace, drawn: Drawn) -> Plan:
    """What ``put_sample`` would change now."""
    with opened.store.read() as connection:
        against = _against(connection, opened.golden.id, drawn.sample.queries, drawn.banded)
        lost = _loss(connection, opened.golden.id, against)
    is_known = against.sample["query_id"].is_in(against.known["query_id"].implode())
    kept = int(is_known.sum())
    return Plan(against.sample.height - kept, kept, against.gone, lost)


def choose_queries(
    opened: Workspace,
    log: str | Path,  # the file; `-` for standard input
    size: int,  # number of queries to draw
    *,
    now: int,
    replace: bool = False,
    person: str | None = None,  # the user, for the audit log; None at the command line
    hard_from: Hard | None = None,
    **how: Any,
) -> Chosen:
    """Draw queries from a log and put them into the golden set.

    A query that differs from an existing one only in case or white space is that query, and keeps
    its judgments. Random numbers depend on the text and the golden set's salt only, so sampling a
    newer log changes few queries. Queries no longer drawn are dropped; imported and hand-written
    ones stay, but without a weight, so they do not count in means if others have one.

    Args:
        replace: Allow dropping more than half of an earlier sample, and judged queries that no
            longer count.
        hard_from: Hard queries of a run (``workflows.golden.hard_queries``), added to ``hard``.
        **how: ``bands`` (name to share of all searches, most frequent first; the rest is the tail;
            thirds if None), ``quotas`` (minimum numbers by attribute), ``hard`` (texts of hard
            queries: added to the sample, and reported separately), ``mask`` (replace personal data
            by its kind), ``text`` and ``count`` (names of the columns, if unusual), ``most``
            (maximum size of the log).
    """
    if hard_from is not None:
        how["hard"] = [*how.get("hard", ()), *hard_from.frame["text"]]
    drawn = draw_queries(opened, log, size, **how)
    put = put_sample(
        opened,
        drawn.sample.queries,
        now=now,
        banded=drawn.banded,
        replace=replace,
        person=person,
    )
    return Chosen(drawn.log, drawn.sample, put.made_of, put.added, put.kept, put.gone, hard_from)


def put_sample(
    opened: Workspace,
    sample: pl.DataFrame,
    *,
    now: int,
    banded: pl.DataFrame | None = None,
    replace: bool = False,
    person: str | None = None,
) -> Placed:
    """Put a drawn sample into the golden set; see ``choose_queries``."""
    golden = opened.golden
    with opened.store.begin() as connection:
        golden_sets.hold(connection, golden.id)  # lock before reading its queries
        against = _against(connection, golden.id, sample, banded)
        lost = _loss(connection, golden.id, against)
        if lost is not None and not replace:
            raise lost
        merged = _merged(against.known, against.sample, against.by_hand)
        put = put_queries(connection, golden.id, merged, now)
        if against.gone.height:
            queries.drop(connection, golden.id, against.gone["query_id"].to_list(), now)
        if person is not None:
            about = {"drawn": sample.height, "new": put.added, "dropped": against.gone.height}
            audit.note(connection, person, "choose queries", golden.name, now, about)
        after = queries.frame(connection, golden.id)
    return Placed(composition(after), put.added, put.changed + put.same, against.gone)


def split_queries(opened: Workspace, share: float = SHARE, *, now: int) -> Split:
    """Assign each query of a golden set to a part, ``dev`` or ``held_out``, as an attribute.

    With the golden set's salt, a query added later moves no others; one that has a part keeps it.
    """
    golden = opened.golden
    with opened.store.begin() as connection:
        golden_sets.hold(connection, golden.id)
        frame = queries.frame(connection, golden.id)
        before = frame[PART].to_list() if PART in frame.columns else [None] * frame.height
        of_query = dict(zip(frame["query_id"], before, strict=True))
        assigned = split(of_query, share, golden.salt, source=golden.name)
        parts = pl.Series(PART, list(assigned.parts.values()), dtype=pl.String)
        put_queries(connection, golden.id, frame.with_columns(parts), now)
    return assigned


class _Against(NamedTuple):
    """A sample compared with a golden set: drawn before, known, not from a log, to be dropped.

    ``silent`` are ids of queries that stay and count in means now, but would no longer count.
    """

    sample: pl.DataFrame
    drawn: pl.DataFrame
    known: pl.DataFrame
    by_hand: pl.DataFrame
    gone: pl.DataFrame
    silent: pl.Series


def _against(
    c: sa.Connection, set_id: int, sample: pl.DataFrame, banded: pl.DataFrame | None
) -> _Against:
    before = queries.frame(c, set_id)
    origin = pl.col("origin") if "origin" in before.columns else pl.lit(None, pl.String)
    drawn = before.filter(origin.eq_missing(FROM_LOG))
    known = queries.frame(c, set_id, dropped=True).drop("dropped_us")
    renamed = sample.with_columns(pl.col("query_id").replace(same_queries(known, sample)))
    log = pl.DataFrame(schema={"key": pl.String, "band": pl.String}) if banded is None else banded
    gone = refreshed(drawn, renamed, log).filter(pl.col("change") == "gone")
    if banded is None:
        gone = gone.with_columns(reason=pl.lit(None, pl.String))
    by_hand = before.filter(~origin.eq_missing(FROM_LOG))
    counts = before
    if "weight" in before.columns and before["weight"].count():
        counts = before.filter(pl.col("weight") > 0)
    weighed = renamed.drop_nulls("weight")
    stays = counts.join(gone, on="query_id", how="anti") if weighed.height else counts.clear()
    silent = stays.join(weighed, on="query_id", how="anti")["query_id"]
    return _Against(renamed, drawn, known, by_hand, gone, silent)


def _loss(c: sa.Connection, set_id: int, against: _Against) -> UsageError | None:
    """Why a sample needs ``replace``; None if it does not.

    If most of the earlier sample is dropped, the log or column is usually wrong. Imported judged
    queries no longer count in means after the first sample: no log counted them.
    """
    gone, drawn = against.gone, against.drawn.height
    reasons, fixes = [], []
    if 2 * gone.height > drawn:
        judged = _judged(c, set_id, gone["query_id"])
        reasons.append(
            f"{gone.height:,} of the {drawn:,} queries drawn before would be dropped, "
            f"{judged:,} of them judged"
        )
        fixes.append("check log, columns and size")
    if silent := _judged(c, set_id, against.silent):
        are, they = ("query is", "it") if silent == 1 else ("queries are", "they")
        reasons.append(
            f"{silent:,} judged {are} not in this sample: {they} would have no weight, and no "
            "longer count in means"
        )
        fixes.append("import a file of queries with weights later to count them again")
    if not reasons:
        return None
    return UsageError(
        "; and ".join(reasons),
        fix="; ".join([*fixes, "or replace the sample: all judgments are kept"]),
    )


def _judged(c: sa.Connection, set_id: int, query_ids: pl.Series) -> int:
    return judgments.current(c, set_id).of(query_ids).frame["query_id"].n_unique()


def _merged(known: pl.DataFrame, sample: pl.DataFrame, by_hand: pl.DataFrame) -> pl.DataFrame:
    """The queries drawn, merged with what is stored; those not drawn lose their weight.

    ``by_hand``: queries not from a log, which stay whether drawn or not.
    """
    drawn = over(known, sample, "query_id")
    if "origin" in by_hand.columns:
        own = by_hand.select("query_id", own="origin", hand=pl.lit(value=True))
        drawn = drawn.join(own, on="query_id", how="left", maintain_order="left")
        origin = pl.when(pl.col("hand")).then("own").otherwise("origin")
        drawn = drawn.with_columns(origin.alias("origin")).drop("own", "hand")
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


def read_bands(texts: Sequence[str]) -> dict[str, float] | None:
    """Bands from ``NAME=SHARE``, such as ``head=0.33`` or ``head=1/3``; None if empty."""
    pairs = (_pair(text, "head=0.33") for text in texts)
    return {name: _share(share) for name, share in pairs} or None


def read_quota(text: str) -> Quota:
    """A quota from ``ATTRIBUTE=VALUE:N``."""
    attribute, rest = _pair(text, "class=name:10")
    value, colon, least = rest.rpartition(":")
    if not colon or not least.isdecimal():
        raise UsageError(f"{text!r} has no number of queries", fix="such as class=name:10")
    return Quota(attribute, value, int(least))


def _pair(text: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"{text!r} has no '='", fix=f"such as {example}")
    return name.strip(), value.strip()


def _share(text: str) -> float:
    over, slash, under = text.partition("/")
    try:
        return float(over) / float(under) if slash else float(text)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"{text!r} is not a share", fix="such as head=0.33") from None
