"""Inputs of stored evaluations and comparisons: judgments of a golden set, and stored runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import polars as pl

from karat.errors import InputError, UsageError
from karat.golden.traffic import folded
from karat.store.sql import comparisons, documents, judgments
from karat.store.sql.states import inputs_state, queries_state
from karat.tables import Documents, Qrels, Queries, Run
from karat.tables.judgments import Judgments
from karat.tables.workspace import RunRow
from karat.workflows.golden.editions import NOW, Standing, standing_in, weighed
from karat.workflows.workspace import stored_runs
from karat.workflows.workspace.artifacts import key_of
from karat.workflows.workspace.known_queries import query_frame
from karat.workflows.workspace.stored_judgments import qrels_by
from karat.workflows.workspace.workspace import Workspace

_VERSION = 1  # of ``about_queries``
_T = TypeVar("_T")
DEEPEST = 1_000  # number of ranks stored of each ranking
HEADS: dict[str, Any] = {
    "run": pl.Int64,
    "query_id": pl.String,
    "doc_id": pl.String,
    "score": pl.Float64,
}
_NO_CLASS = {"query_id", "text", "need", "weight", "count", "probability", "origin", "why"}


@dataclass(frozen=True)
class Judged:
    qrels: Qrels
    queries: Queries
    documents: Documents | None  # for slices by documents; None unless requested
    newest: int  # id of the newest judgment
    edition: str  # name of the edition, or `now`
    digest: str  # hash of all these (`inputs_digest`), but for grades of another `source`
    sources: str  # of the judgments, joined by +; empty if unknown


def judged(
    opened: Workspace,
    edition: str = NOW,
    *,
    with_documents: bool = False,
    source: str | None = None,
) -> Judged:
    """Judgments of the current golden set, or of an edition of it.

    Args:
        edition: Its name.
        with_documents: Whether to read the documents too.
        source: Whose judgments; if None, those of people, and imported ones where they gave none.
    """
    if source is not None and edition != NOW:
        raise UsageError(
            f"the edition {edition} has the grades that people gave or imported, and those of "
            f"{source} were asked for",
            fix="leave out one of the two",
        )
    document_table, set_id, live = None, opened.golden.id, edition == NOW
    with opened.store.read() as connection:
        content = standing_in(connection, opened, edition)
        newest = comparisons.newest_judgment(connection, set_id)
        digest = inputs_state(connection, set_id, live=live, with_documents=with_documents)
        if with_documents:
            rows = documents.frame(connection, set_id).drop("sha256")
            document_table = Documents(rows, "documents of the golden set")
    if source is None and not content.grades.height:
        raise InputError("nothing is judged yet", fix="judge pairs first, or import judgments")
    by_source = None if source is None else qrels_by(opened, source, content.queries["query_id"])
    return Judged(
        qrels_of(content, opened) if by_source is None else by_source,
        Queries(weighed(content.queries)[0], f"golden set {opened.golden.name}"),
        document_table,
        newest,
        edition,
        digest,
        _sources(content.grades) if source is None else source,
    )


def _sources(grades: pl.DataFrame) -> str:
    """The sources of aggregated grades, joined; empty if an edition does not have them."""
    if "source" not in grades.columns:
        return ""
    return "+".join(sorted({one for each in grades["source"].unique() for one in each.split("+")}))


def qrels_now(opened: Workspace) -> Qrels | None:
    """The judgments of the golden set that count now; None without any."""
    with opened.store.read() as connection:
        content = standing_in(connection, opened, NOW)
    return qrels_of(content, opened) if content.grades.height else None


def inputs_digest(opened: Workspace, edition: str = NOW, *, with_documents: bool = False) -> str:
    """Hash that changes whenever the result of ``judged`` would change."""
    live = edition == NOW
    with opened.store.read() as connection:
        return inputs_state(connection, opened.golden.id, live=live, with_documents=with_documents)


def about_queries(opened: Workspace, what: str, make: Callable[[], _T]) -> _T:
    """Something, as JSON, that depends on the queries of the golden set alone; an artifact."""
    with opened.store.read() as connection:
        key = key_of(_VERSION, opened.golden.salt, queries_state(connection, opened.golden.id))
    answer: _T = opened.artifacts.answer(f"queries-{what}", key, make)
    return answer


def ids_by_text(workspace: Workspace) -> dict[str, str]:
    """Ids of the golden set's queries by normalized text."""

    def ids() -> dict[str, str]:
        frame = query_frame(workspace).drop_nulls("text")
        return dict(zip(folded(frame["text"].to_list()), frame["query_id"].to_list(), strict=True))

    return about_queries(workspace, "ids", ids)


def qrels_of(content: Standing, opened: Workspace) -> Qrels:
    """The grades of a golden set, on its scale."""
    grades = content.grades.select("query_id", "doc_id", "grade")
    source = f"golden set {opened.golden.name}, {content.name}"
    return Qrels(grades, source).on_scale(opened.golden.scale)


def read_stored(opened: Workspace, row: RunRow) -> Run:
    """A stored run, read only from a file within this workspace."""
    return stored_runs.read_stored(opened, [row])[0]


def heads(runs: Sequence[Run]) -> pl.DataFrame:
    """The top ``DEEPEST`` ranks of runs as ``HEADS``, sorted by query, index of run, and rank."""
    parts = [
        run.frame()
        .filter(pl.col("rank") <= DEEPEST)
        .select(pl.lit(place, pl.Int64).alias("run"), "query_id", "doc_id", "score")
        for place, run in enumerate(runs)
    ]
    return pl.concat([pl.DataFrame(schema=HEADS), *parts]).sort(
        "query_id", "run", maintain_order=True
    )


def unanswered(values: Iterable[Any], measure: str) -> pl.DataFrame:
    """``run``, ``query_id`` and ``state`` of queries whose state under a measure is not ``ok``."""
    schema = {"run": pl.String, "query_id": pl.String, "state": pl.String}
    rows = [
        (row.run, row.query_id, row.state)
        for row in values
        if row.measure == measure and row.state != "ok"
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def memberships(slices: Mapping[str, Sequence[str]]) -> list[str]:
    """The slices of a query, as URLs name them: ``lang=de``."""
    return [f"{attribute}={value}" for attribute, values in slices.items() for value in values]


def classes_in(workspace: Workspace) -> list[str]:
    """Attributes of the golden set's queries to group by: those with few values.

    ``origin`` and ``why`` (why the query was chosen) are left out: they do not describe the query.
    """
    return about_queries(workspace, "classes", lambda: _classes(query_frame(workspace)))


def _classes(frame: pl.DataFrame) -> list[str]:
    most = max(2, min(20, frame.height // 2))
    return [
        name
        for name in frame.columns
        if name not in _NO_CLASS
        and not frame.schema[name].is_nested()
        and 1 < frame[name].drop_nulls().n_unique() <= most
    ]


def golden_queries(opened: Workspace) -> Queries:
    """The queries of the golden set, with weights if any has one."""
    return Queries(weighed(query_frame(opened))[0], f"golden set {opened.golden.name}")


def single_judgments(opened: Workspace) -> Judgments:
    """The raters' judgments of the golden set that count now, one by one."""
    with opened.store.read() as connection:
        return judgments.current(connection, opened.golden.id)
