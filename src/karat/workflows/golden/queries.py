"""Browsing: a golden set as lists, in which every row leads on; nothing here changes anything."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from karat.errors import UsageError, nearest
from karat.golden.freezing import Freeze, may_freeze
from karat.golden.freshness import stale
from karat.store.sql import browsing, judgments, queries
from karat.workflows.golden.agreement import IMPORT, Moment, agreement_at, disagreements_at, moment
from karat.workflows.golden.editions import standing
from karat.workflows.workspace.workspace import Workspace

COUNTS = ("documents", "graded", "judgments", "waiting", "editions", "words")
"""What ``queries_in`` adds to each query."""
STATES = (
    "to adjudicate",
    "settled",
    "disagreement",
    "to judge",
    "gold",
    "graded",
    "cannot judge",
    "not judged",
)
"""What a pair can be; the first that fits is said."""
_KEY = ["query_id", "doc_id"]
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OWN = {"query_id", "text", "need", "weight", "stratum", "band", "count", "probability", "origin"}


@dataclass(frozen=True)
class OneQuery:
    """A query with its documents.

    Attributes:
        query: As ``karat.store.sql.queries.frame`` has it, what is empty left out.
        documents: Its pairs, as ``pairs_in`` gives them.
        editions: Names of the editions that hold it.
    """

    query: dict[str, Any]
    documents: pl.DataFrame
    editions: list[str]


@dataclass(frozen=True)
class OnePair:
    """A pair with everything that was ever said of it.

    Attributes:
        query_id: Of the query.
        text: Of the query, or None.
        need: Of the query, or None.
        doc_id: Of the document.
        document: ``title``, ``text``, ``url``, ``attributes``; None where it is not known.
        pair: Its row of ``pairs_in``, no ``title``; None if it is neither queued nor judged any
            more.
        history: As ``karat.store.sql.judgments.history`` gives it.
    """

    query_id: str
    text: str | None
    need: str | None
    doc_id: str
    document: dict[str, Any] | None
    pair: dict[str, Any] | None
    history: pl.DataFrame


@dataclass(frozen=True)
class Ready:
    """What an edition made now would be.

    Attributes:
        queries: How many it would hold.
        grades: How many it would hold.
        contradicted: Imported grades that it would not hold, because raters contradict them.
        agreed: Whether raters agree enough for it.
    """

    queries: int
    grades: int
    contradicted: int
    agreed: Freeze


def column_of(attribute: str, taken: Collection[str] = ()) -> str:
    """The column that an attribute of queries goes by in lists: whatever strangers call it.

    Args:
        attribute: Its name.
        taken: Names that mean something else where the column is to be.
    """
    plain = _PLAIN.fullmatch(attribute) and attribute not in {*COUNTS, *taken}
    return attribute if plain else f"attribute {attribute}"


def queries_in(
    opened: Workspace, taken: Collection[str] = ()
) -> tuple[pl.DataFrame, dict[str, str]]:
    """The queries of a golden set, with how far each is.

    Args:
        opened: The workspace.
        taken: As in ``column_of``.

    Returns:
        As ``karat.store.sql.queries.frame``, attributes under the names of ``column_of``, and:
        ``documents`` that were queued or judged for it, ``graded`` documents, ``judgments`` that
        count, ``waiting`` judgments, ``editions`` that hold it, ``words`` (``1`` to ``4``, ``5 or
        more``). Then the attributes by column: what they are called.
    """
    with opened.store.read() as connection:
        held = moment(connection, opened.golden.id)
        frozen = browsing.editions_of_queries(connection, opened.golden.id)
    listed = _pairs(held)
    counts = listed.group_by("query_id").agg(
        documents=pl.len().cast(pl.Int64),
        graded=pl.col("grade").count().cast(pl.Int64),
        waiting=pl.col("waiting").sum(),
    )
    said = held.judgments.frame.group_by("query_id").agg(judgments=pl.len().cast(pl.Int64))
    asked, names = _asked(held.queries, taken)
    for counted in (counts, said, frozen):
        asked = asked.join(counted, on="query_id", how="left", maintain_order="left")
    number = pl.col("text").str.strip_chars().str.count_matches(r"\S+")
    words = pl.when(number >= 5).then(pl.lit("5 or more")).otherwise(number.cast(pl.String))
    counts_of = [pl.col(name).fill_null(0) for name in COUNTS if name != "words"]
    return asked.with_columns(*counts_of, words=words), names


def pairs_in(opened: Workspace) -> pl.DataFrame:
    """Every pair of a golden set that is queued or judged.

    Returns:
        ``query_id``, ``text`` of the query, ``doc_id``, ``title``, ``state`` (of ``STATES``),
        ``grade`` that counts, ``rule`` that made it, ``votes``, ``said`` (``ann 2, ben –``: every
        rating, in order of names), ``raters`` and ``grades`` (people's as agreement takes them,
        lists in one order), ``low`` and ``high`` (people's), ``adjudicated``, ``imported`` grade,
        ``gold_grade``, ``waiting``
        judgments, ``priority``, ``chosen_by``.
    """
    with opened.store.read() as connection:
        held = moment(connection, opened.golden.id)
        named = browsing.titles(connection, opened.golden.id)
    return _described(_pairs(held), named)


def given_by(frame: pl.DataFrame, *said: tuple[str | None, float]) -> pl.DataFrame:
    """Pairs to which raters gave these grades, as a cell of a confusion matrix counts them.

    Args:
        frame: As ``pairs_in`` gives it.
        said: Rater and grade; any other rater for None.
    """

    def gave(raters: list[str | None], grades: list[float | None]) -> bool:
        left = list(zip(raters, grades, strict=True))
        for rater, grade in said:
            found = next((i for i, (r, g) in enumerate(left) if g == grade and rater in (None, r)))
            del left[found]
        return True

    def met(row: tuple[list[str | None] | None, list[float | None] | None]) -> bool:
        try:
            return gave(row[0] or [], row[1] or [])
        except StopIteration:
            return False

    keep = [met(row) for row in frame.select("raters", "grades").iter_rows()]
    return frame.filter(pl.Series(keep, dtype=pl.Boolean))


def judgments_in(opened: Workspace) -> pl.DataFrame:
    """The judgments that count now, the newest first.

    Returns:
        ``karat.tables.schema.JUDGMENTS`` with ``text`` of the query, ``title`` of the document and
        ``stale``: whether the document is another now, or gone.
    """
    with opened.store.read() as connection:
        held = moment(connection, opened.golden.id)
        named = browsing.titles(connection, opened.golden.id)
        hashed = held.judgments.frame["document_hash"].null_count() < len(held.judgments)
        known = browsing.hashes(connection, opened.golden.id) if hashed else None
    texts = held.queries.select("query_id", "text")
    said = held.judgments.frame.join(texts, on="query_id", how="left", maintain_order="left")
    old = pl.Series(dtype=pl.Int64)
    if known is not None:
        old = stale(held.judgments, known).judgments["judgment"]
    is_old = pl.col("judgment").is_in(old.implode())
    return _described(said, named).with_columns(stale=is_old)[::-1]


def query_in(opened: Workspace, query_id: str) -> OneQuery:
    """A query with its documents; they have ``begins``, too: how the text begins.

    Raises:
        UsageError: the golden set has no such query.
    """
    with opened.store.read() as connection:
        held = moment(connection, opened.golden.id)
        found = _pairs(_of(held, query_id))
        begun = browsing.beginnings(connection, opened.golden.id, found["doc_id"].to_list(), 400)
        names = browsing.editions_of_query(connection, opened.golden.id, query_id)
    row = _query(held, query_id)
    kept = {name: value for name, value in row.items() if value is not None}
    return OneQuery(kept, _described(found, begun), names)


def pair_in(opened: Workspace, query_id: str, doc_id: str) -> OnePair:
    """A pair with its history.

    Raises:
        UsageError: it was neither queued nor judged.
    """
    with opened.store.read() as connection:
        held = moment(connection, opened.golden.id)
        shown = browsing.one_document(connection, opened.golden.id, doc_id)
        history = judgments.history(connection, opened.golden.id, query_id, doc_id)
    rows = _pairs(_of(held, query_id)).filter(pl.col("doc_id") == doc_id)
    pair = next(rows.iter_rows(named=True), None)
    if pair is None and not history.height:
        raise UsageError(f"document {doc_id!r} was neither queued nor judged for {query_id!r}")
    asked = held.queries.filter(pl.col("query_id") == query_id)
    row: Mapping[str, Any] = next(asked.iter_rows(named=True), {})
    return OnePair(
        query_id=query_id,
        text=row.get("text"),
        need=row.get("need"),
        doc_id=doc_id,
        document=shown,
        pair=pair,
        history=history,
    )


def ready_in(opened: Workspace) -> Ready:
    """What an edition made now would be, and whether the policy lets it be made."""
    with opened.store.read() as connection:
        held = moment(connection, opened.golden.id)
    agreed = agreement_at(held, opened.workspace)
    contradicted = disagreements_at(held).filter(pl.col("between") == IMPORT).height
    return Ready(
        queries=held.queries.height,
        grades=standing(held).grades.height,
        contradicted=contradicted,
        agreed=may_freeze(agreed.headline, opened.workspace),
    )


def classes_in(opened: Workspace) -> list[str]:
    """Attributes of the queries that numbers can be seen by: those of few values.

    Where a query came from (``origin``), and why it was taken (``why``), says nothing of what it
    asks for: neither is among them.
    """
    with opened.store.read() as connection:
        asked = queries.frame(connection, opened.golden.id)
    most = max(2, min(20, asked.height // 2))
    own = _OWN - {"stratum", "band"} | {"why"}
    named = [name for name in asked.columns if name not in own]
    return [
        name
        for name in named
        if not asked.schema[name].is_nested() and 1 < asked[name].drop_nulls().n_unique() <= most
    ]


def disagreements_listed(opened: Workspace) -> pl.DataFrame:
    """What is not settled, as ``agreeing.disagreements_at`` has it, to be read and chosen from.

    Returns:
        Its columns, ``title``, ``said`` (``ann 0, ben 3``), ``why`` (``ann: …``, where
        reasons were given) and ``asked`` (``waits``: an adjudicator is asked; ``in vain``: one
        could not judge it; null).
    """
    with opened.store.read() as connection:
        held = moment(connection, opened.golden.id)
        named = browsing.titles(connection, opened.golden.id)
    waits = held.pairs.filter(pl.col("adjudications_open") > 0).select(*_KEY, w=pl.lit("waits"))
    tried = held.judgments.frame.filter(pl.col("kind") == "adjudication")
    tried = tried.select(*_KEY, v=pl.lit("in vain")).unique()
    found = _described(disagreements_at(held), named)
    for asked in (waits, tried):
        found = found.join(asked, on=_KEY, how="left", maintain_order="left")
    rows = found.select("raters", "grades", "reasons").iter_rows()
    said, why = [], []
    for raters, grades, reasons in rows:
        said.append(", ".join(f"{r} {g:g}" for r, g in zip(raters, grades, strict=True)))
        told = [f"{r}: {w}" for r, w in zip(raters, reasons, strict=True) if w]
        why.append(" · ".join(told) or None)
    return found.with_columns(
        pl.Series("said", said, pl.String),
        pl.Series("why", why, pl.String),
        asked=pl.coalesce("w", "v"),
    ).drop("w", "v")


def imports_in(opened: Workspace) -> pl.DataFrame:
    """The files that were taken in, the newest first: ``id``, ``file``, ``format``, ``time_us``."""
    with opened.store.read() as connection:
        return browsing.imports(connection, opened.golden.id)


def _asked(frame: pl.DataFrame, taken: Collection[str]) -> tuple[pl.DataFrame, dict[str, str]]:
    """Queries with attributes under harmless names, and in values that are listed."""
    names: dict[str, str] = {}
    columns = []
    for name in frame.columns:
        own = name in _OWN or name == "no_answer"
        column = name if own else column_of(name, taken)
        it = pl.col(name)
        if frame.schema[name].is_nested():
            it = it.map_elements(lambda v: ", ".join(map(str, v)), return_dtype=pl.String)
        columns.append(it.alias(column))
        if not own:
            names[column] = name
    return frame.select(columns), names


def _query(held: Moment, query_id: str) -> dict[str, Any]:
    found = held.queries.filter(pl.col("query_id") == query_id)
    if not found.height:
        raise UsageError(
            f"the golden set has no query {query_id!r}",
            nearest=nearest(query_id, held.queries["query_id"].to_list(), 1),
        )
    return found.row(0, named=True)


def _described(frame: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    return frame.join(documents, on="doc_id", how="left", maintain_order="left")


def _of(held: Moment, query_id: str) -> Moment:
    """What is held of one query."""
    mine = pl.col("query_id") == query_id
    said, first = (each.of(pl.Series([query_id])) for each in (held.judgments, held.first))
    return Moment(held.queries.filter(mine), said, first, held.pairs.filter(mine), held.golden)


def _pairs(held: Moment) -> pl.DataFrame:
    """The pairs as ``pairs_in`` gives them, without what documents say."""
    said = held.judgments.frame
    queued = held.pairs
    latest, first = (
        each.filter(pl.col("kind") == "rating").unique(
            [*_KEY, "rater", "source"], keep="last", maintain_order=True
        )
        for each in (said, held.first.frame)
    )
    grade = pl.col("grade")
    whole = grade == grade.floor()
    short = pl.when(whole).then(grade.cast(pl.Int64, strict=False).cast(pl.String))
    spelt = short.otherwise(grade.cast(pl.String)).fill_null("–")
    # Whoever is named comes before a grade that nobody is named for.
    named = pl.col("source") == "human"
    people = latest.sort(~named, "rater", maintain_order=True)
    votes = people.group_by(_KEY, maintain_order=True).agg(
        pl.concat_str("rater", pl.lit(" "), spelt).str.join(", ").alias("said"),
        grade.filter(named).min().alias("low"),
        grade.filter(named).max().alias("high"),
        grade.filter(pl.col("source") == "import").first().alias("imported"),
    )
    agreed = first.filter(named).sort("rater", maintain_order=True)
    agreed = agreed.group_by(_KEY, maintain_order=True).agg(raters="rater", grades="grade")
    settled = (
        said.filter((pl.col("kind") == "adjudication") & grade.is_not_null())
        .unique(_KEY, keep="last", maintain_order=True)
        .select(*_KEY, adjudicated="grade")
    )
    counting = standing(held).grades.select(*_KEY, "grade", "rule", "votes")
    apart = disagreements_at(held).select(_KEY).unique().with_columns(apart=pl.lit(value=True))
    keys = pl.concat([queued.select(_KEY), said.select(_KEY)]).unique(maintain_order=True)
    found = keys.join(
        held.queries.select("query_id", "text"), on="query_id", how="left", maintain_order="left"
    )
    own = queued.select(
        *_KEY, "gold_grade", "priority", "chosen_by", "adjudications_open", waiting="open"
    )
    for part in (votes, agreed, settled, counting, apart, own):
        found = found.join(part, on=_KEY, how="left", maintain_order="left")
    fits = (
        pl.col("adjudications_open") > 0,
        pl.col("rule") == "adjudicated",
        pl.col("apart"),
        pl.col("waiting") > 0,
        pl.col("gold_grade").is_not_null(),
        grade.is_not_null(),
        pl.col("said").is_not_null(),
    )
    state: pl.Expr = pl.lit(STATES[-1])
    for word, fit in reversed(list(zip(STATES, fits, strict=False))):
        state = pl.when(fit).then(pl.lit(word)).otherwise(state)
    return found.with_columns(
        state=state, waiting=pl.col("waiting").fill_null(0), votes=pl.col("votes").fill_null(0)
    ).drop("apart", "adjudications_open")
