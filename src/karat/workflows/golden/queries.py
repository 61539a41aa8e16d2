"""A golden set as lists of queries, pairs, judgments and disagreements; and adding one query."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.errors import UsageError, check_known
from karat.formats.own.passports import certified
from karat.golden.editions import Freeze, may_freeze
from karat.golden.freshness import stale
from karat.golden.traffic import folded
from karat.store.sql import audit, browsing, documents, golden_sets, judgments, queries
from karat.tables.judgments import MACHINE
from karat.workflows.golden.agreement import IMPORT, Moment, agreement_at, disagreements_at, moment
from karat.workflows.golden.editions import standing
from karat.workflows.workspace.stored_inputs import ids_by_text
from karat.workflows.workspace.workspace import Workspace

COUNTS = ("documents", "graded", "judgments", "waiting", "editions", "words")
"""Columns that ``queries_in`` adds."""
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
"""States of a pair; the first that fits is used."""
_KEY = ["query_id", "doc_id"]
_LONGEST = 1_000  # characters of a query
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OWN = {"query_id", "text", "need", "weight", "stratum", "band", "count", "probability", "origin"}


@dataclass(frozen=True)
class OneQuery:
    query: dict[str, Any]  # as in `karat.store.sql.queries.frame`, without nulls
    documents: pl.DataFrame  # its pairs, as `pairs_in` returns them
    editions: list[str]  # names of the editions that contain it


@dataclass(frozen=True)
class OnePair:
    query_id: str
    text: str | None  # text of the query, or None
    need: str | None  # information need of the query, or None
    doc_id: str  # the document
    document: dict[str, Any] | None  # `title`, `text`, `url`, `attributes`; None if unknown
    # Its row of `pairs_in`, without `title`; None if it is no longer queued or judged
    pair: dict[str, Any] | None
    # As `karat.store.sql.judgments.history` returns it, with `machine` as `judgments_in`
    history: pl.DataFrame


@dataclass(frozen=True)
class Ready:
    """What an edition frozen now would contain."""

    queries: int
    grades: int
    contradicted: int  # imported grades left out because raters contradict them
    agreed: Freeze  # whether raters agree enough, and why


def column_of(attribute: str, taken: Collection[str] = ()) -> str:
    """The column name of an attribute of queries in lists."""
    plain = _PLAIN.fullmatch(attribute) and attribute not in {*COUNTS, *taken}
    return attribute if plain else f"attribute {attribute}"


def queries_in(
    opened: Workspace, taken: Collection[str] = ()
) -> tuple[pl.DataFrame, dict[str, str]]:
    """The queries of a golden set, with their progress.

    Returns:
        As ``karat.store.sql.queries.frame``, attributes under the names of ``column_of``, and the
        numbers of ``documents`` queued or judged, ``graded`` documents, ``judgments`` that count,
        ``waiting`` judgments and ``editions``, and ``words`` (``1`` to ``4``, ``5 or more``). Then
        the attribute names by column.
    """
    with opened.store.read() as connection:
        snapshot = moment(connection, opened.golden.id)
        frozen = browsing.editions_of_queries(connection, opened.golden.id)
    pair_rows = _pairs(snapshot, certified(opened.workspace.root))
    counts = pair_rows.group_by("query_id").agg(
        documents=pl.len().cast(pl.Int64),
        graded=pl.col("grade").count().cast(pl.Int64),
        waiting=pl.col("waiting").sum(),
    )
    judgment_counts = snapshot.judgments.frame.group_by("query_id").agg(
        judgments=pl.len().cast(pl.Int64)
    )
    query_rows, names = _asked(snapshot.queries, taken)
    for counted in (counts, judgment_counts, frozen):
        query_rows = query_rows.join(counted, on="query_id", how="left", maintain_order="left")
    number = pl.col("text").str.strip_chars().str.count_matches(r"\S+")
    words = pl.when(number >= 5).then(pl.lit("5 or more")).otherwise(number.cast(pl.String))
    filled = [pl.col(name).fill_null(0) for name in COUNTS if name != "words"]
    return query_rows.with_columns(*filled, words=words), names


def documents_in(opened: Workspace) -> pl.DataFrame:
    with opened.store.read() as connection:
        return documents.frame(connection, opened.golden.id)


def pairs_in(opened: Workspace) -> pl.DataFrame:
    """Every pair of a golden set that is queued or judged.

    Returns:
        ``query_id``, ``text`` of the query, ``doc_id``, ``title``, ``state`` (of ``STATES``),
        ``grade`` that counts, the ``rule`` of its aggregation, ``votes``, ``said`` (``ann 2,
        ben –, cheap@1f (uncertified machine) 1``: every rating, by name), ``raters`` and ``grades``
        (people's, as agreement uses them; lists in the same order), ``low`` and ``high``
        (people's), ``adjudicated``, ``imported`` grade, ``gold_grade``, ``waiting`` judgments,
        ``priority``, ``chosen_by``.
    """
    with opened.store.read() as connection:
        snapshot = moment(connection, opened.golden.id)
        titles = browsing.documents(connection, opened.golden.id, "title")
    return _described(_pairs(snapshot, certified(opened.workspace.root)), titles)


def given_by(frame: pl.DataFrame, *given: tuple[str | None, float]) -> pl.DataFrame:
    """Pairs to which raters gave these grades: those in a cell of a confusion matrix."""

    def gave(raters: list[str | None], grades: list[float | None]) -> bool:
        left = list(zip(raters, grades, strict=True))
        for rater, grade in given:
            match = next((i for i, (r, g) in enumerate(left) if g == grade and rater in (None, r)))
            del left[match]
        return True

    def met(row: tuple[list[str | None] | None, list[float | None] | None]) -> bool:
        try:
            return gave(row[0] or [], row[1] or [])
        except StopIteration:
            return False

    matches = [met(row) for row in frame.select("raters", "grades").iter_rows()]
    return frame.filter(pl.Series(matches, dtype=pl.Boolean))


def judgments_in(opened: Workspace) -> pl.DataFrame:
    """The judgments that count now, newest first.

    Returns:
        ``karat.tables.schema.JUDGMENTS`` with ``text`` of the query, ``title`` of the document and
        ``stale``: whether the document has changed or is gone, and ``machine``: ``certified`` or
        ``uncertified``, of a machine's judgment.
    """
    with opened.store.read() as connection:
        snapshot = moment(connection, opened.golden.id)
        judged = snapshot.derive("described", lambda: _judgments(connection, snapshot))
    return judged.with_columns(machine=_machine(certified(opened.workspace.root)))


def _judgments(connection: sa.Connection, snapshot: Moment) -> pl.DataFrame:
    titles = browsing.documents(connection, snapshot.golden.id, "title")
    hashed = snapshot.judgments.frame["document_hash"].null_count() < len(snapshot.judgments)
    hashes = browsing.documents(connection, snapshot.golden.id, "sha256") if hashed else None
    texts = snapshot.queries.select("query_id", "text")
    judged = snapshot.judgments.frame.join(texts, on="query_id", how="left", maintain_order="left")
    outdated = pl.Series(dtype=pl.Int64)
    if hashes is not None:
        outdated = stale(snapshot.judgments, hashes).judgments["judgment"]
    is_old = pl.col("judgment").is_in(outdated.implode())
    return _described(judged, titles).with_columns(stale=is_old)[::-1]


def query_in(opened: Workspace, query_id: str) -> OneQuery:
    """A query with its documents, which also have ``begins``, the start of the text."""
    with opened.store.read() as connection:
        snapshot = moment(connection, opened.golden.id)
        pair_rows = _pairs(_of(snapshot, query_id), certified(opened.workspace.root))
        beginnings = browsing.beginnings(
            connection, opened.golden.id, pair_rows["doc_id"].to_list(), 400
        )
        names = browsing.editions_of_query(connection, opened.golden.id, query_id)
    row = _query(snapshot, query_id)
    filled = {name: value for name, value in row.items() if value is not None}
    return OneQuery(filled, _described(pair_rows, beginnings), names)


def pair_in(opened: Workspace, query_id: str, doc_id: str) -> OnePair:
    with opened.store.read() as connection:
        snapshot = moment(connection, opened.golden.id)
        document = browsing.one_document(connection, opened.golden.id, doc_id)
        history = judgments.history(connection, opened.golden.id, query_id, doc_id)
    passed = certified(opened.workspace.root)
    rows = _pairs(_of(snapshot, query_id), passed).filter(pl.col("doc_id") == doc_id)
    pair = next(rows.iter_rows(named=True), None)
    if pair is None and not history.height:
        raise UsageError(f"document {doc_id!r} was neither queued nor judged for {query_id!r}")
    query_rows = snapshot.queries.filter(pl.col("query_id") == query_id)
    row: Mapping[str, Any] = next(query_rows.iter_rows(named=True), {})
    return OnePair(
        query_id=query_id,
        text=row.get("text"),
        need=row.get("need"),
        doc_id=doc_id,
        document=document,
        pair=pair,
        history=history.with_columns(machine=_machine(passed)),
    )


def ready_in(opened: Workspace) -> Ready:
    """What an edition frozen now would contain, and whether the policy allows it."""
    with opened.store.read() as connection:
        snapshot = moment(connection, opened.golden.id)
    agreed = agreement_at(snapshot, opened.workspace)
    contradicted = disagreements_at(snapshot).filter(pl.col("between") == IMPORT).height
    return Ready(
        queries=snapshot.queries.height,
        grades=standing(snapshot).grades.height,
        contradicted=contradicted,
        agreed=may_freeze(agreed.headline, opened.workspace),
    )


def disagreements_listed(opened: Workspace) -> pl.DataFrame:
    """Unsettled disagreements, as ``agreement.disagreements_at`` returns them, for a list.

    Returns:
        Its columns, ``title``, ``said`` (``ann 0, ben 3``), ``why`` (``ann: …``, if reasons were
        given) and ``asked`` (``waits``: in the adjudication queue; ``in vain``: an adjudicator
        could not judge it; null).
    """
    with opened.store.read() as connection:
        snapshot = moment(connection, opened.golden.id)
        titles = browsing.documents(connection, opened.golden.id, "title")
    waits = snapshot.pairs.filter(pl.col("adjudications_open") > 0).select(*_KEY, w=pl.lit("waits"))
    unjudgeable = snapshot.judgments.frame.filter(pl.col("kind") == "adjudication")
    unjudgeable = unjudgeable.select(*_KEY, v=pl.lit("in vain")).unique()
    listed = _described(disagreements_at(snapshot), titles)
    for asked in (waits, unjudgeable):
        listed = listed.join(asked, on=_KEY, how="left", maintain_order="left")
    each = listed.with_row_index("at").explode("raters", "grades", "reasons")
    grade = pl.col("grades").cast(pl.String).str.strip_suffix(".0")
    reason = pl.when(pl.col("reasons") != "").then(pl.format("{}: {}", "raters", "reasons"))
    said = each.group_by("at", maintain_order=True).agg(
        said=pl.format("{} {}", "raters", grade).str.join(", "),
        why=reason.drop_nulls().str.join(" · "),
    )
    return listed.with_columns(
        said["said"],
        said["why"].replace("", None),
        asked=pl.coalesce("w", "v"),
    ).drop("w", "v")


def imports_in(opened: Workspace) -> pl.DataFrame:
    """The imported files, newest first: ``id``, ``file``, ``format``, ``time_us``."""
    with opened.store.read() as connection:
        return browsing.imports(connection, opened.golden.id)


def _asked(frame: pl.DataFrame, taken: Collection[str]) -> tuple[pl.DataFrame, dict[str, str]]:
    """Queries with attributes under safe column names, lists as text; and names by column."""
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


def _query(snapshot: Moment, query_id: str) -> dict[str, Any]:
    known = snapshot.queries["query_id"].to_list()
    check_known(query_id, known, f"the golden set has no query {query_id!r}", None)
    return snapshot.queries.row(known.index(query_id), named=True)


def _described(frame: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    return frame.join(documents, on="doc_id", how="left", maintain_order="left")


def _of(snapshot: Moment, query_id: str) -> Moment:
    of_query = pl.col("query_id") == query_id
    current, first = (
        each.of(pl.Series([query_id])) for each in (snapshot.judgments, snapshot.first)
    )
    return Moment(
        snapshot.queries.filter(of_query),
        current,
        first,
        snapshot.pairs.filter(of_query),
        snapshot.golden,
    )


def _machine(passed: Collection[str]) -> pl.Expr:
    """Whether a machine's judgment is by a certified judge; null for people's and others."""
    verdict = pl.when(pl.col("rater").is_in(list(passed))).then(pl.lit("certified"))
    return pl.when(pl.col("source") == MACHINE).then(verdict.otherwise(pl.lit("uncertified")))


def _who(passed: Collection[str]) -> pl.Expr:
    """The rater, with a mark of a machine."""
    marked = pl.format("{} ({} machine)", "rater", _machine(passed))
    return pl.when(pl.col("source") == MACHINE).then(marked).otherwise("rater")


def _pairs(snapshot: Moment, passed: frozenset[str]) -> pl.DataFrame:
    """The pairs as ``pairs_in`` returns them, without columns of documents."""
    return snapshot.derive(("pairs", passed), lambda: _listed_pairs(snapshot, passed))


def _listed_pairs(snapshot: Moment, passed: frozenset[str]) -> pl.DataFrame:
    current = snapshot.judgments.frame
    queued = snapshot.pairs
    latest, first = (
        each.filter(pl.col("kind") == "rating").unique(
            [*_KEY, "rater", "source"], keep="last", maintain_order=True
        )
        for each in (current, snapshot.first.frame)
    )
    grade = pl.col("grade")
    integral = grade == grade.floor()
    short = pl.when(integral).then(grade.cast(pl.Int64, strict=False).cast(pl.String))
    grade_text = short.otherwise(grade.cast(pl.String)).fill_null("–")
    # Raters come before imported grades without a rater.
    by_person = pl.col("source") == "human"
    people = latest.sort(~by_person, "rater", maintain_order=True)
    votes = people.group_by(_KEY, maintain_order=True).agg(
        pl.concat_str(_who(passed), pl.lit(" "), grade_text).str.join(", ").alias("said"),
        grade.filter(by_person).min().alias("low"),
        grade.filter(by_person).max().alias("high"),
        grade.filter(pl.col("source") == "import").first().alias("imported"),
    )
    agreed = first.filter(by_person).sort("rater", maintain_order=True)
    agreed = agreed.group_by(_KEY, maintain_order=True).agg(raters="rater", grades="grade")
    settled = (
        current.filter((pl.col("kind") == "adjudication") & grade.is_not_null())
        .unique(_KEY, keep="last", maintain_order=True)
        .select(*_KEY, adjudicated="grade")
    )
    counting = standing(snapshot).grades.select(*_KEY, "grade", "rule", "votes")
    unsettled = (
        disagreements_at(snapshot).select(_KEY).unique().with_columns(apart=pl.lit(value=True))
    )
    keys = pl.concat([queued.select(_KEY), current.select(_KEY)]).unique(maintain_order=True)
    pairs = keys.join(
        snapshot.queries.select("query_id", "text"),
        on="query_id",
        how="left",
        maintain_order="left",
    )
    queue_columns = queued.select(
        *_KEY, "gold_grade", "priority", "chosen_by", "adjudications_open", waiting="open"
    )
    for part in (votes, agreed, settled, counting, unsettled, queue_columns):
        pairs = pairs.join(part, on=_KEY, how="left", maintain_order="left")
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
    return pairs.with_columns(
        state=state, waiting=pl.col("waiting").fill_null(0), votes=pl.col("votes").fill_null(0)
    ).drop("apart", "adjudications_open")


def add_query(opened: Workspace, text: str, *, person: str, now: int) -> str:
    """Add a query that somebody typed; audited.

    Returns:
        Its id; that of the query with this text if there is one.
    """
    text = " ".join(text.split())
    if not 1 <= len(text) <= _LONGEST:
        raise UsageError(f"a query has 1 to {_LONGEST:,} characters", fix="type a query")
    known = ids_by_text(opened)
    with opened.store.begin() as connection:
        golden_sets.hold(connection, opened.golden.id)
        taken = set(queries.frame(connection, opened.golden.id, dropped=True)["query_id"])
        [key] = folded([text])
        if known.get(key) in taken:
            return known[key]
        number = len(taken) + 1
        while (query_id := f"q{number}") in taken:
            number += 1
        row = pl.DataFrame({"query_id": [query_id], "text": [text], "origin": ["written"]})
        queries.put(connection, opened.golden.id, row, now)
        audit.note(connection, person, "add query", query_id, now, {"text": text})
    return query_id
